"""Whatever says which variables a mask keeps is read right, or refused by name."""

import gymnasium as gym
import numpy as np
import pytest

from exo_envs import ExoMDP, State, Variable
from exo_envs.core.batches import as_mask
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.grid import GridMDP
from planners import ReducedMDP
from wrappers import GreedyMaskLearner, MaskedObservation, MaskedVectorObservation

GRID = GridMDP()  # object, carrier, guard, guard_intent, weather


@pytest.mark.parametrize(
    "mask",
    [
        ["object", "guard"],
        ("guard", "object"),
        {"guard", "object"},
        frozenset({"object", "guard"}),
        (name for name in ("guard", "object")),
        np.array(["guard", "object"]),
        [np.str_("object"), "guard"],
        {"object": True, "guard": True},
        {"weather": False, "guard": np.True_, "object": True},
        dict.fromkeys(["guard", "object"], True).keys(),
        [0, 2],
        {2, 0},
        range(0, 3, 2),
        np.array([2, 0], dtype=np.uint8),
        [True, False, True, False, False],
        np.array([True, False, True, False, False]),
        (flag for flag in (True, False, True, False, False)),
        ["obj*", "guard"],
        ["guard", "guar[d]", "o*", "*bject"],
        ["[og]????", "object"],
    ],
)
def test_masks_are_read_right(mask):
    assert as_mask(GRID, mask) == ("object", "guard")


@pytest.mark.parametrize("mask", [[], (), set(), {}, {"guard": False}, [False] * 5, iter(())])
def test_nothing_is_a_mask(mask):
    assert as_mask(GRID, mask) == ()


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        ("object", TypeError, "a mask is a sequence of names, not the string 'object'"),
        ("*", TypeError, "not the string"),
        (b"object", TypeError, "a mask is a sequence of names, not the string b'object'"),
        ([b"object"], TypeError, "names, indices or booleans, not b'object'"),
        (np.array([b"object"]), TypeError, "names, indices or booleans, not"),
        (None, TypeError, "a mask is a sequence of names, not None"),
        (3, TypeError, "a mask is a sequence of names, not 3"),
        (True, TypeError, "a mask is a sequence of names, not True"),
        (np.array(3), TypeError, "a mask is a sequence of names, not array"),
        ([0.0, 2.0], TypeError, "names, indices or booleans, not 0.0"),
        (np.array([0.0]), TypeError, "names, indices or booleans, not"),
        ([False, 1, 2], TypeError, "not booleans and indices"),
        (["object", 1], TypeError, "not indices and names"),
        ([True, "object"], TypeError, "not booleans and names"),
        ([["object", "guard"]], TypeError, "names, indices or booleans, not"),
        ([None], TypeError, "names, indices or booleans, not None"),
        (np.eye(5, dtype=bool), TypeError, "names, indices or booleans, not"),
        ({True, False}, TypeError, "a set of booleans is no mask"),
        ({"object": 1}, TypeError, "True or False for a name, not 1"),
        ({"object": None}, TypeError, "True or False for a name, not None"),
        ({"objct": True}, ValueError, "unknown exogenous variable 'objct'; did you mean 'object'"),
        ({"objct": False}, ValueError, "unknown exogenous variable 'objct'"),
        ({0: True}, ValueError, "unknown exogenous variable 0"),
        (["objct"], ValueError, "unknown exogenous variable 'objct'; did you mean 'object'"),
        (["objct*"], ValueError, r"no exogenous variable matches 'objct\*'; did you mean 'object'"),
        (["OBJECT*"], ValueError, r"no exogenous variable matches 'OBJECT\*'"),
        ([""], ValueError, "unknown exogenous variable ''"),
        (["object", "object"], ValueError, "'object' more than once"),
        (["obj*", "object", "object"], ValueError, "'object' more than once"),
        ([0, 0], ValueError, "'object' more than once$"),
        ([1, 0, 1, 0, 0], ValueError, r"more than once: these are indices; if they are flags"),
        (np.array([1, 0, 0, 0, 0], np.uint8), ValueError, r"booleans, \[True, False, False, ...\]"),
        (memoryview(b"\0\1"), TypeError, "a mask is a sequence of names, not bytes in memory"),
        ([5], ValueError, r"no variable 5; indices are 0 \.\.\. 4"),
        ([-1], ValueError, "no variable -1"),
        ([10**30], ValueError, "no variable 10"),
        ([True] * 4, ValueError, "a boolean mask has 5 entries, not 4"),
    ],
)
def test_what_is_no_mask_is_refused_by_name(mask, error, words):
    with pytest.raises(error, match=words):
        as_mask(GRID, mask)


class Lots(ExoMDP):
    """Variables whose names look like patterns."""

    endogenous_variables = (Variable("n", 2),)
    exogenous_variables = (Variable("lot[1]", 2), Variable("lot1", 2), Variable("lot*", 2))
    num_actions, discount, horizon = 2, 0.9, 3

    def sample_initial(self, size, rng):
        """Zeros."""
        return State(np.zeros((size, 1), int), np.zeros((size, 3), int))

    def sample_exogenous(self, exogenous, rng):
        """The same."""
        return exogenous.copy()

    def sample_endogenous(self, state, action, rng):
        """The same."""
        return state.endogenous.copy()

    def reward_terms(self, state, action):
        """Nothing."""
        return np.zeros(state.exogenous.shape)


def test_a_name_that_exists_is_no_pattern():
    assert as_mask(Lots(), ["lot[1]"]) == ("lot[1]",)
    assert as_mask(Lots(), ["lot*"]) == ("lot*",)
    assert as_mask(Lots(), ["lo*"]) == Lots().exogenous_names
    assert as_mask(Lots(), ["lot[0-9]"]) == ("lot1",)


def test_patterns_are_taken_wherever_masks_are():
    crowd = CrowdMDP()
    wanted = ("object_3", "object_10", "object_11")
    assert as_mask(crowd, ["object_1?", "object_3"]) == wanted
    env = gym.make("ExoGrid-v0")
    masked = MaskedObservation(env, ["guard*"])
    assert masked.mask == ("guard", "guard_intent")
    assert gym.make(masked.spec).get_wrapper_attr("mask") == masked.mask
    assert "guard_intent" in masked.spec.to_json()
    inner = MaskedObservation(masked, ["*"])  # of what is left
    assert inner.mask == masked.mask
    vector = MaskedVectorObservation(gym.make_vec("ExoGrid-v0", num_envs=2), {"guard": True})
    assert vector.mask == ("guard",)
    env.unwrapped.show_mask(["guard*"])
    assert env.unwrapped.viewer.mask == ("guard", "guard_intent")
    assert ReducedMDP.estimate(GRID, ["obj*"], rng=0, num_rollouts=9).mask == ("object",)
    learner = GreedyMaskLearner(initial_mask=["guard*"], cost_weight=1e6, n_rollouts=5).fit(GRID)
    assert learner.history_[0].mask == ("guard", "guard_intent")
