"""Where a model's answers enter, they are checked; what is behind relies on it.

Compiled kernels do not look whether an index is within its array: one value out of range would end
the process, or worse. So everything that a model returns (values, shapes, types) is checked here,
once for each batch. The planners ask every model through a :class:`CheckedMDP`, and both Gymnasium
shells look at each step with :func:`check_transition`.
"""

from exo_envs.borders.answers import (
    NotFiniteError,
    Question,
    check_flags,
    check_initial,
    check_part,
    check_rewards,
    check_terms,
    kernels,
)
from exo_envs.borders.checked_mdp import CheckedMDP, checked, given_successors, unchecked
from exo_envs.borders.declaration import check_declaration
from exo_envs.borders.steps import check_terminal, check_transition, take_step
from exo_envs.original import HasOriginal, Outcome

__all__ = [
    "CheckedMDP",
    "HasOriginal",
    "NotFiniteError",
    "Outcome",
    "Question",
    "check_declaration",
    "check_flags",
    "check_initial",
    "check_part",
    "check_rewards",
    "check_terminal",
    "check_terms",
    "check_transition",
    "checked",
    "given_successors",
    "kernels",
    "take_step",
    "unchecked",
]
