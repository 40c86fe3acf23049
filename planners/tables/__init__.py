"""MDPs as tables: what planners plan in.

- ``factored_mdp``: :class:`FactoredMDP`, an MDP whose every probability is in a table.
- ``rules``: :class:`Rule`, one rule of a decision list, and how lists are rewritten.
- ``decision_lists``: :class:`DecisionLists`, where the agent goes: the lists of all (n, a).
- ``factors``: :class:`Factor`, how an exogenous variable moves, and joint factors of several.
- ``scopes``: reward terms of several exogenous variables.
- ``indexing``: how many states there are, and their numbers.
- ``export``: small models in the formats of other solvers.
"""

from planners.tables.decision_lists import DecisionLists, follow_rules
from planners.tables.export import to_arrays, to_discrete_dp
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor, Factors, joint_factor
from planners.tables.indexing import (
    TooLargeError,
    format_count,
    num_endogenous_states,
    num_exogenous_states,
)
from planners.tables.rules import Rule, count_outcomes, simplify, with_default
from planners.tables.scopes import (
    Scope,
    along,
    by_scope,
    refuse_large_scope,
    scope_rows,
    scope_shape,
    variables_of,
)

__all__ = [
    "DecisionLists",
    "Factor",
    "FactoredMDP",
    "Factors",
    "Rule",
    "Scope",
    "TooLargeError",
    "along",
    "by_scope",
    "count_outcomes",
    "follow_rules",
    "format_count",
    "joint_factor",
    "num_endogenous_states",
    "num_exogenous_states",
    "refuse_large_scope",
    "scope_rows",
    "scope_shape",
    "simplify",
    "to_arrays",
    "to_discrete_dp",
    "variables_of",
    "with_default",
]
