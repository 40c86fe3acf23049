"""The parts of the one-file PPO: its network, its rollouts, its update."""

import math

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from models import CoinMDP, CounterMDP

from exo_envs import ExoVectorEnv

pytest.importorskip("stable_baselines3")
pytest.importorskip("tensorboard")

import torch

import train_cleanrl_style as one_file
from training.lookups import look_up, look_up_back


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- the network ------------------------------------------------------------------------------


def one_hot(index, rows):
    """Of rows that are looked up; row 0 stands for nothing."""
    found = torch.zeros(len(index), rows)
    for b, v in np.ndindex(*index.shape):
        found[b, index[b, v].item()] += 1
    found[:, 0] = 0
    return found


def features_of(weights, n, x):
    """What looking rows up replaces: products with one-hot inputs."""
    read, read_bias, gate, gate_bias, shift, shift_bias = weights
    of_n, of_x = one_hot(n, len(gate)), one_hot(x, len(read))
    return (
        of_n @ shift + shift_bias + (of_x @ read + read_bias) * (of_n @ gate + gate_bias)
    ).relu()


@given(
    rows=st.tuples(st.integers(2, 5), st.integers(1, 9)),
    variables=st.tuples(st.integers(1, 3), st.integers(0, 6)),
    width=st.integers(1, 40),
    samples=st.integers(0, 7),
    seed=st.integers(0, 1000),
)
def test_looking_up_is_a_product_with_one_hot_matrices(rows, variables, width, samples, seed):
    torch.manual_seed(seed)
    n = torch.randint(1, rows[0], (9, variables[0]), dtype=torch.int16)
    x = torch.randint(rows[1], (9, variables[1]), dtype=torch.int16)
    chosen = torch.randperm(9)[:samples]
    shapes = [(rows[1], width), (width,), *[(rows[0], width), (width,)] * 2]
    weights = [torch.randn(shape, requires_grad=True) for shape in shapes]
    expected = features_of(weights, n[chosen], x[chosen])
    plain = [weight.detach() for weight in weights]
    found = look_up(plain, n, x, chosen)
    assert found.features.dtype == torch.float32
    torch.testing.assert_close(found.features, expected.detach(), rtol=1e-4, atol=1e-4)
    gradient = torch.randn(samples, width)
    d_weights = [torch.full(shape, torch.nan) for shape in shapes]
    look_up_back(found, gradient, plain, d_weights)
    of_torch = torch.autograd.grad(expected, weights, gradient)
    torch.testing.assert_close(tuple(d_weights), of_torch, rtol=1e-3, atol=1e-3)


def test_every_value_has_a_row_of_its_own_but_the_first_ones_of_x():
    sizes = {"endogenous": [3, 1, 2], "exogenous": [2, 4]}
    space = spaces.Dict({part: spaces.MultiDiscrete(nvec) for part, nvec in sizes.items()})
    indices = one_file.Indices(space)
    assert indices.rows == [1 + 3 + 1 + 2, 1 + 1 + 3]
    n, x = indices({"endogenous": np.array([[2, 0, 1]]), "exogenous": np.array([[1, 3]])})
    assert (n.tolist(), x.tolist()) == ([[3, 4, 6]], [[1, 4]])
    assert n.dtype == x.dtype == torch.int16
    for part, nvec in enumerate(sizes.values()):
        seen = set()
        for variable, size in enumerate(nvec):
            values = np.zeros((size, len(nvec)), dtype=np.int64)
            values[:, variable] = range(size)
            parts = {key: np.zeros((size, len(other)), int) for key, other in sizes.items()}
            found = indices({**parts, list(sizes)[part]: values})[part][:, variable].tolist()
            if part == 1:
                assert found.pop(0) == 0
            assert not seen & {*found}
            seen |= {*found}
        assert seen == {*range(1, indices.rows[part])}


def test_many_rows_have_wider_numbers():
    space = spaces.Dict(
        endogenous=spaces.MultiDiscrete([2]), exogenous=spaces.MultiDiscrete([30000, 30000])
    )
    indices = one_file.Indices(space)
    observation = {"endogenous": np.array([[1]]), "exogenous": np.array([[29999, 29999]])}
    n, x = indices(observation)
    assert n.dtype == x.dtype == torch.int32
    assert (n.tolist(), x.tolist()) == ([[2]], [[29999, 59998]])


