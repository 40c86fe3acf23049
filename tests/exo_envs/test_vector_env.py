"""The vector shell, against Gymnasium's SyncVectorEnv."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from models import CoinMDP, CounterMDP

from exo_envs import ExoEnv, ExoVectorEnv, State
from exo_envs.domains.grid import GridMDP

LANES = 6


def both(mode):
    """Our shell and Gymnasium's, over a model without noise."""
    mdp = CounterMDP()
    ours = ExoVectorEnv(mdp, LANES, autoreset_mode=mode, reward_terms=True)
    theirs = SyncVectorEnv([lambda: ExoEnv(mdp)] * LANES, autoreset_mode=mode)
    return ours, theirs


def same(ours, theirs):
    assert data_equivalence(ours, theirs, exact=True), f"{ours}\n{theirs}"


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("seed", range(5))
def test_autoreset_is_that_of_sync_vector_env(mode, seed):
    ours, theirs = both(mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.observation_space.sample() in theirs.observation_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.action_space == theirs.action_space
    assert ours.single_action_space == theirs.single_action_space
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is mode
    same(ours.reset(seed=seed), theirs.reset(seed=seed))
    rng = np.random.default_rng(seed)
    ended = 0
    for _ in range(40):
        actions = rng.integers(3, size=LANES)
        step = ours.step(actions)
        same(step, theirs.step(actions))
        ended += (step[2] | step[3]).sum()
    assert ended > LANES


@pytest.mark.parametrize("action", [0, 2])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_all_lanes_may_end_at_once(mode, action):
    ours, theirs = both(mode)
    same(ours.reset(seed=0), theirs.reset(seed=0))
    for _ in range(20):
        actions = np.full(LANES, action)
        same(ours.step(actions), theirs.step(actions))


@pytest.mark.parametrize("seed", range(3))
def test_disabled_autoreset_is_that_of_sync_vector_env(seed):
    ours, theirs = both(AutoresetMode.DISABLED)
    same(ours.reset(seed=seed), theirs.reset(seed=seed))
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(40):
        actions = rng.integers(3, size=LANES)
        step = ours.step(actions)
        same(step, theirs.step(actions))
        ended = step[2] | step[3]
        if ended.any():
            with pytest.raises(ResetNeeded, match=str(np.flatnonzero(ended)[0])):
                ours.step(actions)
            with pytest.raises(AssertionError):
                copy.deepcopy(theirs).step(actions)
            refused += 1
            same(
                ours.reset(options={"reset_mask": ended}),
                theirs.reset(options={"reset_mask": ended.copy()}),
            )
    assert refused


def test_infos_have_reward_terms_if_asked_for():
    for lanes in (2, 40):
        plain = gym.make_vec("ExoGrid-v0", num_envs=lanes)
        asked = gym.make_vec("ExoGrid-v0", num_envs=lanes, reward_terms=True)
        for env in (plain, asked):
            env.reset(seed=0)
        assert plain.step(np.zeros(lanes, int))[4] == {}
        _, rewards, *_, infos = asked.step(np.zeros(lanes, int))
        assert infos["reward_terms"].sum(axis=1).tolist() == rewards.tolist()
    with pytest.raises(TypeError, match="reward_terms is True or False, not 'yes'"):
        ExoVectorEnv(GridMDP(), 2, reward_terms="yes")


def test_make_vec_uses_it_and_passes_everything_on():
    env = gym.make_vec(
        "ExoGrid-v0",
        num_envs=4,
        max_episode_steps=3,
        autoreset_mode="SameStep",
        render_mode="rgb_array",
        slip=0.0,
    )
    assert isinstance(env, ExoVectorEnv)
    assert env.num_envs == 4
    assert env.mdp.parameters.slip == 0.0
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset(seed=0)
    frames = env.render()
    assert len(frames) == 4
    assert frames[0].dtype == np.uint8
    assert frames[0].ndim == 3
    truncations = [env.step(np.zeros(4, dtype=int))[3].all() for _ in range(6)]
    assert truncations == [False, False, True] * 2
    env.close()
    env.close()


def test_the_horizon_cuts_off_what_the_time_limit_does_not():
    env = ExoVectorEnv(CounterMDP(), 1, max_episode_steps=100)
    env.reset(seed=0)
    assert [bool(env.step([0])[3][0]) for _ in range(7)] == [False] * 6 + [True]


def test_two_policies_meet_the_same_exogenous_noise():
    trajectories = []
    for policy_seed in (1, 2):
        env = ExoVectorEnv(CoinMDP(), 5)
        rng = np.random.default_rng(policy_seed)
        observations = [env.reset(seed=3)[0]]
        observations += [env.step(rng.integers(2, size=5))[0] for _ in range(50)]
        trajectories.append(np.array([o["exogenous"] for o in observations]))
    np.testing.assert_array_equal(*trajectories)


def test_a_lane_that_waits_for_its_reset_does_not_disturb_the_others():
    """Lanes 1... see the same noise whether lane 0 ends early or not."""
    trajectories = []
    for start in (0, 12):
        env = ExoVectorEnv(GridMDP(), 4)
        state = env.mdp.sample_initial(4, np.random.default_rng(0))
        state.endogenous[0] = start
        env.reset(seed=1, options={"state": state})
        steps = [env.step(np.full(4, a)) for a in (1, 4, 4, 1, 2, 2)]
        trajectories.append(np.array([s[0]["exogenous"][1:] for s in steps]))
    np.testing.assert_array_equal(*trajectories)


def test_lanes_differ_and_seeds_repeat():
    env = ExoVectorEnv(CoinMDP(), 64)
    first = env.reset(seed=1)[0]["exogenous"]
    assert len(np.unique(first, axis=0)) > 1
    np.testing.assert_array_equal(first, env.reset(seed=1)[0]["exogenous"])
    assert (first != env.reset()[0]["exogenous"]).any()


def test_states_are_given_to_all_lanes_or_to_each():
    mdp = GridMDP()
    env = ExoVectorEnv(mdp, 3)
    one = State(np.array([4]), np.array([1, 0, 1, 0, 1]))
    observation, _ = env.reset(options={"state": one})
    assert observation["endogenous"].tolist() == [[4]] * 3
    each = mdp.sample_uniform(3, np.random.default_rng(0))
    observation, _ = env.reset(options={"state": each})
    np.testing.assert_array_equal(observation["exogenous"], each.exogenous)
    lanes = np.array([False, True, False])
    observation, _ = env.reset(options={"state": one, "reset_mask": lanes})
    np.testing.assert_array_equal(observation["exogenous"][[0, 2]], each.exogenous[[0, 2]])
    assert observation["exogenous"][1].tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": [1, 2, 3]}, TypeError, "a seed is one number"),
        ({"options": {"stat": 0}}, ValueError, "unknown reset option 'stat'; did you mean 'state'"),
        (
            {"options": {"state": ([[0]] * 2, [[0] * 5] * 2)}},
            ValueError,
            r"should be \(1,\) or \(3, 1\)",
        ),
        ({"options": {"reset_mask": [True] * 3}}, TypeError, "array of booleans"),
        ({"options": {"reset_mask": np.ones(2, dtype=bool)}}, ValueError, r"shape \(3,\)"),
        ({"options": {"reset_mask": np.zeros(3, dtype=bool)}}, ValueError, "at least one lane"),
        (
            {"seed": 1, "options": {"reset_mask": np.ones(3, dtype=bool)}},
            ValueError,
            "all of them or none",
        ),
    ],
)
def test_bad_resets_are_refused(arguments, error, message):
    env = ExoVectorEnv(GridMDP(), 3)
    env.reset(seed=1)
    with pytest.raises(error, match=message):
        env.reset(**arguments)


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0, 0], ValueError, r"shape \(2,\); they should have \(3,\)"),
        ([0, 0, 5], ValueError, r"no action 5; actions are 0 \.\.\. 4"),
        ([0, 0, -1], ValueError, "no action -1"),
        ([0, 0, np.nan], ValueError, "nan"),
        (["a", "b", "c"], TypeError, "whole numbers"),
    ],
)
def test_bad_actions_are_refused_and_change_nothing(actions, error, message):
    env = ExoVectorEnv(GridMDP(), 3)
    env.reset(seed=1)
    reference = copy.deepcopy(env)
    with pytest.raises(error, match=message):
        env.step(actions)
    same(env.step([0, 1, 2]), reference.step([0, 1, 2]))


