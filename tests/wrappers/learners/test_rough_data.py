"""Learners on data that is not as textbooks have it: what must come out, or be said."""

import warnings

import numpy as np
import pytest
from rough import Alarms, Clocks, Dial, Doubles, SlowChains

from benchmarks.rough_models import ClaimsMDP
from exo_envs import TraceMDP, Variable
from exo_envs.testing import check_mdp
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    GreedyMaskLearner,
    Study,
    UndecidedWarning,
)
from wrappers.fitting.relevance import find_relevance

FEW = {"n_rollouts": 60}


def quietly(learner, mdp, rng=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndecidedWarning)
        return learner.fit(mdp, rng)


def added(mdp, seed, **settings):
    """What is said to predict another variable."""
    found = find_relevance(Study(mdp, seed, **settings)).parents
    return [(target, name) for target, known in found.items() for name in known if name != target]


@pytest.mark.parametrize(
    "mdp",
    [
        SlowChains(),
        Clocks(),
        Alarms(),
        *(Doubles(role) for role in ("pays", "predicts", "moves", "pays twice")),
        *(Dial(1_000, kind) for kind in ("thrown", "slow", "walk", "heavy")),
    ],
    ids=lambda mdp: type(mdp).__name__,
)
def test_the_models_keep_the_contract(mdp):
    check_mdp(mdp)


# --- persistent chains ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "rollouts"),
    [
        ({}, 300),
        ({"same_start": True}, 300),
        ({"horizon": 500}, 20),  # few rollouts that hardly change
    ],
)
def test_slow_chains_raise_no_more_false_alarms_than_they_may(shape, rollouts):
    """Of 100 fits at level 0.05 more than 11 with an alarm would come up once in 200 times."""
    mdp = SlowChains(0.99, (2, 2, 3, 4, 8), num_paying=5, **shape)
    alarms = sum(bool(added(mdp, seed, n_data_rollouts=rollouts)) for seed in range(100))
    assert alarms <= 11


def recorded(table, **settings):
    """A record in which being out pays as the demand says."""
    return TraceMDP.from_frame(
        table,
        endogenous=[Variable("out", 2)],
        actions=2,
        step=lambda n, a, x: a,
        reward=lambda n, a, x: {("demand",): (2.0 * x.demand - 1.0) * n.out},
        test=0.2,
        **settings,
    )


def test_a_record_of_slow_chains_raises_no_more_false_alarms_than_it_may():
    """Nobody can change a record, so tests alone decide: of 100 more than 11 would be too many."""
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        changes = rng.random((4_000, 5)) < 0.01
        last = np.maximum.accumulate(np.where(changes, np.arange(4_000)[:, None], 0))
        values = np.take_along_axis(rng.integers(3, size=changes.shape), last, axis=0)
        columns = ("demand", "b", "c", "d", "e")
        table = dict(zip(columns, values.T, strict=True))
        alarms += bool(added(recorded(table, horizon=24), seed))
    assert alarms <= 11


# --- clocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("same_start", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_clock_that_matters_is_found_and_the_others_are_not(same_start, seed):
    learner = quietly(CalibratedMaskLearner(**FEW), Clocks(same_start=same_start), seed)
    assert learner.mask_ == ("demand", "hour")


def days(number, seed, effect=0.1):
    """A record in which every day begins at the same hour: the hour tells the step."""
    mdp, rng = Clocks(effect=effect), np.random.default_rng(seed)
    x, steps = mdp.sample_initial(number, rng).exogenous, []
    for _ in range(24):
        steps.append(x)
        x = mdp.sample_exogenous(x, rng)
    values = np.stack(steps, axis=1).reshape(-1, x.shape[1])
    table = dict(zip(mdp.exogenous_names, values.T, strict=True))
    table["date"] = np.repeat(np.arange(number), 24)
    return recorded(table, episode="date")


@pytest.mark.parametrize("number", [100, 300, 1500])
@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_is_the_same_every_day_is_found(number, seed):
    assert added(days(number, seed), seed) == [("demand", "hour")]


def test_clocks_of_no_use_raise_no_more_false_alarms_than_they_may():
    """Of 200 fits at level 0.05, more than 18 would come up once in 100 times."""
    assert sum(bool(added(days(60, seed, effect=0.0), seed)) for seed in range(200)) <= 18


# --- heavy tails ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cost_weight", [0.0, 1.0])
def test_heavy_tails_are_no_reason_to_miss_what_pays(cost_weight):
    """Claims are thrown anew, so seeing them is worth nothing; demand is worth seeing."""
    with pytest.warns(UndecidedWarning, match="hardly|so seldom|decide the mean"):
        learner = CalibratedMaskLearner(cost_weight=cost_weight).fit(ClaimsMDP(), 0)
    assert learner.mask_ == (("claim", "demand") if cost_weight == 0 else ())
    assert learner.objective_.caution in learner.doubts_
    low, high = learner.objective_.interval()
    assert low < ClaimsMDP().true_value(learner.policy_) < high


# --- rare events ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cost_weight", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_what_announces_a_rare_catastrophe_is_found(cost_weight, seed):
    """Of 100,000 transitions some ten have the alarm, and 500 rollouts have it once."""
    learner = quietly(CalibratedMaskLearner(cost_weight=cost_weight), Alarms(), seed)
    assert "alarm" in learner.mask_
    assert not {"flag", "noise"} & {*learner.mask_}


