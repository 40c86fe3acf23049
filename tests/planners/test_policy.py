"""Policies on observations of all sorts: an action, or an error that says what is wrong."""

import math
from functools import cache

import numpy as np
import pytest

from exo_envs import ExoEnv, State
from exo_envs.domains.grid import GridMDP
from planners import UCT, ForecastPlanner, Policy, ReducedMDP, ValueIteration
from wrappers import AgentPolicy, FlatObservation, MaskedObservation

torch = pytest.importorskip("torch")

GRID = GridMDP()
MASK = ("object", "guard")
N, X = np.array([1]), np.array([2, 0, 1, 0, 1])


class FirstAction(Policy):
    """As users write them: it does not say which values its variables have."""

    def act(self, endogenous, exogenous):
        return np.zeros(len(endogenous), dtype=int)


@cache
def policies():
    reduced = ReducedMDP.estimate(GRID, MASK, rng=0, num_rollouts=200)
    masked = MaskedObservation(ExoEnv(GRID), MASK)
    return {
        "table": ValueIteration().plan(reduced).policy,
        "forecasts": ForecastPlanner(horizon=3).plan(reduced).policy,
        "search": UCT(simulations=3, depth=2).plan(reduced).policy,
        "agent": AgentPolicy(lambda parts: parts["exogenous"][:, 0] % 2, masked),
        "flat agent": AgentPolicy(lambda flat: np.zeros(len(flat), int), FlatObservation(masked)),
        "user's": FirstAction(*Policy.names_of(reduced)),
    }


each_policy = pytest.mark.parametrize(
    "kind", ["table", "forecasts", "search", "agent", "flat agent", "user's"]
)

GOOD = {
    "full": {"endogenous": N, "exogenous": X},
    "masked": {"endogenous": N, "exogenous": X[[0, 2]]},
    "a state": State(N, X),
    "a pair": (N, X),
    "lists": {"endogenous": [1], "exogenous": [2, 0, 1, 0, 1]},
    "bytes": {"endogenous": N.astype(np.uint8), "exogenous": X.astype(np.uint8)},
    "unsigned": {"endogenous": N.astype(np.uint64), "exogenous": X.astype(np.uint64)},
    "whole floats": {"endogenous": N * 1.0, "exogenous": X * 1.0},
    "a part more": {"endogenous": N, "exogenous": X, "camera": np.zeros((9, 9, 3)), "x": None},
    "tensors": {"endogenous": torch.tensor(N), "exogenous": torch.tensor(X)},
}


@each_policy
@pytest.mark.parametrize("name", GOOD)
def test_the_same_observation_in_many_forms(kind, name):
    policy = policies()[kind]
    action = policy(GOOD[name])
    assert type(action) is int
    assert action in range(GRID.num_actions)
    if kind != "search":  # its noise is a function of what is asked
        assert action == policy(GOOD["full"])
    assert int(policy.predict(GOOD[name])[0]) == action


ODD = {
    "nothing": ({}, ValueError, "no 'endogenous' part"),
    "no n": ({"exogenous": X}, ValueError, "no 'endogenous' part; it needs both"),
    "no x": ({"endogenous": N}, ValueError, "no 'exogenous' part; it needs both"),
    "None": (None, TypeError, "not None"),
    "a string": ("endogenous", TypeError, "not str"),
    "a list": ([1, 2, 0, 1, 0, 1], TypeError, "not list"),
    "an array": (X, TypeError, "an observation is a mapping .* or a State, not ndarray"),
    "a tensor": (torch.tensor(X), TypeError, "not Tensor"),
    "an index": (3, TypeError, "not int"),
    "NaN": ({"endogenous": N, "exogenous": X * np.nan}, ValueError, "'object' cannot be nan"),
    "infinity": ({"endogenous": N * np.inf, "exogenous": X}, ValueError, "cannot be inf"),
    "a fraction": (
        {"endogenous": N, "exogenous": [2, 0, 0.5, 0, 1]},
        ValueError,
        "exogenous variable 'guard' cannot be 0.5",
    ),
    "1e300": ({"endogenous": [1e300], "exogenous": X}, ValueError, "cannot be 1e\\+300"),
    "2^63": (
        {"endogenous": np.array([2**63], np.uint64), "exogenous": X},
        ValueError,
        "cannot be 9223372036854775808",
    ),
    "strings": ({"endogenous": ["1"], "exogenous": X}, TypeError, "dtype <U1"),
    "objects": ({"endogenous": np.array([{}]), "exogenous": X}, TypeError, "dtype object"),
    "no numbers": ({"endogenous": N, "exogenous": [None] * 5}, TypeError, "exogenous .* object"),
    "10^30": ({"endogenous": [10**30], "exogenous": X}, TypeError, "dtype object"),
    "complex": ({"endogenous": N * 1j, "exogenous": X}, TypeError, "dtype complex128"),
    "ragged": ({"endogenous": N, "exogenous": [[1], [1, 2]]}, TypeError, "exogenous .* no array"),
    "a gradient": (
        {"endogenous": N, "exogenous": torch.tensor(X * 1.0, requires_grad=True)},
        TypeError,
        "exogenous part of the observation is no array",
    ),
    "numbers": ({"endogenous": 1, "exogenous": X}, ValueError, "one number for each variable"),
    "too few": ({"endogenous": N, "exogenous": X[:3]}, ValueError, "has 3 variables; .* or all 5"),
    "too many": ({"endogenous": [1, 1], "exogenous": X}, ValueError, "should be 1"),
    "batches": (
        {"endogenous": np.ones((3, 1), int), "exogenous": np.ones((2, 5), int)},
        ValueError,
        r"different shapes: the endogenous one of \(3,\) and the exogenous one of \(2,\)",
    ),
    "a batch and one": (
        {"endogenous": np.ones((3, 1), int), "exogenous": X},
        ValueError,
        "different shapes",
    ),
}


