"""Another task over the same exogenous process: what is kept, and that the mask is that of fit."""

import copy
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from battery import battery, price_table
from learners import SMALL, TINY, each_learner, fresh, steps
from real_models import BatteryMDP
from scripted import Watched

from exo_envs import AdaptedMDP
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridEnv, GridMDP, GridParameters
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from exo_envs.domains.synthetic.model import PlantedMDP
from planners import ForecastPlanner
from planners.findings import LEFT_OUT, PARENTS
from planners.forecasting.forecasts import FORECASTS
from wrappers import CalibratedMaskLearner, LearningStoppedWarning, NotFittedError, Study

CROWD = {"grid_size": 4, "num_agents": 4, "num_porters": 2, "num_objects": 4, "num_tables": 3}
FEW = {"n_rollouts": 40, "n_data_rollouts": 200}
#: Plans that take little time where there are too many variables for exact ones.
QUICK = {**FEW, "n_rollouts": 20, "planner": ForecastPlanner(horizon=6, additive=False)}
pytestmark = pytest.mark.filterwarnings("ignore::wrappers.UndecidedWarning")


def crowd(goal, kind=CrowdMDP):
    return kind(CrowdParameters(**CROWD, goal=goal))


def factory(**numbers):
    return FactoryMDP(FactoryParameters(**numbers))


def grid(**numbers):
    return GridMDP(GridParameters(**numbers))


class Bets(SyntheticMDP):
    """A planted problem with some of its sites, and other stakes."""

    def __init__(self, sites=slice(None), factor=1.0, **numbers):
        super().__init__(SyntheticParameters(**numbers))
        chosen = tuple(replace(site, stake=factor * site.stake) for site in self.sites[sites])
        PlantedMDP.__init__(self, chosen, self.exogenous_variables, self.parameters)


class Shifted(CrowdMDP):
    """The same crowd with other noise for the same seed."""

    def sample_initial(self, size, rng):
        rng.random(3)
        return super().sample_initial(size, rng)

    def sample_exogenous(self, exogenous, rng):
        rng.random(7)
        return super().sample_exogenous(exogenous, rng)


# --- the mask is that of fit ------------------------------------------------------------------

PRICED = {"cost_weight": 3.0}
CHANGES = {
    "movable to fixed": (crowd("movable"), crowd("fixed"), QUICK),
    "fixed to movable": (crowd("fixed"), crowd("movable"), QUICK),
    "movable to fixed, priced": (crowd("movable"), crowd("fixed"), QUICK | PRICED),
    "fixed to movable, priced": (crowd("fixed"), crowd("movable"), QUICK | PRICED),
    "factory": (factory(), factory(order_reward=30.0, down_cost=100.0), QUICK),
    "factory, priced": (factory(), factory(down_cost=0.0), QUICK | PRICED),
    "factory, other floor": (factory(), factory(rows=4, columns=4), QUICK),
    "grid": (grid(), grid(goal_reward=30.0), FEW | {"cost_weight": 1.0}),
    "grid, no crash": (grid(), grid(crash_cost=0.0), FEW | {"cost_weight": 2.0, "n_rollouts": 200}),
    "grid, other moves": (grid(), grid(slip=0.4), FEW),
    "grid, other horizon": (grid(), grid(horizon=30), FEW),
    "grid, black box": (grid(), grid(goal_reward=30.0), FEW | {"reward": "total"}),
    "sites": (Bets(slice(0, 1)), Bets(slice(1, 3)), FEW),
    "sites, priced": (Bets(), Bets(slice(0, 2)), FEW | {"cost_weight": 0.5}),
    "stakes": (Bets(), Bets(factor=3.0), FEW | {"cost_weight": 0.5}),
    "slips": (Bets(), Bets(slip=0.2, fee=0.05), FEW),
    "record": (battery(), battery(reward=lambda n, a, x: -x.load * a), FEW),
    "real": (BatteryMDP(), BatteryMDP(step=2.0), FEW),
}
#: Changes that do change the mask.
TELLING = {"fixed to movable, priced", "grid, no crash", "sites", "sites, priced", "record"}


@pytest.mark.parametrize("change", CHANGES)
def test_the_mask_is_that_of_fit(change):
    """And so is J, to the bit: with the same seed, the same is drawn, counted and planned."""
    before, after, settings = CHANGES[change]
    learner = CalibratedMaskLearner(**settings)
    expected = learner.clone().fit(after, rng=5)
    refitted = learner.fit(before, rng=5).refit(after)
    assert refitted.mask_ == expected.mask_
    assert change not in TELLING or refitted.mask_ != learner.mask_
    assert refitted.study_.seed == 5
    assert np.array_equal(refitted.objective_.returns, expected.objective_.returns)
    assert refitted.objective_.value == expected.objective_.value
    found = [[r for r in own.history_ if r.action == "find"] for own in (refitted, expected)]
    for one, other in zip(*found, strict=True):
        assert (one.candidate, one.reason, one.mask) == (other.candidate, other.reason, other.mask)
        if before.horizon == after.horizon:  # or the tests that are kept are of other rollouts
            assert one.score == pytest.approx(other.score)


