"""Planning in reduced models: estimate one from samples, solve it, run the policy back.

``estimate_objective(mdp, mask, rng=rng)`` does all three; the parts are :class:`ReducedMDP`, the
planners (:class:`ValueIteration`, :class:`ForecastPlanner`, :class:`UCT`, and
:class:`DefaultPlanner`, which picks one by size), and :func:`evaluate`.
"""

from planners.data import ExogenousData
from planners.default import DefaultPlanner
from planners.endogenous import EndogenousSurvey
from planners.evaluation import Estimate, Scenarios, evaluate, paired_difference
from planners.factored import Factor, FactoredMDP
from planners.forecast_planner import ForecastPlanner, ForecastPolicy
from planners.interchange import to_arrays, to_discrete_dp
from planners.moves import Moves, Rule
from planners.objective import Objective, estimate_objective
from planners.plan import Plan, Planner
from planners.policy import Policy
from planners.reduced import ReducedMDP
from planners.tabular_policy import TabularPolicy
from planners.uct import UCT, UCTPolicy
from planners.value_iteration import ValueIteration

__all__ = [
    "UCT",
    "DefaultPlanner",
    "EndogenousSurvey",
    "Estimate",
    "ExogenousData",
    "Factor",
    "FactoredMDP",
    "ForecastPlanner",
    "ForecastPolicy",
    "Moves",
    "Objective",
    "Plan",
    "Planner",
    "Policy",
    "ReducedMDP",
    "Rule",
    "Scenarios",
    "TabularPolicy",
    "UCTPolicy",
    "ValueIteration",
    "estimate_objective",
    "evaluate",
    "paired_difference",
    "to_arrays",
    "to_discrete_dp",
]
