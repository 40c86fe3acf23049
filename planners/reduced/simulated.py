"""Reduced models of models whose n cannot be enumerated: the full model answers for n."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from exo_envs.core.batches import as_lanes, as_pairs, as_size, as_values, exogenous_lanes
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, as_pair
from planners.core.arrays import Ints, joint_values
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.rewards import disjoint_scopes
from planners.reduced.survey import EndogenousSurvey
from planners.tables.factors import Factor, Factors
from planners.tables.scopes import Scope, scope_rows, scope_shape

#: Values of a dropped variable over which its term is averaged at most.
MAX_VALUES = 64
#: States of the rollouts over which a term that is partly kept is averaged at most.
NUM_DRAWN = 64


class SimulatedReducedMDP(ReducedMDP):
    """A reduced model to sample from, for tree search.

    x' of the masked variables is drawn from their tables. n' is that of the full model at (n, x),
    where the masked variables are as they are and all dropped ones are drawn together from the
    rollouts, anew in every step. So given (n, a) and the masked variables n' is random even if the
    full model leaves nothing to chance, and what the masked variables tell about dropped ones is
    not used.

    The terms of masked variables are exact: each looks at variables of the mask alone, so that
    dropped ones do not matter. Nor do they to the end of an episode, which depends on n alone; the
    survey checked that for the n that it asked about. With ``ignored_rewards="average"`` the terms
    of dropped variables pay their mean given n and a, with each value as frequent as in the
    rollouts; with "optimistic" only where that is a gain. What the masked variables tell about
    dropped ones is not used there either. It is asked for when it is needed: one call of the full
    model for each value that a dropped variable had in the rollouts, or for ``MAX_VALUES``
    quantiles of them where there were more. A term of which some variables are kept and others
    dropped is averaged over the dropped ones, whatever the kept ones are: over ``NUM_DRAWN`` states
    of the rollouts.

    Args:
        model: the full model.
        survey: of that model.
        **estimated: what :class:`ReducedMDP` takes.
    """

    def __init__(self, *, model: ExoMDP, survey: EndogenousSurvey, **estimated: Any) -> None:
        super().__init__(**estimated)
        self.model = model
        self.survey = survey
        self.endogenous_variables = model.endogenous_variables
        self.exogenous_variables = tuple(model.exogenous_variables[j] for j in self.columns)
        self.num_actions = model.num_actions
        self.discount = model.discount
        self.horizon = model.horizon
        self.paying = tuple(name for name in survey.paying if name in self.mask)
        self.moving = tuple(name for name in survey.moving if name in self.mask)
        self._full_data = survey.backgrounds.data
        self._kept, self._partly, self._ignored = self._split_terms()
        own, names = set(self.columns.tolist()), model.exogenous_names
        self.reward_scopes = tuple(
            tuple(names[j] for j in model.scope_indices[column] if j in own)
            for column in (*self._kept, *self._partly)
        )
        self._averaged = self._ignored_values()
        self._drawn = self._drawn_states()

    def arguments(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {"model": self.model, "survey": self.survey, **super().arguments()}

    def __getstate__(self) -> dict[str, Any]:
        """Everything, with the factors made."""
        self.fit  # noqa: B018
        return self.__dict__

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The dynamics of each masked variable."""
        return self.fit.factors

    @cached_property
    def _joined_factors(self) -> Factors:
        return Factors.of(self.factors, self.exogenous_sizes)

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Draw from the states in which the rollouts begin."""
        initial = self.data.initial()
        chosen = rng.integers(self.data.num_rollouts, size=as_size(self, size))
        return State(initial.endogenous[chosen], initial.exogenous[chosen])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Each variable by itself, given its parents."""
        shape, x = exogenous_lanes(self, exogenous)
        return self._joined_factors.sample(x, rng.random(x.shape)).reshape(shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """By the full model, dropped variables drawn from the rollouts."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        full = State(n, self._fill_in(x, self._full_data.sample(len(n), rng)))
        following = self.model.sample_endogenous(full, actions, rng)
        return following.reshape(*shape, n.shape[-1])

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Those of the masked variables, from the full model."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        terms = self.model.reward_terms(self._anywhere(n, x), actions)[:, self._kept]
        if self._partly:
            mean = np.zeros((len(n), len(self._partly)))
            for full in self._drawn:
                paid = self.model.reward_terms(State(n, self._fill_in(x, full)), actions)
                mean += paid[:, self._partly] / len(self._drawn)
            terms = np.concatenate([terms, mean], axis=1)
        return terms.reshape(*shape, terms.shape[-1])

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """From the full model, with what dropped variables pay on average, or nothing."""
        shape, n, actions = as_pairs(self, endogenous, action)
        terms = np.zeros((len(n), len(self.model.reward_scopes)))
        # Terms that share no variable are averaged with the same calls.
        for x, weights in self._averaged:
            state = State(n, np.tile(x, (len(n), 1)))
            terms += self.model.reward_terms(state, actions) * weights
        if self.ignored_rewards == "optimistic":
            terms = np.maximum(terms, 0.0)
        paid = self.model.endogenous_reward(n, actions) + terms.sum(axis=-1)
        return paid.reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        """From the full model."""
        state = as_pair(state)
        n = as_values("endogenous", state.endogenous, self.endogenous_variables, in_range=False)
        anything = np.zeros(n.shape[:-1], dtype=np.int64)
        shape, (n, x, _) = as_lanes(self, State(n, state.exogenous), anything)
        return self.model.is_terminal(self._anywhere(n, x)).reshape(shape)

    def _split_terms(self) -> tuple[list[int], list[int], list[int]]:
        """The terms that are kept, those that are partly, and those that are ignored.

        What is partly kept is ignored under the rules that look at no masked variable. Ignored
        terms that the survey saw pay nothing are left out.
        """
        mask, pays = set(self.columns.tolist()), set(self.survey.paying)
        kept, partly, ignored = [], [], []
        for column, scope in enumerate(self.model.scope_indices):
            if mask.issuperset(scope):
                kept.append(column)
            elif self.ignored_rewards == "zero" or pays.isdisjoint(
                self.full_names[j] for j in scope
            ):
                continue
            elif mask.isdisjoint(scope) or self.ignored_rewards == "optimistic":
                ignored.append(column)
            else:
                partly.append(column)
        return kept, partly, ignored

    def _ignored_values(self) -> list[tuple[Ints, FloatArray]]:
        """The x at which ignored terms are averaged, (all,), and the weights of all terms there.

        Together they have the values that the variables of an ignored term have in the rollouts,
        and how often.
        """
        data, scopes = self._full_data, self.model.scope_indices
        found: dict[Scope, tuple[IntArray, FloatArray]] = {}
        for column in self._ignored:
            scope = tuple(sorted(scopes[column]))
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
                columns = [c for c in self._ignored if tuple(sorted(scopes[c])) == scope]
                weights[: len(values), columns] = shares[:, None]
            out += zip(x, weights, strict=True)
        return out

    def _drawn_states(self) -> Ints:
        """States of different rollouts, as many of each step, for terms that are partly kept."""
        if not self._partly:
            return np.zeros((0, len(self.full_names)), dtype=np.int64)
        backgrounds = self.survey.backgrounds
        return backgrounds.rows(slice(0, min(NUM_DRAWN, len(backgrounds))))

    def _anywhere(self, n: Ints, x: Ints) -> State:
        """States of the full model, for questions to which dropped variables do not matter."""
        return State(n, self._fill_in(x, self._full_data.values[:1, 0]))

    def _fill_in(self, masked: Ints, full: IntArray) -> Ints:
        """All variables, shape (B, all): the masked ones (B, m), the others from ``full``."""
        out = np.empty((len(masked), len(self.full_names)), dtype=np.int64)
        out[:] = full
        out[:, self.columns] = masked
        return out


def _frequent(values: IntArray) -> tuple[IntArray, FloatArray]:
    """The values in a sample and how often each occurs; if they are many, quantiles of it."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= MAX_VALUES:
        return distinct, counts / len(values)
    ranks = ((np.arange(MAX_VALUES) + 0.5) / MAX_VALUES * len(values)).astype(np.int64)
    return np.sort(values)[ranks], np.full(MAX_VALUES, 1.0 / MAX_VALUES)
