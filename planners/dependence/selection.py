"""Choosing variables: the most informative one by one, or what predicts those that are chosen.

The search for parents, what a forecast looks at, and what tells about a dropped variable all go
the first way, greedy forward selection. They differ in what makes a candidate the best, and in the
test that it has to pass. Masks that fit a planner are closed under parents, the second way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from exo_envs.core.mdp import IntArray

#: (chosen, candidates) -> those that stay in the race, and those worth choosing, the best first.
Rank = Callable[[list[int], IntArray], tuple[IntArray, Iterable[int]]]
#: (chosen, candidate) -> whether the candidate passes its test given what was chosen.
Passes = Callable[[list[int], int], bool]
#: Some variables -> what predicts them, with the information that it has about them all.
ParentsOf = Callable[[Sequence[int]], Mapping[int, float]]


def select_forward(candidates: IntArray, limit: int, *, rank: Rank, passes: Passes) -> list[int]:
    """Choose variables one by one, until none is left that passes.

    Args:
        candidates: the variables to choose from.
        limit: how many are chosen at most.
        rank: puts the candidates in order, given what was chosen before, and drops those that need
            not be looked at again. Those that are not worth choosing stay out of the order.
        passes: tests a candidate. The first one that passes is chosen.

    Returns:
        The chosen variables, in this order.
    """
    chosen: list[int] = []
    while len(candidates) and len(chosen) < limit:
        candidates, ranked = rank(chosen, candidates)
        best = next((j for j in ranked if passes(chosen, j)), None)
        if best is None:
            break
        chosen.append(int(best))
        candidates = candidates[candidates != best]
    return chosen


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
