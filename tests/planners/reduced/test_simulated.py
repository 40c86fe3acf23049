"""Reduced models of models whose n cannot be enumerated."""

import pickle

import numpy as np
import pytest
from gymnasium import spaces
from harbour import Harbour, adapt
from reduced import shared
from workshop import Workshop

from exo_envs import ExoEnv, State, Variable
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.testing import check_mdp
from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    ReducedMDP,
    ValueIteration,
    estimate_objective,
)
from planners.discretization.bins import NUM_STAND_INS
from planners.reduced.reduced_mdp import SimulatedReducedMDP
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import TooLargeError

ERROR_PROBABILITY = 1e-6


class UnevenBelt(Workshop):
    """The belt runs in one step of five."""

    def _draw(self, lanes, rng):
        x = super()._draw(lanes, rng)
        x[..., 1] = rng.random(lanes) < 0.2
        return x


@pytest.fixture(scope="module")
def workshop():
    mdp = UnevenBelt()
    return mdp, shared(mdp, rollouts=1000)


def random_states(mdp, reduced, size, rng):
    """The same states of both models, and actions; some of them are terminal."""
    full = mdp.sample_uniform(size, rng)
    full.endogenous[: size // 8] = 39
    masked = State(full.endogenous, full.exogenous[:, reduced.columns])
    return full, masked, rng.integers(mdp.num_actions, size=size)


@pytest.mark.parametrize(
    "mask", [(), ("demand",), ("noise_2", "belt"), ("demand", "belt", "forecast"), range(6)]
)
def test_it_is_the_model_seen_through_a_mask(workshop, mask):
    mdp, given = workshop
    reduced = ReducedMDP.estimate(mdp, list(mask), ignored_rewards="zero", **given)
    assert isinstance(reduced, SimulatedReducedMDP)
    assert not isinstance(reduced, FactoredMDP)
    check_mdp(reduced, num_samples=100)
    assert reduced.mask == reduced.exogenous_names == reduced.data.names
    assert [reduced.full_names[j] for j in reduced.columns] == list(reduced.mask)
    assert reduced.endogenous_variables == mdp.endogenous_variables
    assert (reduced.horizon, reduced.discount) == (mdp.horizon, mdp.discount)

    full, masked, action = random_states(mdp, reduced, 200, np.random.default_rng(1))
    np.testing.assert_array_equal(reduced.is_terminal(masked), mdp.is_terminal(full))
    terms = mdp.reward_terms(full, action)[:, reduced.columns]
    np.testing.assert_array_equal(reduced.reward_terms(masked, action), terms)
    np.testing.assert_array_equal(
        reduced.endogenous_reward(masked.endogenous, action),
        mdp.endogenous_reward(full.endogenous, action),
    )


def test_what_an_ignored_variable_pays_is_averaged_over_its_frequencies():
    """Given n and a; the demand is a uniform draw, but its third value never occurs."""

    class Tilted(UnevenBelt):
        def _draw(self, lanes, rng):
            x = super()._draw(lanes, rng)
            x[..., (0, 2)] = np.where(x[..., (0, 2)] == 2, 1, x[..., (0, 2)])
            return x

    mdp = Tilted()
    given = shared(mdp, rollouts=300)
    reduced = ReducedMDP.estimate(mdp, ["noise_0", "belt"], **given)
    check_mdp(reduced, num_samples=100)
    assert (reduced.ignored_rewards, reduced.paying) == ("average", ())
    full, masked, action = random_states(mdp, reduced, 200, np.random.default_rng(1))
    values = given["data"].values[:, :-1, 0]
    shares = np.array([(values == value).mean() for value in range(4)])
    room = full.endogenous[np.arange(200), action] < 39
    np.testing.assert_allclose(
        reduced.endogenous_reward(masked.endogenous, action), -0.01 + shares[action] * room
    )
    np.testing.assert_array_equal(reduced.reward_terms(masked, action), 0.0)
    assert not reduced.reward(masked, action)[mdp.is_terminal(full)].any()
    # One action for all, and a single state.
    one = reduced.endogenous_reward(masked.endogenous[-1], action[-1])
    assert one == pytest.approx(-0.01 + shares[action[-1]] * room[-1])
    kept = ReducedMDP.estimate(mdp, ["demand"], **given)
    np.testing.assert_array_equal(kept.endogenous_reward(full.endogenous, action), -0.01)


def test_an_ignored_variable_of_many_values_is_averaged_over_its_bins():
    """The fee is uniform on 0 ... 999, so 500 on average: the values of the bins are within 10."""

    class Fees(Workshop):
        exogenous_variables = (Variable("fee", 1000), *Workshop.exogenous_variables[1:])

        def sample_exogenous(self, exogenous, rng):
            return self._draw(exogenous.shape[:-1], rng)

        def reward_terms(self, state, action):
            terms = np.zeros(state.exogenous.shape)
            terms[..., 0] = state.exogenous[..., 0]
            return terms

    mdp = Fees()
    counted = CountedMDP(mdp)
    reduced = ReducedMDP.estimate(counted, ["belt"], **shared(mdp, rollouts=3000))
    before = counted.reward_samples
    paid = reduced.endogenous_reward(np.zeros((2, 4), dtype=np.int64), np.zeros(2, dtype=np.int64))
    assert counted.reward_samples <= before + 2 * 64 * NUM_STAND_INS
    assert paid == pytest.approx([499.5] * 2, abs=10)


def test_masked_variables_have_their_parents(workshop):
    mdp, given = workshop
    reduced = ReducedMDP.estimate(mdp, ["demand", "forecast", "noise_0"], **given)
    assert reduced.parents == {"demand": ("forecast",), "forecast": (), "noise_0": ()}
    x = np.stack(np.meshgrid(range(4), range(4), range(3)), axis=-1).reshape(-1, 3)
    following = reduced.sample_exogenous(x, np.random.default_rng(0))
    assert (following[:, 0] == x[:, 1]).mean() > 0.9  # but for the smoothing
    assert "demand: log-loss" in reduced.describe()
    assert "given forecast; pays" in reduced.describe()


def test_dropped_variables_are_marginalised(workshop):
    """A masked belt counts as it is, a dropped one as often as it runs in the rollouts."""
    mdp, given = workshop
    size = 20_000
    n, action = np.full((size, 4), 7), np.zeros(size, dtype=np.int64)
    seen = ReducedMDP.estimate(mdp, ["belt"], **given)
    belt = np.arange(size)[:, None] % 2
    following = seen.sample_endogenous(State(n, belt), action, np.random.default_rng(0))
    np.testing.assert_array_equal(following[:, :1], 8 + belt)

    unseen = ReducedMDP.estimate(mdp, ["demand", "noise_0"], **given)
    x = np.zeros((size, 2), dtype=np.int64)
    following = unseen.sample_endogenous(State(n, x), action, np.random.default_rng(0))
    share = given["data"].values[:, :-1, 1].mean()
    bound = np.sqrt(np.log(2 / ERROR_PROBABILITY) / (2 * size))
    assert abs((following[:, 0] == 9).mean() - share) < bound
    assert (following[:, 1:] == 7).all()


def test_the_right_mask_earns_more_than_none(workshop):
    mdp, given = workshop
    objectives = {
        mask: estimate_objective(mdp, mask, n_rollouts=20, **{**given, "rng": 0})
        for mask in ((), ("demand",))
    }
    best = (1 - 0.01) * sum(0.95**t for t in range(6))
    assert objectives["demand",].mean_return == pytest.approx(best)
    assert objectives[()].mean_return < 0.6 * best
    assert objectives["demand",].gain_over(objectives[()]).mean > 1
    assert isinstance(objectives["demand",].reduced, SimulatedReducedMDP)
    again = estimate_objective(mdp, ["demand"], n_rollouts=20, **{**given, "rng": 0})
    np.testing.assert_array_equal(again.returns, objectives["demand",].returns)


def test_only_tree_search_plans_in_it(workshop):
    mdp, given = workshop
    reduced = ReducedMDP.estimate(mdp, ["demand"], **given)
    assert isinstance(DefaultPlanner().choose(reduced), UCT)
    for planner in (ForecastPlanner(), ValueIteration()):
        with pytest.raises(ValueError, match=r"more than 100,000 pairs \(n, a\).* plan with UCT"):
            planner.plan(reduced)
    with pytest.raises(TooLargeError, match="Plan with UCT; DefaultPlanner"):
        ValueIteration(memory_limit=1e6).plan(reduced)


class LongQuay(Harbour):
    """A quay of 60,000 cells, without an end; the signal pays for one of the actions."""

    observation_space = spaces.Dict(
        endogenous=spaces.MultiDiscrete([60_000]), exogenous=spaces.MultiDiscrete([3, 2])
    )

    def step(self, action):
        reward = float(self.x[0] == 1 + action)
        if self.np_random.random() < (0.9, 0.5)[self.x[1]]:
            self.n[0] = min(max(self.n[0] + 2 * action - 1, 0), 59_999)
        self.move_signal(action)
        return self.observe(), reward, False, False, {}


def test_an_environment_of_somebody_else_with_many_n():
    mdp, rng = adapt(LongQuay()), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 50, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng, num_tests=8)
    assert (survey.paying, survey.moving) == (("exogenous_0",), ("exogenous_1",))
    assert len(survey.endogenous) < 250  # it is slow to ask
    reduced = ReducedMDP.estimate(mdp, [0], rng=rng, data=data, survey=survey)
    policy = UCT(simulations=20, depth=2).plan(reduced).policy
    states = State(np.full((2, 2), [30_000, 0]), np.array([[1, 0], [2, 0]]))
    assert policy(states).tolist() == [0, 1]


def test_what_can_be_done_with_one(workshop):
    mdp, given = workshop
    reduced = ReducedMDP.estimate(mdp, ["demand", "belt"], **given)
    _, masked, action = random_states(mdp, reduced, 50, np.random.default_rng(0))
    following = reduced.sample_next(masked, action, np.random.default_rng(1))

    copy = pickle.loads(pickle.dumps(reduced))
    for part, same in zip(
        copy.sample_next(masked, action, np.random.default_rng(1)), following, strict=True
    ):
        np.testing.assert_array_equal(part, same)

    twice = ReducedMDP.estimate(reduced, ["demand"], rng=0, num_rollouts=200)
    assert isinstance(twice, SimulatedReducedMDP)
    assert (twice.mask, twice.full_names) == (("demand",), ("demand", "belt"))
    assert twice.paying == ("demand",)
    check_mdp(twice, num_samples=60)

    env = ExoEnv(reduced)
    observation, _ = env.reset(seed=0)
    assert observation["exogenous"].shape == (2,)
    env.step(0)
