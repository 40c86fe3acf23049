"""Estimate-Objective from 624 to 10^80 states, and policies back in the environments."""

import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from models import CoinMDP

from exo_envs import ExoMDP, State, Variable
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from planners import (
    UCT,
    DefaultPlanner,
    Estimate,
    ForecastPlanner,
    ReducedMDP,
    Scenarios,
    ValueIteration,
    estimate_objective,
)
from planners.findings import Findings
from planners.objective import MaskEvaluator
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData

#: What the reduced policies of ExoGrid earn exactly; see tests/test_grid.py.
GRID_RETURNS = {
    (): 0.0,
    ("object",): 45.4,
    ("object", "guard"): 75.2,
    ("object", "carrier", "guard"): 76.6,
    ("object", "carrier", "guard", "guard_intent"): 77.1,
}


class Shared:
    """A model with what its masks share: data, survey and scenarios."""

    def __init__(self, mdp, num_rollouts, n_rollouts):
        rng = np.random.default_rng(0)
        self.mdp = mdp
        self.data = ExogenousData.collect(mdp, num_rollouts, rng)
        self.survey = EndogenousSurvey.collect(mdp, self.data, rng)
        self.scenarios = Scenarios.sample(mdp, n_rollouts, rng)

    def objective(self, mask, **arguments):
        return estimate_objective(
            self.mdp,
            mask,
            rng=np.random.default_rng(1),
            data=self.data,
            survey=self.survey,
            scenarios=self.scenarios,
            **arguments,
        )


@pytest.fixture(scope="module")
def grid():
    return Shared(GridMDP(), 2000, 2000)


@pytest.fixture(scope="module")
def factory():
    return Shared(FactoryMDP(), 2000, 500)


@pytest.fixture(scope="module")
def crowd():
    return Shared(CrowdMDP(), 1000, 200)


def within(estimate, expected):
    """Within 5 standard errors, and a little for what estimation itself costs (p < 1e-6)."""
    return abs(estimate.mean_return - expected) < 5 * estimate.standard_error + 0.3


@pytest.mark.parametrize("mask", GRID_RETURNS, ids=str)
def test_grid_masks_earn_what_they_earn_exactly(grid, mask):
    """The figures are those of GridEnv's documentation, of the paper's reduced models."""
    objective = grid.objective(mask, ignored_rewards="zero")
    assert objective.mask == mask
    assert objective.plan.converged
    assert within(objective, GRID_RETURNS[mask])


def test_costs_are_weighted_and_differences_paired(grid):
    small = grid.objective(["object", "guard"], cost_weight=0.5)
    large = grid.objective(["object", "guard", "carrier"], cost_weight=0.5)
    assert small.value == pytest.approx(small.mean_return - 1.0)
    gain = large.gain_over(small)
    assert gain.mean == pytest.approx(large.value - small.value)
    assert gain.standard_error < 0.7 * math.hypot(small.standard_error, large.standard_error)
    low, high = small.interval(0.95)
    assert low < small.mean_return < high

    timed = grid.objective(["object"], cost="time", cost_weight=1.0)
    assert timed.cost == timed.plan.seconds
    priced = grid.objective(["object"], cost=lambda mask, plan: 7.0 * len(mask), cost_weight=2.0)
    assert priced.value == pytest.approx(priced.mean_return - 14.0)
    with pytest.raises(ValueError, match="unknown cost 'tme'; did you mean 'time'"):
        grid.objective(["object"], cost="tme")


def test_the_same_seed_gives_the_same_objective():
    first, second = (
        estimate_objective(GridMDP(), ["object", "guard"], rng=np.random.default_rng(3))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.returns, second.returns)
    by_default = estimate_objective(gym.make("ExoGrid-v0"), ["object", "guard"])
    np.testing.assert_array_equal(
        by_default.returns, estimate_objective(GridMDP(), ["object", "guard"]).returns
    )


MACHINES = [f"machine_{i}" for i in range(5)]


