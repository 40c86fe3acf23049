"""Markov decision processes with exogenous variables (section 3.1 of the paper).

The state is ``s = (n, x)``: an *endogenous* part ``n`` that the agent's actions move and an
*exogenous* part ``x = (x^1 ... x^m)`` that moves by itself,

    P(s' | s, a) = P(n' | n, a, x) * P(x' | x),
    R(s, a)      = R(n, a) + sum_i R^i(n, x^i, a).

Beyond the paper, a term may look at several exogenous variables (``reward_scopes``), and variables
may be real.

An :class:`ExoMDP` is a stateless, batched, generative model of such a process. Everything else in
the suite (the Gymnasium shells, planners, mask learners) is generic in it.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_array, check_lanes
from exo_envs.core.errors import ArgumentError
from exo_envs.core.model import (
    REAL_SIZE,
    BoolArray,
    FloatArray,
    GenerativeModel,
    IntArray,
    Ranges,
    State,
    Successors,
    Transition,
    Variable,
    as_pair,
    is_as_new,
)

__all__ = [
    "REAL_SIZE",
    "BoolArray",
    "ExoMDP",
    "FloatArray",
    "IntArray",
    "Ranges",
    "State",
    "Successors",
    "Transition",
    "Variable",
    "as_pair",
    "is_as_new",
]

#: What putting a step together raises if a method returned something of a wrong kind or shape.
ARITHMETIC = (TypeError, ValueError, AttributeError, IndexError)
NO_STEP = "the answers of the model make no step; exo_envs.testing.check_mdp looks at each method"
#: Of as many values, those of lanes that have ended are found by index; of fewer, all are read.
FEW_VALUES = 2048


class ExoMDP(GenerativeModel):
    """A generative model of an MDP with exogenous variables.

    Subclasses set the five attributes and write the four abstract methods; the other methods
    have defaults. Every method takes states with any leading batch dimensions, none included,
    and treats them independently. Nothing is stored between calls: the random generator is
    always an argument and the arguments are never written to.
    :func:`exo_envs.testing.check_mdp` checks all of this.

    Attributes:
        endogenous_variables: the ``k`` variables of ``n``.
        exogenous_variables: the ``m`` variables of ``x``.
        num_actions: actions are ``0 ... num_actions - 1``.
        discount: the paper's gamma, in (0, 1].
        horizon: the number of steps after which an episode is cut off.
        is_batched: whether a thousand states are answered about as fast as one. Where they are
            not, fewer samples are taken by default.
        is_recorded: whether x was recorded: then it can be followed where it has been, and
            :meth:`sample_exogenous` cannot be asked about any other x. (The other methods can.)
    """

    @final
    def reward(self, state: State, action: IntArray) -> FloatArray:
        """R(s, a), shape (...): the sum of the terms; a terminal state pays nothing."""
        state = as_pair(state)
        return self._rewards(state, action, _some(self.is_terminal(state)))[0]

    @final
    def sample_next(
        self,
        state: State,
        action: IntArray,
        rng: np.random.Generator,
        *,
        exogenous_rng: np.random.Generator | None = None,
    ) -> State:
        """Draw s' from P(s' | s, a); a terminal state is absorbing.

        With ``exogenous_rng`` the exogenous noise comes from a generator of its own, so that
        the exogenous trajectory is the same whatever the agent does.
        """
        state = as_pair(state)
        return self._successors(state, action, rng, exogenous_rng, _some(self.is_terminal(state)))

    @final
    def transition(
        self,
        state: State,
        action: IntArray,
        rng: np.random.Generator,
        *,
        exogenous_rng: np.random.Generator | None = None,
        terminal: BoolArray | None = None,
    ) -> Transition:
        """One whole step: what :meth:`sample_next` and :meth:`reward` give, terms included.

        ``terminal`` is :meth:`is_terminal` of the state, for callers who know it already.
        """
        if type(state) is not State:  # said here, because a single lane would notice a call
            state = as_pair(state)
        ended = _some(self.is_terminal(state) if terminal is None else terminal)
        reward, terms = self._rewards(state, action, ended)
        return Transition(self._successors(state, action, rng, exogenous_rng, ended), reward, terms)

    def _rewards(
        self, state: State, action: IntArray, ended: BoolArray | None
    ) -> tuple[FloatArray, FloatArray]:
        if type(action) is not np.ndarray:
            action = as_array("the batch of actions", action)
        terms = self.reward_terms(state, action)
        own: Any = 0.0
        if self.has_endogenous_reward:
            own = self.endogenous_reward(state.endogenous, action)
        try:
            terms = np.asarray(terms, dtype=np.float64)
            reward = np.add.reduce(terms, axis=-1)
            if self.has_endogenous_reward:
                reward = reward + own
            if ended is not None:
                terms = overwrite(terms, 0.0, ended)
                reward = np.where(ended, 0.0, reward)
        except ARITHMETIC as error:
            answers = f"reward_terms of shape {np.shape(terms)}, endogenous_reward {np.shape(own)}"
            raise ArgumentError(f"{NO_STEP} ({answers}): {error}") from error
        return reward, terms

    def _successors(
        self,
        state: State,
        action: IntArray,
        rng: np.random.Generator,
        exogenous_rng: np.random.Generator | None,
        ended: BoolArray | None,
    ) -> State:
        # Both parts are drawn for terminal states too: what the generators hand out must not
        # depend on which lanes have ended.
        exogenous = self.sample_exogenous(
            state.exogenous, rng if exogenous_rng is None else exogenous_rng
        )
        if type(action) is not np.ndarray:
            action = as_array("the batch of actions", action)
        endogenous = self.sample_endogenous(state, action, rng)
        if ended is not None:
            try:
                endogenous = overwrite(endogenous, state.endogenous, ended)
                exogenous = overwrite(exogenous, state.exogenous, ended)
            except ARITHMETIC as error:
                raise ArgumentError(f"{NO_STEP}: {error}") from error
        return State(endogenous, exogenous)

    def sample_uniform(self, size: int, rng: np.random.Generator) -> State:
        """Draw ``size`` states uniformly from the whole space, reachable or not.

        A real variable without bounds has a value that it may begin with.
        """
        num_variables = len(self.endogenous_sizes) + len(self.exogenous_sizes)
        size = check_lanes("size", size, num_variables)
        parts = self.endogenous_ranges, self.exogenous_ranges
        state = State(*(ranges.draw(size, rng) for ranges in parts))
        if any(ranges.unbounded.any() for ranges in parts if ranges.is_real):
            begin = self.sample_initial(size, rng)
            for values, initial, ranges in zip(state, begin, parts, strict=True):
                values[:, ranges.unbounded] = initial[:, ranges.unbounded]
        return state


def _some(flags: BoolArray) -> BoolArray | None:
    """The flags, or None if all are False; on one lane this has half the price of any()."""
    return flags if np.count_nonzero(flags) else None


def overwrite(values: Any, by: Any, lanes: NDArray[np.bool_]) -> Any:
    """Replace the rows of some lanes, in place: what a model returns is ours to write to.

    Args:
        values: (..., m).
        by: a number, or an array; whole floats are whole numbers.
        lanes: which rows, shape (...).
    """
    if lanes.shape != values.shape[:-1]:  # parts of different batch shapes are broadcast
        shape = np.broadcast_shapes(lanes.shape, values.shape[:-1])
        values = np.broadcast_to(values, (*shape, values.shape[-1]))
        lanes = np.broadcast_to(lanes, shape)
    if not values.flags.writeable:
        values = values.copy()
    if values.size < FEW_VALUES or (isinstance(by, np.ndarray) and by.shape != values.shape):
        np.copyto(values, by, where=lanes[..., None], casting="unsafe")
    else:
        values[lanes] = by[lanes] if isinstance(by, np.ndarray) else by
    return values
