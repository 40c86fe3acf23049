"""Trained agents as policies: they see what the wrapped environment would have shown them."""

import importlib

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import FrameStackObservation, TransformObservation, TransformReward
from gymnasium.wrappers import vector as vector_wrappers
from models import CounterMDP

from exo_envs import ExoEnv, ExoVectorEnv, State
from exo_envs.domains.grid import GridMDP
from planners import ReducedMDP, Scenarios, evaluate
from wrappers import (
    AgentPolicy,
    FlatObservation,
    FlatVectorObservation,
    MaskedObservation,
    MaskedVectorObservation,
)

LANES = 16
GRID = GridMDP()
#: Masks from the inside to the outside, in any order of names, then an encoding; what is seen.
WRAPPINGS = {
    "full": ([], None, GRID.exogenous_names),
    "masked": ([["weather", "object", "guard"]], None, ("object", "guard", "weather")),
    "empty": ([[]], None, ()),
    "masked twice": (
        [["weather", "guard", "object"], ["weather", "object"]],
        None,
        ("object", "weather"),
    ),
    "masked to nothing": ([["weather", "guard"], []], None, ()),
    "flat": ([], "one-hot", GRID.exogenous_names),
    "scaled": ([], "scaled", GRID.exogenous_names),
    "masked and flat": ([["guard_intent", "object"]], "one-hot", ("object", "guard_intent")),
    "empty and flat": ([[]], "one-hot", ()),
    "masked twice and scaled": ([range(1, 5), [0, 2]], "scaled", ("carrier", "guard_intent")),
}
CASES = pytest.mark.parametrize(("masks", "encoding", "seen"), WRAPPINGS.values(), ids=WRAPPINGS)


class Projection:
    """Acts on the smallest change of any column that it sees, and keeps what it saw."""

    def __init__(self, num_actions=GRID.num_actions):
        self.num_actions = num_actions
        self.seen = []

    def __call__(self, observation):
        self.seen.append(observation)
        parts = observation
        if isinstance(observation, dict):
            parts = np.concatenate([observation[key] for key in sorted(observation)], axis=-1)
        weights = np.random.default_rng(0).uniform(10, 100, size=parts.shape[-1])
        return np.floor(parts @ weights).astype(int) % self.num_actions


class Recorder:
    """As models of SB3 are: predict, and more arguments than are needed."""

    def __init__(self):
        self.flags = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.flags.append(deterministic)
        return np.full(len(observation["endogenous"]), 3), state


def wrapped(env, masks=(), encoding=None):
    """With wrappers in between that change no observation."""
    single = isinstance(env, gym.Env)
    scaled = TransformReward if single else vector_wrappers.TransformReward
    for mask in masks:
        env = scaled(env, np.negative)
        env = (MaskedObservation if single else MaskedVectorObservation)(env, mask)
    if encoding is not None:
        env = (FlatObservation if single else FlatVectorObservation)(env, encoding)
    return scaled(env, np.negative)


def batch_of(observation):
    if isinstance(observation, dict):
        return {key: part[None] for key, part in observation.items()}
    return observation[None]


def random_states(mdp, size, seed=0):
    rng = np.random.default_rng(seed)
    parts = mdp.endogenous_sizes, mdp.exogenous_sizes
    return State(*(rng.integers(sizes, size=(*size, len(sizes))) for sizes in parts))


# --- what the agent sees ----------------------------------------------------------------------


@CASES
def test_the_agent_sees_what_the_vector_environment_shows(masks, encoding, seen):
    env = wrapped(ExoVectorEnv(GRID, LANES, autoreset_mode="SameStep"), masks, encoding)
    agent = Projection()
    policy = AgentPolicy(agent, env)
    assert policy.mask == seen
    assert policy.full == GRID.exogenous_names
    taken = set()
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        expected = agent(observation)
        actions = policy(env.unwrapped.state)
        assert data_equivalence(agent.seen[-1], observation, exact=True)
        np.testing.assert_array_equal(actions, expected)
        taken.update(actions.tolist())
        others = (actions + np.arange(LANES)) % GRID.num_actions  # to get about
        observation, *_ = env.step(others)
    assert len(taken) > 2


