"""Every model, asked directly about odd states: a result in range, or one clear error.

Nothing else will do: an index out of range would kill the process, or silently read something else.
"""

import math

import gymnasium as gym
import numpy as np
import pytest
from factored import random_mdp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from workshop import Workshop

from exo_envs import AdaptedMDP, State
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.batches import as_size
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP
from planners import ReducedMDP


def reduced(mdp, mask):
    return ReducedMDP.estimate(mdp, mask, rng=0, num_rollouts=10)


MODELS = {
    "grid": GridMDP,
    "factory": FactoryMDP,
    "crowd": CrowdMDP,
    "synthetic": SyntheticMDP,
    "adapted": lambda: AdaptedMDP(gym.make("ExoGrid-v0"), horizon=10),
    "counted": lambda: CountedMDP(GridMDP()),
    "tables": lambda: random_mdp(
        np.random.default_rng(0), sizes=(2, 3, 4), endogenous=(4, 2), num_terminal=2
    ),
    "tabulated": lambda: reduced(GridMDP(), ["object", "guard"]),
    "tabulated, blind": lambda: reduced(GridMDP(), []),
    "simulated": lambda: reduced(Workshop(), ["demand", "belt"]),
}
METHODS = {
    "sample_exogenous": lambda mdp, s, a, rng: mdp.sample_exogenous(s.exogenous, rng),
    "sample_endogenous": lambda mdp, s, a, rng: mdp.sample_endogenous(s, a, rng),
    "reward_terms": lambda mdp, s, a, rng: mdp.reward_terms(s, a),
    "endogenous_reward": lambda mdp, s, a, rng: mdp.endogenous_reward(s.endogenous, a),
    "is_terminal": lambda mdp, s, a, rng: mdp.is_terminal(s),
    "endogenous_distribution": lambda mdp, s, a, rng: mdp.endogenous_distribution(s, a),
    "sample_next": lambda mdp, s, a, rng: mdp.sample_next(s, a, rng),
    "reward": lambda mdp, s, a, rng: mdp.reward(s, a),
    "transition": lambda mdp, s, a, rng: mdp.transition(s, a, rng),
}


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


#: What part of a batch of states or actions becomes, by the name of the oddness.
ODD = {
    "as they are": lambda v: v,
    "negative": lambda v: -1 - v,
    "too large": lambda v: v + 10**6,
    "the smallest": lambda v: np.full_like(v, -(2**63)),
    "the largest": lambda v: np.full_like(v, 2**63 - 1),
    "twice as wide": lambda v: np.concatenate([v, v], axis=-1),
    "narrower": lambda v: v[..., :-1],
    "a dimension less": lambda v: v[0] if len(v) else v,
    "a dimension more": lambda v: v[None],
    "no dimension": lambda v: np.array(1),
    "empty": lambda v: v[:0],
    "fewer": lambda v: v[1:],
    "floats": lambda v: v.astype(float),
    "fractions": lambda v: v + 0.5,
    "NaN": lambda v: np.full(v.shape, np.nan),
    "infinite": lambda v: np.full(v.shape, np.inf),
    "huge floats": lambda v: np.full(v.shape, 1e300),
    "booleans": lambda v: v.astype(bool),
    "objects": lambda v: v.astype(object),
    "words": lambda v: v.astype(str),
    "complex": lambda v: v.astype(complex),
    "uint8": lambda v: v.astype(np.uint8),
    "int8": lambda v: v.astype(np.int8),
    "uint64": lambda v: v.astype(np.uint64),
    "the largest uint64": lambda v: np.full(v.shape, 2**64 - 1, dtype=np.uint64),
    "other byte order": lambda v: v.astype(">i8"),
    "columns first": lambda v: np.asfortranarray(v)[::-1],
    "in columns": np.asfortranarray,
    "read-only": read_only,
    "a list": lambda v: v.tolist(),
}
#: Of which there is only one right answer: the one for the same values as they are.
HARMLESS = (
    *("floats", "uint8", "int8", "uint64", "other byte order"),
    *("in columns", "read-only"),
)


