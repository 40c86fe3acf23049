"""Which part of a mask an exact planner can afford.

A policy for part of a mask is a policy for the mask. So where a mask is too large to enumerate, a
plan with the part of it that matters most is one way to plan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from planners.core.policy import Mask
from planners.dependence.selection import close_under_parents
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import along


def affordable_part(model: FactoredMDP, max_states: float, *, whole: bool = False) -> Mask | None:
    """What pays or moves n and, as long as there is room, what predicts that.

    If not even all that pays or moves n fits, it is those with most at stake that do, and no more.

    Args:
        model: a model that is too large.
        max_states: how many states the part may have.
        whole: accept no less than all that pays or moves n.

    Returns:
        The variables, or None if ``whole`` is too much.
    """
    sizes, room = model.exogenous_sizes.tolist(), max_states / model.num_endogenous_states
    stakes = _stakes(model)
    fits = math.prod(sizes[i] for i in stakes) <= room
    if whole and not fits:
        return None

    def parents(variables: Sequence[int]) -> Counter[int]:
        told: Counter[int] = Counter()
        for i in variables if fits else ():
            told.update(_information(model, i))
        return told

    start = sorted(stakes, key=lambda i: (-stakes[i], i))
    chosen = close_under_parents(start, parents, sizes, room)
    return tuple(model.exogenous_names[i] for i in chosen)


def _stakes(model: FactoredMDP) -> dict[int, float]:
    """The variables that pay or move n, with the most that each can change of a reward.

    One that moves n may change any reward.
    """
    spread: dict[int, float] = {}
    for scope, table in model.scoped_terms.items():
        for i in scope:
            own = along(table, scope, model.exogenous_sizes, i)
            spread[i] = spread.get(i, 0.0) + float(np.ptp(own, axis=0).max())
    spread = {i: stake for i, stake in spread.items() if stake > 0}
    most = max(spread.values(), default=0.0)
    return spread | dict.fromkeys(model.decision_lists.dependencies(), most)


def _information(model: FactoredMDP, i: int) -> dict[int, float]:
    """What each parent of a variable tells about x'_i that the others do not, in nats.

    All joint values of the parents count the same.
    """
    factor, sizes = model.factors[i], model.exogenous_sizes
    shape = [int(sizes[j]) for j in factor.parents]
    table = factor.to_table(int(sizes[i])).reshape(*shape, -1)
    entropy = _entropy(table)
    return {
        j: max(0.0, _entropy(table.mean(axis=k)) - entropy) for k, j in enumerate(factor.parents)
    }


def _entropy(table: np.ndarray) -> float:
    """The mean entropy of the rows of a table."""
    logs = np.log(table, out=np.zeros_like(table), where=table > 0)
    return float(-(table * logs).sum(axis=-1).mean())
