"""What is no state, name, viewer or option at all is refused by name, wherever it comes in."""

import gymnasium as gym
import numpy as np
import pytest
from workshop import Workshop

from exo_envs import AdaptedMDP, ExoEnv, ExoMDP, ExoVectorEnv, State, Successors
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.errors import ContractError
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP, exact_return
from exo_envs.testing import check_mdp
from planners import ReducedMDP
from planners.discretization.coarse import CoarseMDP
from wrappers import CalibratedMaskLearner


class Blank(GridMDP):
    """A model with nothing but what :class:`ExoMDP` gives."""

    is_terminal = ExoMDP.is_terminal


def reduced(mdp, mask):
    return ReducedMDP.estimate(mdp, mask, rng=0, num_rollouts=10)


MODELS = {
    "defaults": Blank,
    "grid": GridMDP,
    "crowd": CrowdMDP,
    "synthetic": SyntheticMDP,
    "adapted": lambda: AdaptedMDP(gym.make("ExoGrid-v0"), horizon=10),
    "counted": lambda: CountedMDP(Blank()),
    "coarse": lambda: CoarseMDP(GridMDP(), ()),
    "tabulated": lambda: reduced(GridMDP(), ["object"]),
    "simulated": lambda: reduced(Workshop(), ["demand"]),
}
NO_STATES = (None, 3, "state", {}, [], (1, 2, 3), np.zeros(2), object())
NO_ARRAYS = (None, "state", [], [[1], [2, 3]], {}, object())


@pytest.fixture(scope="module", params=MODELS)
def mdp(request):
    return MODELS[request.param]()


@pytest.mark.parametrize("state", NO_STATES, ids=type)
def test_what_is_no_state_is_named(mdp, state):
    rng, action = np.random.default_rng(0), np.zeros(2, dtype=np.int64)
    for ask in (
        lambda: mdp.is_terminal(state),
        lambda: mdp.reward(state, action),
        lambda: mdp.reward_terms(state, action),
        lambda: mdp.sample_next(state, action, rng),
        lambda: mdp.transition(state, action, rng),
        lambda: mdp.sample_endogenous(state, action, rng),
    ):
        with pytest.raises(TypeError, match="a state is a State"):
            ask()


@pytest.mark.parametrize("part", NO_ARRAYS, ids=type)
def test_what_is_no_part_of_a_state_is_named(mdp, part):
    rng, action = np.random.default_rng(0), np.zeros(2, dtype=np.int64)
    n, x = mdp.sample_uniform(2, rng)
    for ask in (
        lambda: mdp.is_terminal(State(part, x)),
        lambda: mdp.endogenous_reward(part, action),
        lambda: mdp.sample_exogenous(part, rng),
        lambda: mdp.sample_endogenous(State(n, part), action, rng),
    ):
        with pytest.raises((TypeError, ValueError), match=r"part of (a|the) state"):
            ask()


def test_a_pair_is_a_state_too(mdp):
    state = mdp.sample_uniform(3, np.random.default_rng(0))
    assert np.array_equal(mdp.is_terminal(tuple(state)), mdp.is_terminal(state))


def test_actions_of_different_lengths_are_named(mdp):
    state = mdp.sample_uniform(2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="the batch of actions is no array"):
        mdp.reward(state, [[1], [2, 3]])


@pytest.mark.parametrize("names", [None, 3, "object", b"object"])
def test_names_of_variables_are_several(names):
    with pytest.raises(TypeError, match="names of variables are a collection"):
        GridMDP().exogenous_indices(names)
    with pytest.raises(TypeError, match="names of variables are a collection"):
        SyntheticMDP().closure(names)


@pytest.mark.parametrize("name", [3, None, [], ("a",)])
def test_what_is_no_name_is_named(name):
    for ask in (
        lambda: GridMDP().exogenous_indices([name]),
        lambda: SyntheticMDP().closure([name]),
        lambda: SyntheticMDP().node(name),
    ):
        with pytest.raises(ValueError, match="unknown exogenous variable"):
            ask()


@pytest.mark.parametrize("values", [None, "x", 99, -1, [[1], [2, 3]]])
def test_what_is_no_object_of_a_crowd_is_refused(values):
    with pytest.raises((TypeError, ValueError), match="object"):
        CrowdMDP().decode_object(values)


def test_small_values_of_models():
    with pytest.raises(ValueError, match=r"n' is an array \(..., k\)"):
        Successors.certain(np.array(3))
    with pytest.raises(TypeError, match="mdp is a SyntheticMDP"):
        exact_return(GridMDP())


@pytest.mark.parametrize("make", [ExoEnv, ExoVectorEnv])
def test_shells_name_options_and_viewers(make):
    with pytest.raises(TypeError, match="viewer is a Viewer or None, not 3"):
        make(GridMDP(), viewer=3)
    with pytest.raises(TypeError, match="the options of a reset are a dictionary, not 3"):
        make(GridMDP()).reset(options=3)


@pytest.mark.parametrize("mode", [None, 3, "x"])
def test_autoreset_modes_are_named(mode):
    with pytest.raises(ValueError, match=r"unknown autoreset mode .*'SameStep'"):
        ExoVectorEnv(GridMDP(), 2, autoreset_mode=mode)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_states": 0}, "num_states is a whole number, at least 1"),
        ({"num_samples": "x"}, "num_samples is a whole number"),
        ({"error_probability": 2}, "error_probability is a probability"),
        ({"reward_range": "x"}, "reward_range is a finite number"),
        ({"reward_range": 0}, "reward_range is a positive number"),
        ({"any_state": 3}, "any_state is True or False"),
    ],
)
def test_arguments_of_the_check_are_named(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_mdp(GridMDP(), **given)


class Tuples(GridMDP):
    """Initial states are plain tuples."""

    def sample_initial(self, size, rng):
        return tuple(super().sample_initial(size, rng))


def test_a_plain_tuple_as_initial_state_is_named_by_everybody():
    with pytest.raises(ContractError, match="sample_initial returned tuple, not a State"):
        check_mdp(Tuples())
    with pytest.raises(ContractError, match="sample_initial returned tuple, not a State"):
        CalibratedMaskLearner().fit(Tuples(), rng=0)


class NowAndThen(GridMDP):
    """Every third answer of a method has another shape."""

    calls = 0

    def endogenous_reward(self, endogenous, action):
        self.calls += 1
        return np.zeros(7 if self.calls % 3 == 0 else endogenous.shape[:-1])


def test_a_step_that_fails_now_and_then_names_the_method():
    env = ExoVectorEnv(NowAndThen(), 2)
    env.reset(seed=0)
    for _ in range(2):
        env.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match=r"endogenous_reward \(7,\)"):
        env.step(np.zeros(2, dtype=np.int64))
