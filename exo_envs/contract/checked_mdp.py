"""A model whose every answer is checked, and one that also counts its questions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import (
    Question,
    check_flags,
    check_initial,
    check_part,
    check_rewards,
    check_terms,
)
from exo_envs.contract.declaration import check_declaration
from exo_envs.contract.original import HasOriginal, Outcome
from exo_envs.core.arguments import kind_of
from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.kernels import CompiledExogenous
from exo_envs.core.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    State,
    Successors,
    as_pair,
    batch_shape,
    is_as_new,
)

#: How far the probabilities of all n' may be from 1 in all.
TOLERANCE = 1e-9


class CheckedMDP(ExoMDP):
    """Passes every question on to a model, and checks what it returns.

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

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        state = self.model.sample_initial(size, rng)
        return state if self._is_trusted else check_initial(self, state, size)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        values = self.model.sample_exogenous(exogenous, rng)
        if self._is_trusted:
            return values
        asked, shape = Question(None, exogenous), batch_shape(exogenous)
        return check_part(self, "sample_exogenous", "exogenous", values, shape, asked)

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Of the model, if it is recorded; else by asking for one x' after another."""
        if not self.is_recorded:
            return super().trajectories(size, num_steps, rng)
        state, following = self.model.trajectories(size, num_steps, rng)
        if self._is_trusted:
            return state, following
        return check_initial(self, state, size), (
            check_part(self, "trajectories", "exogenous", x, (size,), Question()) for x in following
        )

    def write_trajectories(
        self, values: NDArray[Any], rng: np.random.Generator, columns: Any = None
    ) -> NDArray[Any]:
        """Write x_0 ... x_T of :meth:`trajectories`, and return the n that they begin with.

        A model with a compiled x' (:meth:`ExoMDP.compiled_exogenous`) is stepped in the type of
        ``values``, which takes less memory and time than eight bytes for each value do.

        Args:
            values: is written to, (size, T + 1, m): an integer type that holds all values, or
                float64 if some are real.
            rng: where the randomness comes from.
            columns: the variables that are written, if they are not all.
        """
        size, length = values.shape[:2]
        if columns is None and self._has_compiled_exogenous:
            state = self.sample_initial(size, rng)
            following = self._narrow(state.exogenous.astype(values.dtype), length - 1, rng)
        else:
            state, following = self.trajectories(size, length - 1, rng)
        for t, x in enumerate(itertools.chain([state.exogenous], following)):
            values[:, t] = x if columns is None else x[:, columns]
        return state.endogenous

    def _narrow(
        self, x: NDArray[Any], num_steps: int, rng: np.random.Generator
    ) -> Iterator[NDArray[Any]]:
        """The x that follow, in one of two arrays in turn."""
        following = np.empty_like(x)
        for _ in range(num_steps):
            self.write_exogenous(x, rng, following)
            x, following = following, x
            yield x

    def write_exogenous(
        self, x: NDArray[Any], rng: np.random.Generator, following: NDArray[Any]
    ) -> None:
        """Write x' by the compiled x' of the model; x is one of its answers."""
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
    def held_out(self) -> ExoMDP:
        """That of the model, checked likewise; this one if it has none."""
        other = self.model.held_out
        return self if other is self.model else checked(other)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        state = as_pair(state)
        values = self.model.sample_endogenous(state, action, rng)
        if self._is_trusted:
            return values
        asked, shape = Question.of(state, action), batch_shape(state.endogenous)
        return check_part(self, "sample_endogenous", "endogenous", values, shape, asked)

    def sample_outcome(self, state: State, action: IntArray, rng: np.random.Generator) -> Outcome:
        """Draw n' and the reward of one step, of shapes (..., k) and (...).

        The reward is what the model says, or, if the model was made of something that can be
        played itself (:class:`exo_envs.contract.original.HasOriginal`), what that paid in this very
        step.
        """
        if self.original is None:
            reward = self.reward(state, action)
            return Outcome(self.sample_endogenous(state, action, rng), reward)
        if isinstance(self.model, CheckedMDP):
            return self.model.sample_outcome(state, action, rng)
        state = as_pair(state)
        values, paid = self.original.sample_outcome(state, action, rng)
        asked, shape = Question.of(state, action), batch_shape(state.endogenous)
        return Outcome(
            check_part(self, "sample_outcome", "endogenous", values, shape, asked),
            check_rewards(self, "sample_outcome", paid, shape, asked),
        )

    @cached_property
    def original(self) -> HasOriginal | None:
        """The model as something that can be played itself, or None if it is all there is."""
        model = unchecked(self)
        return model if isinstance(model, HasOriginal) else None

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """Of the model, if its word can be taken (:func:`given_successors`)."""
        state = as_pair(state)
        found = given_successors(self.model, state, action)
        if found is None or self._is_trusted:
            return found
        method = "endogenous_distribution"
        if not isinstance(found, Successors):
            raise ArgumentTypeError(f"{method} returned {kind_of(found)}, not Successors or None")
        shape = (*batch_shape(state.endogenous), *np.shape(found.probabilities)[-1:])
        probabilities = check_rewards(self, method, found.probabilities, shape, Question())
        off = np.abs(probabilities.sum(axis=-1) - 1.0)
        if not (probabilities >= 0).all() or not (off <= TOLERANCE).all():
            raise ArgumentError(
                f"{method} returned probabilities of n' that are negative or do not sum to 1; "
                "exo_envs.testing.check_mdp shows where"
            )
        asked = Question(
            np.repeat(state.endogenous[..., None, :], shape[-1], axis=-2),
            np.repeat(state.exogenous[..., None, :], shape[-1], axis=-2),
        )
        n = check_part(self, method, "endogenous", found.endogenous, shape, asked)
        return Successors(n, probabilities)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        state = as_pair(state)
        terms = self.model.reward_terms(state, action)
        if self._is_trusted:
            return terms
        return check_terms(self, terms, batch_shape(state.endogenous), Question.of(state, action))

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        rewards = self.model.endogenous_reward(endogenous, action)
        if self._is_trusted:
            return rewards
        asked, shape = Question(endogenous, None, action), batch_shape(endogenous)
        return check_rewards(self, "endogenous_reward", rewards, shape, asked)

    @cached_property
    def has_endogenous_reward(self) -> bool:
        return self.model.has_endogenous_reward

    def is_terminal(self, state: State) -> BoolArray:
        flags = self.model.is_terminal(state)
        if self._is_trusted:
            return flags
        return check_flags("is_terminal", flags, batch_shape(as_pair(state).endogenous))

    def __repr__(self) -> str:
        return repr(self.model)


