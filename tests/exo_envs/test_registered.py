"""Every registered id, through everybody's checks, with warnings as errors."""

import copy
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from traces import record

import exo_envs
from exo_envs.domains import ENVIRONMENTS
from exo_envs.testing import check_mdp

IDS = sorted(ENVIRONMENTS)
each_id = pytest.mark.parametrize("env_id", IDS)


@each_id
def test_gymnasium_accepts_it(env_id):
    check_env(gym.make(env_id).unwrapped)


@each_id
def test_stable_baselines3_accepts_it(env_id):
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(
        gym.make(env_id).unwrapped
    )


@each_id
def test_it_keeps_the_contract(env_id):
    check_mdp(gym.make(env_id).unwrapped.mdp)


@each_id
def test_the_spec_survives_json(env_id):
    env = gym.make(env_id, horizon=9)
    spec = EnvSpec.from_json(env.spec.to_json())
    assert spec == env.spec
    assert gym.make(spec).unwrapped.mdp.horizon == 9
    gym.make_vec(env_id, num_envs=2, horizon=9).spec.to_json()


@each_id
def test_a_seed_replays_exactly(env_id):
    runs = []
    for _ in range(2):
        env = gym.make(env_id)
        first = env.reset(seed=11)
        runs.append([first, *record(env, 200, np.random.default_rng(5))])
    assert data_equivalence(runs[0], runs[1], exact=True)


@each_id
def test_copies_continue_identically(env_id):
    env = gym.make(env_id)
    env.reset(seed=11)
    record(env, 30, np.random.default_rng(1))
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = record(env, 200, np.random.default_rng(2))
    for twin in twins:
        assert data_equivalence(record(twin, 200, np.random.default_rng(2)), expected, exact=True)


@each_id
def test_the_exogenous_trajectory_does_not_depend_on_the_actions(env_id):
    trajectories = []
    for policy_seed in (1, 2):
        env = gym.make(env_id).unwrapped
        rng = np.random.default_rng(policy_seed)
        observations = [env.reset(seed=3)[0]]
        for _ in range(env.mdp.horizon):
            observation, _, terminated, _, _ = env.step(int(rng.integers(env.action_space.n)))
            if terminated:
                break
            observations.append(observation)
        trajectories.append([o["exogenous"].tolist() for o in observations])
    shared = min(map(len, trajectories))
    assert shared > 2
    assert trajectories[0][:shared] == trajectories[1][:shared]


@each_id
def test_the_vector_shell_is_the_default_of_make_vec(env_id):
    env = gym.make_vec(env_id, num_envs=3)
    assert isinstance(env, exo_envs.ExoVectorEnv)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    for _ in range(env.mdp.horizon + 3):
        observation, rewards, *_ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert rewards.shape == (3,)
    env.close()


@each_id
def test_it_can_be_made_without_importing_the_package(env_id):
    code = f"import gymnasium; gymnasium.make('exo_envs:{env_id}').reset(seed=0)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_registration_is_idempotent():
    before = dict(gym.registry)
    exo_envs.register_envs()
    assert dict(gym.registry) == before
