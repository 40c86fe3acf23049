"""What the data cannot decide is said, and is not said where it can."""

import warnings

import gymnasium as gym
import pytest
from many_values import ManyValuesMDP
from scripted import ScriptedStudy
from votes import VoteMDP

from exo_envs.core.clock import OutOfTimeError
from exo_envs.domains.grid import GridMDP
from planners.findings import LEFT_OUT
from wrappers import CalibratedMaskLearner, GreedyMaskLearner, Study, UndecidedWarning

FEW = {"n_rollouts": 40}


def everything(mdp):
    return ("pay", *(f"bit_{i}" for i in range(mdp.num_bits)))


def quietly(learner, mdp, rng=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndecidedWarning)
        return learner.fit(mdp, rng)


# --- more causes than parents -------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["majority", "parity"])
@pytest.mark.parametrize("seed", range(4))
def test_what_acts_beyond_the_limit_is_in_the_mask_and_is_named(rule, seed):
    mdp = VoteMDP(9, rule)
    with pytest.warns(UndecidedWarning, match="max_parents is 6; give max_parents=") as caught:
        learner = CalibratedMaskLearner(**FEW).fit(mdp, seed)
    assert learner.mask_ == everything(mdp)
    (doubt,) = learner.doubts_
    left_out = learner.study_.memory.entries(LEFT_OUT)["pay"]
    assert all(repr(name) in doubt for name in left_out)
    assert caught[0].filename == __file__
    reasons = {learner.reasons_[name].reason for name in left_out}
    assert reasons == {"acts on pay, whose table has no place for it"}


@pytest.mark.parametrize("seed", range(4))
def test_with_enough_parents_a_majority_of_seven_is_found_whole(seed):
    mdp = VoteMDP(7)
    learner = CalibratedMaskLearner(max_parents=7, **FEW).fit(mdp, seed)  # without a warning
    assert learner.mask_ == everything(mdp)
    found = learner.objective_.reduced.parents["pay"]
    assert sorted(found) == [f"bit_{i}" for i in range(7)]


@pytest.mark.parametrize("seed", range(4))
def test_a_parity_of_six_is_found_though_its_own_past_tells_a_little(seed):
    mdp = VoteMDP(6, "parity")
    learner = CalibratedMaskLearner(**FEW).fit(mdp, seed)  # without a warning
    assert learner.mask_ == everything(mdp)


def test_what_moves_the_agent_beyond_what_rules_can_look_at_is_named():
    learner = quietly(CalibratedMaskLearner(max_parents=12, **FEW), VoteMDP(11, moving=True))
    assert [
        doubt for doubt in learner.doubts_ if "where the agent goes depends on 'bit_0'" in doubt
    ]


def test_a_number_of_parents_makes_sense():
    with pytest.raises(ValueError, match="max_parents"):
        CalibratedMaskLearner(max_parents=0).fit(GridMDP())
    with pytest.raises(ValueError, match="max_parents"):
        Study(GridMDP(), max_parents=0)
    assert Study(GridMDP(), max_parents=3).max_parents == 3


# --- few samples --------------------------------------------------------------------------------


def test_too_few_rollouts_are_said():
    learner = quietly(CalibratedMaskLearner(n_data_rollouts=2, **FEW), ManyValuesMDP(4, "pays"))
    text, own = learner.doubts_
    assert text.startswith("n_data_rollouts=2 gives 40 transitions to count, too few")
    assert own.startswith("plans predict 'price' without its own past")
    more = int(text.split("give n_data_rollouts=")[1].split()[0])
    learner = quietly(CalibratedMaskLearner(n_data_rollouts=more, **FEW), ManyValuesMDP(4, "pays"))
    (text,) = learner.doubts_  # the past of the price is in a table now, which has more rows
    assert text.startswith("whether 'signal', 'noise_0', 'noise_1', 'noise_2' tell anything")
    enough = int(text.split("give n_data_rollouts=")[1])
    CalibratedMaskLearner(n_data_rollouts=enough, **FEW).fit(ManyValuesMDP(4, "pays"), 0)


def test_other_learners_say_so_too():
    with pytest.warns(UndecidedWarning, match="n_data_rollouts=2"):
        learner = GreedyMaskLearner(n_data_rollouts=2, **FEW).fit(ManyValuesMDP(4, "pays"), 0)
    assert learner.doubts_


# --- another planner ----------------------------------------------------------------------------


def test_a_loss_that_is_the_planner_s_is_called_so():
    """More variables cannot earn less, unless they are too many to plan with exactly."""
    mdp = VoteMDP(3)
    worth = {1: 10.0}.get
    study = ScriptedStudy(mdp, lambda mask: worth(len(mask), 2.0), error=0.1, exact_up_to=1)
    words = "had to switch from exact plans to forecasts"
    with pytest.warns(UndecidedWarning, match=words):
        learner = CalibratedMaskLearner(cost_weight=0.1).fit(study)
    assert learner.mask_ == ("pay",)
    assert [record.accepted for record in learner.history_ if words in record.reason] == [False] * 3
    # If all plans are exact, or none is, the planner is not to blame.
    for exact_up_to in (0, 10):
        study = ScriptedStudy(
            mdp, lambda mask: worth(len(mask), 2.0), error=0.1, exact_up_to=exact_up_to
        )
        assert CalibratedMaskLearner(cost_weight=0.1).fit(study).doubts_ == ()


def test_registered_environments_raise_no_doubts():
    for name in ("ExoGrid", "ExoFactory", "ExoSynthetic"):
        learner = CalibratedMaskLearner(n_rollouts=20).fit(gym.make(f"exo_envs:{name}-v0"), 0)
        assert learner.doubts_ == ()


# --- time -----------------------------------------------------------------------------------------


def test_doubts_that_there_was_no_time_for_are_said(monkeypatch):
    def doubts(*_):
        yield "the first one"
        raise OutOfTimeError

    monkeypatch.setattr("wrappers.learners.base.doubts_about", doubts)
    learner = CalibratedMaskLearner(time_limit=60.0, n_rollouts=20, n_data_rollouts=50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(GridMDP(), 0)
    words = "time_limit=60.0 seconds passed before it was known what else the data cannot decide"
    assert learner.doubts_ == ("the first one", words)
    told = [str(one.message) for one in caught if one.category is UndecidedWarning]
    assert told == ["the first one", words]