def test_factory_needs_several_variables_at_once_and_the_coming_orders(factory):
    """The figures are those of FactoryEnv's documentation, computed there without sampling."""
    idle = factory.objective(MACHINES, ignored_rewards="zero")
    assert not idle.returns.any()
    assert within(factory.objective(["order_0"], ignored_rewards="zero"), -477.3)
    phase_one = factory.objective(["order_0", *MACHINES])
    assert within(phase_one, 167.6)
    ahead = factory.objective(["order_0", "order_1", *MACHINES])
    assert within(ahead, 210.1)
    assert ahead.gain_over(phase_one).interval(0.999)[0] > 0


def test_who_plans_with_averages_does_not_fall_into_the_traps_of_the_factory(factory):
    """Machines are down often enough that working blindly costs more than an order pays."""
    assert not factory.objective(()).returns.any()
    # Seeing which machine is up is enough to try one's luck with the orders.
    assert factory.objective(MACHINES).interval(0.999)[0] > 0
    # Seeing the order is not enough to risk that its machine is down.
    assert factory.objective(["order_0"]).mean_return > -10


@pytest.fixture(scope="module")
def crowd_objectives(crowd):
    kept = {"phase one": ("occupancy", "object"), "full": ("occupancy", "object", "porter")}
    return {
        label: crowd.objective([n for n in crowd.mdp.exogenous_names if n.startswith(parts)])
        for label, parts in kept.items()
    }


def test_crowd_needs_the_porters(crowd_objectives):
    """10^80 states: the porters' states are worth more than a third of what there is."""
    phase_one, full = crowd_objectives["phase one"], crowd_objectives["full"]
    assert len(full.mask) == 94
    assert full.mean_return > 1.3 * phase_one.mean_return > 0
    assert full.gain_over(phase_one).interval(0.999)[0] > 0


def test_a_policy_earns_the_same_wherever_it_runs(crowd, crowd_objectives):
    """In evaluate, the environment, its vector twin and Stable-Baselines3 (p < 1e-6 each)."""
    policy = crowd_objectives["full"].plan.policy
    episodes = 60

    env = gym.make("ExoCrowd-v0")
    single = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total += reward
            ended = terminated or truncated
        single.append(total)

    vector = gym.make_vec("ExoCrowd-v0", num_envs=100, autoreset_mode="SameStep")
    observation, _ = vector.reset(seed=0)
    totals, alive = np.zeros(100), np.ones(100, dtype=bool)
    while alive.any():
        observation, rewards, terminated, truncated, _ = vector.step(policy(observation))
        totals += rewards * alive
        alive &= ~(terminated | truncated)

    sb3 = pytest.importorskip("stable_baselines3.common.evaluation")
    baselines, _ = sb3.evaluate_policy(
        policy, env, n_eval_episodes=episodes, return_episode_rewards=True, warn=False
    )
    lanes, mdp = 200, crowd.mdp
    state = mdp.sample_initial(lanes, np.random.default_rng(9))
    rng, batch = np.random.default_rng(10), np.zeros(lanes)
    for _ in range(mdp.horizon):
        state, reward, _ = mdp.transition(state, policy(state), rng)
        batch += reward

    reference = Estimate.of(batch)
    for returns in (np.array(single), totals, np.array(baselines)):
        other = Estimate.of(returns)
        spread = math.hypot(reference.standard_error, other.standard_error)
        assert abs(other.mean - reference.mean) < 5 * spread


