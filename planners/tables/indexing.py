"""State spaces that can be enumerated: sizes and indices.

The state (x, n) has the index ``x * N + n``, with the joint values of x and of n in C order: the
order of ``Plan.values`` and of a tabular policy's actions, both of shape (X, N).
"""

from __future__ import annotations

import math

import numpy as np

from exo_envs import ExoMDP, State
from exo_envs.mdp import IntArray
from planners.arrays import Ints, joint_index, joint_values


class TooLargeError(MemoryError):
    """A model has more states than a memory budget allows; its message says how many more."""


def num_exogenous_states(mdp: ExoMDP) -> int:
    """X: the number of joint values of the exogenous variables, exactly."""
    return math.prod(variable.size for variable in mdp.exogenous_variables)


def num_endogenous_states(mdp: ExoMDP) -> int:
    """N: the number of joint values of the endogenous variables, exactly."""
    return math.prod(variable.size for variable in mdp.endogenous_variables)


def state_index(mdp: ExoMDP, state: State) -> Ints:
    """The index of each state, shape (...)."""
    x = joint_index(np.asarray(state.exogenous), mdp.exogenous_sizes)
    n = joint_index(np.asarray(state.endogenous), mdp.endogenous_sizes)
    return x * num_endogenous_states(mdp) + n


def state_at(mdp: ExoMDP, index: IntArray | int) -> State:
    """The states with these indices: arrays of shape (..., k) and (..., m)."""
    x, n = np.divmod(np.asarray(index, dtype=np.int64), num_endogenous_states(mdp))
    return State(joint_values(n, mdp.endogenous_sizes), joint_values(x, mdp.exogenous_sizes))


def format_count(number: int) -> str:
    """A large number for an error message: exact while it is readable.

    >>> format_count(123456), format_count(10**80)
    ('123,456', '10^80.0')
    """
    return f"{number:,}" if number < 10**12 else f"10^{math.log10(number):.1f}"
