"""Planning in reduced models: estimate one from samples, solve it, run the policy back.

``estimate_objective(mdp, mask, rng=rng)`` does all three; the parts are :class:`ReducedMDP`, the
planners (:class:`ValueIteration`, :class:`ForecastPlanner`, :class:`UCT`, and
:class:`DefaultPlanner`, which picks one by size), and :func:`evaluate`.
"""

from planners.default_planner import DefaultPlanner
from planners.evaluation import Estimate, Scenarios, evaluate, paired_difference
from planners.forecasting.planner import ForecastPlanner, ForecastPolicy
from planners.information.rollouts import ExogenousData
from planners.objective import Objective, estimate_objective
from planners.planner import Clock, OutOfTimeError, Plan, Planner
from planners.policy import Policy
from planners.reduction.reduced_mdp import ReducedMDP
from planners.reduction.survey import EndogenousSurvey
from planners.tables import (
    DecisionLists,
    Factor,
    FactoredMDP,
    Rule,
    to_arrays,
    to_discrete_dp,
)
from planners.tree_search import UCT, UCTPolicy
from planners.value_iteration import TabularPolicy, ValueIteration

__all__ = [
    "UCT",
    "Clock",
    "DecisionLists",
    "DefaultPlanner",
    "EndogenousSurvey",
    "Estimate",
    "ExogenousData",
    "Factor",
    "FactoredMDP",
    "ForecastPlanner",
    "ForecastPolicy",
    "Objective",
    "OutOfTimeError",
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
