"""Planning in reduced models: estimate one from samples, solve it, run the policy back.

``estimate_objective(mdp, mask, rng=rng)`` does all three; the parts are :class:`ReducedMDP`, the
planners (:class:`ValueIteration`, :class:`ForecastPlanner`, :class:`UCT`, and
:class:`DefaultPlanner`, which picks one by size), and :func:`evaluate`.
"""

from planners.default_planner import DefaultPlanner
from planners.evaluation import Estimate, Scenarios, evaluate, paired_difference
from planners.forecasting import ForecastPlanner, ForecastPolicy
from planners.information import ExogenousData
from planners.memory import Memory
from planners.objective import Objective, estimate_objective
from planners.planner import Plan, Planner
from planners.policy import Policy
from planners.reduction.reduced_mdp import ReducedMDP
from planners.reduction.survey import EndogenousSurvey
from planners.tables.decision_lists import DecisionLists
from planners.tables.export import to_arrays, to_discrete_dp
from planners.tables.factored_mdp import Factor, FactoredMDP
from planners.tables.rules import Rule
from planners.tree_search import UCT, UCTPolicy
from planners.value_iteration.planner import ValueIteration
from planners.value_iteration.tabular_policy import TabularPolicy

__all__ = [
    "UCT",
    "DecisionLists",
    "DefaultPlanner",
    "EndogenousSurvey",
    "Estimate",
    "ExogenousData",
    "Factor",
    "FactoredMDP",
    "ForecastPlanner",
    "ForecastPolicy",
    "Memory",
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
