"""States that an agent meets who acts at random."""

from __future__ import annotations

import numpy as np

from exo_envs.core.mdp import ExoMDP, State


def walk(mdp: ExoMDP, lanes: int, steps: int, rng: np.random.Generator) -> State:
    """All states of so many walks, (B, k) and (B, m); what was recorded is followed.

    x goes on after the end of an episode, and n stays as it is.
    """
    state, following = mdp.trajectories(lanes, steps, rng)
    met = [state]
    for x in following:
        action = rng.integers(mdp.num_actions, size=lanes)
        ended = mdp.is_terminal(state)[:, None]
        n = mdp.sample_endogenous(state, action, rng)
        state = State(np.where(ended, state.endogenous, n), x)
        met.append(state)
    return State(*(np.concatenate(part) for part in zip(*met, strict=True)))
