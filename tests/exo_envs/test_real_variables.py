"""Variables with real values, and reward terms with scopes: declarations, borders and shells."""

import copy
import pickle
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from real_models import BatteryMDP, DoorMDP

from exo_envs import ExoEnv, ExoMDP, ExoVectorEnv, State, Variable
from exo_envs.contract.checked_mdp import checked
from exo_envs.core.errors import ContractError
from exo_envs.core.mdp import REAL_SIZE, Ranges
from exo_envs.testing import check_mdp

PRICE = Variable("price", low=0, high=500)


def test_a_variable_is_whole_or_real():
    assert PRICE.is_real
    assert PRICE.size == REAL_SIZE
    assert (PRICE.bounds, PRICE.range) == ((0.0, 500.0), "0 to 500")
    assert not Variable("stock", 12).is_real
    assert replace(PRICE, name="load") == Variable("load", low=0.0, high=500.0)
    assert pickle.loads(pickle.dumps(PRICE)) == copy.deepcopy(PRICE) == PRICE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 3, "low": 0.0, "high": 1.0}, "not both"),
        ({"low": 1.0, "high": 1.0}, "needs low < high, not 1 and 1"),
        ({"low": 0.0}, "high of 'price' is a number .*, not None"),
        ({"low": np.nan, "high": 1.0}, "low of 'price' is a number"),
        ({"low": "a", "high": 1.0}, "low of 'price' is a number"),
        ({}, "the size of 'price' is a whole number, at least 1"),
    ],
)
def test_what_is_no_variable_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Variable("price", **given)


@given(st.integers(0, 2**32 - 1))
def test_uniform_states_are_in_range(seed):
    ranges = Ranges((PRICE, Variable("stock", 3), Variable("signal", low=-np.inf, high=np.inf)))
    values = ranges.draw(50, np.random.default_rng(seed))
    assert ranges.misfit(values) is None
    assert set(np.unique(values[:, 1])) <= {0.0, 1.0, 2.0}
    mdp = BatteryMDP()
    state = mdp.sample_uniform(20, np.random.default_rng(seed))
    assert mdp.exogenous_ranges.misfit(state.exogenous) is None
    assert state.exogenous[:, 2].any()  # it has no bounds, and a value that it may begin with


@pytest.mark.parametrize("mdp", [BatteryMDP(), BatteryMDP(losses=0.1), DoorMDP()], ids=repr)
def test_models_with_real_variables_pass_all_checks(mdp):
    check_mdp(mdp)
    env = ExoEnv(mdp)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*infinity")  # Gymnasium dislikes such bounds
        check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert isinstance(env.observation_space["exogenous"], gym.spaces.Box)
    assert observation["exogenous"].dtype == np.float64
    again = copy.deepcopy(env)
    for action in (0, 1, 1, 0):
        steps = env.step(action), again.step(action)
        np.testing.assert_array_equal(steps[0][0]["exogenous"], steps[1][0]["exogenous"])
        assert env.observation_space.contains(steps[0][0])


def test_single_and_vector_shells_agree_on_real_states():
    mdp = BatteryMDP(losses=0.2)
    state = State(np.array([3.5]), np.array([50.25, 1.5, -3.75, 2.0]))
    env, lanes = ExoEnv(mdp), ExoVectorEnv(mdp, 3)
    single, _ = env.reset(seed=0, options={"state": state})
    several, _ = lanes.reset(
        seed=0, options={"state": {"endogenous": [3.5], "exogenous": state[1]}}
    )
    for part, values in single.items():
        np.testing.assert_array_equal(several[part], np.tile(values, (3, 1)))
    observation, reward, *_ = env.step(0)
    assert reward == 50.25
    assert 0.0 <= observation["endogenous"][0] <= 2.5
    assert lanes.step(np.zeros(3, int))[1].tolist() == [50.25] * 3


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("exogenous", [200.5, 0, 0, 0], r"'price' cannot be 200\.5; its values are 0 to 200"),
        ("exogenous", [np.nan, 0, 0, 0], "'price' cannot be nan"),
        ("exogenous", [1.5, 0, 0, 0.5], r"'day' cannot be 0\.5; its values are 0 \.\.\. 6"),
        ("endogenous", [-1e-9], "'charge' cannot be -1e-09"),
    ],
)
def test_values_that_a_variable_cannot_have_are_named(part, values, message):
    state = {"endogenous": [0.0], "exogenous": [1.0, 0.0, 0.0, 0.0], part: values}
    with pytest.raises(ValueError, match=message):
        ExoEnv(BatteryMDP()).reset(options={"state": state})


class Broken(BatteryMDP):
    """A random walk without clip."""

    def sample_exogenous(self, exogenous, rng):
        return exogenous + 50 * rng.normal(size=exogenous.shape)


def test_answers_out_of_range_name_variable_value_and_method():
    message = r"sample_exogenous returned .* for '(price|wind|day)' \(values .*\), for x = \(price="
    mdp = checked(Broken())
    with pytest.raises(ValueError, match=message):
        mdp.sample_exogenous(np.zeros((64, 4)), np.random.default_rng(0))
    lanes = ExoVectorEnv(Broken(), 64)
    lanes.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        lanes.step(np.zeros(64, int))


class Market(ExoMDP):
    """Selling pays price times load: neither pays by itself."""

    endogenous_variables = ()
    exogenous_variables = (Variable("price", 3), Variable("load", 3), Variable("weather", 2))
    reward_scopes: tuple[tuple[str, ...], ...] = (("price", "load"), ("weather",))
    num_actions, discount, horizon = 2, 0.9, 5

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 0), int), rng.integers([3, 3, 2], size=(size, 3)))

    def sample_exogenous(self, exogenous, rng):
        return rng.integers([3, 3, 2], size=exogenous.shape)

    def sample_endogenous(self, state, action, rng):
        return np.zeros(state.endogenous.shape, int)

    def reward_terms(self, state, action):
        price, load, weather = np.moveaxis(state.exogenous, -1, 0)
        sold = np.asarray(action) == 1
        return np.stack([np.where(sold, (price - 1.0) * (load - 1.0), 0.0), 0.5 * weather], axis=-1)


def test_terms_have_a_column_for_each_scope():
    mdp = Market()
    check_mdp(mdp)
    assert mdp.scope_indices == ((0, 1), (2,))
    assert BatteryMDP().reward_scopes == (("price",), ("wind",), ("signal",), ("day",))
    env = ExoEnv(mdp)
    env.reset(options={"state": {"exogenous": [2, 2, 1]}})
    _, reward, _, _, info = env.step(1)
    assert (reward, info["reward_terms"].tolist()) == (1.5, [1.0, 0.5])


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        (
            (("price", "lode"), ("weather",)),
            "unknown exogenous variable 'lode'; did you mean 'load'",
        ),
        (((), ("weather",)), "one name at least"),
        ((("price", "price"), ("weather",)), "none twice"),
        ([["price"]], "tuple of tuples of names"),
        ((("price",), ("weather",)), "the reward term of 'price' changes when only 'load' changes"),
        ((("price", "load"),), "reward_terms returned the shape"),
    ],
)
def test_wrong_scopes_are_named(scopes, message):
    mdp = Market()
    mdp.reward_scopes = scopes
    with pytest.raises(ContractError, match=message):
        check_mdp(mdp)
