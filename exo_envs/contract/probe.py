"""A model under test, with the states and actions to try it on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

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
