"""What a change of one ignored variable does: by the model's own word, or by experiments.

In an experiment a state that occurs is taken, one variable is changed to another value that occurs,
everything else stays, and what follows is drawn with the change and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import FloatArray, IntArray, State, Successors
from planners.core.policy import Mask
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from wrappers.fitting.study import Study
from wrappers.reports.paired_tests import PairedTest, paired_tests

#: Values of a variable are told apart in so many groups when an event is chosen.
VALUE_GROUPS = 4
#: The part of the states for n' that has an (n, a) which seems to depend on the variable.
SUSPECTED_SHARE = 2 / 3
#: Values of single variables that one call of a model is given at most.
CALL_VALUES = 4_000_000


@runtime_checkable
class TellsTables(Protocol):
    """A model that knows P(x'^i | its parents)."""

    def exogenous_table(self, name: str) -> tuple[tuple[str, ...], FloatArray]:
        """The parents of a variable, and the table: shape (*sizes of the parents, size)."""


def effect_on_exogenous(model: TellsTables, variable: str, target: str) -> float:
    """How much probability of another variable's next value a change moves (total variation).

    It is the mean over all pairs of values of the variable and all values of the target's other
    parents.
    """
    parents, table = model.exogenous_table(target)
    if variable not in parents:
        return 0.0
    rows = np.moveaxis(np.asarray(table), parents.index(variable), 0)
    rows = rows.reshape(len(rows), -1, rows.shape[-1])  # (values, others, target's values)
    moved = [np.abs(rows[k + 1 :] - row).sum(axis=-1).mean(axis=1) for k, row in enumerate(rows)]
    pairs = np.concatenate(moved)
    return float(pairs.mean()) / 2.0 if len(pairs) else 0.0


def effect_on_reward(survey: EndogenousSurvey, data: ExogenousData, j: int) -> float:
    """How much a change of x^j, among values that occur, moves the reward at any (n, a)."""
    values = np.unique(data.values[:, :, j])
    tables = (table[values] for _, table in survey.terms_of(j))  # (values, others, S, A)
    return max((float(np.ptp(paid, axis=0).max(initial=0.0)) for paid in tables), default=0.0)


def _moved(one: Successors, two: Successors, k: int) -> float:
    """The total variation between distributions of endogenous variable k, on average."""
    rows = np.arange(len(one.probabilities))[:, None]
    values = np.concatenate([one.endogenous[..., k], two.endogenous[..., k]], axis=1)
    weights = np.concatenate([one.probabilities, -two.probabilities], axis=1)
    cells = np.unique(rows * (int(values.max()) + 1) + values, return_inverse=True)[1]
    return float(np.abs(np.bincount(cells.ravel(), weights.ravel())).sum()) / (2.0 * len(rows))


@dataclass(eq=False)
class Interventions:
    """States that occur, as they are and with one variable changed to another value that occurs.

    Args:
        study: of the model; states are those of its rollouts.
        mask: the variables that are kept.
        rng: draws states, changes and what follows.
        n_states: how many states x' is drawn from, for each variable that is changed.
        n_pairs: the same for n'.
    """

    study: Study
    mask: Mask
    rng: np.random.Generator
    n_states: int
    n_pairs: int

    def __post_init__(self) -> None:
        self.data = self.study.data()
        self.targets = self.data.positions(self.mask)

    def values(self, j: int) -> IntArray:
        return np.unique(self.data.values[:, :, j])

    def on_exogenous(self, j: int) -> list[PairedTest]:
        """Tests of x' of the mask, drawn with x^j changed and without."""
        base, unchanged = self._base
        changed, kinds = self._change(base, j)
        sizes = self.data.sizes[self.targets].tolist()
        decreases = changed[:, j] < base[:, j]
        return paired_tests(unchanged, self._following(changed), kinds, decreases, sizes)

    def on_endogenous(self, j: int) -> Sequence[float | PairedTest]:
        """The same of the parts of n'; effects if the model knows probabilities."""
        mdp = self.study.coarse
        pairs = self._pairs(j)
        n, actions = np.divmod(pairs, mdp.num_actions)
        endogenous = self.study.survey().endogenous[n]
        x = self.data.sample(len(pairs), self.rng)
        changed, _ = self._change(x, j)
        states = State(endogenous, x), State(endogenous.copy(), changed)
        before, after = (mdp.endogenous_distribution(state, actions) for state in states)
        if before is not None and after is not None:
            return [_moved(before, after, k) for k in range(len(mdp.endogenous_variables))]
        unchanged, moved = (
            np.stack([mdp.sample_endogenous(state, actions, self.rng) for _ in range(2)])
            for state in states
        )
        kinds = np.unique(pairs, return_inverse=True)[1]
        decreases = changed[:, j] < x[:, j]
        return paired_tests(unchanged, moved, kinds, decreases, mdp.endogenous_sizes.tolist())

    def _pairs(self, j: int) -> NDArray[np.int64]:
        """Pairs (n, a) of the survey, most of them such as x^j seems to make a difference to."""
        survey, num_actions = self.study.survey(), self.study.mdp.num_actions
        alive = np.flatnonzero(~np.repeat(survey.terminal, num_actions))
        pairs = self.rng.choice(alive, size=self.n_pairs)
        suspected = np.flatnonzero(survey.relevant[:, j])
        if len(suspected):
            chosen = self.rng.random(self.n_pairs) < SUSPECTED_SHARE
            pairs[chosen] = self.rng.choice(suspected, size=int(chosen.sum()))
        return pairs

    @cached_property
    def _base(self) -> tuple[IntArray, IntArray]:
        """States, and what follows them, which all changes are compared with."""
        base = self.data.sample(self.n_states, self.rng)
        return base, self._following(base)

    def _following(self, x: IntArray) -> IntArray:
        """Two draws of x' of the mask from each state, shape (2, N, targets)."""
        mdp = self.study.coarse
        parts = np.array_split(x, -(-x.size // CALL_VALUES))
        drawn = [
            [mdp.sample_exogenous(part, self.rng)[:, self.targets] for part in parts]
            for _ in range(2)
        ]
        return np.stack([np.concatenate(draw) for draw in drawn])

    def _change(self, x: IntArray, j: int) -> tuple[IntArray, IntArray]:
        """The same states with other values of x^j, and between which groups each went.

        A new value is that of another state, which is what a guess would be, or any other if that
        is the same.
        """
        values, changed = self.values(j), x.copy()
        own = np.searchsorted(values, x[:, j])
        other = np.searchsorted(values, self.data.sample(len(x), self.rng)[:, j])
        shift = self.rng.integers(1, len(values), size=len(x))
        other = np.where(other == own, (own + shift) % len(values), other)
        changed[:, j] = values[other]
        groups = min(VALUE_GROUPS, len(values))
        low, high = np.minimum(own, other), np.maximum(own, other)
        return changed, low * groups // len(values) * groups + high * groups // len(values)