@pytest.fixture(scope="module", params=MODELS)
def mdp(request):
    return MODELS[request.param]()


def batch(mdp, lanes, rng):
    state = mdp.sample_uniform(lanes, rng)
    return state, rng.integers(mdp.num_actions, size=lanes)


def in_range(values, sizes):
    return values.shape[-1] == len(sizes) and ((values >= 0) & (values < sizes)).all()


def check_result(mdp, method, found):
    """Whatever a method makes of odd states is in range, and finite."""
    n_sizes, x_sizes = mdp.endogenous_sizes, mdp.exogenous_sizes
    if method == "transition":
        assert np.isfinite(found.reward).all()
    if method in ("sample_next", "transition"):
        endogenous, exogenous = found if method == "sample_next" else found.state
        assert in_range(endogenous, n_sizes)
        assert in_range(exogenous, x_sizes)
    elif method == "sample_endogenous":
        assert in_range(found, n_sizes)
    elif method == "sample_exogenous":
        assert in_range(found, x_sizes)
    elif method == "endogenous_distribution":
        assert found is None or in_range(found.endogenous, n_sizes)
    else:
        assert np.isfinite(found).all()


def ask(mdp, method, state, action):
    """A result, or None if the question was refused by an error that says what is wrong."""
    try:
        found = METHODS[method](mdp, state, action, np.random.default_rng(0))
    except (ValueError, TypeError) as error:
        message = str(error)
        words = ("part of the state", "variable", "action", "different batches", "returned the")
        assert any(word in message for word in words), message
        return None
    check_result(mdp, method, found)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_odd_states_and_actions_give_a_result_or_one_clear_error(mdp, method):
    rng = np.random.default_rng(0)
    for lanes in (0, 1, 3, 300) if mdp.is_batched else (0, 2):
        (n, x), a = batch(mdp, lanes, rng)
        for change in ODD.values():
            odd = [change(part) for part in (n, x, a)]
            if not any(isinstance(part, list) for part in odd):
                for state, action in (
                    (State(odd[0], x), a),
                    (State(n, odd[1]), a),
                    (State(n, x), odd[2]),
                    (State(odd[0], odd[1]), odd[2]),
                ):
                    ask(mdp, method, state, action)


@given(data=st.data(), seed=st.integers(0, 2**32), method=st.sampled_from(sorted(METHODS)))
@settings(max_examples=100, deadline=None)
def test_any_mixture_of_oddness_too(mdp, data, seed, method):
    rng, kinds = np.random.default_rng(seed), st.sampled_from(sorted(ODD.keys() - {"a list"}))
    (n, x), a = batch(mdp, data.draw(st.sampled_from([1, 2, 257])), rng)
    n, x, a = (ODD[data.draw(kinds)](part) for part in (n, x, a))
    ask(mdp, method, State(n, x), a)


@given(
    seed=st.integers(0, 2**32),
    lanes=st.sampled_from([1, 5, 255, 256, 300]),
    value=st.one_of(st.integers(-(2**63), -1), st.integers(0, 2**62)),
)
@settings(max_examples=30, deadline=None)
@example(seed=0, lanes=300, value=-1)
@example(seed=0, lanes=300, value=0)
def test_one_wrong_value_among_many_is_named(mdp, seed, lanes, value):
    """n' looks up n and the action; x' all of x, apart from what a crowd derives from the rest."""
    rng = np.random.default_rng(seed)
    (n, x), a = batch(mdp, lanes, rng)
    lane, j = rng.integers(lanes), rng.integers(n.shape[1])
    variable = mdp.endogenous_variables[j]
    wrong = value if value < 0 else variable.size + value
    n[lane, j] = wrong
    with pytest.raises(ValueError, match=f"'{variable.name}' cannot be {wrong}; its values are 0"):
        mdp.sample_endogenous(State(n, x), a, rng)
    n[lane, j], a[lane] = 0, value if value < 0 else mdp.num_actions + value
    with pytest.raises(ValueError, match=f"no action {a[lane]}; actions are 0"):
        mdp.sample_endogenous(State(n, x), a, rng)
    if x.shape[1] and not isinstance(mdp, CrowdMDP):
        j = rng.integers(x.shape[1])
        variable = mdp.exogenous_variables[j]
        x[lane, j] = wrong = value if value < 0 else variable.size + value
        with pytest.raises(ValueError, match=f"'{variable.name}' cannot be {wrong}; its values"):
            mdp.sample_exogenous(x, rng)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", HARMLESS)
