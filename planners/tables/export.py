"""Small models as tables of QuantEcon.

States are numbered as in :mod:`planners.tables.indexing`: (x, n) is ``x * N + n``. A terminal state
pays nothing and leads to itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import check_kind, check_positive
from exo_envs.core.errors import NotInstalledError
from exo_envs.core.mdp import FloatArray
from planners.core.arrays import joint_values, set_joint_values
from planners.tables.decision_lists import follow_rules
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import joint_factor
from planners.tables.indexing import TooLargeError, format_count, num_exogenous_states, scope_rows


def to_discrete_dp(mdp: FactoredMDP, *, memory_limit: float = 4e9) -> Any:
    """QuantEcon's ``DiscreteDP``, in its formulation by state-action pairs, sparse.

    Args:
        mdp: what to export.
        memory_limit: bytes that the transition matrix may take.

    Raises:
        TooLargeError: it takes more.
        ImportError: QuantEcon is not installed.
    """
    check_kind("mdp", mdp, FactoredMDP)
    memory_limit = check_positive("memory_limit", memory_limit, "bytes")
    try:
        from quantecon.markov import DiscreteDP
        from scipy import sparse
    except ImportError as error:
        raise NotInstalledError("to_discrete_dp needs QuantEcon: pip install quantecon") from error
    state_actions = num_exogenous_states(mdp) * mdp.num_endogenous_states * mdp.num_actions
    _refuse_large(mdp, 12 * state_actions, memory_limit)  # each has one successor, at least
    starts, targets, probabilities = _successors(mdp, memory_limit)
    matrix = sparse.csr_matrix(
        (probabilities, targets, starts), shape=(state_actions, state_actions // mdp.num_actions)
    )
    state, action = np.divmod(np.arange(state_actions), mdp.num_actions)
    return DiscreteDP(_rewards(mdp).reshape(-1), matrix, mdp.discount, state, action)


def _refuse_large(mdp: FactoredMDP, needed: int, memory_limit: float) -> None:
    if needed > memory_limit:
        raise TooLargeError(
            f"{format_count(mdp.num_states)} states with {mdp.num_actions} actions take "
            f"{format_count(needed)} bytes or more in this format; memory_limit is "
            f"{format_count(int(memory_limit))}"
        )


def _rewards(mdp: FactoredMDP) -> FloatArray:
    """R(s, a), shape (S, A)."""
    values = joint_values(np.arange(num_exogenous_states(mdp)), mdp.exogenous_sizes)
    rewards = np.tile(mdp.base_reward, (len(values), 1, 1))  # (X, N, A)
    for scope, table in mdp.scoped_terms.items():
        rewards += table[scope_rows(scope, values, mdp.exogenous_sizes)]
    rewards[:, mdp.terminal] = 0.0
    return rewards.reshape(-1, mdp.num_actions)


def _successors(mdp: FactoredMDP, memory_limit: float) -> tuple[Any, Any, FloatArray]:
    """P(s'|s, a) in sparse rows, one for each pair (s, a): starts, targets and probabilities."""
    everything = range(len(mdp.exogenous_variables))
    strides = [math.prod(mdp.exogenous_sizes[i + 1 :].tolist()) for i in everything]
    factor = joint_factor(mdp.factors, everything, everything, mdp.exogenous_sizes, strides)
    exogenous = factor.starts, factor.values, factor.probabilities
    starts: Any = np.zeros(num_exogenous_states(mdp) * mdp.base_reward.size + 1, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
    _expand(mdp.decision_lists, mdp.terminal, exogenous, starts, *nothing)
    _refuse_large(mdp, 12 * int(starts[-1]), memory_limit)
    # SciPy wants both of one type, and the smaller one if it will do.
    starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
    rows = starts, np.zeros(starts[-1], starts.dtype), np.zeros(starts[-1])
    _expand(mdp.decision_lists, mdp.terminal, exogenous, *rows)
    return rows


@njit(cache=True)
def _expand(
    lists: Any, terminal: Any, exogenous: Any, starts: Any, targets: Any, probabilities: Any
) -> None:
    """Set where rows start, and fill them if there is room for targets."""
    x_starts, x_values, x_probabilities = exogenous
    num_states, num_actions = lists.num_states, lists.num_actions
    x = np.zeros(len(lists.sizes), np.int64)
    mass = np.zeros(num_states)
    reached = np.zeros(num_states, np.int64)
    row = 0
    for joint in range(len(x_starts) - 1):
        set_joint_values(joint, lists.sizes, x)
        low, high = x_starts[joint], x_starts[joint + 1]
        for pair in range(num_states * num_actions):
            place, n = starts[row], pair // num_actions
            row += 1
            first, last = lists.rule_starts[pair], lists.rule_starts[pair + 1]
            found, total, _ = follow_rules(lists, first, last, x, mass, reached)
            starts[row] = place + (1 if terminal[n] else (high - low) * found)
            if len(targets) and terminal[n]:
                targets[place] = joint * num_states + n
                probabilities[place] = 1.0
            elif len(targets):
                for e in range(low, high):
                    for k in range(found):
                        targets[place] = x_values[e] * num_states + reached[k]
                        probabilities[place] = x_probabilities[e] * mass[reached[k]] / total
                        place += 1
            mass[reached[:found]] = 0.0
