"""Which n a survey asks about: all of them, or a sample where there are too many."""

from __future__ import annotations

import math

import numpy as np

from exo_envs.core.mdp import ExoMDP
from planners.core.arrays import Ints, joint_values
from planners.core.walk import walk
from planners.discretization.grid import fewest_endogenous_states
from planners.tables.indexing import num_endogenous_states

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
    """Whether all pairs (n, a) can be asked about, with real variables of n on grids."""
    return fewest_endogenous_states(mdp) * mdp.num_actions <= MAX_PAIRS


def all_endogenous(mdp: ExoMDP) -> Ints:
    """Every n in the order of its flat index, shape (N, k)."""
    return joint_values(np.arange(num_endogenous_states(mdp)), mdp.endogenous_sizes)


def survey_states(mdp: ExoMDP, rng: np.random.Generator) -> tuple[Ints, bool]:
    """The n to ask about, shape (S, k), and whether these are all, in the order of the flat index.

    If they cannot be enumerated they are a sample: n met by random actions, and uniform ones.
    """
    if can_enumerate(mdp):
        return all_endogenous(mdp), True
    share = 1 if mdp.is_batched else SLOWER
    affordable = max(2, MAX_PAIRS // mdp.num_actions)
    num_met = min(NUM_MET // share, affordable // 2)
    num_uniform = min(NUM_UNIFORM // share, affordable // 2)
    num_steps = STEPS_PER_STATE * num_met
    lanes, length = math.ceil(num_steps / mdp.horizon), min(mdp.horizon, num_steps)
    met: Ints = walk(mdp, lanes, length, rng).endogenous.astype(np.int64)
    met = rng.permutation(np.unique(met, axis=0))[:num_met]
    uniform = rng.integers(mdp.endogenous_sizes, size=(num_uniform, met.shape[1]))
    return np.unique(np.concatenate([met, uniform]), axis=0), False
