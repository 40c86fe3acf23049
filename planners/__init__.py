"""Planning in reduced models: estimate one from samples, solve it, run the policy back.

``estimate_objective(mdp, mask, rng=rng)`` does all three; the parts are :class:`ReducedMDP`, the
planners (:class:`ValueIteration`, :class:`ForecastPlanner`, :class:`UCT`, and
:class:`DefaultPlanner`, which picks one by size), and :func:`evaluate`.
"""

from planners.backtesting import Backtest, backtest
from planners.bin_edges import Responses
from planners.binned_policy import BinnedPolicy, with_values
from planners.bounds import Bracket, ExactValues, ValueFunction, bracket
from planners.clock import Clock, OutOfTimeError, check_time_limit
from planners.coarse import Bins, CoarseMDP, coarsened
from planners.counted import CountedMDP
from planners.default_planner import DefaultPlanner
from planners.evaluation import DECIDED, Estimate, Scenarios, evaluate, paired_difference
from planners.files import Saved, read_text, replacing
from planners.forecasting import ForecastPlanner, ForecastPolicy
from planners.grid import Grid
from planners.information import (
    Cases,
    CheckedEdge,
    CrossCheck,
    Evidence,
    ExogenousData,
    NeighbourTest,
    ParentSearch,
    Rows,
    TransitionCounts,
    actors_of,
    conditional_information,
    cross_check,
    hidden_in_bins,
    influence_given,
    neighbour_information,
    neighbour_test,
    pairwise_information,
)
from planners.mask_evaluator import MaskEvaluator, Trial
from planners.memory import Memory
from planners.objective import estimate_objective
from planners.planner import Candidate, Plan, PlanCutShortWarning, Planner, check_planner
from planners.policy import Mask, Policy
from planners.reduction import (
    MAX_OPEN,
    EndogenousSurvey,
    IgnoredRewards,
    ReducedMDP,
    Reward,
    SimulatedReducedMDP,
    TabulatedReducedMDP,
    check_ignored_rewards,
    check_reward,
)
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
from planners.worth import Comparison, Cost, Objective, cost_function

__all__ = [
    "DECIDED",
    "MAX_OPEN",
    "UCT",
    "Backtest",
    "BinnedPolicy",
    "Bins",
    "Bracket",
    "Candidate",
    "Cases",
    "CheckedEdge",
    "Clock",
    "CoarseMDP",
    "Comparison",
    "Cost",
    "CountedMDP",
    "CrossCheck",
    "DecisionLists",
    "DefaultPlanner",
    "EndogenousSurvey",
    "Estimate",
    "Evidence",
    "ExactValues",
    "ExogenousData",
    "Factor",
    "FactoredMDP",
    "ForecastPlanner",
    "ForecastPolicy",
    "Grid",
    "IgnoredRewards",
    "Mask",
    "MaskEvaluator",
    "Memory",
    "NeighbourTest",
    "Objective",
    "OutOfTimeError",
    "ParentSearch",
    "Plan",
    "PlanCutShortWarning",
    "Planner",
    "Policy",
    "ReducedMDP",
    "Responses",
    "Reward",
    "Rows",
    "Rule",
    "Saved",
    "Scenarios",
    "SimulatedReducedMDP",
    "TabularPolicy",
    "TabulatedReducedMDP",
    "TransitionCounts",
    "Trial",
    "UCTPolicy",
    "ValueFunction",
    "ValueIteration",
    "actors_of",
    "backtest",
    "bracket",
    "check_ignored_rewards",
    "check_planner",
    "check_reward",
    "check_time_limit",
    "coarsened",
    "conditional_information",
    "cost_function",
    "cross_check",
    "estimate_objective",
    "evaluate",
    "hidden_in_bins",
    "influence_given",
    "neighbour_information",
    "neighbour_test",
    "paired_difference",
    "pairwise_information",
    "read_text",
    "replacing",
    "to_arrays",
    "to_discrete_dp",
    "with_values",
]