def test_bad_sizes_and_modes_are_refused():
    with pytest.raises(ValueError, match="num_envs is a whole number, at least 1, not 0"):
        ExoVectorEnv(GridMDP(), 0)
    with pytest.raises(ValueError, match="max_episode_steps"):
        ExoVectorEnv(GridMDP(), 1, max_episode_steps=0)
    with pytest.raises(ValueError, match="unknown render mode 'human'"):
        ExoVectorEnv(GridMDP(), 1, render_mode="human")
    with pytest.raises(ResetNeeded, match="reset"):
        ExoVectorEnv(GridMDP(), 1).step([0])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_copies_pickles_and_snapshots_continue_identically(mode):
    rng = np.random.default_rng(0)
    actions = rng.integers(5, size=(80, 4))
    env = ExoVectorEnv(GridMDP(), 4, autoreset_mode=mode)
    env.reset(seed=7)
    for a in actions[:30]:
        env.step(a)
    other = ExoVectorEnv(GridMDP(), 4, autoreset_mode=mode)
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), other]
    for a in actions:
        expected = env.step(a)
        for twin in twins:
            same(twin.step(a), expected)
    with pytest.raises(ValueError, match="5 lanes"):
        ExoVectorEnv(GridMDP(), 5).set_state(env.get_state())
    with pytest.raises(TypeError, match="get_state"):
        env.set_state(env.state)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_returned_arrays_are_the_callers(mode):
    """Scribbling over everything that was returned changes nothing that comes later."""
    rng = np.random.default_rng(0)
    env = ExoVectorEnv(CounterMDP(), 5, autoreset_mode=mode)
    reference = ExoVectorEnv(CounterMDP(), 5, autoreset_mode=mode)
    scribble(env.reset(seed=0))
    reference.reset(seed=0)
    for _ in range(30):
        actions = rng.integers(3, size=5)
        step = env.step(actions)
        same(step, reference.step(actions))
        scribble(step)


