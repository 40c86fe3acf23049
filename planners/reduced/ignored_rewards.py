"""What a reduced model pays for the variables that its mask ignores.

The reward is a sum of terms R^j(n, x^j, a), and a mask keeps some of the x^j. There are three rules
for the terms of the others:

* "zero": they are forgotten, as in the paper. Who ignores what pays sees nothing to gain.
* "average": they pay their mean given n, a and the masked variables. A policy planned without
  any variable, a *blind* one, then still goes where it pays to be on average.
* "optimistic": they pay their overall mean where that is a gain, and nothing where it is a loss.
  A policy planned so goes wherever there may be something to gain: good for finding out what pays
  there, and no good for earning it.

The mean of a term is taken over the backgrounds, x as it occurs in the rollouts, given few masked
variables that tell about what it pays (:mod:`planners.reduced.marginals`). The mean of a term
of one variable is a sum of terms of one variable each: given two variables, it is the best sum of a
function of the one and a function of the other (least squares over the backgrounds). A value that
occurs rarely is drawn towards the overall mean.

**Terms of several variables.** A term whose variables are all in the mask stays as it is. If some
of them are dropped, "zero" forgets the whole term and "optimistic" takes its overall mean. With
"average" it pays its mean given those that are kept and the masked variables that tell about the
dropped ones; that is a term of all of these together. (A sum would not do: where two coins pay if
they agree, neither a coin nor a copy of the other one tells anything by itself.)

**Means that change over an episode.** A goal may be drawn at the start of each episode, and x may
move in cycles. n has no clock and a policy does not know the step, so the mean is over all steps of
the rollouts, each as often as any other. Where masked variables tell, the mean is conditional on
them; a clock that the mask keeps is one of them.

**What a reduced model promises.** It takes what is ignored to be drawn anew in every step. A blind
robot that waits at one table therefore expects the object to come by at the next step with the same
probability again, even where the object never moves. So the values in the reduced model may be far
too high. Returns and J are always measured in the full model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from exo_envs.core.arguments import check_choice
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State
from planners.core.arrays import Ints, joint_values
from planners.dependence.contingency import smooth
from planners.reduced.marginals import SMOOTHING, Informants, Unseen
from planners.reduced.rewards import Rewards, disjoint_scopes
from planners.reduced.survey import EndogenousSurvey
from planners.tables.indexing import Scope, in_order, scope_rows, scope_shape

IgnoredRewards = Literal["average", "zero", "optimistic"]

#: Values of a dropped variable over which a simulated model averages its term at most.
MAX_VALUES = 64
#: States of the rollouts over which a simulated model averages a term that is partly kept.
NUM_DRAWN = 64


def check_ignored_rewards(rule: str) -> None:
    check_choice("rule for ignored_rewards", rule, get_args(IgnoredRewards))


def masked_rewards(
    survey: EndogenousSurvey, informants: Informants, rule: IgnoredRewards
) -> Rewards:
    """R(n, a) and the terms of a mask's reduced model.

    Args:
        survey: the terms of all variables.
        informants: the masked variables.
        rule: for the terms of all others.

    Returns:
        The tables; variables are numbered by their place in the mask.
    """
    place = {j: k for k, j in enumerate(informants.columns)}
    terms: dict[Scope, FloatArray] = {}
    lost: dict[Scope, FloatArray] = {}
    for scope, table in survey.scoped_terms.items():
        if place.keys() >= set(scope):
            terms[tuple(place[j] for j in scope)] = table
        else:
            lost[scope] = table
    if rule == "zero" or not lost:
        return Rewards(survey.base_reward, in_order(terms))
    shape = survey.base_reward.shape
    base = survey.base_reward.reshape(-1)
    added: dict[Scope, FloatArray] = {}
    for scope, table in lost.items():
        for given, paid in _means(informants, scope, table, rule).items():
            if given:
                added[given] = added[given] + paid if given in added else paid
            else:
                base = base + (np.maximum(paid, 0.0) if rule == "optimistic" else paid)
    for given, paid in added.items():
        own = tuple(place[j] for j in given)
        terms[own] = terms.get(own, 0.0) + paid.reshape(len(paid), *shape)
    return Rewards(base.reshape(shape), in_order(terms))


def _means(
    informants: Informants, scope: Scope, table: FloatArray, rule: IgnoredRewards
) -> dict[Scope, FloatArray]:
    """What a term pays on average, as a sum of terms: variables -> (joint values, pairs).

    The part that depends on no variable is (pairs,).
    """
    optimistic = rule == "optimistic"
    kept = [] if optimistic else [j for j in scope if j in informants.columns]
    dropped = [j for j in scope if j not in kept]
    label, amounts = _amounts(informants, scope, table, kept, dropped)
    everywhere = np.arange(len(informants.backgrounds))
    seen, number = label[informants.row(dropped, everywhere)], amounts.shape[1]
    told: list[int] = []
    if not optimistic:
        where = np.arange(informants.backgrounds.num_independent)
        question = Unseen(seen[where], number, where, number, key=("reward", scope))
        told = sorted(informants.informative(question, kept))
    counts = informants.counts([*kept, *told], everywhere, seen, number)
    if len(scope) == 1:
        usual, *deviations = additive_means(counts, SMOOTHING)
        means: dict[Scope, FloatArray] = {(): usual @ amounts[0]}
        for j, deviation in zip(told, deviations, strict=True):
            means[j,] = deviation @ amounts[0]
        return means
    chances = smooth(counts, SMOOTHING).reshape(len(amounts), -1, number)
    mean = (chances @ amounts).reshape(*informants.shape([*kept, *told]), -1)
    order = np.argsort([*kept, *told]).tolist()
    found = np.ascontiguousarray(mean.transpose(*order, len(order)))
    given = tuple(sorted([*kept, *told]))
    return {given: found.reshape(-1, mean.shape[-1]) if given else found}


def _amounts(
    informants: Informants,
    scope: Scope,
    table: FloatArray,
    kept: Sequence[int],
    dropped: Sequence[int],
) -> tuple[Ints, FloatArray]:
    """Joint values of the dropped variables of a scope that pay the same, and what they pay.

    Labels of the joint values, (values,); amounts, (joint values of the others, labels, pairs).
    """
    split = table.reshape(*informants.shape(scope), -1)
    split = split.transpose(*(scope.index(j) for j in (*dropped, *kept)), len(scope))
    rows = split.reshape(math.prod(informants.shape(dropped)), -1)
    label, amounts = paid_amounts(rows)
    amounts = amounts.reshape(len(amounts), -1, split.shape[-1])
    return label, np.ascontiguousarray(amounts.transpose(1, 0, 2))


def paid_amounts(table: FloatArray) -> tuple[Ints, FloatArray]:
    """Values of a variable that pay the same have one label: it, (size,), and what it pays."""
    rows = table.reshape(len(table), -1)
    varies = (rows != rows[0]).any(axis=0)  # few pairs do, and the order is that by these alone
    if not varies.any():
        return np.zeros(len(rows), dtype=np.int64), rows[:1]
    which = np.unique(rows[:, varies], axis=0, return_index=True, return_inverse=True)[1:]
    first, label = (part.reshape(-1).astype(np.int64) for part in which)
    return label, rows[first]


def additive_means(counts: Ints, weight: float) -> tuple[FloatArray, ...]:
    """P(label | given) as a sum of functions of one variable each, by least squares.

    Args:
        counts: how often each label comes with each joint value, shape (*sizes, labels).
        weight: of the overall mean in every value of every variable, in samples.

    Returns:
        The overall frequencies of the labels, shape (labels,), and for each variable what each of
        its values adds to them, shape (size, labels).
    """
    shape, labels = counts.shape[:-1], counts.shape[-1]
    cells = counts.reshape(-1, labels).astype(np.float64)
    totals = cells.sum(axis=1)
    overall = cells.sum(axis=0) / totals.sum()
    values = joint_values(np.arange(len(cells)), np.array(shape, dtype=np.int64))
    has = [np.eye(size)[values[:, k]] for k, size in enumerate(shape)]
    design = np.concatenate([np.zeros((len(cells), 0)), *has], axis=1)
    normal = design.T @ (totals[:, None] * design) + weight * np.eye(design.shape[1])
    added = np.linalg.solve(normal, design.T @ (cells - totals[:, None] * overall))
    return overall, *np.split(added, np.cumsum(shape)[:-1] if shape else [])[: len(shape)]


class SimulatedRewards:
    """The rewards of a mask where n cannot be enumerated: the full model is asked for them.

    Terms whose variables are all in the mask are exact, since dropped ones do not matter. With
    "average" the terms of dropped variables pay their mean given n and a, with each value as
    frequent as in the rollouts; with "optimistic" only where that is a gain. It takes one call of
    the full model for each value that a dropped variable had, or for ``MAX_VALUES`` quantiles where
    there were more. A term of which some variables are kept is averaged over ``NUM_DRAWN`` states
    of the rollouts, whatever the kept ones are.

    Args:
        model: the full model.
        survey: of that model; terms that never pay there are left out.
        columns: the positions of the masked variables.
        rule: for the terms of all others.

    Attributes:
        scopes: the masked variables that each term looks at, by name.
    """

    def __init__(
        self, model: ExoMDP, survey: EndogenousSurvey, columns: IntArray, rule: IgnoredRewards
    ) -> None:
        self.model, self.columns, self.rule = model, columns, rule
        self.data = survey.backgrounds.data
        mask, pays = set(columns.tolist()), set(survey.paying)
        kept, partly, ignored = [], [], []  # of the terms
        for column, scope in enumerate(model.scope_indices):
            if mask.issuperset(scope):
                kept.append(column)
            elif rule == "zero" or pays.isdisjoint(survey.names[j] for j in scope):
                continue
            elif mask.isdisjoint(scope) or rule == "optimistic":
                ignored.append(column)
            else:
                partly.append(column)
        self.scopes = tuple(
            tuple(survey.names[j] for j in model.scope_indices[column] if j in mask)
            for column in (*kept, *partly)
        )
        self._kept, self._partly = kept, partly
        self._averaged = self._values_of(ignored)
        number = min(NUM_DRAWN, len(survey.backgrounds)) if partly else 0
        self._drawn = survey.backgrounds.rows(slice(0, number))

    def terms(self, n: IntArray, x: IntArray, actions: Ints) -> FloatArray:
        """The terms that look at masked variables, (B, terms)."""
        terms = self.model.reward_terms(self.anywhere(n, x), actions)[:, self._kept]
        if not self._partly:
            return terms
        mean = np.zeros((len(n), len(self._partly)))
        for full in self._drawn:
            paid = self.model.reward_terms(State(n, self.fill_in(x, full)), actions)
            mean += paid[:, self._partly] / len(self._drawn)
        return np.concatenate([terms, mean], axis=1)

    def base(self, n: IntArray, actions: Ints) -> FloatArray:
        """R(n, a), and what dropped variables pay on average, (B,)."""
        terms = np.zeros((len(n), len(self.model.reward_scopes)))
        for x, weights in self._averaged:
            terms += self.model.reward_terms(State(n, np.tile(x, (len(n), 1))), actions) * weights
        if self.rule == "optimistic":
            terms = np.maximum(terms, 0.0)
        return self.model.endogenous_reward(n, actions) + terms.sum(axis=-1)

    def anywhere(self, n: IntArray, x: IntArray) -> State:
        """States of the full model, for questions to which dropped variables do not matter."""
        return State(n, self.fill_in(x, self.data.values[:1, 0]))

    def fill_in(self, masked: IntArray, full: IntArray) -> Ints:
        """All variables, shape (B, all): the masked ones (B, m), the others from ``full``."""
        out = np.empty((len(masked), len(self.data.names)), dtype=np.int64)
        out[:] = full
        out[:, self.columns] = masked
        return out

    def _values_of(self, ignored: Sequence[int]) -> list[tuple[Ints, FloatArray]]:
        """The x at which ignored terms are averaged, (all,), and the weights of all terms there.

        Together they have the values that the variables of an ignored term have in the rollouts,
        and how often. Terms that share no variable are averaged with the same calls.
        """
        data, scopes = self.data, [tuple(sorted(own)) for own in self.model.scope_indices]
        found: dict[Scope, tuple[IntArray, FloatArray]] = {}
        for scope in {scopes[column]: None for column in ignored}:
            found[scope] = _frequent(scope_rows(scope, data.values[:, :-1], data.sizes).reshape(-1))
        out: list[tuple[Ints, FloatArray]] = []
        for group in disjoint_scopes({scope: len(values) for scope, (values, _) in found.items()}):
            calls = max(len(found[scope][0]) for scope in group)
            x = np.tile(data.values[0, 0].astype(np.int64), (calls, 1))
            weights = np.zeros((calls, len(scopes)))
            for scope in group:
                values, shares = found[scope]
                own = joint_values(values.astype(np.int64), scope_shape(scope, data.sizes))
                x[: len(values), list(scope)] = own
                columns = [column for column in ignored if scopes[column] == scope]
                weights[: len(values), columns] = shares[:, None]
            out += zip(x, weights, strict=True)
        return out


def _frequent(values: IntArray) -> tuple[IntArray, FloatArray]:
    """The values in a sample and how often each occurs; if they are many, quantiles of it."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= MAX_VALUES:
        return distinct, counts / len(values)
    ranks = ((np.arange(MAX_VALUES) + 0.5) / MAX_VALUES * len(values)).astype(np.int64)
    return np.sort(values)[ranks], np.full(MAX_VALUES, 1.0 / MAX_VALUES)
