"""The models of a look-ahead as its kernels read them: all numbers of a model in two arrays.

Numba compiles a function for two arrays several times as fast as one for a record of thirty, and
calls it faster as well. So the arrays of a :class:`CompiledModel` are laid out one after another,
integers behind a head that says where each of them begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planners.core.arrays import Ints, join, starts_of
from planners.forecasting.compiled_model import CompiledModel

#: Arrays of a model whose numbers are integers, as they are laid out.
_INTS = (
    *("forecasts", "variables", "values", "strides", "terminal", "reward_starts", "reward_atoms"),
    *("otherwise", "rule_starts", "rule_ends", "outcome_starts", "targets", "conditions"),
    *("atom_starts", "atoms", "branch_starts", "node_starts", "first_leaves", "parents"),
    *("node_observations", "node_branch_starts", "node_branches", "observation_atom_starts"),
    *("observation_atoms", "joint_reward_starts", "joint_reward_conditions"),
)
#: Arrays of real numbers, as they are laid out.
_REALS = (
    *("base", "rewards", "probabilities", "observation_constants", "observation_signs"),
    "joint_rewards",
)
# In kernels: where the head says how many there are of something, and where an array begins.
ATOM_COUNT, STATE_COUNT, LIST_COUNT, CONDITION_COUNT, OBSERVATION_COUNT, TREE_SIZE, JOINT_COUNT = (
    range(7)
)
FORECASTS, VARIABLES, VALUES, STRIDES, TERMINAL, REWARD_STARTS, REWARD_ATOMS = range(7, 14)
OTHERWISE, RULE_STARTS, RULE_ENDS, OUTCOME_STARTS, TARGETS, CONDITIONS = range(14, 20)
ATOM_STARTS, ATOMS, BRANCH_STARTS, NODE_STARTS, FIRST_LEAVES, PARENTS = range(20, 26)
NODE_OBSERVATIONS, NODE_BRANCH_STARTS, NODE_BRANCHES, OBSERVATION_ATOM_STARTS = range(26, 30)
OBSERVATION_ATOMS, JOINT_REWARD_STARTS, JOINT_REWARD_CONDITIONS = range(30, 33)
BASE, REWARDS, PROBABILITIES, OBSERVATION_CONSTANTS, OBSERVATION_SIGNS = range(33, 38)
JOINT_REWARDS = 38
_HEAD = 39


class FlatModel(NamedTuple):
    """A :class:`CompiledModel` in two arrays."""

    ints: Ints  # the head, and behind it all integers
    reals: NDArray[np.float32]

    @classmethod
    def of(cls, model: CompiledModel) -> FlatModel:
        """Lay out the arrays of a model."""
        ints = [getattr(model, name) for name in _INTS]
        reals = [getattr(model, name) for name in _REALS]
        head = [
            *(len(model.values), len(model.terminal), len(model.base), len(model.probabilities)),
            *(len(model.observation_signs), np.diff(model.node_starts).max(initial=0)),
            len(model.joint_rewards),
            *(starts_of(ints)[:-1] + _HEAD),
            *starts_of(reals)[:-1],
        ]
        return cls(join([head, *ints], np.int64), join(reals, np.float32))


class FlatModels(NamedTuple):
    """The model for the decision that is made now, and that for later ones."""

    now: FlatModel
    later: FlatModel