@each_policy
@pytest.mark.parametrize("name", ODD)
def test_what_is_no_observation_is_refused(kind, name):
    observation, error, message = ODD[name]
    with pytest.raises(error, match=message):
        policies()[kind](observation)
    with pytest.raises(error, match=message):
        policies()[kind].predict(observation)


def test_errors_name_the_variable_and_its_values():
    table, others = policies()["table"], {"endogenous": N, "exogenous": X[[0, 2]] + 0.5}
    with pytest.raises(ValueError, match=r"'object' cannot be 2\.5; its values are 0 \.\.\. 2"):
        table(others)
    with pytest.raises(ValueError, match=r"endogenous variable 'robot' cannot be nan in lane \(1,"):
        table({"endogenous": [[0], [np.nan]], "exogenous": [X, X]})
    with pytest.raises(ValueError, match="exogenous variable 'weather' cannot be nan"):
        table({"endogenous": N, "exogenous": [0, 0, 0, 0, np.nan]})


@each_policy
@pytest.mark.parametrize("batch", [(0,), (1,), (3,), (2, 3), (0, 4), (4, 0)])
def test_batches_of_any_shape(kind, batch):
    observation = {
        "endogenous": np.ones((*batch, 1), int),
        "exogenous": np.broadcast_to(X, (*batch, 5)),
    }
    actions = policies()[kind](observation)
    assert actions.shape == batch
    assert actions.dtype.kind == "i"
    if math.prod(batch):
        assert GRID.num_actions > actions.max() >= actions.min() >= 0


@each_policy
def test_whole_numbers_out_of_range(kind):
    """Planners' policies take the nearest value; an agent has never seen such a thing."""
    policy = policies()[kind]
    for value in (-1, 99, -(2**63), 2**63 - 1):
        observation = {"endogenous": N, "exogenous": np.array([value, 0, 1, 0, 1])}
        if "agent" in kind:
            with pytest.raises(ValueError, match=f"'object' cannot be {value} .* 0 ... 2"):
                policy(observation)
        else:
            assert policy(observation) in range(GRID.num_actions)


def test_a_policy_without_endogenous_variables():
    policy = FirstAction(("x",), ("x", "y"), 0)
    assert policy({"exogenous": [1, 2]}) == 0
    assert policy({"exogenous": [[1], [2]]}).shape == (2,)
    nothing = FirstAction((), ("x", "y"), 1)
    assert nothing({"endogenous": [1]}) == nothing({"endogenous": [1], "exogenous": [0, 0]}) == 0


def test_actions_that_are_too_few_are_refused():
    class Lazy(FirstAction):
        def act(self, endogenous, exogenous):
            return np.zeros(1, dtype=int)

    with pytest.raises(ValueError, match=r"Lazy.act gave actions of shape \(1,\) for 3"):
        Lazy((), (), 1)({"endogenous": [[0], [0], [0]]})


def test_names_that_make_no_sense_are_refused():
    for arguments in ((("x", "x"), ("x",), 1), (("y",), ("x",), 1), ("x", ("x",), 1)):
        with pytest.raises(ValueError, match="mask"):
            FirstAction(*arguments)
    with pytest.raises(ValueError, match="endogenous_size"):
        FirstAction((), (), -1)
    with pytest.raises(ValueError, match="there are 1 variables; there should be 3"):
        FirstAction(("x", "y"), ("x", "y"), 1, variables=GRID.endogenous_variables[:1])


@pytest.mark.parametrize("kind", ["table", "forecasts", "search"])
@pytest.mark.parametrize(
    "change", [np.ravel, lambda v: v[None], lambda v: v[:1], lambda v: v * 0.5]
)
def test_what_is_no_batch_is_refused_by_act(kind, change):
    policy, n, x = policies()[kind], np.zeros((3, 1), dtype=int), np.zeros((3, 2), dtype=int)
    assert np.array_equal(policy.act(n.astype(">i8"), x.astype(np.uint8)), policy.act(n, x))
    for odd in ((change(n), x), (n, change(x))):
        with pytest.raises(ValueError, match=r"part of a batch holds whole numbers, of shape \(B"):
            policy.act(*odd)


def test_forecasts_are_asked_for_by_position():
    policy = policies()["forecasts"]
    with pytest.raises(ValueError, match=r"which is a whole number, from 0 to .*, not 9"):
        policy.probabilities(np.zeros((3, 2), dtype=int), 9)
