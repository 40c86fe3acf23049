"""Which n a survey asks about: all of them, or a sample where there are too many."""

from __future__ import annotations

import math

import numpy as np

from exo_envs import ExoMDP, State
from planners.arrays import Ints
from planners.information.rollouts import is_slow

#: Pairs (n, a) up to which all n are asked about.
MAX_PAIRS = 100_000
#: Different n met on rollouts that a sample has at most.
NUM_MET = 1_500
#: Different n drawn uniformly that a sample has at most.
NUM_UNIFORM = 500
#: A sample for a model that answers one question at a time is smaller by this factor.
SLOWER = 10
#: Steps taken for each n that is wanted from rollouts, since many n are met repeatedly.
STEPS_PER_STATE = 4


def can_enumerate(mdp: ExoMDP) -> bool:
    """Whether all pairs (n, a) can be asked about."""
    states = math.prod(int(variable.size) for variable in mdp.endogenous_variables)
    return states * mdp.num_actions <= MAX_PAIRS


def all_endogenous(mdp: ExoMDP) -> Ints:
    """Every n in the order of its flat index, shape (N, k)."""
    sizes = tuple(int(size) for size in mdp.endogenous_sizes)
    return np.indices(sizes, dtype=np.int64).reshape(len(sizes), math.prod(sizes)).T


def sample_endogenous(mdp: ExoMDP, rng: np.random.Generator) -> Ints:
    """Different n, shape (S, k): met on rollouts of random actions, and drawn uniformly."""
    share = SLOWER if is_slow(mdp) else 1
    affordable = max(2, MAX_PAIRS // mdp.num_actions)
    num_met = min(NUM_MET // share, affordable // 2)
    num_uniform = min(NUM_UNIFORM // share, affordable // 2)
    met = _meet(mdp, STEPS_PER_STATE * num_met, rng)
    met = rng.permutation(np.unique(met, axis=0))[:num_met]
    uniform = rng.integers(mdp.endogenous_sizes, size=(num_uniform, met.shape[1]))
    return np.unique(np.concatenate([met, uniform]), axis=0)


def _meet(mdp: ExoMDP, num_steps: int, rng: np.random.Generator) -> Ints:
    """The n on rollouts of random actions, of about ``num_steps`` steps in all."""
    lanes = math.ceil(num_steps / mdp.horizon)
    state: State = mdp.sample_initial(lanes, rng)
    met = [state.endogenous]
    for _ in range(min(mdp.horizon, num_steps)):
        action = rng.integers(mdp.num_actions, size=lanes)
        state = mdp.sample_next(state, action, rng)
        met.append(state.endogenous)
    return np.concatenate(met).astype(np.int64)
