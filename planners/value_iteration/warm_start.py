"""The values of one plan, laid out for the states of another model."""

from __future__ import annotations

import numpy as np

from planners.core.arrays import Floats
from planners.core.planner import Plan
from planners.tables.factored_mdp import FactoredMDP
from planners.value_iteration.tabular_policy import TabularPolicy

#: Exogenous variables that a model and its warm start may have together: NumPy limits the axes of
#: an array, and a model with more could not be enumerated anyway.
MAX_WARM_VARIABLES = 30


def values_over(mdp: FactoredMDP, plan: Plan) -> Floats | None:
    """The values of a plan, laid out for the states of ``mdp``; None if they do not fit.

    Returns:
        First an axis for each variable that ``mdp`` does not have, then one for each that it has,
        in its order and of length 1 where the plan does not know it, then one for n.
    """
    policy, values = plan.policy, plan.values
    if values is None or not isinstance(policy, TabularPolicy):
        return None
    known = dict(zip(policy.mask, policy.exogenous_sizes.tolist(), strict=True))
    wanted = dict(zip(mdp.exogenous_names, mdp.exogenous_sizes.tolist(), strict=True))
    if (
        policy.endogenous_sizes.tolist() != mdp.endogenous_sizes.tolist()
        or values.shape != policy.actions.shape
        or not np.issubdtype(values.dtype, np.floating)
        or len({*known, *wanted}) > MAX_WARM_VARIABLES
        or any(wanted.get(name, size) != size for name, size in known.items())
    ):
        return None
    dropped = [name for name in known if name not in wanted]
    order = [*dropped, *(name for name in wanted if name in known)]
    tensor = values.reshape(*known.values(), values.shape[1])
    tensor = tensor.transpose(*(list(known).index(name) for name in order), len(known))
    shape = [*(known[name] for name in dropped), *(known.get(name, 1) for name in wanted)]
    return tensor.reshape(*shape, values.shape[1])
