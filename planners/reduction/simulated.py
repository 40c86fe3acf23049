"""Reduced models of models whose n cannot be enumerated: the full model answers for n."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.mdp import BoolArray, FloatArray, IntArray
from planners.arrays import Ints
from planners.reduction.reduced_mdp import ReducedMDP
from planners.reduction.survey import EndogenousSurvey
from planners.tables import Factor, Factors

#: Values of a dropped variable over which its term is averaged at most.
MAX_VALUES = 64


class SimulatedReducedMDP(ReducedMDP):
    """A reduced model to sample from, for tree search.

    x' of the masked variables is drawn from their tables. n' is that of the full model at (n, x),
    where the masked variables are as they are and all dropped ones are drawn together from the
    rollouts, anew in every step. So given (n, a) and the masked variables n' is random even if the
    full model leaves nothing to chance, and what the masked variables tell about dropped ones is
    not used.

    The terms of masked variables are exact: each looks at its own variable, so that dropped ones do
    not matter. Nor do they to the end of an episode, which depends on n alone; the survey checked
    that for the n that it asked about. With ``ignored_rewards="average"`` the terms of dropped
    variables pay their mean given n and a, with each value as frequent as in the rollouts; with
    "optimistic" only where that is a gain. What the masked variables tell about dropped ones is not
    used there either. It is asked for when it is needed: one call of the full model for each value
    that a dropped variable had in the rollouts, or for ``MAX_VALUES`` quantiles of them where there
    were more.

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
        self._averaged = self._ignored_values()

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
        chosen = rng.integers(self.data.num_rollouts, size=size)
        return State(initial.endogenous[chosen], initial.exogenous[chosen])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Each variable by itself, given its parents."""
        return self._joined_factors.sample(exogenous, rng.random(exogenous.shape))

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """By the full model, dropped variables drawn from the rollouts."""
        batch = state.endogenous.shape[:-1]
        drawn = self._full_data.sample(math.prod(batch), rng)
        full = State(state.endogenous, self._fill_in(state.exogenous, drawn))
        return self.model.sample_endogenous(full, np.broadcast_to(action, batch), rng)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Those of the masked variables, from the full model."""
        return self.model.reward_terms(self._anywhere(state), action)[..., self.columns]

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """From the full model, with what dropped variables pay on average, or nothing."""
        batch = endogenous.shape[:-1]
        terms = np.zeros((*batch, len(self.full_names)))
        # A term looks at its own variable, so all variables are given one of their values at once.
        for x, weights in zip(*self._averaged, strict=True):
            state = State(endogenous, np.tile(x, (*batch, 1)))
            terms += self.model.reward_terms(state, np.broadcast_to(action, batch)) * weights
        if self.ignored_rewards == "optimistic":
            terms = np.maximum(terms, 0.0)
        return self.model.endogenous_reward(endogenous, action) + terms.sum(axis=-1)

    def is_terminal(self, state: State) -> BoolArray:
        """From the full model."""
        return self.model.is_terminal(self._anywhere(state))

    def _ignored_values(self) -> tuple[Ints, FloatArray]:
        """All x with which dropped variables that pay are averaged, and the weights.

        Returns:
            The x, shape (calls, all), and the weights of the terms, (calls, all): in each column
            the values that a dropped variable has, and how often; elsewhere 0.
        """
        paying = () if self.ignored_rewards == "zero" else self.survey.terms
        ignored = sorted(set(paying) - set(self.columns.tolist()))
        found = {j: _frequent(self._full_data.values[:, :-1, j].reshape(-1)) for j in ignored}
        calls = max((len(values) for values, _ in found.values()), default=0)
        x = np.tile(self._full_data.values[0, 0].astype(np.int64), (calls, 1))
        weights = np.zeros(x.shape)
        for j, (values, shares) in found.items():
            x[: len(values), j] = values
            weights[: len(values), j] = shares
        return x, weights

    def _anywhere(self, state: State) -> State:
        """A state of the full model, for questions to which dropped variables do not matter."""
        return State(
            state.endogenous, self._fill_in(state.exogenous, self._full_data.values[:1, 0])
        )

    def _fill_in(self, masked: IntArray, full: IntArray) -> Ints:
        """All variables, shape (..., all): the masked ones (..., m), the others from ``full``."""
        lanes = math.prod(masked.shape[:-1])
        out = np.empty((lanes, len(self.full_names)), dtype=np.int64)
        out[:] = full
        out[:, self.columns] = masked.reshape(lanes, len(self.mask))
        return out.reshape(*masked.shape[:-1], len(self.full_names))


def _frequent(values: IntArray) -> tuple[IntArray, FloatArray]:
    """The values in a sample and how often each occurs; if they are many, quantiles of it."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= MAX_VALUES:
        return distinct, counts / len(values)
    ranks = ((np.arange(MAX_VALUES) + 0.5) / MAX_VALUES * len(values)).astype(np.int64)
    return np.sort(values)[ranks], np.full(MAX_VALUES, 1.0 / MAX_VALUES)
