"""Planning in reduced models: estimate one from samples, solve it, run the policy back.

``estimate_objective(mdp, mask, rng=rng)`` does all three; the parts are :class:`ReducedMDP`, the
planners (:class:`ValueIteration`, :class:`ForecastPlanner`, :class:`UCT`, and
:class:`DefaultPlanner`, which picks one by size), and :func:`evaluate`.
"""

from planners.bounds import Bracket, ExactValues, ValueFunction, bracket
from planners.counted import CountedMDP
from planners.default_planner import DefaultPlanner
from planners.evaluation import DECIDED, Estimate, Scenarios, evaluate, paired_difference
from planners.files import replacing
from planners.forecasting import ForecastPlanner, ForecastPolicy
from planners.information import (
    Cases,
    Evidence,
    ExogenousData,
    ParentSearch,
    Rows,
    TransitionCounts,
    actors_of,
    conditional_information,
    pairwise_information,
)
from planners.memory import Memory
from planners.objective import MaskEvaluator, Trial, estimate_objective
from planners.planner import Candidate, Clock, OutOfTimeError, Plan, Planner
from planners.policy import Mask, Policy
from planners.reduction import (
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
    "UCT",
    "Bracket",
    "Candidate",
    "Cases",
    "Clock",
    "Comparison",
    "Cost",
    "CountedMDP",
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
    "IgnoredRewards",
    "Mask",
    "MaskEvaluator",
    "Memory",
    "Objective",
    "OutOfTimeError",
    "ParentSearch",
    "Plan",
    "Planner",
    "Policy",
    "ReducedMDP",
    "Reward",
    "Rows",
    "Rule",
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
    "bracket",
    "check_ignored_rewards",
    "check_reward",
    "conditional_information",
    "cost_function",
    "estimate_objective",
    "evaluate",
    "paired_difference",
    "pairwise_information",
    "replacing",
    "to_arrays",
    "to_discrete_dp",
]
