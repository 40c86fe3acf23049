"""Rules that either hold or do not, at every state that is looked at."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from exo_envs.contract.probe import Probe, check_answer, fail
from exo_envs.core.mdp import IntArray, State

_SUBSETS = 16  # random subsets of x tried in `terms`; each dependency is missed by (3/4)^16
_OTHER_CALLS = 8  # of every method, between two calls that should give the same
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}  # a batch may be added up in another order


def check_purity_and_determinism(probe: Probe) -> None:
    """Rules ``purity`` and ``determinism``."""
    everything = slice(None)
    seed = int(probe.rng.integers(2**31))
    first: dict[str, Any] = {}
    for name, call in probe.calls().items():
        state, action = probe.at(everything)
        result = call(state, action, np.random.default_rng(seed))
        for given, kept in zip((*state, action), (*probe.states, probe.actions), strict=True):
            changed = np.argwhere(given != kept)
            if len(changed):
                fail("purity", f"{name} writes to its arguments {probe.show(changed[0][0])}")
        first[name] = np.array(result)
        if isinstance(result, np.ndarray) and result.flags.writeable:
            result[...] = 0  # what a model returns is the caller's to overwrite
    names, batched = [*first], probe.mdp.is_batched
    _ask_other_things(probe, _OTHER_CALLS if batched else 0)
    for k in range(len(names)):  # each method once right after other questions
        _ask_other_things(probe, 1)
        for name in (names[k:] + names[:k]) * 2 if batched else names[k : k + 1]:
            _compare_again(probe, name, first[name], np.random.default_rng(seed))


def _compare_again(probe: Probe, name: str, first: Any, rng: np.random.Generator) -> None:
    """Rule ``determinism``: a method gives what it gave before."""
    again = np.array(probe.calls()[name](*probe.at(slice(None)), rng))
    _numbers(name, again, first.shape)
    changed = np.argwhere((again != first) & ~(_is_nan(again) & _is_nan(first)))
    if len(changed):
        fail(
            "determinism",
            f"{name} gives another result for the same seed {probe.show(changed[0][0])} "
            "(does it keep a generator, a state, an action or an array that it returned?)",
        )


def _ask_other_things(probe: Probe, rounds: int) -> None:
    """Ask every method about other states and actions, in batches of the same shape.

    A model that remembers an action, or counts its calls, answers differently afterwards. One that
    answers one state at a time remembers the last of them; it is asked about that one only.
    """
    lanes = slice(None) if probe.mdp.is_batched else slice(-1, None)
    order = np.roll(np.arange(len(probe.actions)), -1)[lanes]
    rng = np.random.default_rng(0)
    for k in range(rounds):
        state, action = probe.at(order)[0], probe.at(lanes)[1]
        action = (action + 1 + k) % probe.mdp.num_actions
        for call in probe.calls().values():
            call(state, action, rng)


def _numbers(name: str, answer: Any, shape: tuple[int, ...]) -> Any:
    """An answer as an array; not all models that passed :func:`check_shapes` once always do."""
    array = np.asarray(answer)
    if array.shape != shape or array.dtype.kind not in "biuf":
        fail(
            "shapes",
            f"{name} does not always return numbers of the same shape: {array.dtype} of shape "
            f"{array.shape} instead of {shape}",
        )
    return array


def _is_nan(array: Any) -> Any:
    """Where there is no number, which :func:`check_reward` reports."""
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=np.bool_)


def check_lanes(probe: Probe) -> None:
    """Rule ``batching`` for what is certain: a lane is what the state gives by itself."""
    for name in ("reward_terms", "endogenous_reward", "is_terminal"):
        call = probe.calls()[name]
        lanes = len(probe.actions)
        shape = (lanes, len(probe.mdp.reward_scopes)) if name == "reward_terms" else (lanes,)
        together = _numbers(name, call(*probe.at(slice(None)), probe.rng), shape)
        singles = (call(*probe.at(lane), probe.rng) for lane in range(lanes))
        alone = np.stack([_numbers(name, answer, shape[1:]) for answer in singles])
        differ = np.argwhere(~np.isclose(together, alone, **ROUNDING, equal_nan=True))
        if len(differ):
            fail("batching", f"{name} gives something else in a batch {probe.show(differ[0][0])}")


def check_terms(probe: Probe) -> None:
    """Rule ``terms``: change some variables, and the terms that look at others stay."""
    mdp, (state, action) = probe.mdp, probe.at(slice(None))
    shape = (len(action), len(mdp.reward_scopes))
    terms = _numbers("reward_terms", mdp.reward_terms(state, action), shape)
    looks_at = np.zeros((len(mdp.reward_scopes), len(mdp.exogenous_variables)), dtype=np.bool_)
    for column, scope in enumerate(mdp.scope_indices):
        looks_at[column, list(scope)] = True
    for _ in range(_SUBSETS):
        other = state.exogenous[probe.rng.permutation(len(action))]
        kept = probe.rng.random(state.exogenous.shape) < 0.5
        mixed = State(state.endogenous, np.where(kept, state.exogenous, other))
        paid = _numbers("reward_terms", mdp.reward_terms(mixed, action), terms.shape)
        changed = ~np.isclose(paid, terms, **ROUNDING, equal_nan=True)
        if changed.any():
            lanes, columns = np.nonzero(changed)
            wrong = np.flatnonzero((kept[lanes] | ~looks_at[columns]).all(axis=1))
            if len(wrong):
                lane, column = lanes[wrong[0]], columns[wrong[0]]
                _blame(probe, int(lane), int(column), mixed.exogenous[lane])


def _blame(probe: Probe, lane: int, column: int, other: IntArray) -> NoReturn:
    """Say which variable a term looks at that it should not, and what to do about it."""
    mdp, (state, action) = probe.mdp, probe.at(lane)
    term = mdp.reward_terms(state, action)[column]
    culprit, scope = "other exogenous variables", mdp.reward_scopes[column]
    for j in np.flatnonzero(other != state.exogenous):
        alone = state.exogenous.copy()
        alone[j] = other[j]
        paid = mdp.reward_terms(State(state.endogenous, alone), action)[column]
        if abs(paid - term) > ROUNDING["atol"] and mdp.exogenous_names[j] not in scope:
            culprit = repr(mdp.exogenous_names[j])
            break
    fail(
        "terms",
        f"the reward term of {' and '.join(map(repr, scope))} changes when only {culprit} changes, "
        f"{probe.show(lane)}. A term looks at the variables of its scope alone, by default at one. "
        "If some pay only together (price times load), give them a term of their own: "
        'reward_scopes = (("price", "load"), ...), a scope for each column of reward_terms',
    )


def check_reward(probe: Probe) -> None:
    """Rule ``reward``."""
    mdp, (state, action) = probe.mdp, probe.at(slice(None))
    terms, fees = mdp.reward_terms(state, action), mdp.endogenous_reward(state.endogenous, action)
    ended = mdp.is_terminal(state)
    check_answer(mdp, "reward_terms", terms, state, action)
    check_answer(mdp, "endogenous_reward", fees, state, action)
    check_answer(mdp, "is_terminal", ended, state, action)
    total = np.where(ended, 0.0, terms.sum(axis=-1) + fees)
    infinite = np.argwhere(~np.isfinite(total))
    if len(infinite):
        fail("reward", f"the reward is not finite {probe.show(infinite[0][0])}")
