"""How much each variable may be worth, cheaply: in which order to try what pays its price.

The worth of a variable that pays is what it pays where the agent goes; that of a variable that
predicts another one is a share of the other's worth. It only orders the search: what stays in the
mask is decided by J.
"""

from __future__ import annotations

import math

import numpy as np

from exo_envs.mdp import FloatArray
from wrappers.learners.calibrated.relevance import Relevance
from wrappers.learners.history import Mask
from wrappers.learners.study import Study


def importance(study: Study, relevance: Relevance, mask: Mask) -> dict[str, float]:
    """A guess of what each relevant variable is worth to an agent that plans with ``mask``.

    * what pays: the standard deviation of its term, over the values it has in the rollouts, at the
      pairs (n, a) that the policy of ``mask`` meets, as often as it meets them, times how long the
      variable keeps a value (who does not see it makes the same mistake again for that long);
    * what moves n but does not pay: the largest such deviation of any variable, where the policy
      meets pairs that it moves;
    * what predicts a variable i: the worth of i, discounted by a step, times the share of the
      uncertainty about x'_i that it takes away.
    """
    visits = study.visits(mask)
    worth = dict.fromkeys(relevance.findings, 0.0)
    unit = 0.0
    for j, table in study.survey.terms.items():
        deviation = _deviation(study, j, table)
        worth[study.survey.names[j]] = float(visits @ deviation) * _duration(study, j)
        unit = max(unit, float(deviation[visits > 0].max(initial=0.0)))
    moved = visits @ study.survey.relevant
    for j in np.flatnonzero(moved).tolist():
        if j not in study.survey.terms:
            worth[study.survey.names[j]] = unit * float(moved[j])
    changed = True
    while changed:  # ends: a share of a worth is never more than the worth
        changed = False
        for target, evidence in relevance.parents.items():
            inherited = study.mdp.discount * worth[target] / max(_entropy(study, target), 1e-12)
            for name, told in evidence.items():
                share = min(inherited * told.information, worth[target])
                if share > worth[name] * (1 + 1e-9):
                    worth[name] = share
                    changed = True
    return worth


def blocks(relevance: Relevance, names: Mask, worth: dict[str, float]) -> list[Mask]:
    """Candidates that predict each other belong together: the most valuable group first."""
    group = {name: {name} for name in names}
    for target in names:
        for name in relevance.parents.get(target, ()):
            if name in group and group[name] is not group[target]:
                group[target] |= group[name]
                for member in group[name]:
                    group[member] = group[target]
    distinct = {id(members): members for members in group.values()}.values()
    ordered = [tuple(sorted(members, key=lambda n: (-worth[n], n))) for members in distinct]
    return sorted(ordered, key=lambda members: (-worth[members[0]], members))


def _frequencies(study: Study, j: int) -> FloatArray:
    key = ("frequencies", j)
    if key not in study.memo:
        values = study.data.values[:, :, j].reshape(-1)
        study.memo[key] = np.bincount(values, minlength=study.data.sizes[j]) / len(values)
    frequencies: FloatArray = study.memo[key]
    return frequencies


def _deviation(study: Study, j: int, table: FloatArray) -> FloatArray:
    """The standard deviation of a term over its variable's values, for each pair (n, a).

    What a value pays whatever n and a are is no matter of decisions, and is left out.
    """
    p = _frequencies(study, j)
    flat = table.reshape(len(table), -1)
    flat = flat - flat.mean(axis=1, keepdims=True)
    centred = flat - p @ flat
    return np.sqrt(p @ centred**2)


def _duration(study: Study, j: int) -> float:
    """For how many steps, discounted, the present value says more than the usual frequencies."""
    values, p = study.data.values[:, :, j], _frequencies(study, j)
    chance = float(p @ p)
    if chance == 1.0:
        return 1.0
    same = float((values[:, 1:] == values[:, :-1]).mean())
    return 1.0 / (1.0 - study.mdp.discount * max(0.0, (same - chance) / (1.0 - chance)))


def _entropy(study: Study, name: str) -> float:
    p = _frequencies(study, int(study.mdp.exogenous_indices([name])[0]))
    return -sum(q * math.log(q) for q in p.tolist() if q > 0)