@pytest.mark.parametrize("part", ["endogenous", "exogenous"])
@pytest.mark.parametrize("value", [-1, 3])
def test_kernels_never_meet_values_that_have_no_row(part, value):
    space = spaces.Dict(
        {name: spaces.MultiDiscrete([4, 3]) for name in ("endogenous", "exogenous")}
    )
    indices = one_file.Indices(space)
    observation = {name: np.zeros((2, 2), dtype=np.int64) for name in space}
    indices(observation)
    observation[part][1, 1] = value
    with pytest.raises(ValueError, match="not in its space"):
        indices(observation)


def test_without_exogenous_variables_only_n_is_looked_up():
    indices = one_file.Indices(spaces.Dict(endogenous=spaces.MultiDiscrete([3])))
    n, x = indices({"endogenous": np.array([[1], [2]])})
    assert (n.tolist(), x.shape, indices.rows) == ([[2], [3]], (2, 0), [4, 1])
    agent = one_file.Agent(indices, num_actions=4, width=3)
    log_probabilities, values = agent(n, x)
    assert values.shape == (2,)
    torch.testing.assert_close(log_probabilities.exp().sum(dim=1), torch.ones(2))


def an_agent(sizes=((3, 2), (4, 2, 3)), num_actions=3, width=5):
    parts = (spaces.MultiDiscrete(nvec) for nvec in sizes)
    space = spaces.Dict(dict(zip(("endogenous", "exogenous"), parts, strict=True)))
    indices = one_file.Indices(space)
    agent = one_file.Agent(indices, num_actions, width)
    return agent, indices({name: samples(space[name], 50) for name in space})


def samples(space, number):
    rng = np.random.default_rng(0)
    return rng.integers(space.nvec, size=(number, len(space.nvec)))


def test_weights_have_names_and_are_one_vector():
    agent, (n, x) = an_agent()
    heads = [
        f"{head}.{k}.{part}"
        for head in ("actor", "critic")
        for k in (0, 2)
        for part in ("weight", "bias")
    ]
    rows = [f"{layer}.{part}" for layer in ("read", "gate", "shift") for part in ("table", "bias")]
    assert [*agent.state_dict()] == rows + heads
    other, _ = an_agent()
    assert not torch.equal(agent.vector, other.vector)
    other.load_state_dict(agent.state_dict())
    assert torch.equal(agent.vector, other.vector)
    agent.vector.zero_()
    log_probabilities, values = agent(n, x)
    torch.testing.assert_close(log_probabilities.exp(), torch.full((50, 3), 1 / 3))
    assert not values.any()
    assert other(n, x)[1].any()


@pytest.mark.parametrize("clip", [0.05, 0.2, 10.0])
def test_gradients_are_those_that_torch_finds(clip):
    """Of the losses of PPO as one would write them, with one-hot inputs."""
    torch.manual_seed(0)
    agent, (n, x) = an_agent()
    agent.vector += 0.3 * torch.randn(len(agent.vector))
    chosen, size, weight = torch.randperm(50)[:40], 60, 0.3
    actions, before = torch.randint(3, (50,)), -torch.rand(50) - 0.5
    advantage, targets = torch.randn(40), torch.randn(50)
    *outputs, trace = agent.judge(n, x, chosen)
    steps = tuple(part.numpy() for part in (actions, before, targets))
    given = [part.numpy() for part in outputs], chosen.numpy(), advantage.numpy(), steps
    losses = one_file.differentiate_losses(tuple(given[0]), *given[1:], size, clip, weight)
    gradient = torch.full((len(agent.vector),), torch.nan)
    agent.backward(trace, outputs, agent.split(gradient))

    vector = agent.vector.clone().requires_grad_()
    first, actor, critic = agent.split(vector)
    features = features_of(first, n[chosen], x[chosen]).chunk(2, dim=1)
    logits, values = (
        (inputs @ w.t() + b).relu() @ v.t() + c
        for inputs, (w, b, v, c) in zip(features, (actor, critic), strict=True)
    )
    log_probabilities = logits.log_softmax(dim=1)
    taken = log_probabilities.gather(1, actions[chosen].unsqueeze(1)).squeeze(1)
    ratio = (taken - before[chosen]).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    policy_loss = -torch.min(ratio * advantage, clipped * advantage).sum() / size
    value_loss = 0.5 * (values.squeeze(1) - targets[chosen]).square().sum() / size
    entropy = -(log_probabilities.exp() * log_probabilities).sum() / size
    (expected,) = torch.autograd.grad(policy_loss + 0.5 * value_loss - weight * entropy, vector)
    assert losses.tolist() == pytest.approx(
        [policy_loss.item(), value_loss.item(), entropy.item()], rel=1e-4
    )
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-5)
    outside = (ratio - 1).abs() > clip
    assert 0 < outside.sum() < 40 or clip == 10.0