def test_the_real_crowd_from_one_goal_to_the_other():
    """As registered, and where J decides nothing."""
    before, after = (gym.make("exo_envs:ExoCrowd-v0", goal=goal) for goal in ("movable", "fixed"))
    learner = CalibratedMaskLearner(**QUICK | {"n_rollouts": 2, "n_data_rollouts": 400})
    expected = learner.clone().fit(after, rng=0)
    refitted = learner.fit(before, rng=0).refit(after)
    assert len(refitted.mask_) == 94
    assert refitted.mask_ == expected.mask_
    assert refitted.seconds_ < expected.seconds_ / 2  # about a tenth, on a machine that is idle
    asked = refitted.study_.samples / expected.study_.samples
    assert asked < 0.5


@each_learner
def test_every_learner_can_be_refitted(name):
    richer = SyntheticMDP(replace(TINY.parameters, stake=30.0))
    expected = fresh(name).fit(richer, rng=3)
    learner = fresh(name).fit(TINY, rng=3)
    refitted = learner.refit(richer, with_policy=True)
    assert type(refitted) is type(learner)
    assert refitted.mask_ == expected.mask_
    assert steps(refitted, "samples", "value", "half_width", "mean_return", "converged") == steps(
        expected, "samples", "value", "half_width", "mean_return", "converged"
    )
    assert np.array_equal(refitted.objective_.returns, expected.objective_.returns)


def test_there_and_back_again():
    learner = CalibratedMaskLearner(**QUICK | PRICED).fit(crowd("fixed"), rng=0)
    there = learner.refit(crowd("movable"))
    back = there.refit(crowd("fixed"))
    assert back.mask_ == learner.mask_ != there.mask_
    assert back.objective_.value == learner.objective_.value


# --- what is kept, and what is asked ------------------------------------------------------------


def test_the_learner_stays_as_it_is():
    learner = CalibratedMaskLearner(cost_weight=2.0, n_rollouts=200).fit(grid(), rng=0)
    before, samples = dict(vars(learner)), learner.study_.samples
    refitted = learner.refit(grid(crash_cost=0.0))
    assert refitted is not learner
    assert refitted.get_params() == learner.get_params()
    assert vars(learner) == before
    assert learner.study_.samples == samples
    assert (learner.mask_, refitted.mask_) == (("object", "guard"), ("object",))


def test_a_reward_asks_for_no_rollouts():
    """x is asked for enough to see that it begins and moves as before."""
    learner = CalibratedMaskLearner(**QUICK).fit(factory(), rng=0)
    after = Watched(factory(order_reward=30.0))
    refitted = learner.refit(after)
    known, own = learner.study_.memory, refitted.study_.memory
    assert own.data is known.data
    assert own.survey.lists is known.survey.lists
    parents, kept = (memory.entries(PARENTS) for memory in (known, own))
    assert all(kept[name] is parents[name] for name in refitted.mask_)
    assert after.states["exogenous"] < 0.5 * learner.study_.counted.exogenous_samples
    assert refitted.study_.samples >= sum(after.states.values())


def test_a_goal_that_was_never_seen_is_looked_at_anew():
    """Which object is the goal is part of x: no rollout of the one task shows the other's."""
    learner = CalibratedMaskLearner(**QUICK).fit(crowd("movable"), rng=0)
    refitted = learner.refit(crowd("fixed"))
    known, own = learner.study_.memory, refitted.study_.memory
    assert own.data is not known.data
    changed = {
        name
        for j, name in enumerate(own.data.names)
        if (own.data.values[..., j] != known.data.values[..., j]).any()
    }
    assert changed == {f"object_{i}" for i in range(4)}
    before, parents = (memory.entries(PARENTS) for memory in (known, own))
    left_out = own.entries(LEFT_OUT)
    kept = {name for name in parents if parents[name] is before.get(name)}
    assert not changed & kept
    assert len(kept) > len(parents) / 2
    for name in kept:
        assert not changed & {*parents[name], *left_out[name]}


def test_counts_of_variables_that_are_the_same_serve_again():
    learner = CalibratedMaskLearner(**QUICK).fit(crowd("movable"), rng=0)
    refitted = learner.refit(crowd("fixed"), with_policy=True)
    known, own = learner.study_.memory, refitted.study_.memory
    goals = {own.data.names.index(f"object_{i}") for i in range(4)}

    before, after = (memory.entries(FORECASTS) for memory in (known, own))
    shared = {key for key, value in before.items() if after.get(key) is value}
    assert shared
    for _, _, *variables in shared:
        assert not goals & set(variables)


def test_without_the_same_noise_the_graph_is_kept():
    """The rollouts are others, so the tests might choose others among equals."""
    learner = CalibratedMaskLearner(**QUICK).fit(crowd("movable"), rng=0)
    refitted = learner.refit(crowd("fixed", Shifted))
    known, own = learner.study_.memory, refitted.study_.memory
    assert not (own.data.values == known.data.values).all()
    before, parents = (memory.entries(PARENTS) for memory in (known, own))
    kept = {name for name in parents if parents[name] is before.get(name)}
    assert len(kept) > len(parents) / 2
    assert not kept & {f"object_{i}" for i in range(4)}
    everything = set(refitted.feature_names_in_)
    assert {n for n in everything if n.startswith(("occupancy", "object"))} <= set(refitted.mask_)