@CASES
def test_the_agent_sees_what_the_single_environment_shows(masks, encoding, seen):
    env = wrapped(ExoEnv(GRID), masks, encoding)
    agent = Projection()
    policy = AgentPolicy(agent, env)
    observation, _ = env.reset(seed=1)
    for step in range(100):
        expected = agent(batch_of(observation))
        action = policy(env.unwrapped.state)
        assert type(action) is int
        assert [action] == expected.tolist()
        assert data_equivalence(agent.seen[-1], batch_of(observation), exact=True)
        observation, _, terminated, truncated, _ = env.step((action + step) % GRID.num_actions)
        if terminated or truncated:
            observation, _ = env.reset()


@CASES
def test_full_and_masked_observations_are_taken_in_batches_of_any_shape(masks, encoding, seen):
    env = wrapped(ExoVectorEnv(GRID, LANES), masks, encoding)
    policy = AgentPolicy(Projection(), env)
    states = random_states(GRID, (3, 4))
    actions = policy(states)
    assert actions.shape == (3, 4)
    assert len(np.unique(actions)) > 1
    columns = [GRID.exogenous_names.index(name) for name in policy.mask]
    masked = {"endogenous": states.endogenous, "exogenous": states.exogenous[..., columns]}
    for same in (states._asdict(), masked):
        np.testing.assert_array_equal(policy(same), actions)
    if not columns:
        np.testing.assert_array_equal(policy({"endogenous": states.endogenous}), actions)
    one = policy(State(states.endogenous[1, 2], states.exogenous[1, 2]))
    assert type(one) is int
    assert one == actions[1, 2]
    assert policy(State(states.endogenous[:1, 0], states.exogenous[:1, 0])).shape == (1,)


def test_several_endogenous_variables_keep_their_places():
    mdp = CounterMDP()
    env = wrapped(ExoVectorEnv(mdp, LANES), [["die"]], "scaled")
    agent = Projection(mdp.num_actions)
    states = random_states(mdp, (40,))
    AgentPolicy(agent, env)(states)
    expected = np.column_stack([states.endogenous, states.exogenous[:, 1]]) / [5, 2, 5]
    np.testing.assert_allclose(agent.seen[-1], expected, rtol=1e-6)


def test_an_agent_of_a_reduced_model_acts_in_the_full_one():
    mask = ["guard", "object"]
    reduced = ReducedMDP.estimate(GRID, mask, rng=0)
    states = random_states(GRID, (60,))
    for encoding in (None, "one-hot"):
        there = AgentPolicy(Projection(), wrapped(ExoVectorEnv(reduced, 2), (), encoding))
        here = AgentPolicy(Projection(), wrapped(ExoVectorEnv(GRID, 2), [mask], encoding))
        assert there.mask == here.mask == ("object", "guard")
        assert there.full == GRID.exogenous_names
        np.testing.assert_array_equal(there(states), here(states))
        assert data_equivalence(there.agent.seen[-1], here.agent.seen[-1], exact=True)
    masked_again = AgentPolicy(Projection(), wrapped(ExoVectorEnv(reduced, 2), [["guard"]]))
    assert (masked_again.mask, masked_again.full) == (("guard",), GRID.exogenous_names)
    masked_again(states)
    expected = {"endogenous": states.endogenous, "exogenous": states.exogenous[:, [2]]}
    assert data_equivalence(masked_again.agent.seen[-1], expected, exact=True)


