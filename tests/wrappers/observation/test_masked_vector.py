"""The wrapper that masks the observations of all lanes of a vector environment."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from harbour import Harbour
from masks import each_id, each_mask
from models import CoinMDP, CounterMDP
from traces import same

from exo_envs import ExoEnv, ExoVectorEnv
from exo_envs.domains.grid import GridMDP
from wrappers.observation.masked import MaskedObservation, MaskedVectorObservation

NAMES = GridMDP().exogenous_names  # object, carrier, guard, guard_intent, weather
STATE = {"endogenous": [3], "exogenous": [2, 0, 1, 0, 1]}


def grid(mask, **kwargs):
    return MaskedObservation(gym.make("ExoGrid-v0"), mask, **kwargs)


LANES = 5
each_mode = pytest.mark.parametrize("mode", list(AutoresetMode))


@each_mode
@pytest.mark.parametrize("mask", [[], ["die"], ["clock", "die"]], ids=len)
def test_lanes_see_what_single_environments_see(mode, mask):
    """Over both shells, against Gymnasium's vector of masked environments."""
    mdp = CounterMDP()
    theirs = SyncVectorEnv(
        [lambda: MaskedObservation(ExoEnv(mdp), mask)] * LANES, autoreset_mode=mode
    )
    lanes = SyncVectorEnv([lambda: ExoEnv(mdp)] * LANES, autoreset_mode=mode)
    for inner in (ExoVectorEnv(mdp, LANES, autoreset_mode=mode, reward_terms=True), lanes):
        ours = MaskedVectorObservation(inner, mask)
        assert ours.mask == tuple(mask)
        assert ours.observation_space == theirs.observation_space
        assert ours.single_observation_space == theirs.single_observation_space
        assert ours.metadata["autoreset_mode"] is mode
        same(ours.reset(seed=0), theirs.reset(seed=0))
        rng, num_ended = np.random.default_rng(0), 0
        for _ in range(40):
            actions = rng.integers(3, size=LANES)
            step = ours.step(actions)
            same(step, theirs.step(actions))
            assert step[0] in ours.observation_space
            assert all(part.flags.c_contiguous for part in step[0].values())
            ended = step[2] | step[3]
            num_ended += ended.sum()
            if mode is AutoresetMode.DISABLED and ended.any():
                options = [{"reset_mask": ended.copy()} for _ in range(2)]
                same(ours.reset(options=options[0]), theirs.reset(options=options[1]))
        assert num_ended > LANES


def test_final_observations_are_masked_where_there_is_one_and_nowhere_else():
    inner = ExoVectorEnv(CounterMDP(), 3, autoreset_mode="SameStep", reward_terms=True)
    seen = []
    step = inner.step
    inner.step = lambda actions: seen.append(step(actions)) or seen[-1]
    env = MaskedVectorObservation(inner, ["clock"])
    env.reset(seed=0)
    for _ in range(3):
        infos = env.step([0, 2, 1])[4]
    assert infos["_final_obs"].tolist() == [False, True, False]
    final = infos["final_obs"]
    assert final.dtype == object
    assert (final[0], final[2]) == (None, None)
    assert final[1] in env.single_observation_space
    assert final[1]["exogenous"].tolist() == [3]
    full = seen[-1][4]["final_obs"][1]  # not written to
    assert full["exogenous"].tolist() == [3, 3]
    assert infos["final_info"]["reward_terms"].shape == (3, 2)


@each_id
@each_mask
def test_the_vector_twin_masks_every_environment(env_id, choose):
    arguments = {"num_envs": 4, "autoreset_mode": "SameStep", "max_episode_steps": 7}
    reference, env = gym.make_vec(env_id, **arguments), gym.make_vec(env_id, **arguments)
    mask = choose(env)
    columns = env.mdp.exogenous_indices(mask)
    env = MaskedVectorObservation(env, columns)
    assert env.mask == mask

    def expect(full):
        kept = {"exogenous": np.ascontiguousarray(full["exogenous"][..., columns])} if mask else {}
        return {"endogenous": full["endogenous"], **kept}

    same(env.reset(seed=1)[0], expect(reference.reset(seed=1)[0]))
    rng, num_finals = np.random.default_rng(0), 0
    for _ in range(10):
        actions = rng.integers(env.single_action_space.n, size=4)
        ours, theirs = env.step(actions), reference.step(actions)
        assert ours[0] in env.observation_space
        same(ours[0], expect(theirs[0]))
        for lane in np.flatnonzero(theirs[4].get("_final_obs", [])):
            theirs[4]["final_obs"][lane] = expect(theirs[4]["final_obs"][lane])
            num_finals += 1
        same(ours[1:], theirs[1:])  # all reward terms included
    assert num_finals >= 4


def test_a_batch_starts_anywhere():
    env = MaskedVectorObservation(gym.make_vec("ExoGrid-v0", num_envs=1000), ["weather"])
    observations, _ = env.reset(options={"state": STATE})
    assert observations["exogenous"].tolist() == [[1]] * 1000
    assert env.observation_space.sample() in env.observation_space


def test_vector_masks_can_be_put_on_masks_and_on_wrappers():
    inner = MaskedVectorObservation(gym.make_vec("ExoGrid-v0", num_envs=2), ["guard", "weather"])
    counted = gym.wrappers.vector.RecordEpisodeStatistics(inner)
    outer = MaskedVectorObservation(counted, [1])
    assert outer.mask == ("weather",)
    assert outer.reset(options={"state": STATE})[0]["exogenous"].tolist() == [[1], [1]]
    with pytest.raises(ValueError, match="'object' is no longer there"):
        MaskedVectorObservation(inner, ["object"])
    lanes = SyncVectorEnv([lambda: grid(["guard", "weather"])] * 2)
    assert MaskedVectorObservation(lanes, [0]).mask == ("guard",)
    with pytest.raises(ValueError, match="'object' is no longer there"):
        MaskedVectorObservation(lanes, ["object"])
    lanes = SyncVectorEnv([Harbour] * 2)
    assert MaskedVectorObservation(lanes, [0]).mask == ("exogenous_0",)


@pytest.mark.parametrize(
    ("make", "name"),
    [(lambda: gym.make("exo_envs:ExoGrid-v0"), "guard"), (Harbour, "exogenous_1")],
    ids=["model", "no model"],
)
def test_lanes_in_other_processes_tell_their_names(make, name):
    env = MaskedVectorObservation(AsyncVectorEnv([make], context="spawn"), [name])
    try:
        assert env.mask == (name,)
        assert env.reset(seed=0)[0]["exogenous"].shape == (1, 1)
    finally:
        env.close()


def test_copies_of_the_vector_twin_continue_identically():
    env = MaskedVectorObservation(ExoVectorEnv(CoinMDP(), 3), ["coin_b"])
    env.reset(seed=0)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = [env.step([0, 1, 0]) for _ in range(30)]
    for twin in twins:
        assert twin.mask == ("coin_b",)
        same([twin.step([0, 1, 0]) for _ in range(30)], expected)
