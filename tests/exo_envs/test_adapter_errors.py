"""What `AdaptedMDP` says of environments and arguments that do not fit."""

import numpy as np
import pytest
from gymnasium import spaces
from harbour import (
    HARBOUR_VARIABLES,
    Harbour,
    Hidden,
    PushedSignal,
    adapt,
    get_hidden,
    harbour_states,
)

from exo_envs import AdaptedMDP, State, Variable
from exo_envs.testing import ContractError, check_mdp


class CoupledPay(Harbour):
    """The signal pays only at high tide: not a sum."""

    def pay(self, action):
        return float(self.x[0] * self.x[1])


class IgnoresState(Harbour):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


class IgnoresHalfOfState(Harbour):
    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        if options is not None:
            self.n = observation["endogenous"] = options["state"]["endogenous"]
        return observation, info


class NothingAfterTheEnd(Harbour):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if terminated:
            observation = {part: np.full_like(v, -1) for part, v in observation.items()}
        return observation, reward, terminated, truncated, info


# --- claims that do not hold --------------------------------------------------------------------


def test_a_variable_that_is_not_exogenous_shows():
    mdp = adapt(PushedSignal())
    state = State(np.array([0, 0]), np.array([1, 0]))
    rng = np.random.default_rng(0)
    claimed = mdp.sample_exogenous(state.exogenous, rng)
    observed, _ = mdp.observed_step(state, np.array(1), rng)
    assert (claimed[0], observed.exogenous[0]) == (1, 2)
    with pytest.raises(ContractError, match="exogenous_0") as error:
        check_mdp(mdp, num_samples=50)
    assert error.value.rule == "exogeneity"


def test_a_reward_that_is_not_a_sum_shows_and_a_joint_term_or_a_super_variable_mends_it():
    apart = [["exogenous_0"], ["exogenous_1"]]
    mdp = adapt(CoupledPay(), reference=([0], [0, 0]), reward_scopes=apart)
    state, action = State(np.array([0, 0]), np.array([2, 1])), np.array(0)
    assert mdp.reward(state, action) == 0
    assert mdp.observed_step(state, action, np.random.default_rng(0))[1] == 2
    with pytest.raises(ContractError) as error:
        check_mdp(mdp, num_samples=50)
    assert error.value.rule == "reward"

    found = adapt(CoupledPay(), reference=([0], [0, 0]))
    assert found.reward_scopes == (("exogenous_0", "exogenous_1"),)
    assert found.reward(state, action) == 2
    check_mdp(found, num_samples=50)

    def set_coupled(env, n, x):
        env.n, env.x = n, np.array(divmod(int(x[0]), 2))

    coupled = adapt(
        CoupledPay(),
        split=lambda o: (o["endogenous"], [2 * o["exogenous"][0] + o["exogenous"][1]]),
        set_state=set_coupled,
        endogenous_variables=[Variable("cell", 4)],
        exogenous_variables=[Variable("signal_and_tide", 6)],
    )
    check_mdp(coupled, num_samples=50, any_state=True)


# --- bad input ----------------------------------------------------------------------------------


def test_nothing_is_read_after_the_end():
    mdp = adapt(NothingAfterTheEnd(), reference_action=1)
    size = 20
    state = State(np.tile([2, 0], (size, 1)), np.tile([0, 0], (size, 1)))
    action = np.ones(size, dtype=np.int64)
    following, reward = mdp.observed_step(state, action, np.random.default_rng(0))
    ended = mdp.is_terminal(following)
    assert ended.any()
    assert following.endogenous[ended].tolist() == [[2, 1]] * ended.sum()  # stays where it was
    assert following.exogenous[ended].tolist() == [[0, 0]] * ended.sum()
    assert (reward == 1.5).all()
    mdp.sample_exogenous(state.exogenous, np.random.default_rng(0))  # the reference never ends
    bad = adapt(NothingAfterTheEnd(), reference=([2], [0, 0]), reference_action=1)
    with pytest.raises(ValueError, match=r"'exogenous_0' cannot be -1.*give a reference"):
        bad.sample_exogenous(state.exogenous, np.random.default_rng(0))


@pytest.mark.parametrize("env", [IgnoresState(), IgnoresHalfOfState()])
def test_an_environment_that_does_not_go_where_it_is_put(env):
    with pytest.raises(ValueError, match=r"was to start at n = .*, x = .* give a set_state"):
        adapt(env)


def test_a_set_state_without_effect():
    with pytest.raises(ValueError, match="set_state has no effect"):
        adapt(set_state=lambda env, n, x: None)
    with pytest.raises(ValueError, match=r"set_state was given n = .* get_state then says"):
        adapt(Hidden(), get_state=get_hidden, set_state=lambda env, n, x: None, **HARBOUR_VARIABLES)


