"""Rules that either hold or do not, at every state that is looked at."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from exo_envs.adapter import AdaptedMDP
from exo_envs.mdp import FloatArray, IntArray, State
from exo_envs.testing.form import check_array
from exo_envs.testing.probe import Probe, fail

_SUBSETS = 16  # random subsets of x tried in `terms`; each dependency is missed by (3/4)^16
_OTHER_CALLS = 24  # of every method, between two calls that should give the same
_ROUNDING = {"rtol": 1e-9, "atol": 1e-9}  # a batch may be added up in another order


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
    _ask_other_things(probe)
    for name, call in reversed(probe.calls().items()):
        state, action = probe.at(everything)
        again = np.array(call(state, action, np.random.default_rng(seed)))
        _numbers(name, again, first[name].shape)
        changed = np.argwhere((again != first[name]) & ~(_is_nan(again) & _is_nan(first[name])))
        if len(changed):
            fail(
                "determinism",
                f"{name} gives another result for the same seed {probe.show(changed[0][0])} "
                "(does it keep a generator, a state, an action or an array that it returned?)",
            )


def _ask_other_things(probe: Probe) -> None:
    """Ask about other states and actions, in batches of the same shape, and start anew.

    A model that remembers an action, or counts its calls, answers differently afterwards.
    """
    order = np.roll(np.arange(len(probe.actions)), 1)
    rng = np.random.default_rng(0)
    for k in range(_OTHER_CALLS if probe.mdp.is_batched else 1):
        state, action = probe.at(order)
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
        for lane in range(lanes):
            alone = _numbers(name, call(*probe.at(lane), probe.rng), shape[1:])
            if not np.allclose(together[lane], alone, **_ROUNDING, equal_nan=True):
                fail("batching", f"{name} gives something else in a batch {probe.show(lane)}")


def look_at_each_other(probe: Probe) -> bool:
    """Whether lanes of what is drawn seem to depend on each other, by a few calls.

    Under one seed, other lanes should stay as they are if the first one changes; and lanes of one
    state should not all be drawn alike. A model whose noise depends on the state may do otherwise
    for good reasons, so this only says where a statistical test is worth its time.
    """
    seed = int(probe.rng.integers(2**31))
    one, other = probe.at(slice(None)), probe.at(slice(None))
    for part, kept in zip((*other[0], other[1]), (*probe.states, probe.actions), strict=True):
        part[0] = kept[-1]
    same = probe.at(np.zeros(len(probe.actions), dtype=np.int64))
    for name in ("sample_exogenous", "sample_endogenous"):
        call = probe.calls()[name]
        here, there = (np.asarray(call(*at, np.random.default_rng(seed))) for at in (one, other))
        if (here[1:] != there[1:]).any():
            return True
        drawn = [np.asarray(call(*same, np.random.default_rng(seed + k))) for k in range(4)]
        alike = np.all([(batch == batch[:1]).all(axis=0) for batch in drawn], axis=0)
        if (alike & np.any([batch[0] != drawn[0][0] for batch in drawn], axis=0)).any():
            return True
    return False


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
        changed = ~np.isclose(paid, terms, **_ROUNDING, equal_nan=True)
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
        if abs(paid - term) > _ROUNDING["atol"] and mdp.exogenous_names[j] not in scope:
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
    ended, lanes = mdp.is_terminal(state), action.shape
    shape = (*lanes, len(mdp.reward_scopes))
    check_array("reward_terms", terms, shape, "fiu", "numbers")
    check_array("endogenous_reward", fees, lanes, "fiu", "numbers")
    check_array("is_terminal", ended, lanes, "b", "booleans")
    total = np.where(ended, 0.0, terms.sum(axis=-1) + fees)
    infinite = np.argwhere(~np.isfinite(total))
    if len(infinite):
        fail("reward", f"the reward is not finite {probe.show(infinite[0][0])}")
    _compare(probe, "reward() gives", mdp.reward(state, action), total)


def check_payment(probe: Probe, mdp: AdaptedMDP) -> None:
    """Rule ``reward``: an adapted environment's own steps pay what the terms add up to."""
    state, action = probe.at(slice(None))
    _, paid = mdp.observed_step(state, action, probe.rng)
    hint = (
        " (do some variables pay only together? give AdaptedMDP reward_scopes, or make one "
        "variable of them; or does the reward depend on chance? give AdaptedMDP reward_samples "
        "and check_mdp reward_range)"
    )
    _compare(probe, "the environment pays", paid, mdp.reward(state, action), hint)


def _compare(
    probe: Probe, source: str, reward: FloatArray, total: FloatArray, hint: str = ""
) -> None:
    wrong = np.flatnonzero(~np.isclose(reward, total, rtol=1e-9, atol=1e-9))
    if len(wrong):
        lane = wrong[0]
        fail(
            "reward",
            f"{source} {reward[lane]:g} but the terms add up to {total[lane]:g} "
            f"{probe.show(lane)}{hint}",
        )


def check_terminal(probe: Probe) -> None:
    """Rule ``terminal``."""
    mdp, (state, action) = probe.mdp, probe.at(slice(None))
    ended = np.flatnonzero(mdp.is_terminal(state))
    if not len(ended):
        return
    state, action = probe.at(ended)
    following = mdp.sample_next(state, action, probe.rng)
    moved = (following.endogenous != state.endogenous).any(axis=-1) | (
        following.exogenous != state.exogenous
    ).any(axis=-1)
    paid = mdp.reward(state, action) != 0
    for wrong, what in ((moved, "moves on"), (paid, "pays")):
        if wrong.any():
            fail("terminal", f"a terminal state {what} {probe.show(ended[wrong.argmax()])}")