def test_types_and_layouts_of_arrays_make_no_difference(mdp, method, kind):
    rng = np.random.default_rng(0)
    state, action = batch(mdp, 40, rng)
    odd = State(*(ODD[kind](part) for part in state))
    assert_same(ask(mdp, method, state, action), ask(mdp, method, odd, ODD[kind](action)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_any_leading_dimensions_give_the_same(mdp, method, shape):
    lanes = math.prod(shape)
    state, action = batch(mdp, lanes, np.random.default_rng(1))
    shaped = State(*(part.reshape(*shape, part.shape[1]) for part in state))
    wanted = ask(mdp, method, state, action)
    found = ask(mdp, method, shaped, action.reshape(shape))
    assert_same(wanted, found)
    for one, other in zip(parts_of(found), parts_of(wanted), strict=True):
        assert one.shape == (*shape, *other.shape[1:])


@pytest.mark.parametrize("make", [GridMDP, FactoryMDP, CrowdMDP, SyntheticMDP])
def test_actions_are_broadcast(make):
    mdp = make()
    state, _ = batch(mdp, 4, np.random.default_rng(2))
    every_action = State(*(part[:, None] for part in state))
    terms = mdp.reward_terms(every_action, np.arange(mdp.num_actions))
    for action in range(mdp.num_actions):
        wanted = mdp.reward_terms(state, np.full(4, action))
        np.testing.assert_array_equal(terms[:, action], wanted)


def assert_same(wanted, found):
    """Two results are the same, whatever their shapes."""
    flat = [
        np.concatenate([np.zeros(0), *map(np.ravel, parts_of(given))]) for given in (wanted, found)
    ]
    np.testing.assert_array_equal(*flat)


def parts_of(result):
    """The arrays of a result."""
    if not isinstance(result, tuple):
        return [] if result is None else [np.asarray(result)]
    return [array for part in result for array in parts_of(part)]


def test_empty_batches_have_empty_results(mdp):
    rng = np.random.default_rng(0)
    state, action = batch(mdp, 0, rng)
    assert [len(part) for part in mdp.sample_initial(0, rng)] == [0, 0]
    following, reward, terms = mdp.transition(state, action, rng)
    assert following.endogenous.shape == (0, len(mdp.endogenous_variables))
    assert following.exogenous.shape == terms.shape == (0, len(mdp.exogenous_variables))
    assert reward.shape == mdp.is_terminal(state).shape == (0,)


@pytest.mark.parametrize("size", [-1, 2.5, 10**12, float("nan"), "3", None, True, 10**30, [3]])
def test_odd_numbers_of_states_are_refused(mdp, size):
    for sample in (mdp.sample_initial, mdp.sample_uniform):
        with pytest.raises(ValueError, match=r"size is a whole number, at (least 0|most [0-9,]+ )"):
            sample(size, np.random.default_rng(0))


def test_numbers_of_states_are_converted(mdp):
    assert as_size(mdp, np.uint8(200)) == 200
    assert len(mdp.sample_initial(np.int8(3), np.random.default_rng(0)).endogenous) == 3