def test_policies_take_full_and_masked_observations_alike(crowd, crowd_objectives):
    policy = crowd_objectives["phase one"].plan.policy
    state = crowd.mdp.sample_initial(6, np.random.default_rng(0))
    columns = crowd.mdp.exogenous_indices(policy.mask)
    masked = State(state.endogenous, state.exogenous[:, columns])
    expected = policy(state)
    assert expected.shape == (6,)
    np.testing.assert_array_equal(policy(masked), expected)
    np.testing.assert_array_equal(policy(masked._asdict()), expected)
    one = {"endogenous": state.endogenous[2], "exogenous": state.exogenous[2]}
    assert policy(one) == expected[2]
    assert isinstance(policy(one), int)
    actions, memory = policy.predict(one)
    assert (actions.shape, memory) == ((), None)
    grid_shaped = State(*(part.reshape(2, 3, -1) for part in state))
    assert policy(grid_shaped).shape == (2, 3)
    with pytest.raises(ValueError, match="exogenous part has 3 variables"):
        policy({"endogenous": [0], "exogenous": [0, 0, 0]})
    with pytest.raises(ValueError, match="endogenous part"):
        policy({"endogenous": [0, 0], "exogenous": state.exogenous[0]})


def test_an_empty_mask_needs_no_exogenous_part(grid):
    policy = grid.objective([]).plan.policy
    assert policy({"endogenous": np.array([8])}) in range(5)
    assert policy(grid.mdp.sample_initial(4, np.random.default_rng(0))).shape == (4,)


class Sprawling(CoinMDP):
    """More endogenous states than anybody enumerates."""

    endogenous_variables = tuple(Variable(f"die_{i}", 6) for i in range(12))
    horizon = 5

    def sample_initial(self, size, rng):
        return State(rng.integers(6, size=(size, 12)), rng.integers(2, size=(size, 2)))


def test_the_default_planner_picks_by_size(grid, crowd_objectives):
    choose = DefaultPlanner().choose
    assert isinstance(choose(grid.objective(["object"]).reduced), ValueIteration)
    assert isinstance(choose(crowd_objectives["full"].reduced), ForecastPlanner)
    assert isinstance(choose(Sprawling()), UCT)


def test_the_default_planner_plans_in_models_without_tables():
    mdp = GridMDP()
    assert isinstance(mdp, ExoMDP)
    plan = DefaultPlanner().plan(mdp, rng=np.random.default_rng(0), time_limit=30.0)
    assert plan.policy.mask == mdp.exogenous_names
    assert plan.converged
    sprawling = DefaultPlanner().plan(Sprawling())
    state = Sprawling().sample_initial(2, np.random.default_rng(0))
    assert sprawling.policy(state).shape == (2,)


def test_a_reduced_model_is_an_mdp_again(grid):
    """It can be reduced again, and its environment can be played."""
    reduced = grid.objective(["object", "guard", "carrier"]).reduced
    again = ReducedMDP.estimate(reduced, ["object", "guard"], rng=np.random.default_rng(0))
    assert again.exogenous_names == ("object", "guard")
    objective = estimate_objective(
        reduced, ["object", "guard"], rng=np.random.default_rng(0), n_rollouts=500
    )
    assert objective.mean_return == pytest.approx(75.2, abs=5 * objective.standard_error + 1)


def test_plans_start_from_the_exact_plan_with_the_most_similar_mask():
    mdp = GridMDP()
    starts = {}

    class Recorder:
        def plan(self, mdp, *, rng=None, time_limit=None, warm_start=None):
            mask = mdp.exogenous_names
            starts[mask] = None if warm_start is None else warm_start.policy.mask
            plan = ValueIteration().plan(mdp, rng=rng, time_limit=time_limit)
            if len(mask) < 3:
                return plan
            # As a planner does that is exact with a part of the mask only.
            return replace(plan, values=None, part=ValueIteration().plan(mdp.part(mask[:3])))

    recorder = Recorder()
    evaluator = MaskEvaluator(Findings(mdp, n_data_rollouts=200), planner=recorder)
    names = mdp.exogenous_names
    masks = (names[:1], names[1:3], names[:2], names[:4], names[1:4])
    kept = [evaluator.plan(mask) for mask in masks]
    assert starts == {
        names[:1]: None,
        names[1:3]: names[:1],
        names[:2]: names[:1],
        names[:4]: names[:2],
        names[1:4]: names[1:3],
    }
    assert all(trial.plan.part is None for trial in kept)
    other = (*names[:3], names[4])
    evaluator.plan(other)
    assert starts[other] == names[:3]  # a part
