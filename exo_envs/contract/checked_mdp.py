"""A model whose every answer is counted and checked, and one that also looks at the time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import (
    METHODS,
    Question,
    are_distributions,
    check_answer,
    check_declaration,
    check_initial,
    check_numbers,
    check_part,
    check_successors,
)
from exo_envs.contract.original import HasOriginal
from exo_envs.core.arguments import kind_of
from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.kernels import CompiledExogenous
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Successors
from exo_envs.core.model import as_pair, is_as_new


class CheckedMDP(ExoMDP):
    """Passes every question on to a model, and checks and counts what it returns.

    Values are whole numbers in the range of their variable, shapes are those of the question, and
    rewards are finite; if not, a ValueError or TypeError names the method, the variable, the value
    and the question. Everything that is returned is of one type: int64, float64 or bool.

    Args:
        model: the model. What it declares is checked at once. The answers of a model that is
            checked already are not checked again.
        check: False passes answers on as they are.

    Attributes:
        model: the model.
        is_checked: whether answers are checked, here or by the model.
        exogenous_samples: how many x' were drawn.
        endogenous_samples: how many n' were drawn.
        reward_samples: in how many states reward terms were asked for.
    """

    def __init__(self, model: ExoMDP, *, check: bool = True) -> None:
        self.model = model
        is_checked = isinstance(model, CheckedMDP) and model.is_checked
        self.is_checked: bool = check or is_checked
        self._is_trusted = not check or is_checked
        if not isinstance(model, CheckedMDP):
            check_declaration(model)
        self.declare_as(model)
        # What is divided by or multiplied with one of NumPy's small integers becomes another one.
        self.num_actions, self.horizon = int(model.num_actions), int(model.horizon)
        self.discount = float(model.discount)
        self.exogenous_samples = self.endogenous_samples = self.reward_samples = 0

    @staticmethod
    def _tick() -> None:
        """Called before every question; in a :class:`CountedMDP` the time may be up there."""

    def _answer(self, method: str, asked: Question, *given: Any) -> Any:
        """What the model returns, looked at unless somebody has done so before."""
        values = getattr(self.model, method)(*given)
        return values if self._is_trusted else check_answer(self, method, values, asked)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Of the model; a state to start in is an x like any other."""
        self._tick()
        state = self.model.sample_initial(size, rng)
        self.exogenous_samples += int(size)  # without a check it may be no State
        return state if self._is_trusted else check_initial(self, state, size)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        self._tick()
        asked = Question(None, exogenous)
        self.exogenous_samples += math.prod(asked.shape)
        return self._answer("sample_exogenous", asked, exogenous, rng)

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Of the model, if it is recorded; else by asking for one x' after another.

        Each x of a record counts as if it had been drawn.
        """
        if not self.is_recorded:
            state = self.sample_initial(size, rng)
            return state, self._following(state.exogenous, num_steps, rng)
        state, following = self.model.trajectories(size, num_steps, rng)
        self.exogenous_samples += int(size)
        if not self._is_trusted:
            state = check_initial(self, state, size)
        return state, self._recorded(following, size)

    def _recorded(self, following: Iterator[IntArray], size: int) -> Iterator[IntArray]:
        for x in following:
            self._tick()
            self.exogenous_samples += len(x)
            if self._is_trusted:
                yield x
            else:
                yield check_part(self, "trajectories", "exogenous", x, (size,), Question())

    def _following(
        self,
        x: NDArray[Any],
        num_steps: int,
        rng: np.random.Generator,
        spare: NDArray[Any] | None = None,
    ) -> Iterator[NDArray[Any]]:
        """The x that follow; with a spare array by the compiled x', in the two arrays in turn."""
        for _ in range(num_steps):
            if spare is None:
                x = self.sample_exogenous(x, rng)
            else:
                self.write_exogenous(x, rng, spare)
                x, spare = spare, x
            yield x

    def write_trajectories(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Write x_0 ... x_T of :meth:`trajectories`, and return the n that they begin with.

        A model with a compiled x' (:meth:`ExoMDP.compiled_exogenous`) is stepped in the type of
        ``values``, which takes less memory and time than eight bytes for each value do.

        Args:
            values: is written to, (size, T + 1, m): an integer type that holds all values, or
                float64 if some are real.
            rng: where the randomness comes from.
        """
        size, length = values.shape[:2]
        if self._has_compiled_exogenous:
            state = self.sample_initial(size, rng)
            x = state.exogenous.astype(values.dtype)
            following = self._following(x, length - 1, rng, np.empty_like(x))
        else:
            state, following = self.trajectories(size, length - 1, rng)
        for t, x in enumerate(itertools.chain([state.exogenous], following)):
            values[:, t] = x
        return state.endogenous

    def write_exogenous(
        self, x: NDArray[Any], rng: np.random.Generator, following: NDArray[Any]
    ) -> None:
        """Write x' by the compiled x' of the model; x is one of its answers."""
        self._tick()
        self.exogenous_samples += len(x)
        if isinstance(self.model, CheckedMDP):
            self.model.write_exogenous(x, rng, following)
            return
        compiled = compiled_exogenous_of(self.model)
        if compiled is None or not compiled.write(x, rng, following):
            raise ArgumentError(f"{self.model!r} cannot follow an x that is none of its answers")

    @cached_property
    def _has_compiled_exogenous(self) -> bool:
        return compiled_exogenous_of(unchecked(self)) is not None

    @property
    def held_out(self) -> CheckedMDP:
        """That of the model, checked likewise; this one if it has none."""
        other = self.model.held_out
        return self if other is self.model else checked(other)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        self._tick()
        state = as_pair(state)
        asked = Question(*state, action)
        self.endogenous_samples += math.prod(asked.shape)
        return self._answer("sample_endogenous", asked, state, action, rng)

    @cached_property
    def original(self) -> HasOriginal | None:
        """The model as something that can be played itself, or None if it is all there is."""
        model = unchecked(self)
        return model if isinstance(model, HasOriginal) else None

    def sample_outcome(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        """Draw n' and the reward of one step of the :attr:`original`, (..., k) and (...)."""
        self._tick()
        state = as_pair(state)
        asked = Question(*state, action)
        self.endogenous_samples += math.prod(asked.shape)
        if isinstance(self.model, CheckedMDP):
            return self.model.sample_outcome(state, action, rng)
        assert self.original is not None
        values, paid = self.original.sample_outcome(state, action, rng)
        n = check_part(self, "sample_outcome", "endogenous", values, asked.shape, asked)
        return n, check_numbers(self, "sample_outcome", paid, asked.shape, asked)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """Of the model, if its word can be taken, or None; the n' of one state count as one.

        A class that changes how n' is drawn and inherits the probabilities speaks of another model:
        they count only if they were written together with ``sample_endogenous``, or later.
        """
        self._tick()
        state, method = as_pair(state), "endogenous_distribution"
        if not is_as_new(self.model, method, ["sample_endogenous"]):
            return None
        found = self.model.endogenous_distribution(state, action)
        if found is None:
            return None
        asked = Question(*state, action)
        self.endogenous_samples += math.prod(asked.shape)
        if self._is_trusted:
            return found
        if not isinstance(found, Successors):
            raise ArgumentTypeError(f"{method} returned {kind_of(found)}, not Successors or None")
        found = check_successors(self, found, asked)
        if not are_distributions(found.probabilities):
            raise ArgumentError(
                f"{method} returned probabilities of n' that are negative or do not sum to 1; "
                "exo_envs.testing.check_mdp shows where"
            )
        return found

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Of the model; endogenous rewards come with the terms and are not counted again."""
        self._tick()
        state = as_pair(state)
        asked = Question(*state, action)
        self.reward_samples += math.prod(asked.shape)
        return self._answer("reward_terms", asked, state, action)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        self._tick()
        asked = Question(endogenous, None, action)
        return self._answer("endogenous_reward", asked, endogenous, action)

    @cached_property
    def has_endogenous_reward(self) -> bool:
        return self.model.has_endogenous_reward

    def is_terminal(self, state: State) -> BoolArray:
        """Of the model; to look whether an episode is over is no sample."""
        self._tick()
        return self._answer("is_terminal", Question(*as_pair(state)), state)

    def __repr__(self) -> str:
        return repr(self.model)


class CountedMDP(CheckedMDP):
    """The same, and before every question the time may be up (:func:`exo_envs.core.clock.tick`)."""

    _tick = staticmethod(tick)

    def add(self, other: CountedMDP) -> None:
        """Count what another one was asked as well."""
        self.exogenous_samples += other.exogenous_samples
        self.endogenous_samples += other.endogenous_samples
        self.reward_samples += other.reward_samples

    @property
    def samples(self) -> int:
        """All of them: x', n' and rewards."""
        return self.exogenous_samples + self.endogenous_samples + self.reward_samples


def ask(mdp: ExoMDP, method: str, state: State, action: Any, rng: np.random.Generator) -> Any:
    """What one of the :data:`METHODS` returns."""
    known = {"state": state, "action": action, "rng": rng, **state._asdict()}
    return getattr(mdp, method)(*(known[name] for name in METHODS[method]))


def checked(mdp: ExoMDP) -> CheckedMDP:
    """The model with its answers checked; as it is, if they are already."""
    return mdp if isinstance(mdp, CheckedMDP) and mdp.is_checked else CheckedMDP(mdp)


def unchecked(mdp: ExoMDP) -> ExoMDP:
    """The model itself, without whoever checks or counts its answers."""
    while isinstance(mdp, CheckedMDP):
        mdp = mdp.model
    return mdp


def compiled_exogenous_of(mdp: ExoMDP) -> CompiledExogenous | None:
    """The compiled x' of a model, or None if it has none or draws x' in a way of its own."""
    current = is_as_new(mdp, "compiled_exogenous", ["sample_exogenous"])
    return mdp.compiled_exogenous() if current else None
