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


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- the network ------------------------------------------------------------------------------


@given(
    rows=st.integers(1, 9),
    width=st.integers(1, 5),
    batch=st.integers(0, 7),
    variables=st.integers(0, 4),
    num_threads=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_a_lookup_is_a_product_with_a_one_hot_matrix(
    rows, width, batch, variables, num_threads, seed
):
    torch.set_num_threads(num_threads)
    torch.manual_seed(seed)
    index = torch.randint(rows, (batch, variables), dtype=torch.int32)
    one_hot = torch.zeros(batch, rows)
    for b, v in np.ndindex(batch, variables):
        one_hot[b, index[b, v]] += 1
    one_hot[:, 0] = 0  # row 0 stands for nothing
    table = torch.randn(rows, width, requires_grad=True)
    bias = torch.randn(width, requires_grad=True)
    gradient = torch.randn(width, batch).t()  # not contiguous
    found, expected = one_file.Lookup.apply(table, bias, index), one_hot @ table + bias
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    found = torch.autograd.grad(found, (table, bias), gradient)
    expected = torch.autograd.grad(expected, (table, bias), gradient)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_every_value_has_a_row_of_its_own_but_the_first_ones_of_x():
    sizes = {"endogenous": [3, 1, 2], "exogenous": [2, 4]}
    space = spaces.Dict({part: spaces.MultiDiscrete(nvec) for part, nvec in sizes.items()})
    indices = one_file.Indices(space)
    assert indices.rows == [1 + 3 + 1 + 2, 1 + 1 + 3]
    n, x = indices({"endogenous": np.array([[2, 0, 1]]), "exogenous": np.array([[1, 3]])})
    assert (n.tolist(), x.tolist()) == ([[3, 4, 6]], [[1, 4]])
    assert n.dtype == x.dtype == torch.int32
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


def test_without_exogenous_variables_only_n_is_looked_up():
    indices = one_file.Indices(spaces.Dict(endogenous=spaces.MultiDiscrete([3])))
    n, x = indices({"endogenous": np.array([[1], [2]])})
    assert (n.tolist(), x.shape, indices.rows) == ([[2], [3]], (2, 0), [4, 1])
    agent = one_file.Agent(indices, num_actions=4, width=3)
    log_probabilities, values = agent(n, x)
    assert values.shape == (2,)
    torch.testing.assert_close(log_probabilities.exp().sum(dim=1), torch.ones(2))


# --- PPO --------------------------------------------------------------------------------------


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
        with torch.no_grad():
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
    optimizer = torch.optim.Adam(agent.parameters())
    one_file.update(agent, optimizer, rollout, rollout.advantages(0.9, 0.8), 0.0, settings)
    assert all(part.isfinite().all() for part in agent.parameters())


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
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.01)
    advantages = rollout.advantages(0.9, 0.8)
    losses = one_file.update(agent, optimizer, rollout, advantages, 0.1, settings, in_parts)
    return torch.cat([part.detach().flatten() for part in agent.parameters()]), losses


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


def test_torch_is_left_as_it_was():
    torch.set_num_threads(2)
    precision = torch.get_float32_matmul_precision()
    with one_file.side_by_side(2) as in_parts:
        assert torch.get_num_threads() == 1
        assert {*in_parts(lambda _: torch.get_num_threads(), "ab")} == {1}
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (2, precision)


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
    env = ExoVectorEnv(CounterMDP(), 64)
    one_file.stagger(env, CounterMDP.horizon, seed=0)
    *_, infos = env.step(np.zeros(64, dtype=int))
    assert infos["_reward_terms"].all()  # lanes that were only reset have none