def with_spaces(observation=None, action=None):
    env = Harbour()
    if observation is not None:
        env.observation_space = observation
    if action is not None:
        env.action_space = action
    return env


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(5),
        spaces.Dict(),
        spaces.Dict(endogenous=spaces.MultiDiscrete([4]), exo=spaces.MultiDiscrete([3, 2])),
        spaces.Dict(endogenous=spaces.MultiDiscrete([4]), exogenous=spaces.Discrete(3)),
        spaces.Dict(endogenous=spaces.MultiDiscrete([[4]]), exogenous=spaces.MultiDiscrete([3])),
        spaces.Dict(endogenous=spaces.MultiDiscrete([4], start=[1])),
    ],
)
def test_another_observation_space(space):
    with pytest.raises(TypeError, match=r"the observation space is .* give split") as error:
        adapt(with_spaces(observation=space))
    assert str(space) in str(error.value)


@pytest.mark.parametrize("space", [spaces.Discrete(3, start=1), spaces.MultiDiscrete([2, 2])])
def test_another_action_space(space):
    with pytest.raises(TypeError, match=r"must be Discrete\(n\)"):
        adapt(with_spaces(action=space))


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (lambda o: ([4], [0, 0]), ValueError, r"'cell' cannot be 4; its values are 0 ... 3"),
        (lambda o: ([0], [0, -1]), ValueError, r"'tide' cannot be -1; its values are 0 ... 1"),
        (lambda o: ([0, 0], [0, 0]), ValueError, r"shape \(2,\); it should be \(1,\).*: cell"),
        (lambda o: (0, [0, 0]), ValueError, r"shape \(\); it should be \(1,\)"),
        (lambda o: ([0], [0.5, 0]), ValueError, "0.5, which is not a whole number"),
        (lambda o: ([0], ["a", "b"]), TypeError, "should hold whole numbers"),
        (lambda o: [0, 0, 0], TypeError, r"return a pair .* not \[0, 0, 0\]"),
    ],
)
def test_a_wrong_split(split, error, message):
    with pytest.raises(error, match=message):
        adapt(split=split, **HARBOUR_VARIABLES)


def test_a_split_that_goes_wrong_later():
    wrong = []

    def split(observation):
        return wrong or observation["endogenous"], observation["exogenous"]

    mdp = adapt(split=split, **HARBOUR_VARIABLES)
    states, actions = harbour_states()
    wrong.append(9)
    with pytest.raises(ValueError, match="'cell' cannot be 9"):
        mdp.sample_endogenous(states, actions, np.random.default_rng(0))


def test_reward_terms_that_go_missing():
    class Forgetful(Harbour):
        info = {"reward_terms": np.zeros(2)}  # noqa: RUF012

        def step(self, action):
            return *super().step(action)[:4], self.info

    env = Forgetful()
    mdp = adapt(env)
    states, actions = harbour_states()
    assert not mdp.reward_terms(states, actions).any()
    env.info = {}
    with pytest.raises(ValueError, match=r'info\["reward_terms"\] is None'):
        mdp.reward_terms(states, actions)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"horizon": None}, ValueError, "give horizon"),
        ({"horizon": 0}, ValueError, "horizon is a whole number, at least 1, not 0"),
        ({"discount": 1.5}, ValueError, r"discount is in \(0, 1\], not 1.5"),
        ({"reward_samples": 0.5}, ValueError, "reward_samples is a whole number"),
        ({"reference_action": 2}, ValueError, "there is no action 2"),
        ({"reference": ([4], [0, 0])}, ValueError, "'endogenous_0' cannot be 4"),
        ({"reference": ([0], [0])}, ValueError, r"exogenous part of the state has shape \(1,\)"),
        ({"reference": 3}, TypeError, "reference is a pair .* not 3"),
        ({"endogenous_variables": ["a", "b"]}, ValueError, "has 2 entries, but .* has 1"),
        ({"endogenous_variables": [Variable("a", 9)]}, ValueError, "'a' has 4 values .* not 9"),
        ({"endogenous_variables": ["done"]}, ValueError, "two variables named 'done'.*own"),
        ({"exogenous_variables": ["a", "a"]}, ValueError, "two variables named 'a'"),
        ({"split": get_hidden}, TypeError, r"endogenous_variables is .* not None"),
        (
            {"split": get_hidden, **HARBOUR_VARIABLES, "exogenous_variables": ["signal", "tide"]},
            TypeError,
            r"exogenous_variables is a sequence of Variable\(name, size\)",
        ),
        ({"split": get_hidden, "get_state": get_hidden}, TypeError, "either split or get_state"),
    ],
)
def test_wrong_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        AdaptedMDP(Harbour(), **{"horizon": 20, **kwargs})


def test_something_that_is_no_environment():
    with pytest.raises(TypeError, match=r"made of a gymnasium.Env, not of 'Taxi-v3'"):
        AdaptedMDP("Taxi-v3")
