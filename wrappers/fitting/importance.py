"""A cheap guess of the worth of each variable, which orders the search for a mask.

The worth of a variable that pays is what it pays where the agent goes; that of a variable that
predicts another one is a share of the other's worth. It only orders the search: what stays in the
mask is decided by J.
"""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray
from planners.samples.rollouts import ExogenousData
from wrappers.fitting.relevance import Relevance
from wrappers.fitting.study import Study


def importance(study: Study, relevance: Relevance, visits: FloatArray) -> dict[str, float]:
    """A guess of what each relevant variable is worth to an agent with these visits.

    * what pays: the standard deviation of its term, over the values it has in the rollouts, at the
      pairs (n, a) that the agent meets, as often as it meets them, times how long the variable
      keeps a value (who does not see it makes the same mistake again for that long); of a term of
      several variables, what is left of the deviation if the others are known;
    * what moves n but does not pay: the largest such deviation of any variable, where the agent
      meets pairs that it moves;
    * what predicts a variable i: the worth of i, discounted by a step, times the share of the
      uncertainty about x'_i that it takes away.

    Args:
        study: of the model.
        relevance: the variables that matter.
        visits: how often an agent meets each surveyed pair (n, a), shape (pairs,); if it is empty,
            all are taken to be met as often.
    """
    survey, data = study.survey(), study.data()
    if not len(visits):
        visits = np.full(len(survey.relevant), 1.0 / len(survey.relevant))
    joint_frequencies = cache(partial(_joint_frequencies, data))

    def frequencies(j: int) -> FloatArray:
        return joint_frequencies((j,))

    worth = dict.fromkeys(relevance.findings, 0.0)
    unit = 0.0
    pays = [survey.names.index(name) for name in survey.paying]
    for j in pays:
        deviation = np.sum(
            [
                _deviation(frequencies(j), joint_frequencies(others), table)
                for others, table in survey.terms_of(j)
            ],
            axis=0,
        )
        worth[survey.names[j]] = float(visits @ deviation) * _duration(
            data.values[:, :, j], frequencies(j), study.mdp.discount
        )
        unit = max(unit, float(deviation[visits > 0].max(initial=0.0)))
    moved = visits @ survey.relevant
    for j in np.flatnonzero(moved).tolist():
        if j not in pays:
            worth[survey.names[j]] = unit * float(moved[j])
    changed = True
    while changed:  # ends: a share of a worth is never more than the worth
        changed = False
        for target, evidence in relevance.parents.items():
            (i,) = data.positions([target])
            inherited = (
                study.mdp.discount * worth[target] / max(_entropy(frequencies(int(i))), 1e-12)
            )
            for name, found in evidence.items():
                share = min(inherited * found.information, worth[target])
                if share > worth[name] * (1 + 1e-9):
                    worth[name] = share
                    changed = True
    return worth


def _joint_frequencies(data: ExogenousData, variables: tuple[int, ...]) -> FloatArray:
    """The frequencies of the joint values of some variables in the rollouts."""
    sizes = [int(data.sizes[j]) for j in variables]
    values = np.zeros(data.values.shape[:2], dtype=np.int64)
    for j, size in zip(variables, sizes, strict=True):
        values = values * size + data.values[:, :, j]
    return np.asarray(np.bincount(values.reshape(-1), minlength=math.prod(sizes)) / values.size)


def _deviation(frequencies: FloatArray, of_others: FloatArray, table: FloatArray) -> FloatArray:
    """The standard deviation of a term over a variable's values, for each pair (n, a).

    What a value pays whatever n and a are is no matter of decisions, and is left out.

    Args:
        frequencies: of the values, (size,).
        of_others: of the joint values of the other variables of the term.
        table: what is paid, (size, others, S, A).
    """
    paid = table.reshape(*table.shape[:2], -1)
    flat = (paid - paid.mean(axis=2, keepdims=True)).reshape(len(paid), -1)
    centred = flat - frequencies @ flat
    variances = (frequencies @ centred**2).reshape(paid.shape[1:])  # (others, pairs)
    return np.sqrt(of_others @ variances)


def _duration(values: IntArray, frequencies: FloatArray, discount: float) -> float:
    """For how many steps, discounted, the present value says more than the usual frequencies."""
    chance = float(frequencies @ frequencies)
    if chance == 1.0:
        return 1.0
    same = float((values[:, 1:] == values[:, :-1]).mean())
    return 1.0 / (1.0 - discount * max(0.0, (same - chance) / (1.0 - chance)))


def _entropy(frequencies: FloatArray) -> float:
    return -sum(q * math.log(q) for q in frequencies.tolist() if q > 0)
