"""Markov decision processes with exogenous variables (section 3.1 of the paper).

The state is ``s = (n, x)``: an *endogenous* part ``n`` that the agent's actions move and an
*exogenous* part ``x = (x^1 ... x^m)`` that moves by itself,

    P(s' | s, a) = P(n' | n, a, x) * P(x' | x),
    R(s, a)      = R(n, a) + sum_i R^i(n, x^i, a).

An :class:`ExoMDP` is a stateless, batched, generative model of such a process. Everything else in
the suite (the Gymnasium shells, planners, mask learners) is generic in it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from exo_envs.errors import unknown_name

IntArray: TypeAlias = NDArray[np.integer[Any]]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]


class State(NamedTuple):
    """A state, or a batch of states: leading dimensions are batch dimensions."""

    endogenous: IntArray  # (..., k)
    exogenous: IntArray  # (..., m)


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable with the values ``0 ... size - 1``."""

    name: str
    size: int

    def __post_init__(self) -> None:
        """Refuse a variable that has no name or no value."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a variable's name is a non-empty string, not {self.name!r}")
        if not isinstance(self.size, (int, np.integer)) or self.size < 1:
            raise ValueError(
                f"the size of {self.name!r} is a whole number, at least 1, not {self.size!r}"
            )


class Transition(NamedTuple):
    """What one step of an :class:`ExoMDP` gives."""

    state: State  # the next state
    reward: FloatArray  # (...)
    reward_terms: FloatArray  # (..., m)


class Successors(NamedTuple):
    """All n' that may follow, with their probabilities.

    Those of probability 0 are padding; they too are values in range.
    """

    endogenous: IntArray  # (..., K, k)
    probabilities: FloatArray  # (..., K)

    @classmethod
    def certain(cls, endogenous: IntArray) -> Successors:
        """One n' for each state, of shape (..., k): nothing is left to chance."""
        return cls(endogenous[..., None, :], np.ones((*endogenous.shape[:-1], 1)))


class ExoMDP(ABC):
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
    """

    endogenous_variables: tuple[Variable, ...]
    exogenous_variables: tuple[Variable, ...]
    num_actions: int
    discount: float
    horizon: int
    is_batched: bool = True

    # --- what a subclass writes -----------------------------------------------------------

    @abstractmethod
    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Draw ``size`` states from P(s_0), as arrays of shape (size, k) and (size, m)."""

    @abstractmethod
    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw x' from P(x' | x): neither the action nor n is there to be looked at."""

    @abstractmethod
    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Draw n' from P(n' | n, a, x), of shape (..., k); ``action`` has shape (...)."""

    @abstractmethod
    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The R^i(n, x^i, a) of the paper, shape (..., m); term i looks at no other x^j."""

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """The part of the reward that depends on no exogenous variable, shape (...)."""
        return np.zeros(endogenous.shape[:-1])

    def is_terminal(self, state: State) -> BoolArray:
        """Whether the episode is over in ``state``, shape (...)."""
        return np.zeros(state.endogenous.shape[:-1], dtype=np.bool_)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """P(n' | n, a, x) itself, or None if the model can only draw from it (the default).

        Bounds (:func:`planners.bracket`) are tighter if a model says this. An n' may occur more
        than once; its probabilities are then added.
        """
        return None

    # --- what follows from it -------------------------------------------------------------

    @final
    def reward(self, state: State, action: IntArray) -> FloatArray:
        """R(s, a), shape (...): the sum of the terms; a terminal state pays nothing."""
        return self._rewards(state, action, self.is_terminal(state))[0]

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
        return self._successors(state, action, rng, exogenous_rng, self.is_terminal(state))

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
        terminal = self.is_terminal(state) if terminal is None else terminal
        reward, terms = self._rewards(state, action, terminal)
        return Transition(
            self._successors(state, action, rng, exogenous_rng, terminal), reward, terms
        )

    def _rewards(
        self, state: State, action: IntArray, terminal: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        action = np.asarray(action)
        terms = self.reward_terms(state, action)
        reward = np.add.reduce(terms, axis=-1) + self.endogenous_reward(state.endogenous, action)
        if np.count_nonzero(terminal):  # half the price of any() on one lane
            terms = _overwrite(terms, 0.0, terminal)
            reward = np.where(terminal, 0.0, reward)
        return reward, terms

    def _successors(
        self,
        state: State,
        action: IntArray,
        rng: np.random.Generator,
        exogenous_rng: np.random.Generator | None,
        terminal: BoolArray,
    ) -> State:
        # Both parts are drawn for terminal states too: what the generators hand out must not
        # depend on which lanes have ended.
        exogenous = self.sample_exogenous(
            state.exogenous, rng if exogenous_rng is None else exogenous_rng
        )
        endogenous = self.sample_endogenous(state, np.asarray(action), rng)
        if np.count_nonzero(terminal):  # half the price of any() on one lane
            endogenous = _overwrite(endogenous, state.endogenous, terminal)
            exogenous = _overwrite(exogenous, state.exogenous, terminal)
        return State(endogenous, exogenous)

    # --- sizes and names ------------------------------------------------------------------

    @cached_property
    def endogenous_sizes(self) -> NDArray[np.int64]:
        """The sizes of the endogenous variables, shape (k,)."""
        return np.array([v.size for v in self.endogenous_variables], dtype=np.int64)

    @cached_property
    def exogenous_sizes(self) -> NDArray[np.int64]:
        """The sizes of the exogenous variables, shape (m,)."""
        return np.array([v.size for v in self.exogenous_variables], dtype=np.int64)

    @cached_property
    def exogenous_names(self) -> tuple[str, ...]:
        """The names of the exogenous variables: what masks are made of."""
        return tuple(v.name for v in self.exogenous_variables)

    @cached_property
    def num_states(self) -> int:
        """The size of the whole state space, exactly."""
        variables = self.endogenous_variables + self.exogenous_variables
        return math.prod(int(v.size) for v in variables)

    @cached_property
    def _exogenous_positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.exogenous_names)}

    def exogenous_indices(self, names: Sequence[str]) -> NDArray[np.intp]:
        """The positions of the named exogenous variables in x."""
        positions = self._exogenous_positions
        for name in names:
            if name not in positions:
                raise unknown_name("exogenous variable", name, self.exogenous_names)
        return np.array([positions[name] for name in names], dtype=np.intp)

    def sample_uniform(self, size: int, rng: np.random.Generator) -> State:
        """Draw ``size`` states uniformly from the whole space, reachable or not."""
        return State(
            rng.integers(self.endogenous_sizes, size=(size, len(self.endogenous_sizes))),
            rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes))),
        )

    def __repr__(self) -> str:
        """Name the model and its size."""
        exponent = math.floor(10 * math.log10(self.num_states)) / 10
        return (
            f"{type(self).__name__}({len(self.exogenous_variables)} exogenous variables, "
            f"10^{exponent:.1f} states, {self.num_actions} actions)"
        )


def _overwrite(values: Any, by: Any, lanes: BoolArray) -> Any:
    """Replace the rows of some lanes, in place: what a model returns is ours to write to."""
    if not values.flags.writeable:
        values = values.copy()
    np.copyto(values, by, where=lanes[..., None])
    return values
