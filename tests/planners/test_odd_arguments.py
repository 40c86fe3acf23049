"""What is no model, policy, trajectory, position, table or seed is refused by name."""

import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP

from exo_envs import ExoEnv
from planners import (
    UCT,
    DefaultPlanner,
    Estimate,
    ForecastPlanner,
    ReducedMDP,
    Scenarios,
    ValueIteration,
    bracket,
    estimate_objective,
    evaluate,
    to_discrete_dp,
)
from planners.bounds.penalty import ExactValues
from planners.core.memory import Memory
from planners.dependence.contingency import Cases, Rows, conditional_information
from planners.dependence.interventions import actors_of
from planners.dependence.parents import ParentSearch, TransitionCounts
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from wrappers import BruteForceMaskLearner, CalibratedMaskLearner, GreedyMaskLearner, Study
from wrappers.learners.reward_variables import estimate_reward_variables

COIN = CoinMDP()
TABLES = random_mdp(np.random.default_rng(0))
PLANNERS = (
    ValueIteration(),
    ForecastPlanner(num_rollouts=12),
    UCT(simulations=2),
    DefaultPlanner(),
)


def stay(state):
    return np.zeros(len(state.endogenous), dtype=np.int64)


def rollouts():
    return ExogenousData.collect(COIN, 8, np.random.default_rng(0))


@pytest.mark.parametrize("seed", [-1, 1.5, "0", np.nan, np.random])
@pytest.mark.parametrize(
    "call",
    [
        lambda rng: Scenarios.sample(COIN, 2, rng),
        lambda rng: ExogenousData.collect(COIN, 2, rng),
        lambda rng: ReducedMDP.estimate(COIN, (), rng=rng),
        lambda rng: estimate_objective(COIN, (), rng=rng),
        lambda rng: bracket(COIN, stay, 2, rng),
        lambda rng: estimate_reward_variables(COIN, rng),
        lambda rng: Study(COIN, rng),
        *(lambda rng, planner=planner: planner.plan(TABLES, rng=rng) for planner in PLANNERS),
    ],
)
def test_what_is_no_seed_is_named(call, seed):
    with pytest.raises((TypeError, ValueError), match=r"^rng"):
        call(seed)


