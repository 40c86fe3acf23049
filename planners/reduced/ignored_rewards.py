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
variables that tell about what it pays (:mod:`planners.reduced.informative`). The mean of a term
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
from functools import partial
from typing import Literal, get_args

import numpy as np

from exo_envs.core.arguments import check_choice
from exo_envs.core.mdp import FloatArray
from planners.core.arrays import Ints, joint_values
from planners.core.memory import LARGE, Key, Memory, Shelf
from planners.dependence.contingency import smooth
from planners.reduced.informative import SMOOTHING, Informants, Question
from planners.reduced.rewards import Rewards
from planners.reduced.survey import EndogenousSurvey
from planners.tables.scopes import Scope

IgnoredRewards = Literal["average", "zero", "optimistic"]

#: j -> which values of x_j pay the same, (size,), and what they pay in all pairs (n, a).
PAID_AMOUNTS = Shelf[int, tuple[Ints, FloatArray]]("paid_amounts", LARGE)
#: scope, kept -> which joint values of the other variables of a scope pay the same, whatever
#: those that are kept are.
ALIKE = Shelf[tuple[Scope, Key], Ints]("alike", LARGE)
#: scope, given -> what the variables of a scope pay on average given others, (rows, pairs).
AVERAGED_SCOPES = Shelf[tuple[Scope, Key], FloatArray]("averaged_scopes", LARGE)
#: (j, *given) -> how often x_j pays each of its amounts, and what each given variable adds.
AVERAGED_REWARDS = Shelf[Key, tuple[FloatArray, ...]]("averaged_rewards", LARGE)


def check_ignored_rewards(rule: str) -> None:
    """Refuse what is no rule for the rewards of ignored variables, and name the choices."""
    check_choice("rule for ignored_rewards", rule, get_args(IgnoredRewards))


def masked_rewards(
    survey: EndogenousSurvey,
    columns: Sequence[int],
    ignored_rewards: IgnoredRewards,
    *,
    level: float = 1e-3,
    memory: Memory | None = None,
) -> Rewards:
    """R(n, a) and the terms of a mask's reduced model.

    Args:
        survey: the terms of all variables.
        columns: the positions of the masked variables, increasing.
        ignored_rewards: the rule for the terms of all others.
        level: of the test for variables that tell about ignored ones.
        memory: of this survey, to share with other masks; by default a new one.

    Returns:
        The tables; variables are numbered by their place in the mask.
    """
    place = {int(j): k for k, j in enumerate(columns)}
    terms = {place[j]: table for j, table in survey.terms.items() if j in place}
    joint = {
        tuple(place[j] for j in scope): table
        for scope, table in survey.joint_terms.items()
        if all(j in place for j in scope)
    }
    ignored = [j for j in survey.terms if j not in place]
    cut = [scope for scope in survey.joint_terms if any(j not in place for j in scope)]
    if ignored_rewards == "zero" or not (ignored or cut):
        return Rewards(survey.base_reward, terms, joint)
    memory = Memory() if memory is None else memory
    memory.bind(survey=survey)
    informants = Informants(survey.backgrounds, columns, level, memory)
    shape = survey.base_reward.shape
    base = survey.base_reward.reshape(-1).copy()
    optimistic = ignored_rewards == "optimistic"
    added: dict[int, FloatArray] = {}
    for j in ignored:
        label, amounts = memory.get(PAID_AMOUNTS, j, partial(paid_amounts, survey.terms[j]))
        given = [] if optimistic else _informative(informants, j, label, len(amounts))
        usual, *deviations = memory.get(
            AVERAGED_REWARDS,
            (j, *given),
            partial(_average, informants, j, label, len(amounts), given),
        )
        mean = usual @ amounts
        base += np.maximum(mean, 0.0) if optimistic else mean
        for i, deviation in zip(given, deviations, strict=True):
            paid = deviation @ amounts
            added[i] = added[i] + paid if i in added else paid
    for scope in cut:
        table = survey.joint_terms[scope]
        given = [] if optimistic else _given(informants, scope, table)
        paid = memory.get(
            AVERAGED_SCOPES,
            (scope, tuple(given)),
            partial(_average_scope, informants, scope, table, given),
        )
        if not given:
            base += np.maximum(paid[0], 0.0) if optimistic else paid[0]
        elif len(given) == 1:
            added[given[0]] = added[given[0]] + paid if given[0] in added else paid
        else:
            own = tuple(place[j] for j in given)
            joint[own] = joint.get(own, 0.0) + paid.reshape(len(paid), *shape)
    for i, paid in added.items():
        terms[place[i]] = terms.get(place[i], 0.0) + paid.reshape(len(paid), *shape)
    return Rewards(
        base.reshape(shape),
        {k: terms[k] for k in sorted(terms)},
        {scope: joint[scope] for scope in sorted(joint)},
    )


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