def test_an_alarm_that_never_sounded_is_named_with_what_it_would_take():
    learner = quietly(CalibratedMaskLearner(n_data_rollouts=200), Alarms(), 0)
    assert learner.mask_ == ("demand", "storm")
    unseen, largest = learner.doubts_
    assert unseen.startswith("'alarm' acts on 'storm' if it is changed, and had another value")
    assert "in 0 of 3,500 transitions" in unseen
    assert "cannot be told with this data. About 19,000 transitions would do" in unseen
    assert "flag" not in unseen
    assert largest == learner.objective_.caution
    assert "the largest loss" in largest
    assert "where 'storm' is 1) was never seen in 500 episodes" in largest


# --- doubles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["pays", "predicts", "moves", "pays twice"])
@pytest.mark.parametrize("seed", range(3))
def test_of_variables_that_say_the_same_one_is_kept_and_the_others_are_named(role, seed):
    mdp = Doubles(role)
    with pytest.warns(UndecidedWarning, match="'wet', 'dry' say the same as 'rain'"):
        learner = CalibratedMaskLearner(**FEW).fit(mdp, seed)
    assert learner.mask_ == (("demand", "rain") if "demand" in mdp.exogenous_names else ("rain",))
    (doubt,) = learner.doubts_
    assert "The mask has 'rain' and needs no other" in doubt
    rows = {row.variable: row for row in learner.explain()}
    assert rows["wet"].decision == rows["dry"].decision == "dropped: says the same as another"
    assert "says the same as rain" in rows["wet"].sentence
    assert "no sign" in rows["noise"].decision


def test_the_double_that_is_left_out_pays_as_if_it_were_seen():
    mdp = Doubles("pays twice")
    one = quietly(CalibratedMaskLearner(), mdp)
    worth = one.study_.evaluator.compare(["rain"], ["rain", "wet"])
    assert worth.returns.mean == 0.0
    # By the paper's rule, what is left out pays nothing: then both are needed.
    both = quietly(CalibratedMaskLearner(ignored_rewards="zero", **FEW), mdp)
    assert both.mask_ == ("rain", "wet")
    assert "The mask has 'rain', 'wet', of which one would do" in both.doubts_[0]


def test_other_learners_say_so_too():
    learner = quietly(BruteForceMaskLearner(cost_weight=0.1, **FEW), Doubles("pays"))
    assert len(learner.mask_) == 1
    assert any("say the same as" in doubt for doubt in learner.doubts_)
    assert quietly(GreedyMaskLearner(cost_weight=100.0, **FEW), Doubles("pays")).doubts_ == ()


# --- many values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10**3, 10**4, 10**5, 10**6])
@pytest.mark.parametrize("kind", ["slow", "walk", "heavy"])
def test_dials_of_many_values_are_found_however_they_move(size, kind):
    learner = CalibratedMaskLearner(**FEW).fit(Dial(size, kind), 0)
    assert learner.mask_ == ("demand", "dial")
    assert learner.doubts_ == ()


@pytest.mark.parametrize("size", [10**3, 10**4, 10**5, 10**6])
def test_dials_without_an_order_are_found_and_doubted(size):
    learner = quietly(CalibratedMaskLearner(**FEW), Dial(size), 0)
    assert learner.mask_ == ("demand", "dial")
    assert [doubt for doubt in learner.doubts_ if f"'dial' has {size:,} values" in doubt]


# --- too few transitions --------------------------------------------------------------------------


def test_what_tests_would_overlook_is_named_with_what_it_would_take():
    learner = quietly(CalibratedMaskLearner(n_data_rollouts=10, **FEW), Dial(200), 0)
    (doubt,) = [doubt for doubt in learner.doubts_ if "cannot be told" in doubt]
    assert doubt.startswith("whether 'other' tells anything about the mask cannot be told")
    assert "450 transitions" in doubt
    rollouts = int(doubt.split("give n_data_rollouts=")[1])
    with_more = quietly(CalibratedMaskLearner(n_data_rollouts=rollouts, **FEW), Dial(200), 0)
    assert not [doubt for doubt in with_more.doubts_ if "cannot be told" in doubt]


class Unseen(Dial):
    """A dial that nobody can turn: what predicts demand is found in the record alone."""

    is_recorded = True


@pytest.mark.parametrize(("rollouts", "least", "most"), [(12, 0, 4), (60, 17, 20)])
def test_what_was_said_to_be_enough_is_enough(rollouts, least, most):
    """As many transitions as the doubt asks for find the dial in 9 of 10 runs; a third do not."""
    found = 0
    for seed in range(20):
        study = Study(Unseen(64), seed, n_data_rollouts=rollouts)
        found += ("demand", "dial") in added_to(study)
    assert least <= found <= most


def added_to(study):
    known = study.parents(["demand"])
    return [("demand", name) for name in known["demand"] if name != "demand"]


def test_a_small_table_needs_no_doubt():
    learner = CalibratedMaskLearner(n_data_rollouts=40, **FEW).fit(SlowChains(sizes=(2, 2, 3)), 0)
    assert learner.doubts_ == ()
