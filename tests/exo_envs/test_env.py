"""The single shell."""

import copy
import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given
from hypothesis import strategies as st
from models import CoinMDP, CounterMDP

from exo_envs import ExoEnv, ExoVectorEnv, State
from exo_envs.domains.grid import GridMDP


def rollout(env, actions):
    """Everything an environment gives back for a sequence of actions."""
    trace = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        parts = {key: value.tolist() for key, value in observation.items()}
        trace.append((parts, reward, terminated, truncated, info["reward_terms"].tolist()))
        if terminated or truncated:
            env.reset()
    return trace


def test_it_follows_the_model():
    env = ExoEnv(CounterMDP())
    observation, info = env.reset(seed=0)
    assert observation["endogenous"].tolist() == [0, 0]
    assert observation["exogenous"].tolist() == [0, 3]
    assert info == {}
    observation, reward, terminated, truncated, info = env.step(2)
    assert observation["endogenous"].tolist() == [2, 2]
    assert observation["exogenous"].tolist() == [1, 3]
    assert info["reward_terms"].tolist() == [0.0, -1.0]
    assert (reward, terminated, truncated) == (-0.5, False, False)
    assert type(reward) is float
    assert type(terminated) is bool
    assert type(truncated) is bool


def test_episodes_terminate_where_the_model_says_and_pay_nothing_after():
    env = ExoEnv(CounterMDP())
    env.reset(seed=0)
    assert [env.step(2)[2] for _ in range(3)] == [False, False, True]
    before = env.state
    observation, reward, terminated, _, info = env.step(1)
    assert observation["endogenous"].tolist() == before.endogenous.tolist()
    assert observation["exogenous"].tolist() == before.exogenous.tolist()
    assert (reward, terminated) == (0.0, True)
    assert not info["reward_terms"].any()


def test_episodes_are_truncated_at_the_horizon():
    env = ExoEnv(CounterMDP())
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]
    env.reset()
    assert not env.step(0)[3]


@given(seed=st.integers(0, 2**32), policies=st.integers(0, 2**32))
def test_two_policies_meet_the_same_exogenous_trajectory(seed, policies):
    """In every episode after a seeding, whatever was done in it or before."""
    rng = np.random.default_rng(policies)
    seen = []
    for _ in range(2):
        env = ExoEnv(CoinMDP())
        trajectory = []
        for episode in range(2):
            observation, _ = env.reset(seed=seed if episode == 0 else None)
            trajectory.append(observation["exogenous"].tolist())
            for action in rng.integers(2, size=10 if episode else rng.integers(1, 10)):
                observation = env.step(action)[0]
                if episode:
                    trajectory.append(observation["exogenous"].tolist())
        seen.append(trajectory)
    assert seen[0] == seen[1]


@given(seed=st.integers(0, 2**32))
def test_any_state_can_be_started_from(seed):
    mdp = GridMDP()
    env = ExoEnv(mdp)
    state = mdp.sample_uniform(1, np.random.default_rng(seed))
    state = State(state.endogenous[0], state.exogenous[0])
    for given_state in (
        state,
        state._asdict(),
        {k: v.tolist() for k, v in state._asdict().items()},
    ):
        observation, _ = env.reset(seed=seed, options={"state": given_state})
        np.testing.assert_array_equal(observation["endogenous"], state.endogenous)
        np.testing.assert_array_equal(observation["exogenous"], state.exogenous)
        env.step(0)


def test_an_observation_is_a_state_to_start_from():
    env = gym.make("exo_envs:ExoGrid-v0")
    observation, _ = env.reset(seed=4)
    again, _ = env.reset(options={"state": observation})
    assert all((again[key] == observation[key]).all() for key in observation)


