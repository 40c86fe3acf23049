"""What a model returns is checked where it enters, and the error says what is wrong with it."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from models import CoinMDP, CounterMDP

from exo_envs import (
    ExoEnv,
    ExoMDP,
    ExoVectorEnv,
    IgnoredWrapperWarning,
    State,
    Successors,
    Variable,
)
from exo_envs.contract.checked_mdp import CheckedMDP, checked, unchecked
from exo_envs.core.errors import ContractError
from exo_envs.domains.grid import GridMDP
from planners import Scenarios, estimate_objective, evaluate
from planners.samples.rollouts import ExogenousData
from wrappers import CalibratedMaskLearner


class MarketMDP(ExoMDP):
    """A shop that may open; what it earns depends on the price, which walks about."""

    endogenous_variables = (Variable("open", 2),)
    exogenous_variables = (Variable("price", 5), Variable("weather", 3))
    num_actions, discount, horizon = 2, 0.9, 12

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), int), rng.integers([5, 3], size=(size, 2)))

    def sample_exogenous(self, exogenous, rng):
        steps = rng.integers(-1, 2, size=exogenous.shape)
        return np.clip(exogenous + steps, 0, [4, 2])

    def sample_endogenous(self, state, action, rng):
        return np.array(action)[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = (state.exogenous[..., 0] - 2.0) * state.endogenous[..., 0]
        return terms


def without_clip(self, exogenous, rng):
    return exogenous + rng.integers(-1, 2, size=exogenous.shape)


def replaced(**methods):
    return type("Broken", (MarketMDP,), methods)()


WALK = replaced(sample_exogenous=without_clip)
VALUE = r"sample_exogenous returned -?\d for '(price|weather)' \(values 0 ... [42]\), for x = \("

BROKEN = {
    "a walk without clip": (WALK, ValueError, VALUE),
    "floats": (
        replaced(sample_exogenous=lambda self, x, rng: x + 0.5),
        TypeError,
        r"sample_exogenous returned \d.5 for 'price', for x = .* whole numbers",
    ),
    "whole floats": (
        replaced(sample_exogenous=lambda self, x, rng: x.astype(float)),
        TypeError,
        "sample_exogenous returned an array of float64",
    ),
    "NaN": (
        replaced(sample_exogenous=lambda self, x, rng: np.full(x.shape, np.nan)),
        TypeError,
        "sample_exogenous returned nan for 'price'",
    ),
    "no columns": (
        replaced(reward_terms=lambda self, s, a: np.zeros(np.shape(a))),
        ValueError,
        "reward_terms returned the shape .* one column for each .*endogenous_reward",
    ),
    "a reward that is no number": (
        replaced(reward_terms=lambda self, s, a: np.full(s.exogenous.shape, np.nan)),
        ValueError,
        "reward_terms returned nan for 'price', for n = .open=0., x = .*action",
    ),
    "an infinite reward": (
        replaced(endogenous_reward=lambda self, n, a: np.full(n.shape[:-1], np.inf)),
        ValueError,
        "endogenous_reward returned inf",
    ),
    "a missing axis": (
        replaced(sample_endogenous=lambda self, s, a, rng: np.array(a)),
        ValueError,
        r"sample_endogenous returned the shape .*; it should be \(.*, 1\), .* for open",
    ),
    "n out of range": (
        replaced(sample_endogenous=lambda self, s, a, rng: np.array(a)[..., None] + 2),
        ValueError,
        r"sample_endogenous returned [23] for 'open' \(values 0 ... 1\), for n = .*, action",
    ),
    "a list": (
        replaced(sample_endogenous=lambda self, s, a, rng: np.array(a)[..., None].tolist()),
        TypeError,
        "sample_endogenous returned list, not an array",
    ),
    "no booleans": (
        replaced(is_terminal=lambda self, s: np.zeros(s.endogenous.shape[:-1])),
        TypeError,
        "is_terminal returned an array of float64; it should hold booleans",
    ),
    "booleans of another shape": (
        replaced(is_terminal=lambda self, s: np.zeros(s.endogenous.shape, bool)),
        ValueError,
        "is_terminal returned the shape",
    ),
    "a start out of range": (
        replaced(
            sample_initial=lambda self, size, rng: State(
                np.full((size, 1), 7), np.zeros((size, 2), int)
            )
        ),
        ValueError,
        r"sample_initial returned 7 for 'open' \(values 0 ... 1\)",
    ),
    "a start that is no state": (
        replaced(sample_initial=lambda self, size, rng: np.zeros((size, 3), int)),
        TypeError,
        "sample_initial returned ndarray, not a State",
    ),
}
each_kind = pytest.mark.parametrize("kind", BROKEN)


def play(env):
    env.reset(seed=0)
    for _ in range(60):
        env.step(env.action_space.sample())


@each_kind
def test_both_shells_name_the_method_the_variable_and_the_value(kind):
    mdp, error, message = BROKEN[kind]
    for env in (ExoEnv(mdp), ExoVectorEnv(mdp, 3)):
        env.action_space.seed(0)
        with pytest.raises(error, match=message):
            play(env)


@each_kind
def test_evaluation_and_rollouts_name_them_too(kind):
    mdp, error, message = BROKEN[kind]

    def use():
        ExogenousData.collect(mdp, 100, np.random.default_rng(0))
        evaluate(lambda state: np.ones(len(state.endogenous), int), mdp, 100, rng=0)

    with pytest.raises(error, match=message):
        use()


@each_kind
@pytest.mark.parametrize("check", [True, False])
def test_learning_refuses_a_broken_model_whether_it_is_checked_first_or_not(kind, check):
    mdp, error, message = BROKEN[kind]
    learner = CalibratedMaskLearner(n_rollouts=30, n_data_rollouts=50)
    with pytest.raises((ContractError, error)) as caught:
        learner.fit(mdp, rng=0, check=check)
    assert check or caught.match(message)
    with pytest.raises((ContractError, error)):
        estimate_objective(mdp, ["price"], rng=0, num_rollouts=50, n_rollouts=30, check=check)


def test_a_good_model_passes_and_its_answers_have_one_type():
    class Narrow(MarketMDP):
        def sample_exogenous(self, exogenous, rng):
            return super().sample_exogenous(exogenous, rng).astype(np.uint8)

        def reward_terms(self, state, action):
            return super().reward_terms(state, action).astype(np.float32)

    narrow, rng = checked(Narrow()), np.random.default_rng(0)
    state = narrow.sample_initial(4, rng)
    assert narrow.sample_exogenous(state.exogenous, rng).dtype == np.int64
    assert narrow.reward_terms(state, np.zeros(4, int)).dtype == np.float64
    for env in (ExoEnv(Narrow()), ExoVectorEnv(Narrow(), 3)):
        env.action_space.seed(0)
        play(env)
        assert env.state.exogenous.dtype == np.int64
    CalibratedMaskLearner(n_rollouts=30, n_data_rollouts=50).fit(Narrow(), rng=0)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_answers_to_batches_of_any_shape_pass(shape):
    mdp, rng = CheckedMDP(GridMDP()), np.random.default_rng(0)
    state = State(np.zeros((*shape, 1), int), np.zeros((*shape, 5), int))
    action = np.zeros(shape, int)
    assert mdp.sample_next(state, action, rng).exogenous.shape == (*shape, 5)
    assert mdp.reward(state, action).shape == shape


def test_what_is_checked_is_not_checked_twice_and_copies_like_any_model():
    mdp = checked(CoinMDP())
    assert checked(mdp) is mdp
    assert isinstance(unchecked(CheckedMDP(mdp)), CoinMDP)
    assert repr(mdp) == repr(CoinMDP())
    for twin in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp))):
        assert twin.exogenous_names == mdp.exogenous_names


def test_probabilities_that_are_none_are_refused():
    class Sure(CoinMDP):
        def endogenous_distribution(self, state, action):
            return Successors(
                state.endogenous[..., None, :], np.full(np.shape(action), 0.5)[..., None]
            )

    state = State(np.zeros((2, 1), int), np.zeros((2, 2), int))
    with pytest.raises(ValueError, match="endogenous_distribution returned probabilities"):
        checked(Sure()).endogenous_distribution(state, np.zeros(2, int))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("discount", 0.0),
        ("discount", 1.5),
        ("discount", float("nan")),
        ("horizon", 0),
        ("horizon", 2.5),
        ("num_actions", 0),
        ("exogenous_variables", [Variable("price", 5)]),
        ("exogenous_variables", (Variable("price", 5), Variable("price", 3))),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_by_everybody(attribute, value):
    mdp = replaced(**{attribute: value})
    named = "price" if "variables" in attribute and isinstance(value, tuple) else attribute
    for use in (
        ExoEnv,
        ExoVectorEnv,
        CheckedMDP,
        lambda mdp: CalibratedMaskLearner().fit(mdp, check=False),
        lambda mdp: Scenarios.sample(mdp, 3, 0),
    ):
        with pytest.raises(ValueError, match=named):
            use(mdp)


def test_scenarios_of_another_model_are_refused():
    scenarios = Scenarios.sample(CounterMDP(), 5, 0)
    with pytest.raises(ValueError, match=r"the scenarios are not of MarketMDP"):
        evaluate(
            lambda state: np.zeros(len(state.endogenous), int), MarketMDP(), scenarios=scenarios
        )


# --- wrappers that learning does not see --------------------------------------------------------


class Doubled(gym.Wrapper):
    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, 2 * reward, *rest


@pytest.mark.parametrize(
    ("wrap", "named"),
    [
        (lambda env: gym.wrappers.TransformReward(env, lambda r: 2 * r), "TransformReward"),
        (gym.wrappers.NormalizeReward, "NormalizeReward"),
        (lambda env: gym.wrappers.TimeLimit(env, 5), r"TimeLimit\(max_episode_steps=5\)"),
        (Doubled, "Doubled"),
        (lambda env: gym.wrappers.StickyAction(env, 0.1), "StickyAction"),
    ],
)
def test_a_wrapper_whose_effect_is_lost_is_named(wrap, named):
    env = wrap(ExoEnv(MarketMDP()))
    with pytest.warns(IgnoredWrapperWarning, match=f"what {named} changes is ignored"):
        estimate_objective(env, [], rng=0, num_rollouts=50, n_rollouts=10)


def test_wrappers_that_only_look_on_are_not_named():
    env = gym.make("exo_envs:ExoGrid-v0", max_episode_steps=1000)
    env = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.FlattenObservation(env))
    estimate_objective(env, [], rng=0, num_rollouts=50, n_rollouts=10)


# --- models that remember, and lanes that look at each other --------------------------------------


def returns_the_last_action(self, state, action, rng):
    was, self.last = getattr(self, "last", None), np.array(action)
    known = was is not None and was.shape == self.last.shape
    return (was if known else self.last)[..., None]


def counts_its_calls(self, exogenous, rng):
    self.calls = getattr(self, "calls", 0) + 1
    following = MarketMDP.sample_exogenous(self, exogenous, rng)
    following[..., 1] = self.calls // 20 % 3
    return following


def follows_the_first_lane(self, exogenous, rng):
    following = MarketMDP.sample_exogenous(self, exogenous, rng)
    following[..., 0] = np.ravel(exogenous[..., 0])[0]
    return following


def draws_once_for_all_lanes(self, exogenous, rng):
    following = exogenous.copy()
    following[..., 1] = rng.integers(3)
    return following


@pytest.mark.parametrize(
    ("rule", "methods"),
    [
        ("memory", {"sample_endogenous": returns_the_last_action}),
        ("memory", {"sample_exogenous": counts_its_calls}),
        ("batching", {"sample_exogenous": follows_the_first_lane}),
        ("batching", {"sample_exogenous": draws_once_for_all_lanes}),
    ],
)
def test_learning_refuses_models_that_remember_and_lanes_that_are_not_independent(rule, methods):
    method = next(iter(methods))
    with pytest.raises(ContractError, match=f"rule '{rule}' is broken: {method}"):
        CalibratedMaskLearner(n_rollouts=30, n_data_rollouts=50).fit(replaced(**methods), rng=0)
