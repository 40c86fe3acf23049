"""Rules about form: what a model declares, and the shape, kind and range of what it returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.mdp import ExoMDP, State, Variable
from exo_envs.testing.probe import Probe, fail

_BATCH_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (2, 3))
_REPEATS = 4  # how often the range of everything is looked at


def check_declaration(mdp: Any) -> None:
    """Rule ``declaration``."""
    rule = "declaration"
    if not isinstance(mdp, ExoMDP):
        what = f"the class {mdp.__name__}" if isinstance(mdp, type) else type(mdp).__name__
        raise TypeError(f"check_mdp takes an ExoMDP, not {what}")
    for attribute in ("endogenous_variables", "exogenous_variables"):
        variables = getattr(mdp, attribute, None)
        if not isinstance(variables, tuple) or not all(isinstance(v, Variable) for v in variables):
            fail(rule, f"{attribute} should be a tuple of Variable, not {variables!r}")
    names = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        fail(rule, f"two variables are called {twice!r}")
    for attribute, valid, wanted in (
        ("num_actions", _is_count, "a whole number, at least 1"),
        ("horizon", _is_count, "a whole number, at least 1"),
        ("discount", lambda x: isinstance(x, (int, float)) and 0 < x <= 1, "in (0, 1]"),
    ):
        value = getattr(mdp, attribute, None)
        if not valid(value):
            fail(rule, f"{attribute} should be {wanted}, not {value!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def check_initial(mdp: ExoMDP, rng: np.random.Generator) -> None:
    """Rule ``shapes`` for the initial states."""
    for size in (1, 5):
        state = mdp.sample_initial(size, rng)
        if not isinstance(state, State):
            fail("shapes", f"sample_initial returns {type(state).__name__}, not State")
        check_values("sample_initial", mdp, state.endogenous, (size,), endogenous=True)
        check_values("sample_initial", mdp, state.exogenous, (size,), endogenous=False)


def check_values(
    method: str, mdp: ExoMDP, values: Any, batch_shape: tuple[int, ...], *, endogenous: bool
) -> None:
    """Rule ``shapes``: integers of the right shape, each in the range of its variable."""
    variables = mdp.endogenous_variables if endogenous else mdp.exogenous_variables
    check_array(method, values, (*batch_shape, len(variables)), "iu", "whole numbers")
    wrong = (values < 0) | (values >= np.array([v.size for v in variables], dtype=np.int64))
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        variable = variables[where[-1]]
        fail(
            "shapes",
            f"{method} gives {variable.name!r} the value {values[where]}; "
            f"its values are 0 ... {variable.size - 1}",
        )


def check_array(method: str, array: Any, shape: tuple[int, ...], kinds: str, what: str) -> None:
    """Rule ``shapes``: an array of the right kind and shape."""
    # A NumPy scalar is what most operations make of an array without dimensions.
    if not isinstance(array, (np.ndarray, np.generic)):
        fail("shapes", f"{method} returns {type(array).__name__}, not an array")
    if array.dtype.kind not in kinds:
        fail("shapes", f"{method} returns an array of {array.dtype}; it should hold {what}")
    if array.shape != shape:
        fail("shapes", f"{method} returns shape {array.shape}; it should be {shape}")


def check_shapes(probe: Probe) -> None:
    """Rule ``shapes`` for every other method, last with all states at once."""
    mdp = probe.mdp
    everything = np.arange(len(probe.actions))
    for part, endogenous in (("endogenous", True), ("exogenous", False)):
        values = getattr(probe.states, part)
        check_values("sample_next", mdp, values, everything.shape, endogenous=endogenous)
    for batch_shape in (*_BATCH_SHAPES, *[everything.shape] * _REPEATS):
        index = probe.rng.integers(len(probe.actions), size=batch_shape)
        if batch_shape == everything.shape:
            index = everything
        state, action = probe.at(index)
        results = {name: call(state, action, probe.rng) for name, call in probe.calls().items()}
        terms_shape = (*batch_shape, len(mdp.exogenous_variables))
        for part in ("endogenous", "exogenous"):
            method = f"sample_{part}"
            check_values(method, mdp, results[method], batch_shape, endogenous=part == "endogenous")
        check_array("reward_terms", results["reward_terms"], terms_shape, "f", "floats")
        check_array("endogenous_reward", results["endogenous_reward"], batch_shape, "f", "floats")
        check_array("is_terminal", results["is_terminal"], batch_shape, "b", "booleans")
