"""Rule ``memory``: nothing is stored between calls, and the state is all there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exo_envs.audit.audit import audit
from exo_envs.audit.memory import find_memory
from exo_envs.contract.probe import Probe, fail
from exo_envs.core.mdp import State
from exo_envs.sources.simulators.mdp import AdaptedMDP

#: Of a model that answers one state at a time, as many are asked about, and as often in between.
_ONE_BY_ONE = 4
#: States in which two actions of an adapted environment are compared.
_NUM_STATES = 30


def check_memory(probe: Probe, *, rounds: int = 3, max_calls: int = 40) -> None:
    """Rule ``memory``: the same question has the same answer, whatever was asked before.

    A model whose answers change even if a question is only repeated breaks the rule
    ``determinism``, which is not looked at here.
    """
    states, rng = probe.states, np.random.default_rng(0)
    if not probe.mdp.is_batched:
        states = State(*(part[:_ONE_BY_ONE] for part in states))
        rounds, max_calls = 1, min(2, max_calls)
    found = find_memory(probe.mdp, states, rng, rounds=rounds, max_calls=max_calls)
    if found is not None and not found.is_restless:
        asked = replace(probe, actions=np.full(len(probe.actions), found.action))
        fail("memory", f"{found.problem.message}, {asked.show(found.lane)}")


def check_state(mdp: AdaptedMDP, error_probability: float) -> None:
    """Rules ``memory`` and ``exogeneity`` by an audit of an adapted environment."""
    if mdp.differences != "refuse":
        return
    found = audit(mdp, num_states=_NUM_STATES, error_probability=error_probability)
    for problem in found.problems:
        rule = "memory" if problem.is_hidden else "exogeneity"
        fail(rule, f"{problem.message} ({problem.kind})")
