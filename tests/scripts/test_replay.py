"""The replay: what it exports, against the episode played again by other means."""

import json

import gymnasium as gym
import numpy as np
import pytest

from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.domains.floor import Move
from planners.forecasting.planner import ForecastPolicy
from reproduction.replay import AHEAD, planning_in, play, typical_seed

SEED = 3
NAMES = CrowdMDP().exogenous_names
MASK = tuple(
    name
    for name in NAMES
    if name.startswith(("object", "porter_0", "occupancy")) and not name.endswith("_7")
)


@pytest.fixture(scope="module")
def plan():
    return planning_in(CrowdMDP(), seed=0, num_rollouts=100)


@pytest.fixture(scope="module")
def policy(plan):
    return plan(MASK)


@pytest.fixture(scope="module")
def episode(policy):
    return json.loads(json.dumps(play(policy, seed=SEED, title="some mask", goal="movable")))


def test_it_is_the_episode_that_the_actions_lead_through(episode):
    env = gym.make("ExoCrowd-v0", goal="movable")
    observation, _ = env.reset(seed=SEED)
    earned, over = 0.0, False
    for t, step in enumerate(episode["steps"]):
        robot = int(observation["endogenous"][0])
        assert step["robot"] == (None if robot == 64 else robot)
        assert step["there"] == observation["exogenous"].tolist()
        if over:
            assert t == len(episode["steps"]) - 1
            assert "action" not in step
            break
        observation, reward, terminated, truncated, _ = env.step(step["action"])
        assert step["reward"] == reward
        earned += episode["discount"] ** t * reward
        over = terminated or truncated
    assert over
    assert episode["return"] == pytest.approx(earned)


def test_the_agent_sees_the_mask_and_decides_by_it(episode, policy):
    assert episode["mask"] == list(MASK)
    columns = [episode["names"].index(name) for name in MASK]
    for step in episode["steps"]:
        assert step["seen"] == [step["there"][column] for column in columns]
    for step in episode["steps"][:-1]:
        seen = {"endogenous": [step["robot"]], "exogenous": step["seen"]}
        assert step["action"] == policy(seen)
        assert step["expected"][step["action"]] == max(step["expected"])


def test_the_forecasts_are_those_of_the_policy(episode, policy):
    assert isinstance(policy, ForecastPolicy)
    assert episode["ahead"] == list(AHEAD)
    cells, objects = episode["forecast"]["cells"], episode["forecast"]["objects"]
    assert [NAMES[cell] for cell in cells] == [name for name in MASK if "occupancy" in name]
    assert objects == [item for item in range(12) if item != 7]
    variables = policy.forecasts.variables.tolist()
    for step in episode["steps"][:-1]:
        seen = np.array([step["seen"]])
        for k, h in enumerate(AHEAD):
            for cell, share in zip(cells, step["occupancy"][k], strict=True):
                f = variables.index(MASK.index(NAMES[cell]))
                expected = policy.probabilities(seen, f)[0, h - 1, 1]
                assert share == pytest.approx(100 * expected, abs=0.51)
            for item, shares in zip(objects, step["places"][k], strict=True):
                f = variables.index(MASK.index(f"object_{item}"))
                forecast = policy.probabilities(seen, f)[0, h - 1]
                np.testing.assert_allclose(shares, 100 * (forecast[:7] + forecast[7:]), atol=0.51)


def test_what_never_moves_is_forecast_to_stay(episode):
    """Objects without a porter stay where they are, and the forecasts know."""
    first = episode["steps"][0]
    for k, item in enumerate(episode["forecast"]["objects"]):
        place = first["there"][NAMES.index(f"object_{item}")] % 7
        assert item < 6 or all(shares[k][place] > 90 for shares in first["places"])


def test_the_floor_is_the_models(episode):
    mdp = CrowdMDP()
    assert episode["tables"] == mdp.table_cells.tolist()
    assert (episode["rows"], episode["columns"]) == (8, 8)
    assert episode["actions"] == [move.name.lower() for move in Move]
    assert episode["names"] == list(mdp.exogenous_names)


def test_a_small_mask_is_planned_with_exactly_and_has_no_forecasts(plan):
    episode = play(plan(["object_0"]), seed=SEED, goal="movable")
    assert episode["ahead"] == episode["forecast"]["cells"] == episode["forecast"]["objects"] == []
    assert "occupancy" not in episode["steps"][0]
    assert len(episode["steps"][0]["seen"]) == 1


def test_an_empty_mask_sees_nothing(plan):
    episode = play(plan([]), seed=SEED, goal="movable")
    assert all(step["seen"] == [] for step in episode["steps"])


def test_masks_meet_the_same_crowd(plan, episode):
    other = play(plan([]), seed=SEED, goal="movable")
    for mine, yours in zip(episode["steps"], other["steps"], strict=False):
        assert mine["there"] == yours["there"]


def test_the_typical_episode_has_the_median_return(policy):
    returns = {seed: play(policy, seed=seed, goal="movable")["return"] for seed in range(5)}
    typical = typical_seed(policy, range(5), goal="movable")
    assert returns[typical] == sorted(returns.values())[2]