def test_it_is_evaluated_as_any_policy_is():
    agent = Projection()
    policy = AgentPolicy(agent, wrapped(ExoVectorEnv(GRID, LANES), [["object", "guard"]]))
    scenarios = Scenarios.sample(GRID, 100, 0)
    returns = evaluate(policy, GRID, scenarios=scenarios)

    def by_hand(state):
        return agent({"endogenous": state.endogenous, "exogenous": state.exogenous[:, [0, 2]]})

    np.testing.assert_array_equal(returns, evaluate(by_hand, GRID, scenarios=scenarios))
    assert len(np.unique(returns)) > 5


def test_the_flag_is_passed_on_to_agents_that_predict():
    env = ExoEnv(GRID)
    states = random_states(GRID, (4,))
    for flag in (True, False):
        agent = Recorder()
        policy = AgentPolicy(agent, env, deterministic=flag)
        assert policy(states).tolist() == [3] * 4
        assert policy.predict(states._asdict())[0].tolist() == [3] * 4
        assert agent.flags == [flag] * 2
    agent = Recorder()
    AgentPolicy(agent, env)(states)
    assert agent.flags == [True]


# --- models of Stable-Baselines3 --------------------------------------------------------------


def adapters():
    pytest.importorskip("stable_baselines3")
    return importlib.import_module("wrappers.sb3")


def make_model(algorithm, env, policy):
    """A model whose actions differ from observation to observation, untrained."""
    torch = pytest.importorskip("torch")
    small = {"n_steps": 4, "policy_kwargs": {"net_arch": [16]}, "seed": 0, "device": "cpu"}
    model = algorithm(policy, adapters().SB3VecEnv(env), **small)
    torch.nn.init.orthogonal_(model.policy.action_net.weight, gain=5.0)
    return model


@pytest.mark.parametrize("encoding", [None, "one-hot"])
@pytest.mark.parametrize("mask", [None, ["weather", "object"], []])
def test_a_model_of_sb3_does_what_it_does_on_the_wrapped_environment(mask, encoding):
    sb3 = pytest.importorskip("stable_baselines3")
    masks = [] if mask is None else [mask]
    env = wrapped(ExoVectorEnv(GRID, LANES, autoreset_mode="SameStep"), masks, encoding)
    model = make_model(sb3.A2C, env, "MultiInputPolicy" if encoding is None else "MlpPolicy")
    policy = AgentPolicy(model, env)
    taken = set()
    observation, _ = env.reset(seed=0)
    for step in range(20):
        expected, _ = model.predict(observation, deterministic=True)
        np.testing.assert_array_equal(policy(env.unwrapped.state), expected)
        np.testing.assert_array_equal(policy.predict(env.unwrapped.state)[0], expected)
        taken.update(expected.tolist())
        observation, *_ = env.step((expected + step) % GRID.num_actions)
    assert len(taken) > 1


def test_a_model_trained_in_a_reduced_model_plays_in_the_full_one():
    sb3 = pytest.importorskip("stable_baselines3")
    reduced = ReducedMDP.estimate(GRID, ["object", "guard"], rng=0)
    env = FlatVectorObservation(ExoVectorEnv(reduced, LANES, autoreset_mode="SameStep"))
    model = make_model(sb3.PPO, env, "MlpPolicy").learn(64)
    policy = AgentPolicy(model, env)
    full = wrapped(ExoVectorEnv(GRID, LANES), [["object", "guard"]], "one-hot")
    observation, _ = full.reset(seed=0)
    for _ in range(20):
        expected, _ = model.predict(observation, deterministic=True)
        actions = policy(full.unwrapped.state)
        np.testing.assert_array_equal(actions, expected)
        observation, *_ = full.step(actions)
    assert evaluate(policy, GRID, 20, rng=0).shape == (20,)