def scribble(data):
    if isinstance(data, np.ndarray) and data.dtype != object:
        data[...] = 1
    elif isinstance(data, dict):
        for value in data.values():
            scribble(value)
    elif isinstance(data, (tuple, list, np.ndarray)):
        for value in data:
            scribble(value)


def test_it_has_the_distribution_of_the_single_shell():
    """The mean returns of a fixed policy are less than 5 standard errors apart (p < 1e-6)."""
    actions = [1, 1, 4, 4, 4, 0, 0, 0] * 5
    env = ExoVectorEnv(GridMDP(), 2000, autoreset_mode="Disabled")
    env.reset(seed=0)
    total, alive = np.zeros(2000), np.ones(2000, dtype=bool)
    for action in actions:
        _, reward, terminated, truncated, _ = env.step(np.full(2000, action))
        total += reward * alive
        alive &= ~(terminated | truncated)
        if (terminated | truncated).any():
            env.reset(options={"reset_mask": terminated | truncated})
    single = ExoEnv(GridMDP())
    returns = []
    for seed in range(300):
        single.reset(seed=seed)
        rewards = []
        for action in actions:
            _, reward, terminated, truncated, _ = single.step(action)
            rewards.append(reward)
            if terminated or truncated:
                break
        returns.append(sum(rewards))
    spread = np.hypot(np.std(returns) / np.sqrt(300), total.std() / np.sqrt(2000))
    assert abs(np.mean(returns) - total.mean()) < 5 * spread
