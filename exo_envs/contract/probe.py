"""A model under test, the states and actions to try it on, and the form of its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract import answers
from exo_envs.contract.answers import (
    NotFiniteError,
    Question,
    check_flags,
    check_part,
    check_rewards,
    check_terms,
)
from exo_envs.contract.checked_mdp import checked
from exo_envs.core.errors import ContractError
from exo_envs.core.mdp import ExoMDP, State


def fail(rule: str, message: str) -> NoReturn:
    """Say which rule is broken, and how it shows."""
    raise ContractError(rule, message)


@dataclass(frozen=True)
class Probe:
    """A model with the states and actions to try it on."""

    mdp: ExoMDP
    states: State  # (B, ...)
    actions: NDArray[np.int64]  # (B,)
    rng: np.random.Generator

    @classmethod
    def of(cls, mdp: ExoMDP, states: State, rng: np.random.Generator) -> Probe:
        """The states, each with a random action."""
        return cls(mdp, states, rng.integers(mdp.num_actions, size=len(states.endogenous)), rng)

    def strict(self) -> Probe:
        """The same, each answer looked at: a model may break the form of some now and then."""
        return replace(self, mdp=checked(self.mdp))

    def at(self, index: Any) -> tuple[State, NDArray[np.int64]]:
        """Copies of some states and actions."""
        state = State(self.states.endogenous[index].copy(), self.states.exogenous[index].copy())
        return state, np.array(self.actions[index])

    def show(self, index: Any) -> str:
        """Some state and action, by name."""
        state, action = self.at(index)
        parts = []
        for variables, values in zip(
            (self.mdp.endogenous_variables, self.mdp.exogenous_variables), state, strict=True
        ):
            shown = [f"{v.name}={x}" for v, x in zip(variables, values, strict=True)]
            parts.append(", ".join(shown[:24]) + (", ..." if len(shown) > 24 else ""))
        return f"at n: {parts[0]}; x: {parts[1]}; action {action}"

    def calls(self) -> dict[str, Callable[[State, Any, np.random.Generator], Any]]:
        """Every method of the model, called alike."""
        mdp = self.mdp
        return {
            "sample_exogenous": lambda s, a, rng: mdp.sample_exogenous(s.exogenous, rng),
            "sample_endogenous": mdp.sample_endogenous,
            "reward_terms": lambda s, a, rng: mdp.reward_terms(s, a),
            "endogenous_reward": lambda s, a, rng: mdp.endogenous_reward(s.endogenous, a),
            "is_terminal": lambda s, a, rng: mdp.is_terminal(s),
        }


#: Leading dimensions of the states that a model is asked about.
BATCH_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (2, 3))


@contextmanager
def rule(name: str, *, not_finite: str = "reward") -> Iterator[None]:
    """What :mod:`exo_envs.contract` refuses within breaks this rule, or the one about numbers."""
    try:
        yield
    except (TypeError, ValueError) as error:
        broken = not_finite if isinstance(error, NotFiniteError) else name
        raise ContractError(broken, str(error)) from None


def check_initial(mdp: ExoMDP, rng: np.random.Generator) -> None:
    """Rule ``shapes`` for the initial states."""
    for size in (1, 5):
        draw_initial(mdp, size, rng)


def draw_initial(mdp: ExoMDP, size: int, rng: np.random.Generator) -> State:
    """Initial states of the right shape and kind."""
    state = mdp.sample_initial(size, rng)
    with rule("shapes"):
        answers.check_initial(mdp, state, size)
    return state


def collect_states(
    mdp: ExoMDP, num_states: int, any_state: bool, rng: np.random.Generator
) -> State:
    """States met by a random walk of the agent, and half of them uniform if asked for.

    Of a model whose x was recorded none are uniform: nobody knows what follows any other x.
    """
    lanes, any_state = 8, any_state and not mdp.is_recorded
    state = draw_initial(mdp, lanes, rng)
    walk = [state]
    for _ in range(min(mdp.horizon, -(-num_states // lanes))):
        action = rng.integers(mdp.num_actions, size=lanes)
        # As sample_next does, but each answer is looked at before anything is made of it.
        ended = mdp.is_terminal(state)
        check_answer(mdp, "is_terminal", ended, state, action)
        x = mdp.sample_exogenous(state.exogenous, rng)
        check_answer(mdp, "sample_exogenous", x, state, action)
        n = mdp.sample_endogenous(state, action, rng)
        check_answer(mdp, "sample_endogenous", n, state, action)
        parts = zip(state, (n, x), strict=True)
        state = State(*(np.where(ended[:, None], old, new) for old, new in parts))
        walk.append(state)
    joined = (np.concatenate(part) for part in zip(*walk, strict=True))
    met = State(*map(np.ndarray.astype, joined, map(mdp.dtype_of, State._fields)))
    chosen = rng.permutation(len(met.endogenous))[: num_states // 2 if any_state else num_states]
    met = State(met.endogenous[chosen], met.exogenous[chosen])
    if not any_state:
        return met
    anywhere = mdp.sample_uniform(num_states - len(chosen), rng)
    return State(*(np.concatenate(part) for part in zip(met, anywhere, strict=True)))


def check_answer(mdp: ExoMDP, method: str, answer: Any, state: State, action: Any) -> None:
    """Rules ``shapes`` and ``reward``: what a method returned, alone or for a batch of states."""
    shape, asked = np.shape(action), Question.of(state, action)
    with rule("shapes"):
        if method == "sample_exogenous":
            asked = Question(None, state.exogenous)
            check_part(mdp, method, "exogenous", answer, shape, asked)
        elif method == "sample_endogenous":
            check_part(mdp, method, "endogenous", answer, shape, asked)
        elif method == "reward_terms":
            check_terms(mdp, answer, shape, asked)
        elif method == "endogenous_reward":
            check_rewards(mdp, method, answer, shape, Question(state.endogenous, None, action))
        else:
            check_flags(method, answer, shape)


def check_shapes(
    probe: Probe,
    batch_shapes: tuple[tuple[int, ...], ...],
    repeats: int,
) -> None:
    """Rule ``shapes`` for every other method, last with all states at once."""
    everything = np.arange(len(probe.actions))
    for batch_shape in (*batch_shapes, *[everything.shape] * repeats):
        index = probe.rng.integers(len(probe.actions), size=batch_shape)
        if batch_shape == everything.shape:
            index = everything
        for method in probe.calls():
            state, action = probe.at(index)
            answer = _ask(probe, method, index)
            check_answer(probe.mdp, method, answer, state, action)


def _ask(probe: Probe, method: str, index: Any) -> Any:
    """What a method answers; it may be written for batches of one dimension only."""
    call = probe.calls()[method]
    try:
        return call(*probe.at(index), probe.rng)
    except Exception as error:
        if np.ndim(index) == 1 or not _answers_rows(probe, method, np.reshape(index, -1)):
            raise
        asked = f"a batch of shape {np.shape(index)}" if np.ndim(index) else "a single state"
        raise ContractError(
            "shapes",
            f"{method} fails for {asked}, with x of shape {probe.at(index)[0].exogenous.shape}: "
            f"{error}. States have any leading dimensions, or none: write x[..., 0], not x[:, 0], "
            "and sum over axis=-1, not axis=1",
        ) from error


def _answers_rows(probe: Probe, method: str, rows: Any) -> bool:
    try:
        probe.calls()[method](*probe.at(rows), probe.rng)
    except Exception:  # noqa: BLE001 - then it was not the shape
        return False
    return True