def test_a_given_state_does_not_alias_the_caller():
    env = ExoEnv(GridMDP())
    state = State(np.array([3]), np.array([1, 0, 1, 0, 1]))
    env.reset(options={"state": state})
    state.exogenous[:] = 0
    assert env.state.exogenous.tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sate": 1}, ValueError, "unknown reset option 'sate'; did you mean 'state'"),
        ({"state": 3}, TypeError, "a State or a mapping"),
        ({"state": {"endogenous": [0]}}, ValueError, "no 'exogenous' part"),
        ({"state": {"endogenous": [0], "x": [0]}}, ValueError, "unknown part of a state 'x'"),
        ({"state": ([0], [0, 0, 0, 0])}, ValueError, r"shape \(4,\); it should be \(5,\)"),
        ({"state": ([0], [0, 0, 0, 0, 2])}, ValueError, r"'weather' cannot be 2; .* 0 \.\.\. 1"),
        ({"state": ([-1], [0, 0, 0, 0, 0])}, ValueError, "'robot' cannot be -1"),
        ({"state": ([0], [0, 0, 0, 0, np.nan])}, ValueError, "nan, which is not a whole number"),
        ({"state": ([0.5], [0, 0, 0, 0, 0])}, ValueError, "0.5, which is not a whole number"),
        ({"state": (["a"], [0, 0, 0, 0, 0])}, TypeError, "should hold whole numbers"),
    ],
)
def test_bad_resets_are_refused_and_change_nothing(options, error, message):
    env = ExoEnv(GridMDP())
    env.reset(seed=1)
    reference = copy.deepcopy(env)
    with pytest.raises(error, match=message):
        env.reset(seed=2, options=options)
    assert rollout(env, [0, 1, 2, 3]) == rollout(reference, [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("action", "error"), [(5, ValueError), (-1, ValueError), (0.0, TypeError), (None, TypeError)]
)
def test_bad_actions_are_refused_and_change_nothing(action, error):
    env = ExoEnv(GridMDP())
    env.reset(seed=1)
    reference = copy.deepcopy(env)
    with pytest.raises(error, match="action"):
        env.step(action)
    assert rollout(env, [0, 1, 2, 3]) == rollout(reference, [0, 1, 2, 3])


@pytest.mark.parametrize("action", [2, np.int64(2), np.array(2), np.uint8(2)])
def test_whatever_is_a_whole_number_is_an_action(action):
    env = ExoEnv(GridMDP())
    env.reset(seed=1)
    env.step(action)


def test_stepping_and_looking_need_a_reset():
    env = ExoEnv(GridMDP(), render_mode="ansi")
    for call in (lambda: env.step(0), env.render, env.get_state, lambda: env.state):
        with pytest.raises(ResetNeeded, match="reset"):
            call()


ACTIONS = [1, 4, 4, 0, 2, 3, 1, 4] * 8


def test_copies_and_pickles_continue_identically():
    env = ExoEnv(GridMDP(), render_mode="ansi")
    env.reset(seed=3)
    rollout(env, ACTIONS[:9])
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = rollout(env, ACTIONS)
    assert [rollout(twin, ACTIONS) for twin in copies] == [expected, expected]


def test_snapshots_continue_identically_and_more_than_once():
    env = ExoEnv(GridMDP())
    env.reset(seed=3)
    rollout(env, ACTIONS[:9])
    snapshot = pickle.loads(pickle.dumps(env.get_state()))
    expected = rollout(env, ACTIONS)
    other = ExoEnv(GridMDP())
    for twin in (env, env, other):
        twin.set_state(snapshot)
        assert twin.np_random_seed == 3
        assert rollout(twin, ACTIONS) == expected


def test_a_plain_state_is_not_a_snapshot():
    env = ExoEnv(GridMDP())
    env.reset(seed=3)
    with pytest.raises(TypeError, match=r'reset\(options={"state": state}\)'):
        env.set_state(env.state)


def test_returned_arrays_are_the_callers():
    env, reference = ExoEnv(GridMDP()), ExoEnv(GridMDP())
    observation, _ = env.reset(seed=5)
    reference.reset(seed=5)
    observation["exogenous"][:] = -1
    for action in ACTIONS[:20]:
        observation, reward, *_, info = env.step(action)
        expected, expected_reward, *_, expected_info = reference.step(action)
        assert observation["exogenous"].tolist() == expected["exogenous"].tolist()
        assert observation["endogenous"].tolist() == expected["endogenous"].tolist()
        assert reward == expected_reward
        assert info["reward_terms"].tolist() == expected_info["reward_terms"].tolist()
        observation["exogenous"][:] = -1
        observation["endogenous"][:] = -1
        info["reward_terms"][:] = np.nan
        env.state.endogenous[:] = -1


def test_render_modes_are_the_viewers():
    with pytest.raises(ValueError, match="unknown render mode 'rgb_array'; choose from 'ansi'"):
        ExoEnv(CounterMDP(), render_mode="rgb_array")
    env = ExoEnv(CounterMDP(), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "position = 0\nlast_action = 0\nclock = 0\ndie = 3"
    env.close()
    env.close()


def test_rendering_without_a_mode_warns():
    env = ExoEnv(CounterMDP())
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render mode"):
        assert env.render() is None


def test_wrong_parameters_are_named():
    with pytest.raises(
        ValueError, match="unknown parameter of GridParameters 'horizn'; did you mean 'horizon'"
    ):
        gym.make("exo_envs:ExoGrid-v0", horizn=3)


def test_the_horizon_is_an_argument_like_any_other():
    env = gym.make("exo_envs:ExoGrid-v0", horizon=3)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"elapsed_steps": -1}, "elapsed_steps of a snapshot are whole numbers"),
        ({"elapsed_steps": 1.5}, "elapsed_steps of a snapshot are whole numbers"),
        ({"elapsed_steps": np.zeros(4, int)}, "not of a single environment|with 3 lanes"),
        ({"ended": 1}, "ended of a snapshot is boolean|not of an environment"),
        ({"noise": None}, "a snapshot holds random generators, not None"),
        ({"np_random": 7}, "a snapshot holds random generators, not 7"),
        ({"state": State([99], [0, 0])}, "cannot be 99"),
        ({"state": None}, "a state is a State or a mapping .*, not None"),
        ({"np_random_seed": "x"}, "np_random_seed of a snapshot is a whole number"),
    ],
)
@pytest.mark.parametrize("lanes", [None, 3])
def test_a_forged_snapshot_is_refused_whole(forged, message, lanes):
    env = ExoEnv(CoinMDP()) if lanes is None else ExoVectorEnv(CoinMDP(), lanes)
    env.reset(seed=0)
    env.action_space.seed(0)
    before = env.get_state()
    if lanes is not None:
        forged = {
            part: np.full(lanes, value) if isinstance(value, (int, float)) else value
            for part, value in forged.items()
            if part != "np_random"
        } or forged
    with pytest.raises((TypeError, ValueError), match=message):
        env.set_state(replace(before, **forged))
    after = env.get_state()
    for part, kept in zip(after.state, before.state, strict=True):
        np.testing.assert_array_equal(part, kept)
    np.testing.assert_array_equal(after.elapsed_steps, before.elapsed_steps)
