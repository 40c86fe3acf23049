"""Greedy forward selection: of the candidates the most informative, and so on given those.

The search for parents, what a forecast looks at, and what tells about a dropped variable all go
this way. They differ in what makes a candidate the best, and in the test that it has to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from exo_envs.core.mdp import IntArray

#: (chosen, candidates) -> those that stay in the race, and those worth choosing, the best first.
Rank = Callable[[list[int], IntArray], tuple[IntArray, Iterable[int]]]
#: (chosen, candidate) -> whether the candidate passes its test given what was chosen.
Passes = Callable[[list[int], int], bool]


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
