"""How large a state space is, and how its states are numbered.

The state (x, n) has the index ``x * N + n``, with the joint values of x and of n in C order: the
order of ``Plan.values`` and of a tabular policy's actions, both of shape (X, N).
"""

from __future__ import annotations

import math

from exo_envs.core.errors import ExoError
from exo_envs.core.mdp import ExoMDP


class TooLargeError(ExoError, MemoryError):
    """A model has more states than a memory budget allows; its message says how many more."""


def num_exogenous_states(mdp: ExoMDP) -> int:
    """X: the number of joint values of the exogenous variables, exactly."""
    return math.prod(variable.size for variable in mdp.exogenous_variables)


def num_endogenous_states(mdp: ExoMDP) -> int:
    """N: the number of joint values of the endogenous variables, exactly."""
    return math.prod(variable.size for variable in mdp.endogenous_variables)


def format_count(number: int) -> str:
    """A large number for an error message: exact while it is readable.

    >>> format_count(123456), format_count(10**80)
    ('123,456', '10^80.0')
    """
    return f"{number:,}" if number < 10**12 else f"10^{math.log10(number):.1f}"