def test_an_environment_that_is_stepped_is_not_rolled_out_again():
    before, after = (AdaptedMDP(GridEnv(goal_reward=r), horizon=40) for r in (100.0, 30.0))
    few = {"n_rollouts": 2, "n_data_rollouts": 20}
    learner = CalibratedMaskLearner(**few, check=False).fit(before, rng=0)
    refitted = learner.refit(after)
    assert refitted.study_.memory.data.values is learner.study_.memory.data.values
    assert refitted.mask_ == learner.mask_
    assert refitted.study_.samples < learner.study_.samples / 2


def test_a_study_s_own_settings_are_kept():
    study = Study(grid(), 7, n_rollouts=20, n_data_rollouts=40, ignored_rewards="zero", level=0.01)
    refitted = CalibratedMaskLearner().fit(study).refit(grid(crash_cost=1.0))
    own = refitted.study_
    assert (own.seed, own.evaluator.n_rollouts, own.n_data_rollouts) == (7, 20, 40)
    assert (own.ignored_rewards, own.level) == ("zero", 0.01)
    assert own.data().num_rollouts == 40


# --- plans are left for later -------------------------------------------------------------------


def test_plans_are_made_when_they_are_read():
    learner = CalibratedMaskLearner(**FEW).fit(grid(), rng=0)
    refitted = learner.refit(grid(goal_reward=30.0))
    assert not {"objective_", "policy_"} & vars(refitted).keys()
    assert refitted.history_[-1].action == "start"
    assert refitted.history_[-1].value is None
    asked, seconds = refitted.study_.samples, refitted.seconds_
    policy = refitted.policy_
    assert refitted.study_.samples > asked
    assert policy is refitted.objective_.plan.policy
    assert policy.mask == refitted.mask_
    assert refitted.seconds_ == seconds
    assert refitted.status_ == "finished"
    now = learner.refit(grid(goal_reward=30.0), with_policy=True)
    assert {"objective_", "policy_"} <= vars(now).keys()
    assert np.array_equal(now.objective_.returns, refitted.objective_.returns)
    assert now.history_[-1].value is not None


def test_whatever_needs_a_plan_makes_it(tmp_path):
    learner = CalibratedMaskLearner(**FEW).fit(grid(), rng=0)
    richer = grid(goal_reward=30.0)
    learner.refit(richer).save(tmp_path / "mask", with_policy=True)
    assert learner.refit(richer).saved().objective["n_rollouts"] == 40
    assert learner.refit(richer).cost_of_ignoring_.low >= 0
    assert copy.copy(learner.refit(richer)).policy_ is not None


def test_the_time_limit_holds():
    learner = CalibratedMaskLearner(**QUICK).fit(crowd("movable"), rng=0)
    learner.set_params(time_limit=1e-6)
    with pytest.warns(LearningStoppedWarning):
        stopped = learner.refit(crowd("fixed"))
    assert (stopped.status_, stopped.mask_, stopped.objective_) == ("time limit", (), None)


def test_progress_is_told():
    stages = []
    learner = CalibratedMaskLearner(**FEW).fit(grid(), rng=0)
    learner.callback = lambda progress: stages.append(progress.stage)
    learner.refit(grid(crash_cost=1.0))
    assert stages[0] == "comparing with the task before"
    assert "testing what predicts the mask" in stages


# --- what is refused ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return CalibratedMaskLearner(**QUICK).fit(factory(), rng=0)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (factory(num_noise=9), "22 of them; look at 'noise_9'"),
        (factory(num_noise=15), "'noise_10', 'noise_11', 'noise_12' and 2 more"),
        (factory(clock_size=7), "look at 'clock'"),
        (grid(), "look at 'object', 'carrier', 'guard' and 19 more"),
    ],
)
def test_other_variables_are_refused(fitted, other, named):
    with pytest.raises(ValueError, match=f"has other exogenous variables.*{named}.*fit anew"):
        fitted.refit(other)


@pytest.mark.parametrize(
    ("other", "name"), [(factory(wander=0.3), "technician"), (factory(fail=0.15), "machine")]
)
def test_another_process_is_refused(fitted, other, name):
    with pytest.raises(ValueError, match=f"{name}.* becomes .* with probability .*fit anew"):
        fitted.refit(other)


def test_another_record_is_refused():
    learner = CalibratedMaskLearner(**SMALL).fit(battery(), rng=0)
    with pytest.raises(ValueError, match=r"'price' was recorded otherwise.*fit anew"):
        learner.refit(battery(price_table(seed=1)))


def test_odd_arguments(fitted):
    with pytest.raises(NotFittedError, match="call fit first"):
        CalibratedMaskLearner().refit(factory())
    with pytest.raises(TypeError, match="with_policy"):
        fitted.refit(factory(), with_policy="later")
    for odd in (None, "ExoFactory-v0", fitted.study_):
        with pytest.raises(TypeError):
            fitted.refit(odd)