# --- PPO --------------------------------------------------------------------------------------


def test_actions_are_sampled_as_often_as_their_probabilities_say():
    lanes, probabilities = 40_000, torch.tensor([0.5, 0.3, 0.0, 0.2])
    logits = (probabilities.log() + 7).repeat(lanes, 1)
    logits[:, 2] = -1e4  # of which the exponential is 0
    torch.manual_seed(0)
    noise = torch.empty(lanes, 4).exponential_()
    actions, found = torch.full((lanes,), -1), torch.zeros(lanes)
    one_file.choose(logits.numpy(), noise.numpy(), actions.numpy(), found.numpy())
    often = torch.bincount(actions, minlength=4) / lanes
    torch.testing.assert_close(often, probabilities, rtol=0, atol=4 * 0.5 / math.sqrt(lanes))
    assert often[2] == 0
    torch.testing.assert_close(found.exp(), probabilities[actions])


def one_rollout(steps, lanes, sizes=((2,), (2,))):
    parts = (spaces.MultiDiscrete(nvec) for nvec in sizes)
    space = spaces.Dict(dict(zip(("endogenous", "exogenous"), parts, strict=True)))
    settings = one_file.Settings(lanes=lanes, rollout=steps)
    return one_file.Rollout(settings, one_file.Indices(space))


def advantages_of_a_lane(rewards, values, terminated, truncated, discount, trace):
    """Lane by lane, episode by episode; nan where a lane was only reset."""
    found, t = np.full(len(rewards), np.nan), 0
    while t < len(rewards):
        ends = [u for u in range(t, len(rewards)) if terminated[u] or truncated[u]]
        last = ends[0] if ends else len(rewards) - 1
        latest = 0.0
        for u in range(last, t - 1, -1):
            following = 0.0 if terminated[u] else values[u + 1]
            latest = rewards[u] + discount * following - values[u] + discount * trace * latest
            found[u] = latest
        t = last + 2  # the step after the last one resets the lane
    return found


@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_advantages_are_those_of_a_plain_loop(trace):
    steps, lanes = 40, 30
    rng = np.random.default_rng(0)
    rollout = one_rollout(steps, lanes)
    terminated, truncated = np.zeros((2, steps, lanes), dtype=bool)
    for t in range(steps):
        playing = ~(terminated | truncated)[t - 1] if t else np.ones(lanes, dtype=bool)
        terminated[t] = playing & (rng.random(lanes) < 0.1)
        truncated[t] = playing & (rng.random(lanes) < 0.1)  # sometimes both
    rollout.rewards[:] = torch.from_numpy(rng.normal(size=(steps, lanes)))
    rollout.values[:] = torch.from_numpy(rng.normal(size=(steps + 1, lanes)))
    rollout.terminated[:] = torch.from_numpy(terminated)
    rollout.ended[1:] = torch.from_numpy(terminated | truncated)
    found = rollout.advantages(0.9, trace).numpy()
    of_lanes = (rollout.rewards.T, rollout.values.T, terminated.T, truncated.T)
    expected = np.transpose(
        [advantages_of_a_lane(*lane, 0.9, trace) for lane in zip(*of_lanes, strict=True)]
    )
    played = rollout.ended[:-1].numpy() == 0
    np.testing.assert_array_equal(np.isfinite(expected), played)
    np.testing.assert_allclose(found[played], expected[played], rtol=1e-4, atol=1e-5)
    assert {*zip(terminated.ravel(), truncated.ravel(), strict=True)} >= {(1, 0), (0, 1), (1, 1)}


