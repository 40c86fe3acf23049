"""Small models in the formats of other solvers.

States are numbered as in :mod:`planners.tables.indexing`: (x, n) is ``x * N + n``. A terminal state
pays nothing and leads to itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exo_envs.mdp import FloatArray
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import (
    TooLargeError,
    count,
    num_exogenous_states,
    state_at,
    state_index,
)
from planners.tables.joint_factor import joint_rows
from planners.value_iteration.successors import decide

__all__ = ["state_at", "state_index", "to_arrays", "to_discrete_dp"]


def to_arrays(mdp: FactoredMDP, *, memory_limit: float = 1e9) -> tuple[FloatArray, FloatArray]:
    """Dense arrays, as pymdptoolbox takes them.

    Args:
        mdp: what to export.
        memory_limit: bytes that the arrays may take.

    Returns:
        P of shape (A, S, S), P(s'|s,a), and R of shape (S, A).

    Raises:
        TooLargeError: they take more.
    """
    states = num_exogenous_states(mdp) * mdp.num_endogenous_states
    _refuse_large(mdp, 8 * mdp.num_actions * states * (states + 1), memory_limit)
    starts, targets, probabilities = _successors(mdp)
    state, action = np.divmod(np.arange(states * mdp.num_actions), mdp.num_actions)
    lengths = np.diff(starts)
    transitions = np.zeros((mdp.num_actions, states, states))
    transitions[np.repeat(action, lengths), np.repeat(state, lengths), targets] = probabilities
    return transitions, _rewards(mdp)


def to_discrete_dp(mdp: FactoredMDP, *, memory_limit: float = 4e9) -> Any:
    """QuantEcon's ``DiscreteDP``, in its formulation by state-action pairs, sparse.

    Args:
        mdp: what to export.
        memory_limit: bytes that the transition matrix may take.

    Raises:
        TooLargeError: it takes more.
        ImportError: QuantEcon is not installed.
    """
    try:
        from quantecon.markov import DiscreteDP
        from scipy import sparse
    except ImportError as error:
        raise ImportError("to_discrete_dp needs QuantEcon: pip install quantecon") from error
    pairs = num_exogenous_states(mdp) * mdp.num_endogenous_states * mdp.num_actions
    _refuse_large(mdp, 12 * pairs, memory_limit)  # each has one successor, at least
    starts, targets, probabilities = _successors(mdp, memory_limit)
    matrix = sparse.csr_matrix(
        (probabilities, targets, starts), shape=(pairs, pairs // mdp.num_actions)
    )
    state, action = np.divmod(np.arange(pairs), mdp.num_actions)
    return DiscreteDP(_rewards(mdp).reshape(-1), matrix, mdp.discount, state, action)


def _refuse_large(mdp: FactoredMDP, needed: int, memory_limit: float) -> None:
    if needed > memory_limit:
        states = num_exogenous_states(mdp) * mdp.num_endogenous_states
        raise TooLargeError(
            f"{count(states)} states with {mdp.num_actions} actions take {count(needed)} bytes or "
            f"more in this format; memory_limit is {count(int(memory_limit))}"
        )


def _rewards(mdp: FactoredMDP) -> FloatArray:
    """R(s, a), shape (S, A)."""
    values = state_at(mdp, np.arange(num_exogenous_states(mdp)) * mdp.num_endogenous_states)
    rewards = np.tile(mdp.base_reward, (len(values.exogenous), 1, 1))  # (X, N, A)
    for i, table in mdp.terms.items():
        rewards += table[values.exogenous[:, i]]
    rewards[:, mdp.terminal] = 0.0
    return rewards.reshape(-1, mdp.num_actions)


def _successors(
    mdp: FactoredMDP, memory_limit: float = np.inf
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    """P(s'|s, a) in sparse rows, one for each pair: starts, targets, probabilities."""
    everything = range(len(mdp.exogenous_variables))
    strides = [math.prod(mdp.exogenous_sizes[i + 1 :].tolist()) for i in everything]
    exogenous = joint_rows(mdp.factors, everything, everything, mdp.exogenous_sizes, strides)
    given = mdp.decision_lists
    lists: tuple[Any, ...] = (
        mdp.terminal,
        given.sizes,
        given.rule_starts,
        given.variable_starts,
        given.variables,
        given.row_starts,
        given.entry_starts,
        given.targets,
        given.probabilities,
    )
    lengths = np.zeros(num_exogenous_states(mdp) * mdp.base_reward.size, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int32)
    _expand(lengths, nothing, np.zeros(0), *(*exogenous, *lists))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    _refuse_large(mdp, 12 * int(starts[-1]), memory_limit)
    # SciPy wants both of one type, and the smaller one if it will do.
    starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
    targets = np.zeros(starts[-1], dtype=starts.dtype)
    probabilities = np.zeros(starts[-1])
    _expand(starts, targets, probabilities, *(*exogenous, *lists))
    return starts, targets, probabilities


@njit(cache=True)
def _expand(
    places: Any,
    out_targets: Any,
    out_probabilities: Any,
    exogenous_starts: Any,
    exogenous_values: Any,
    exogenous_probabilities: Any,
    terminal: Any,
    sizes: Any,
    rule_starts: Any,
    variable_starts: Any,
    variables: Any,
    row_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
) -> None:
    """Fill the rows that start at ``places``; with nothing to fill, set their lengths there."""
    num_states = len(terminal)
    num_actions = (len(rule_starts) - 1) // num_states
    x = np.zeros(len(sizes), np.int64)
    mass = np.zeros(num_states)
    reached = np.zeros(num_states, np.int64)
    for joint in range(len(exogenous_starts) - 1):
        rest = joint
        for i in range(len(sizes) - 1, -1, -1):
            x[i] = rest % sizes[i]
            rest //= sizes[i]
        low, high = exogenous_starts[joint], exogenous_starts[joint + 1]
        for pair in range(num_states * num_actions):
            number = joint * num_states * num_actions + pair
            if terminal[pair // num_actions]:
                if len(out_targets):
                    out_targets[places[number]] = joint * num_states + pair // num_actions
                    out_probabilities[places[number]] = 1.0
                else:
                    places[number] = 1
                continue
            found, total, _ = decide(
                x,
                mass,
                reached,
                rule_starts[pair],
                rule_starts[pair + 1],
                sizes,
                variable_starts,
                variables,
                row_starts,
                entry_starts,
                targets,
                probabilities,
            )
            if len(out_targets):
                place = places[number]
                for e in range(low, high):
                    for k in range(found):
                        out_targets[place] = exogenous_values[e] * num_states + reached[k]
                        out_probabilities[place] = (
                            exogenous_probabilities[e] * mass[reached[k]] / total
                        )
                        place += 1
            else:
                places[number] = (high - low) * found
            for k in range(found):
                mass[reached[k]] = 0.0
