"""Planning in reduced models: estimate one from samples, solve it, run the policy back.

``estimate_objective(mdp, mask, rng=rng)`` does all three; the parts are :class:`ReducedMDP`, the
planners (:class:`ValueIteration`, :class:`ForecastPlanner`, :class:`UCT`, and
:class:`DefaultPlanner`, which picks one by size), and :func:`evaluate`.
"""

from exo_envs.core.clock import Clock
from planners.backtesting import backtest
from planners.bounds.bracketing import Bracket, bracket
from planners.core.evaluation import Estimate, Scenarios, evaluate
from planners.core.memory import Memory
from planners.core.planner import Plan, PlanCutShortWarning, Planner
from planners.core.policy import Mask, Policy
from planners.default_planner import DefaultPlanner
from planners.dependence.pairwise import pairwise_information
from planners.forecasting.planner import ForecastPlanner
from planners.objective import estimate_objective
from planners.reduced.reduced_mdp import ReducedMDP
from planners.tables.export import to_discrete_dp
from planners.tree_search import UCT
from planners.value_iteration.planner import ValueIteration
from planners.worth import Objective

__all__ = [
    "UCT",
    "Bracket",
    "Clock",
    "DefaultPlanner",
    "Estimate",
    "ForecastPlanner",
    "Mask",
    "Memory",
    "Objective",
    "Plan",
    "PlanCutShortWarning",
    "Planner",
    "Policy",
    "ReducedMDP",
    "Scenarios",
    "ValueIteration",
    "backtest",
    "bracket",
    "estimate_objective",
    "evaluate",
    "pairwise_information",
    "to_discrete_dp",
]