def paid_amounts(table: FloatArray) -> tuple[Ints, FloatArray]:
    """Values of a variable that pay the same have one label: it, (size,), and what it pays."""
    rows = table.reshape(len(table), -1)
    varies = (rows != rows[0]).any(axis=0)  # few pairs do, and the order is that by these alone
    if not varies.any():
        return np.zeros(len(rows), dtype=np.int64), rows[:1]
    which = np.unique(rows[:, varies], axis=0, return_index=True, return_inverse=True)[1:]
    first, label = (part.reshape(-1).astype(np.int64) for part in which)
    return label, rows[first]


def _informative(informants: Informants, j: int, label: Ints, num_labels: int) -> list[int]:
    """Masked variables that tell what an ignored one pays, in the order of the model."""
    where = np.arange(informants.backgrounds.num_independent)
    seen = label[informants.column(j)[where]]
    question = Question(seen, num_labels, where, num_labels, key=("reward", j))
    return sorted(informants.informative(question, []))


def _average(
    informants: Informants, j: int, label: Ints, num_labels: int, given: list[int]
) -> tuple[FloatArray, ...]:
    """How often a variable has each label, given others: see :func:`additive_means`."""
    where = np.arange(len(informants.backgrounds))
    counts = informants.counts(given, where, label[informants.column(j)], num_labels)
    return additive_means(counts, SMOOTHING)


def _given(informants: Informants, scope: Scope, table: FloatArray) -> list[int]:
    """What the mean of a term of several variables is given, in the order of the model.

    That is those of them that are kept, and masked variables that tell about the others.
    """
    kept = [j for j in scope if j in informants.columns]
    dropped = [j for j in scope if j not in informants.columns]
    memory, where = informants.memory, np.arange(informants.backgrounds.num_independent)
    label = memory.get(
        ALIKE,
        (scope, tuple(kept)),
        lambda: _alike(_by_kept(informants, scope, table, kept, dropped)),
    )
    question = Question(
        label[informants.row(dropped, where)],
        int(label.max()) + 1,
        where,
        len(label),
        key=("reward", scope),
    )
    return sorted(kept + informants.informative(question, kept))


def _average_scope(
    informants: Informants, scope: Scope, table: FloatArray, given: list[int]
) -> FloatArray:
    """The mean of a term of several variables, (joint values of what is given, pairs)."""
    kept = [j for j in scope if j in given]
    dropped = [j for j in scope if j not in given]
    told = [j for j in given if j not in kept]
    where = np.arange(len(informants.backgrounds))
    number = math.prod(informants.shape(dropped))
    counts = informants.counts([*kept, *told], where, informants.row(dropped, where), number)
    amounts = _by_kept(informants, scope, table, kept, dropped)
    chances = smooth(counts, SMOOTHING).reshape(len(amounts), -1, number)
    means = chances @ amounts  # (joint values of what is kept, of what tells, pairs)
    order = sorted(range(len(given)), key=lambda k: [*kept, *told][k])
    means = means.reshape(*informants.shape([*kept, *told]), -1).transpose(*order, len(given))
    return np.ascontiguousarray(means).reshape(-1, amounts.shape[-1])


def _by_kept(
    informants: Informants,
    scope: Scope,
    table: FloatArray,
    kept: Sequence[int],
    dropped: Sequence[int],
) -> FloatArray:
    """What is paid by the values of variables that are kept, dropped, and by pair (n, a)."""
    split = table.reshape(*informants.shape(scope), -1)
    split = split.transpose(*(scope.index(j) for j in (*kept, *dropped)), len(scope))
    return split.reshape(math.prod(informants.shape(kept)), -1, split.shape[-1])


def _alike(amounts: FloatArray) -> Ints:
    """Joint values of dropped variables that pay the same, whatever is kept, have one label."""
    rows = amounts.transpose(1, 0, 2).reshape(amounts.shape[1], -1)
    _, label = np.unique(rows, axis=0, return_inverse=True)
    return label.reshape(-1).astype(np.int64)