def test_a_gated_extractor_weighs_readings_of_x_by_n():
    torch = pytest.importorskip("torch")
    GatedExtractor = adapters().GatedExtractor
    extractor = GatedExtractor(spaces.Box(0, 1, (5,)), endogenous=2, width=7)
    with torch.no_grad():
        extractor.bias.normal_()
    gate, shift, read, bias = (
        getattr(extractor, name).detach().numpy() for name in ("gate", "shift", "read", "bias")
    )
    observations = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    n, x = observations[:, :2], observations[:, 2:]
    expected = np.maximum((x @ read + bias) * (1 + n @ gate) + n @ shift, 0)
    found = extractor(torch.from_numpy(observations)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert extractor.features_dim == 7
    nothing = GatedExtractor(spaces.Box(0, 1, (2,)), endogenous=2, width=3)  # an empty mask
    assert nothing(torch.ones(4, 2)).shape == (4, 3)


@pytest.mark.parametrize(
    ("space", "endogenous"),
    [
        (spaces.Box(0, 1, (5,)), 0),
        (spaces.Box(0, 1, (5,)), 6),
        (spaces.Box(0, 1, (5, 1)), 1),
        (spaces.Dict(x=spaces.Box(0, 1, (5,))), 1),
    ],
)
def test_n_takes_some_columns_of_a_flat_observation(space, endogenous):
    extractor = adapters().GatedExtractor
    with pytest.raises(ValueError, match=f"n cannot take {endogenous} columns"):
        extractor(space, endogenous)


# --- errors -----------------------------------------------------------------------------------


def act(observation):
    return np.zeros(len(observation), dtype=int)


class Doubled(VectorWrapper):
    """Changes observations, and is no VectorObservationWrapper."""

    def __init__(self, env):
        super().__init__(env)
        space = spaces.Dict(endogenous=spaces.MultiDiscrete([26]))
        self.single_observation_space = space
        self.observation_space = gym.vector.utils.batch_space(space, env.num_envs)


def same(observation):
    return observation


OTHERS = {
    "transformed": lambda: TransformObservation(ExoEnv(GRID), same, ExoEnv(GRID).observation_space),
    "under a mask": lambda: MaskedObservation(
        TransformObservation(ExoEnv(GRID), same, ExoEnv(GRID).observation_space), []
    ),
    "vector": lambda: vector_wrappers.TransformObservation(ExoVectorEnv(GRID, 2), same),
    "flattened": lambda: vector_wrappers.FlattenObservation(ExoVectorEnv(GRID, 2)),
    "stacked": lambda: FrameStackObservation(ExoEnv(GRID), 3),
    "of its own": lambda: Doubled(ExoVectorEnv(GRID, 2)),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_wrappers_that_change_observations_are_refused(make):
    env = make()
    with pytest.raises(TypeError, match="changes observations in a way of its own"):
        AgentPolicy(act, env)


def test_other_wrappers_are_none_of_its_business():
    env = vector_wrappers.RecordEpisodeStatistics(wrapped(ExoVectorEnv(GRID, 2), [["guard"]]))
    assert AgentPolicy(act, env).mask == ("guard",)
    env = gym.make("ExoGrid-v0")  # a passive checker, an order enforcer
    assert AgentPolicy(act, env).mask == GRID.exogenous_names


def test_an_environment_has_a_model():
    for env in (gym.make("CartPole-v1"), SyncVectorEnv([lambda: ExoEnv(GRID)] * 2)):
        with pytest.raises(TypeError, match="has no model: wrap ExoEnv"):
            AgentPolicy(act, env)


@pytest.mark.parametrize("agent", [None, 3, "ppo", np.zeros(3)])
def test_an_agent_predicts_or_can_be_called(agent):
    with pytest.raises(TypeError, match="an agent has a method predict or is a function, not"):
        AgentPolicy(agent, ExoEnv(GRID))


def test_observations_of_another_model_are_refused():
    policy = AgentPolicy(act, wrapped(ExoVectorEnv(GRID, 2), [["guard"]]))
    with pytest.raises(ValueError, match=r"has 3 variables; it should have the 1 .* or all 5"):
        policy({"endogenous": [[0]], "exogenous": [[0, 0, 0]]})
    with pytest.raises(ValueError, match="should be 1"):
        policy({"endogenous": [[0, 0]], "exogenous": [[0]]})