def test_what_is_collected_is_what_happened():
    mdp, lanes, steps = CounterMDP(), 5, 30
    env = ExoVectorEnv(mdp, lanes)
    indices = one_file.Indices(env.single_observation_space)
    rollout = one_rollout(steps, lanes, (mdp.endogenous_sizes, mdp.exogenous_sizes))
    agent = one_file.Agent(indices, mdp.num_actions, width=4)
    rollout.n[-1], rollout.x[-1] = indices(env.reset(seed=0)[0])
    torch.manual_seed(0)
    one_file.collect(env, agent, indices, rollout, scale=0.5)
    again = ExoVectorEnv(mdp, lanes)
    observation, _ = again.reset(seed=0)
    ended = np.zeros(lanes, dtype=bool)
    for t in range(steps):
        for found, rows in zip((rollout.n[t], rollout.x[t]), indices(observation), strict=True):
            assert torch.equal(found, rows)
        assert rollout.ended[t].tolist() == ended.tolist()
        actions = rollout.actions[t].numpy()
        log_probabilities, values = agent(rollout.n[t], rollout.x[t])
        torch.testing.assert_close(values, rollout.values[t])
        taken = log_probabilities[torch.arange(lanes), rollout.actions[t]]
        torch.testing.assert_close(taken, rollout.log_probabilities[t])
        observation, rewards, terminated, truncated, _ = again.step(actions)
        np.testing.assert_allclose(rollout.rewards[t].numpy(), 0.5 * rewards)
        assert rollout.terminated[t].tolist() == terminated.tolist()
        ended = terminated | truncated
    assert rollout.terminated.any()
    last = rollout.n[-1].clone(), rollout.ended[-1].clone()
    one_file.collect(env, agent, indices, rollout, scale=0.5)
    assert all(map(torch.equal, last, (rollout.n[0], rollout.ended[0])))


def test_a_minibatch_of_a_single_step_does_no_harm():
    rollout = one_rollout(steps=3, lanes=1)
    rollout.rewards[:] = torch.tensor([[1.0], [2.0], [3.0]])
    indices = one_file.Indices(spaces.Dict(endogenous=spaces.MultiDiscrete([2])))
    agent = one_file.Agent(indices, num_actions=2, width=4)
    settings = one_file.Settings(lanes=1, rollout=3, minibatches=2)
    optimizer = torch.optim.Adam([agent.vector])
    one_file.update(agent, optimizer, rollout, rollout.advantages(0.9, 0.8), 0.0, settings)
    assert agent.vector.isfinite().all()


def trained(in_parts, lanes=30, steps=20):
    """An agent after one update, and its losses."""
    mdp = CounterMDP()
    env = ExoVectorEnv(mdp, lanes)
    indices = one_file.Indices(env.single_observation_space)
    settings = one_file.Settings(lanes=lanes, rollout=steps, epochs=2, minibatches=3)
    torch.manual_seed(0)
    agent = one_file.Agent(indices, mdp.num_actions, width=8)
    rollout = one_file.Rollout(settings, indices)
    rollout.n[-1], rollout.x[-1] = indices(env.reset(seed=0)[0])
    one_file.collect(env, agent, indices, rollout, 1.0, in_parts)
    optimizer = torch.optim.Adam([agent.vector], lr=0.01)
    advantages = rollout.advantages(0.9, 0.8)
    losses = one_file.update(agent, optimizer, rollout, advantages, 0.1, settings, in_parts)
    return agent.vector, losses


def test_nothing_depends_on_the_number_of_threads():
    results = []
    for num_threads in (1, 2, 3):
        with one_file.side_by_side(num_threads) as in_parts:
            results.append(trained(in_parts))
    for weights, losses in results[1:]:
        assert torch.equal(weights, results[0][0])
        assert losses == results[0][1]


def test_parts_of_a_minibatch_add_up_to_it(monkeypatch):
    found, losses = trained(map)
    monkeypatch.setattr(one_file, "PARTS", 1)
    expected, of_whole = trained(map)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert losses == pytest.approx(of_whole, abs=1e-4)


class Endless(CoinMDP):
    horizon = 12


@pytest.mark.parametrize("lanes", [5, 12, 30])
def test_staggered_episodes_end_at_different_times(lanes):
    env = ExoVectorEnv(Endless(), lanes)
    observation = one_file.stagger(env, Endless.horizon, seed=0)
    np.testing.assert_array_equal(observation["endogenous"], env.state.endogenous)
    ends = np.zeros(Endless.horizon, dtype=int)
    for t in range(Endless.horizon):
        *_, truncated, _ = env.step(np.zeros(lanes, dtype=int))
        ends[t] = truncated.sum()
    assert ends.sum() == lanes
    assert ends.max() == math.ceil(lanes / Endless.horizon)


def test_no_staggered_lane_has_ended():
    env = ExoVectorEnv(CounterMDP(), 64, reward_terms=True)
    one_file.stagger(env, CounterMDP.horizon, seed=0)
    *_, infos = env.step(np.zeros(64, dtype=int))
    assert infos["_reward_terms"].all()  # lanes that were only reset have none
