"""Closing a set of variables under parents, as far as their joint values can be afforded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

#: Some variables -> what predicts them, with the information that it has about them all.
ParentsOf = Callable[[Sequence[int]], Mapping[int, float]]


def close_under_parents(
    start: Sequence[int], parents: ParentsOf, sizes: Sequence[int], limit: float
) -> tuple[int, ...]:
    """Add what predicts a set of variables, then what predicts that, as long as there is room.

    >>> chain = {0: {1: 0.5}, 1: {2: 0.1, 3: 0.2}}
    >>> close_under_parents([0], lambda new: chain.get(new[0], {}), [2, 2, 2, 2], limit=8)
    (0, 1, 3)

    Args:
        start: the variables to begin with; of these too, only as many are taken as fit.
        parents: is asked for each generation; the parents that tell most are taken first.
        sizes: of all variables.
        limit: of the number of joint values.

    Returns:
        The chosen variables, in increasing order.
    """
    chosen: list[int] = []
    room = float(limit)
    newest = list(start)
    while newest:
        taken = []
        for i in newest:
            if sizes[i] <= room:
                room /= sizes[i]
                taken.append(i)
        chosen += taken
        told = {j: told for j, told in parents(taken).items() if j not in chosen} if taken else {}
        newest = sorted(told, key=lambda j: (-told[j], j))
    return tuple(sorted(chosen))
