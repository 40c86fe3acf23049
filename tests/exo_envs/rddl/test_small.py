"""What becomes of a description, on small ones whose answer is known."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from rddl_simulator import Simulator, disagreements
from rddl_texts import REWARD, small, with_fluent

from exo_envs import ExoEnv, ExoVectorEnv, from_rddl
from exo_envs.core.ends import CarriedEnd
from exo_envs.core.mdp import State, Variable
from exo_envs.sources.rddl.loading import NoExogenousFluentsWarning
from exo_envs.testing import check_mdp

AT_GOAL = "(exists_{?c : cell} [GOAL(?c) ^ at(?c)])"


def agree(texts, mdp, **arguments):
    arguments = {"states": 6, "samples": 300, **arguments}
    assert disagreements(mdp, Simulator(*texts), **arguments) == []


def test_partition_scopes_and_merging():
    mdp = from_rddl(*small())
    assert mdp.endogenous_variables == (Variable("at", 3),)
    assert mdp.value_names == {
        "at": ("at___c1", "at___c2", "at___c3"),
        "weather": ("calm", "windy", "stormy"),
    }
    assert mdp.exogenous_variables == (Variable("weather", 3),)
    assert mdp.reward_scopes == (("weather",),)
    assert mdp.parents == {"weather": ("weather",)}
    assert mdp.connected_mask == ("weather",)
    assert mdp.action_names == ("noop", "move")
    assert (mdp.horizon, mdp.discount, mdp.num_actions) == (8, 0.9, 2)
    assert mdp.notes == ()


def test_rewards_are_exact():
    mdp = from_rddl(*small())
    state = State(np.array([[2], [2], [0]]), np.array([[0], [2], [2]]))
    action = np.array([0, 1, 0])
    assert mdp.reward(state, action) == pytest.approx([1.0, 0.4, -0.5])
    assert mdp.reward_terms(state, action)[:, 0] == pytest.approx([0, -0.5, -0.5])
    assert mdp.endogenous_reward(state.endogenous, action) == pytest.approx([1.0, 0.9, 0.0])


@pytest.mark.parametrize("merge", [True, False])
def test_it_keeps_the_contract_and_steps_as_pyrddlgym_does(merge):
    texts = small()
    mdp = from_rddl(*texts, merge=merge)
    assert len(mdp.endogenous_variables) == (1 if merge else 3)
    check_mdp(mdp)
    agree(texts, mdp)


def test_at_most_one_gets_a_value_for_none():
    expression = "if (weather == @windy) then false else (lit(?c) | (at(?c) ^ move))"
    fluents = "lit(cell) : { state-fluent, bool, default = false };"
    texts = small(fluents=fluents, cpfs=f"lit'(?c) = {expression};")
    assert "lit" not in from_rddl(*texts).value_names  # two cells may be lit
    expression = "move ^ at(?c) ^ (weather == @windy)"
    texts = small(fluents=fluents, cpfs=f"lit'(?c) = {expression};")
    mdp = from_rddl(*texts)
    assert mdp.value_names["lit"][0] == "none"
    agree(texts, mdp)


def test_fluents_that_never_change_are_constants():
    texts = with_fluent("bool", "extra", default="true", reward="extra + (weather == @calm)")
    mdp = from_rddl(*texts)
    assert mdp.constants == ("extra",)
    assert "extra" not in mdp.exogenous_names
    assert (
        mdp.fluents(mdp.sample_initial(2, np.random.default_rng(0)))["extra"].tolist() == [True] * 2
    )
    agree(texts, mdp)


def test_whole_numbers_have_the_range_that_can_be_reached():
    texts = with_fluent("int", "if (extra == -2) then 3 else (extra - 1)", default="1")
    mdp = from_rddl(*texts)
    assert Variable("extra", 6) in mdp.exogenous_variables  # -2 ... 3
    assert mdp.notes == ()  # no step leaves that range
    check_mdp(mdp)
    agree(texts, mdp)


def test_a_counter_ends_with_the_horizon():
    mdp = from_rddl(*with_fluent("int", "extra + 1"))
    assert Variable("extra", 9) in mdp.exogenous_variables
    assert "extra" in mdp.notes[0]


@pytest.mark.parametrize(
    ("bounds", "invariant", "expected"),
    [
        ({"extra": (-3, 4)}, "", (-3, 4)),
        ({}, "state-invariants { extra >= -2; extra <= 5; };", (-2, 5)),
    ],
)
def test_bounds_are_given_or_stated(bounds, invariant, expected):
    texts = with_fluent("int", "extra + (if (Bernoulli(0.5)) then 3 else -3)", blocks=invariant)
    mdp = from_rddl(*texts, bounds=bounds)
    low, high = expected
    assert Variable("extra", high - low + 1) in mdp.exogenous_variables
    rng = np.random.default_rng(0)
    state = mdp.sample_initial(500, rng)
    for _ in range(8):
        state = mdp.sample_next(state, np.zeros(500, dtype=int), rng)
        assert mdp.fluents(state)["extra"].min() >= low
        assert mdp.fluents(state)["extra"].max() <= high


def test_real_fluents_are_real_variables():
    texts = with_fluent("real", "0.5 * extra + Normal(0.0, 2.0)", default="1.0")
    mdp = from_rddl(*texts)
    assert Variable("extra", low=-np.inf, high=np.inf) in mdp.exogenous_variables
    assert mdp.dtype_of("exogenous") == np.float64
    check_mdp(mdp)
    agree(texts, mdp)


def test_terms_are_split_by_what_they_look_at():
    fluents = "".join(f"{n} : {{ state-fluent, bool, default = false }};" for n in "pqr")
    cpfs = "".join(f"{n}' = Bernoulli(0.5);" for n in "pqr")
    reward = f"2 * (move * p + {AT_GOAL} * q) - (p ^ q) + (if (move) then r else p) + 3"
    texts = small(fluents=fluents, cpfs=cpfs, reward=reward)
    mdp = from_rddl(*texts)
    assert set(mdp.reward_scopes) == {("p",), ("q",), ("p", "q"), ("r",)}
    assert mdp.connected_mask == ("weather", "p", "q", "r")
    check_mdp(mdp)
    agree(texts, mdp)


def test_a_reward_on_what_is_drawn_is_its_mean():
    texts = with_fluent("bool", "Bernoulli(0.25)", default="false", reward="extra' * 4 + 2 * move")
    mdp = from_rddl(*texts)
    state = mdp.sample_initial(2, np.random.default_rng(0))
    assert mdp.reward(state, np.array([0, 1])) == pytest.approx([1.0, 3.0])
    assert any("mean" in note for note in mdp.notes)
    agree(texts, mdp)


@pytest.mark.parametrize(
    "reward",
    [
        "max[drawn, 1]",
        "drawn * drawn",
        "(if (extra') then 2 else drawn)",
        "~extra' ^ (drawn >= 1)",
        "(extra' | (weather' == @windy)) * 3",
        "sum_{?c : cell} [at'(?c) * GOAL(?c)]",
        "Normal(2.0 * move, 1.0) + Uniform(0.0, 2.0) * extra'",
    ],
)
def test_means_of_rewards_are_those_of_pyrddlgym(reward):
    fluents = """extra : { state-fluent, bool, default = false };
        drawn : { interm-fluent, int };"""
    cpfs = "extra' = Bernoulli(0.25); drawn = 2 * Bernoulli(0.3) + move;"
    texts = small(fluents=fluents, cpfs=cpfs, reward=reward)
    agree(texts, from_rddl(*texts), samples=1000, states=4)


def test_what_looks_at_the_next_x_is_stored_as_it_is_before():
    fluents = """demand : { state-fluent, int, default = 1 };
        stock : { state-fluent, int, default = 3 };"""
    cpfs = """demand' = 1 + Bernoulli(0.4);
        stock' = max[min[stock + 2 * move - demand', 5], -4];"""
    texts = small(fluents=fluents, cpfs=cpfs, reward="min[stock, 2] - 0.1 * move + demand'")
    mdp = from_rddl(*texts)
    assert mdp.exogenous_names == ("weather", "demand")
    assert "stock_before" in [v.name for v in mdp.endogenous_variables]
    rng = np.random.default_rng(0)
    assert mdp.fluents(mdp.sample_initial(1, rng))["stock"].tolist() == [3]
    assert mdp.connected_mask == ("weather", "demand")
    check_mdp(mdp)
    agree(texts, mdp)


@pytest.mark.parametrize(
    ("condition", "carried"), [(AT_GOAL, False), (f"{AT_GOAL} ^ (weather == @windy)", True)]
)
def test_ends_of_episodes(condition, carried):
    texts = small(blocks=f"termination {{ {condition}; }};")
    mdp = from_rddl(*texts)
    assert isinstance(mdp, CarriedEnd) == carried
    check_mdp(mdp)
    rng = np.random.default_rng(0)
    if not carried:
        agree(texts, mdp)
        return
    assert (mdp.endogenous_variables[-1].name, mdp.looks_at) == ("done", ("weather",))
    assert mdp.notes[-1].startswith(
        "the end of an episode depends on exogenous variables (weather)"
    )
    assert mdp.connected_mask == ("weather",)
    here = State(np.array([[2, 0]]), np.array([[1]]))
    assert not mdp.is_terminal(here)[0]
    assert mdp.reward(here, np.array([1])).tolist() == [0.0]
    assert mdp.is_terminal(mdp.sample_next(here, np.array([0]), rng))[0]
    assert mdp.fluents(here) == mdp.model.fluents(State(here.endogenous[:, :-1], here.exogenous))
    copied = pickle.loads(pickle.dumps(mdp))
    assert (copied.endogenous_variables, copied.notes) == (mdp.endogenous_variables, mdp.notes)
    state = mdp.sample_initial(50, rng)
    action = rng.integers(mdp.num_actions, size=50)
    ours, theirs = (
        model.transition(state, action, np.random.default_rng(1)) for model in (mdp, copied)
    )
    assert np.array_equal(ours.state.endogenous, theirs.state.endogenous)
    assert np.array_equal(ours.reward, theirs.reward)


def test_preconditions_of_states():
    blocks = "action-preconditions { move => (weather ~= @windy); };"
    texts = small(blocks=blocks)
    enforced, ignored = from_rddl(*texts), from_rddl(*texts, preconditions="ignore")
    state, action = State(np.array([[0]]), np.array([[1]])), np.array([1])
    rng = np.random.default_rng(0)
    assert enforced.sample_endogenous(state, action, rng).tolist() == [[0]]
    assert ignored.sample_endogenous(state, action, rng).tolist() == [[1]]
    assert enforced.reward(state, action).tolist() == [0.0]
    check_mdp(enforced)
    agree(texts, ignored)


def test_a_domain_without_exogenous_fluents_says_so():
    domain, instance = small()
    domain = domain.replace("default : @calm", "default : if (move) then @calm else @windy")
    with pytest.warns(NoExogenousFluentsWarning, match="no exogenous variable"):
        mdp = from_rddl(domain, instance)
    assert mdp.exogenous_variables == ()
    assert mdp.sample_exogenous(np.zeros((4, 0), dtype=int), np.random.default_rng(0)).shape == (
        4,
        0,
    )
    check_mdp(mdp)


def test_shells_and_files(tmp_path):
    paths = [tmp_path / "domain.rddl", tmp_path / "instance.rddl"]
    for path, text in zip(paths, small(), strict=True):
        path.write_text(text, encoding="utf-8")
    mdp = from_rddl(*paths)
    assert from_rddl(*map(str, paths)).action_names == mdp.action_names
    env = ExoEnv(mdp)
    assert isinstance(env, gym.Env)
    env.reset(seed=0)
    steps = [env.step(t % 2) for t in range(8)]
    assert steps[-1][3]
    vector_env = ExoVectorEnv(mdp, 32)
    vector_env.reset(seed=0)
    assert vector_env.step(vector_env.action_space.sample())[1].shape == (32,)


def test_models_travel_and_draw_the_same():
    mdp = from_rddl(*with_fluent("real", "0.5 * extra + Normal(0.0, 2.0)", reward=REWARD))
    other = pickle.loads(pickle.dumps(mdp))
    states = []
    for model in (mdp, other):
        rng = np.random.default_rng(0)
        state = model.sample_initial(50, rng)
        states.append(model.sample_next(state, np.ones(50, dtype=int), rng))
    np.testing.assert_array_equal(states[0].exogenous, states[1].exogenous)
    np.testing.assert_array_equal(states[0].endogenous, states[1].endogenous)
