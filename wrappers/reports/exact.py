"""What can be said without statistics: tables of x' and of rewards, given probabilities of n'."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State, Successors
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData

#: Differences of probabilities and of rewards below this are rounding.
ROUNDING = 1e-9


@runtime_checkable
class TellsTables(Protocol):
    """A model that knows P(x'^i | its parents)."""

    def exogenous_table(self, name: str) -> tuple[tuple[str, ...], FloatArray]:
        """The parents of a variable, and the table: shape (*sizes of the parents, size)."""


class Effect(NamedTuple):
    """How much a change of one variable moves something."""

    mean: float
    largest: float


def effect_on_exogenous(model: TellsTables, variable: str, target: str) -> Effect:
    """By how much a change of one variable moves the distribution of another one's next value.

    The distance is the total variation: how much probability moves. The mean is over all pairs of
    values of the variable and all values of the target's other parents.
    """
    parents, table = model.exogenous_table(target)
    if variable not in parents:
        return Effect(0.0, 0.0)
    rows = np.moveaxis(np.asarray(table), parents.index(variable), 0)
    rows = rows.reshape(len(rows), -1, rows.shape[-1])  # (values, others, target's values)
    total, largest, pairs = 0.0, 0.0, 0
    for k in range(len(rows) - 1):
        distance = np.abs(rows[k + 1 :] - rows[k]).sum(axis=-1) / 2.0
        total += float(distance.mean(axis=1).sum())
        largest = max(largest, float(distance.max(initial=0.0)))
        pairs += len(distance)
    return Effect(total / max(1, pairs), largest)


def effect_on_reward(survey: EndogenousSurvey, data: ExogenousData, j: int) -> Effect:
    """By how much a change of x^j, among values that occur, moves the reward at any (n, a)."""
    values = np.unique(data.values[:, :, j])
    mean, largest = 0.0, 0.0
    for _, table in survey.terms_of(j):
        paid = table[values]  # (values, others, S, A)
        spread = paid.max(axis=0, initial=-np.inf) - paid.min(axis=0, initial=np.inf)
        mean += float(np.abs(paid - paid.mean(axis=0)).mean())
        largest += float(spread.max(initial=0.0))
    return Effect(mean, largest)


def effect_on_successors(
    mdp: ExoMDP, before: State, after: State, actions: IntArray
) -> list[Effect] | None:
    """By how much probability moves between n' of states as they are and as they are changed.

    Returns:
        The total variation for each endogenous variable; None if the model does not give the
        probabilities of n'.
    """
    given = [mdp.endogenous_distribution(state, actions) for state in (before, after)]
    if given[0] is None or given[1] is None:
        return None
    effects = []
    for k in range(len(mdp.endogenous_variables)):
        distance = _total_variation(given[0], given[1], k)
        effects.append(Effect(float(distance.mean()), float(distance.max(initial=0.0))))
    return effects


def _total_variation(one: Successors, two: Successors, k: int) -> FloatArray:
    """Between the distributions of one endogenous variable, shape (B,)."""
    values = np.concatenate([one.endogenous[..., k], two.endogenous[..., k]], axis=1)
    weights = np.concatenate([one.probabilities, -two.probabilities], axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    sums = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    # The difference at one value is the sum up to its last entry less that up to the value before.
    last = np.concatenate([values[:, 1:] != values[:, :-1], np.ones((len(values), 1), bool)], 1)
    distance = np.zeros(len(values))
    previous = np.zeros(len(values))
    for column in range(values.shape[1]):
        ends = last[:, column]
        distance[ends] += np.abs(sums[ends, column] - previous[ends])
        previous[ends] = sums[ends, column]
    return distance / 2.0