def test_an_environment_has_variables_that_pay():
    settings = {"n1": 4, "n2": 2}
    np.testing.assert_array_equal(
        estimate_reward_variables(ExoEnv(COIN), 0, **settings),
        estimate_reward_variables(COIN, np.random.default_rng(0), **settings),
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Scenarios.join([]), "scenarios of one model"),
        (lambda: Scenarios.sample(COIN, 2, 0).first(1.5), "count"),
        (lambda: Scenarios.sample(None, 2, 0), "ExoMDP"),
        (lambda: Scenarios(np.zeros((), int), np.zeros((1, 1, 1), int), 0), "endogenous"),
        (lambda: Scenarios(np.zeros((2, 1), int), np.zeros((1, 3, 1), int), 0), "as many"),
        (lambda: evaluate(None, COIN, 2, 0), "policy is a function"),
        (lambda: evaluate(stay, COIN, 2, 0, watch=3), "watch is a function"),
        (lambda: evaluate(stay, COIN, scenarios=3), "scenarios is a Scenarios"),
        (lambda: bracket(COIN, stay, 2, scenarios="x"), "scenarios is a Scenarios"),
        (lambda: bracket(COIN, stay, 2, memory="x"), "memory is a Memory"),
        (lambda: bracket(COIN, stay, 2, values="x"), "backwards"),
        (lambda: Estimate.of(np.zeros(())), "samples is a vector"),
        (lambda: Estimate.of(np.zeros(0)), "no samples"),
        (lambda: estimate_objective(COIN, (), cost_weight=len), "cost_weight"),
        (lambda: estimate_objective(COIN, (), warm_start=3), "warm_start is a Objective"),
        (lambda: estimate_objective(COIN, (), cost=lambda *_: None), "what cost returns"),
        (lambda: ReducedMDP.estimate(COIN, (), rng=0, survey=3), "survey is a"),
        (lambda: ReducedMDP.estimate(COIN, (), rng=0, memory=3), "memory is a"),
        (lambda: ReducedMDP.estimate(COIN, (), rng=0, known_parents=3), "known_parents"),
        (lambda: ValueIteration().plan(3), "mdp is a ExoMDP"),
        (lambda: ValueIteration().plan(TABLES, warm_start="x"), "warm_start is a Plan"),
        (lambda: list(ExactValues(TABLES).backwards(2**63)), "horizon"),
        (lambda: to_discrete_dp(None), "mdp is a FactoredMDP, not None"),
        (lambda: CalibratedMaskLearner(check=[]).fit(COIN), "check is True or False"),
        (lambda: GreedyMaskLearner(paired="x").fit(COIN), "paired is True or False"),
        (lambda: GreedyMaskLearner(callback=lambda: 0).fit(COIN), "callback=.* with a Progress"),
        (lambda: GreedyMaskLearner(trials=10**30).fit(COIN), "trials is a whole number, from 1 to"),
        (lambda: BruteForceMaskLearner(max_variables="x").fit(COIN), "max_variables"),
        (lambda: Study(COIN, 0, level=set()), "level"),
        (lambda: Study(COIN, 0, level=5e-324), "level is a probability of at least 1e-100"),
        (lambda: estimate_reward_variables(COIN, 0, sampler=3), "sampler is a function"),
        (lambda: estimate_reward_variables(COIN, 0, n2=10**30), "n2"),
    ],
)
def test_arguments_of_another_kind_are_named(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("wrong", [-1, 9, 2**31, 2**62])
def test_kernels_that_count_are_given_values_in_range(wrong):
    values, rows = np.array([0, 1, wrong]), Rows.of(3)
    with pytest.raises(ValueError, match=r"column\[2\]"):
        rows.split(values, 2)
    with pytest.raises(ValueError, match=r"target\[2\]"):
        Cases(rows, values, 2)
    with pytest.raises(ValueError, match=r"column\[2\]"):
        conditional_information(Cases(rows, np.array([0, 1, 1]), 2), values, 2)
    with pytest.raises(ValueError, match=r"row\[2\]"):
        Rows(2, values)
    with pytest.raises(ValueError, match="size is a whole number, at most"):
        rows.split(np.array([0, 1, 1]), 2**62)


def test_rollouts_are_checked_when_they_are_made():
    known = rollouts()
    for wrong in (-1, int(known.sizes[0]), 2**40):
        values = known.values.astype(np.int64)
        values[3, 1, 0] = wrong
        with pytest.raises(ValueError, match=f"those of '{known.names[0]}' are from 0"):
            ExogenousData(known.names, known.sizes, values, known.initial_endogenous, 0)
    n = known.initial_endogenous + 10**6
    forged = ExogenousData(known.names, known.sizes, known.values, n, 0)
    with pytest.raises(ValueError, match="initial_endogenous"):
        EndogenousSurvey.collect(COIN, forged, np.random.default_rng(0))


def test_positions_are_those_of_variables():
    known = rollouts()
    counts = TransitionCounts(known, 1, Memory())
    for wrong in (-1, 9):
        for ask in (
            lambda wrong=wrong: counts.rows([wrong]),
            lambda wrong=wrong: counts.later(wrong),
            lambda wrong=wrong: counts.screen(0, [], np.array([wrong])),
            lambda wrong=wrong: ParentSearch(known).parents(wrong, [0]),
            lambda wrong=wrong: ParentSearch(known).explain(0, [wrong]),
            lambda wrong=wrong: actors_of(COIN, known, [wrong]),
        ):
            with pytest.raises(IndexError, match="positions from 0 to"):
                ask()


def test_decision_lists_are_asked_about_what_there_is():
    lists = TABLES.decision_lists
    sound = {"n": np.zeros(2, int), "action": np.zeros(2, int), "exogenous": np.zeros((2, 2), int)}
    for name, values in sound.items():
        wrong = {**sound, name: values + 10**6}
        with pytest.raises(ValueError, match=name):
            lists.distribution(**wrong)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Rule.from_table((0,), np.ones(3)), r"shape \(rows, targets\)"),
        (lambda: Rule.from_matrix((0,), np.ones((2, 2)), np.arange(3)), "targets of shape"),
        (lambda: Factor.from_table((0,), np.array(1.0)), "table has shape"),
        (lambda: Factor.from_table((0.5,), np.ones((2, 1))), "parents"),
        (lambda: Factor((), [0, 1], [[1], [2, 3]], [1.0]), "rows have different lengths"),
        (lambda: TABLES.factors[0].to_table(0), "size"),
        (lambda: DecisionLists.from_lists([[Rule.certain(0)]], 2, ()).checked(), "num_states"),
        (lambda: DecisionLists.from_lists([[]], 1, (2,)).checked(), "rule_starts"),
    ],
)
def test_tables_that_are_none_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", ["endogenous_variables", "exogenous_variables", "terms"])
def test_a_model_of_tables_needs_them_all(name):
    names = (
        *("endogenous_variables", "exogenous_variables", "num_actions", "discount", "horizon"),
        *("factors", "decision_lists", "base_reward", "terms", "terminal", "initial"),
    )
    given = {one: getattr(TABLES, one) for one in names}
    with pytest.raises(TypeError, match=name):
        FactoredMDP(**{**given, name: 3})


def test_a_counter_is_not_a_coin():
    other = Scenarios.sample(CounterMDP(), 2, 0)
    with pytest.raises(ValueError, match="of 2 kinds"):
        Scenarios.join([Scenarios.sample(COIN, 2, 0), other])