class CountedMDP(CheckedMDP):
    """Passes every question on to a model, checks the answers, and counts what it is asked about.

    Before every question the time may be up (:func:`exo_envs.core.clock.tick`).

    Attributes:
        model: the model.
        exogenous_samples: how many x' were drawn.
        endogenous_samples: how many n' were drawn.
        reward_samples: in how many states reward terms were asked for.
    """

    def __init__(self, model: ExoMDP, *, check: bool = True) -> None:
        super().__init__(model, check=check)
        self.exogenous_samples = self.endogenous_samples = self.reward_samples = 0

    def add(self, other: CountedMDP) -> None:
        """Count what another one was asked as well."""
        self.exogenous_samples += other.exogenous_samples
        self.endogenous_samples += other.endogenous_samples
        self.reward_samples += other.reward_samples

    @property
    def samples(self) -> int:
        """All of them: x', n' and rewards."""
        return self.exogenous_samples + self.endogenous_samples + self.reward_samples

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Of the model; a state to start in is an x like any other."""
        tick()
        state = super().sample_initial(size, rng)
        self.exogenous_samples += int(size)  # without a check it may be no State
        return state

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        tick()
        self.exogenous_samples += math.prod(batch_shape(exogenous))
        return super().sample_exogenous(exogenous, rng)

    def write_exogenous(
        self, x: NDArray[Any], rng: np.random.Generator, following: NDArray[Any]
    ) -> None:
        tick()
        self.exogenous_samples += len(x)
        super().write_exogenous(x, rng, following)

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Of the model; each x of a record counts as if it had been drawn."""
        state, following = super().trajectories(size, num_steps, rng)
        if not self.is_recorded:
            return state, following
        self.exogenous_samples += int(size)

        def counted() -> Iterator[IntArray]:
            for x in following:
                tick()
                self.exogenous_samples += len(x)
                yield x

        return state, counted()

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        tick()
        self.endogenous_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return super().sample_endogenous(state, action, rng)

    def sample_outcome(self, state: State, action: IntArray, rng: np.random.Generator) -> Outcome:
        """Of the model; of one that was made of something else, n' and the reward are one step."""
        if self.original is None:
            return super().sample_outcome(state, action, rng)
        tick()
        self.endogenous_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return super().sample_outcome(state, action, rng)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """Of the model; the n' of one state count as one, as if it had been drawn."""
        tick()
        found = super().endogenous_distribution(state, action)
        if found is not None:
            self.endogenous_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return found

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Of the model; endogenous rewards come with the terms and are not counted again."""
        tick()
        self.reward_samples += math.prod(batch_shape(as_pair(state).endogenous))
        return super().reward_terms(state, action)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        tick()
        return super().endogenous_reward(endogenous, action)

    def is_terminal(self, state: State) -> BoolArray:
        """Of the model; to look whether an episode is over is no sample."""
        tick()
        return super().is_terminal(state)


def checked(mdp: ExoMDP) -> CheckedMDP:
    """The model with its answers checked; as it is, if they are already."""
    return mdp if isinstance(mdp, CheckedMDP) and mdp.is_checked else CheckedMDP(mdp)


def unchecked(mdp: ExoMDP) -> ExoMDP:
    """The model itself, without whoever checks or counts its answers."""
    while isinstance(mdp, CheckedMDP):
        mdp = mdp.model
    return mdp


def given_successors(mdp: ExoMDP, state: State, action: IntArray) -> Successors | None:
    """What ``mdp.endogenous_distribution`` says, or None if n' has to be drawn.

    A class that changes how n' is drawn and inherits the probabilities speaks of another model:
    they count only if they were written together with ``sample_endogenous``, or later.
    """
    current = is_as_new(mdp, "endogenous_distribution", ["sample_endogenous"])
    return mdp.endogenous_distribution(state, action) if current else None


def compiled_exogenous_of(mdp: ExoMDP) -> CompiledExogenous | None:
    """The compiled x' of a model, or None if it has none or draws x' in a way of its own."""
    current = is_as_new(mdp, "compiled_exogenous", ["sample_exogenous"])
    return mdp.compiled_exogenous() if current else None
