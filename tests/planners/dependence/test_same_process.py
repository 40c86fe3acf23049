"""Whether two models have the same exogenous process."""

import numpy as np
import pytest
from battery import battery, price_table
from real_models import BatteryMDP

from exo_envs import AdaptedMDP
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.factory import FactoryEnv, FactoryMDP, FactoryParameters
from planners.dependence.same_process import compare_processes


class Shifted:
    """Draws some numbers for nothing, so that the same seed gives another noise."""

    def sample_exogenous(self, exogenous, rng):
        rng.random(7)
        return super().sample_exogenous(exogenous, rng)


class ShiftedFactory(Shifted, FactoryMDP):
    pass


class ShiftedBattery(Shifted, BatteryMDP):
    pass


def compare(first, second, seed=0):
    return compare_processes(first, second, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (FactoryMDP(), FactoryMDP(FactoryParameters(order_reward=1.0, rows=4))),
        (CrowdMDP(), CrowdMDP(CrowdParameters(goal="fixed"))),
        (BatteryMDP(), BatteryMDP(step=2.0)),
        (battery(), battery(reward=lambda n, a, x: -x.load * a)),
    ],
    ids=["factory", "crowd", "real", "record"],
)
def test_under_the_same_noise_the_same_x_follow(first, second):
    assert compare(first, second) == (True, None)


@pytest.mark.parametrize(
    ("first", "second"),
    [(FactoryMDP(), ShiftedFactory()), (BatteryMDP(), ShiftedBattery())],
    ids=["factory", "real"],
)
def test_noise_that_is_used_otherwise_is_no_difference(first, second):
    """At 1e-4 over all variables, 20 comparisons of equal processes find nothing."""
    found = [compare(first, second, seed) for seed in range(20)]
    assert found == [(False, None)] * 20


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"wander": 0.24}, "technician"),
        ({"fail": 0.12}, "machine"),
        ({"stall": 0.15}, "clock"),
        ({"no_order": 0.5}, "order_3"),
    ],
)
@pytest.mark.parametrize("kind", [FactoryMDP, ShiftedFactory])
def test_a_process_that_differs_is_found_and_named(kind, changed, name):
    """By a few hundredths in a probability, whether noise is shared or not; in each run."""
    other = kind(FactoryParameters(**changed))
    for seed in range(5):
        found = compare(FactoryMDP(), other, seed)
        assert not found.common_noise
        assert f"from which '{name}" in found.difference
        assert "probability" in found.difference


def test_a_real_variable_that_moves_otherwise_is_found():
    class Windier(BatteryMDP):
        def sample_exogenous(self, exogenous, rng):
            x = super().sample_exogenous(exogenous, rng)
            x[..., 1] = (1.2 * x[..., 1]).clip(-10, 10)
            return x

    assert "from which 'wind' becomes" in compare(BatteryMDP(), Windier()).difference


def test_another_record_is_another_process():
    found = compare(battery(), battery(price_table(seed=1)))
    assert found.difference == "'price' was recorded otherwise"


class CountedFactory(FactoryEnv):
    num_steps = 0

    def step(self, action):
        self.num_steps += 1
        return super().step(action)


def test_an_environment_that_is_stepped_is_asked_little():
    envs = [CountedFactory(order_reward=reward) for reward in (100.0, 7.0)]
    first, second = (AdaptedMDP(env, horizon=50) for env in envs)
    before = sum(env.num_steps for env in envs)
    assert compare(first, second) == (True, None)
    assert 0 < sum(env.num_steps for env in envs) - before < 1_000
