"""Rules about form: the shape, kind and range of what a model returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.mdp import ExoMDP, State
from exo_envs.testing.probe import Probe, fail

_BATCH_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (2, 3))
_REPEATS = 4  # how often the range of everything is looked at


def check_initial(mdp: ExoMDP, rng: np.random.Generator) -> None:
    """Rule ``shapes`` for the initial states."""
    for size in (1, 5):
        draw_initial(mdp, size, rng)


def draw_initial(mdp: ExoMDP, size: int, rng: np.random.Generator) -> State:
    """Initial states of the right shape and kind."""
    state = mdp.sample_initial(size, rng)
    if not isinstance(state, State):
        fail("shapes", f"sample_initial returns {type(state).__name__}, not State")
    check_values("sample_initial", mdp, state.endogenous, (size,), endogenous=True)
    check_values("sample_initial", mdp, state.exogenous, (size,), endogenous=False)
    return state


def collect_states(
    mdp: ExoMDP, num_states: int, any_state: bool, rng: np.random.Generator
) -> State:
    """States met by a random walk of the agent, and half of them uniform if asked for.

    Of a model whose x was recorded none are uniform: nobody knows what follows any other x.
    """
    lanes, any_state = 8, any_state and not mdp.is_recorded
    state = draw_initial(mdp, lanes, rng)
    walk = [state]
    for _ in range(min(mdp.horizon, -(-num_states // lanes))):
        action = rng.integers(mdp.num_actions, size=lanes)
        # As sample_next does, but each answer is looked at before anything is made of it.
        ended = mdp.is_terminal(state)
        check_array("is_terminal", ended, (lanes,), "b", "booleans")
        x = mdp.sample_exogenous(state.exogenous, rng)
        check_values("sample_exogenous", mdp, x, (lanes,), endogenous=False)
        n = mdp.sample_endogenous(state, action, rng)
        check_values("sample_endogenous", mdp, n, (lanes,), endogenous=True)
        parts = zip(state, (n, x), strict=True)
        state = State(*(np.where(ended[:, None], old, new) for old, new in parts))
        walk.append(state)
    joined = (np.concatenate(part) for part in zip(*walk, strict=True))
    met = State(*map(np.ndarray.astype, joined, map(mdp.dtype_of, State._fields)))
    chosen = rng.permutation(len(met.endogenous))[: num_states // 2 if any_state else num_states]
    met = State(met.endogenous[chosen], met.exogenous[chosen])
    if not any_state:
        return met
    anywhere = mdp.sample_uniform(num_states - len(chosen), rng)
    return State(*(np.concatenate(part) for part in zip(met, anywhere, strict=True)))


def check_values(
    method: str, mdp: ExoMDP, values: Any, batch_shape: tuple[int, ...], *, endogenous: bool
) -> None:
    """Rule ``shapes``: numbers of the right kind and shape, each in the range of its variable."""
    ranges = mdp.endogenous_ranges if endogenous else mdp.exogenous_ranges
    shape = (*batch_shape, len(ranges.variables))
    kinds = ("fiu", "numbers") if ranges.is_real else ("iu", "whole numbers")
    check_array(method, values, shape, *kinds)
    found = ranges.misfit(values)
    if found is not None:
        fail(
            "shapes",
            f"{method} gives {found.variable.name!r} the value {found.value}; "
            f"its values are {found.variable.range}",
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


def check_shapes(
    probe: Probe,
    batch_shapes: tuple[tuple[int, ...], ...] = _BATCH_SHAPES,
    repeats: int = _REPEATS,
) -> None:
    """Rule ``shapes`` for every other method, last with all states at once."""
    mdp = probe.mdp
    everything = np.arange(len(probe.actions))
    for batch_shape in (*batch_shapes, *[everything.shape] * repeats):
        index = probe.rng.integers(len(probe.actions), size=batch_shape)
        if batch_shape == everything.shape:
            index = everything
        state, action = probe.at(index)
        results = {name: call(state, action, probe.rng) for name, call in probe.calls().items()}
        terms_shape = (*batch_shape, len(mdp.reward_scopes))
        for part in ("endogenous", "exogenous"):
            method = f"sample_{part}"
            check_values(method, mdp, results[method], batch_shape, endogenous=part == "endogenous")
        check_array("reward_terms", results["reward_terms"], terms_shape, "fiu", "numbers")
        check_array(
            "endogenous_reward", results["endogenous_reward"], batch_shape, "fiu", "numbers"
        )
        check_array("is_terminal", results["is_terminal"], batch_shape, "b", "booleans")
