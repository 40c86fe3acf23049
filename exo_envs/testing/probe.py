"""A model under test, with the states and actions to try it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exo_envs.mdp import ExoMDP, State


class ContractError(AssertionError):
    """A model broke a rule of the contract; ``rule`` names it."""

    def __init__(self, rule: str, message: str) -> None:
        """Name the rule and say what was seen."""
        super().__init__(f"rule {rule!r} is broken: {message}")
        self.rule = rule


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


def collect_states(
    mdp: ExoMDP, num_states: int, any_state: bool, rng: np.random.Generator
) -> State:
    """States met by a random walk of the agent, and half of them uniform if asked for."""
    lanes = 8
    state = mdp.sample_initial(lanes, rng)
    walk = [state]
    for _ in range(min(mdp.horizon, -(-num_states // lanes))):
        state = mdp.sample_next(state, rng.integers(mdp.num_actions, size=lanes), rng)
        walk.append(state)
    met = State(*(np.concatenate(part).astype(np.int64) for part in zip(*walk, strict=True)))
    chosen = rng.permutation(len(met.endogenous))[: num_states // 2 if any_state else num_states]
    met = State(met.endogenous[chosen], met.exogenous[chosen])
    if not any_state:
        return met
    anywhere = mdp.sample_uniform(num_states - len(chosen), rng)
    return State(*(np.concatenate(part) for part in zip(met, anywhere, strict=True)))
