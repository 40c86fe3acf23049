"""Rules that either hold or do not, at every state that is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.adapter import AdaptedMDP
from exo_envs.mdp import FloatArray, State
from exo_envs.testing.probe import Probe, fail

_SUBSETS = 16  # random subsets of x tried in `terms`; each dependency is missed by (3/4)^16


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
    for name, call in reversed(probe.calls().items()):
        state, action = probe.at(everything)
        again = np.array(call(state, action, np.random.default_rng(seed)))
        changed = np.argwhere((again != first[name]) & ~(_is_nan(again) & _is_nan(first[name])))
        if len(changed):
            fail(
                "determinism",
                f"{name} gives another result for the same seed {probe.show(changed[0][0])} "
                "(does it keep a generator, a state or an array that it returned?)",
            )


def _is_nan(array: Any) -> Any:
    """Where there is no number, which :func:`check_reward` reports."""
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=np.bool_)


def check_lanes(probe: Probe) -> None:
    """Rule ``batching`` for what is certain: a lane is what the state gives by itself."""
    for name in ("reward_terms", "endogenous_reward", "is_terminal"):
        call = probe.calls()[name]
        together = np.asarray(call(*probe.at(slice(None)), probe.rng))
        for lane in range(len(probe.actions)):
            if not np.array_equal(together[lane], call(*probe.at(lane), probe.rng)):
                fail("batching", f"{name} gives something else in a batch {probe.show(lane)}")


def check_terms(probe: Probe) -> None:
    """Rule ``terms``: change some variables, and the terms of the others stay."""
    state, action = probe.at(slice(None))
    terms = probe.mdp.reward_terms(state, action)
    for _ in range(_SUBSETS):
        other = state.exogenous[probe.rng.permutation(len(action))]
        kept = probe.rng.random(state.exogenous.shape) < 0.5
        mixed = State(state.endogenous, np.where(kept, state.exogenous, other))
        wrong = np.argwhere(kept & (probe.mdp.reward_terms(mixed, action) != terms))
        if len(wrong):
            lane, i = wrong[0]
            fail(
                "terms",
                f"the reward term of {probe.mdp.exogenous_names[i]!r} changes when only other "
                f"exogenous variables do, {probe.show(lane)}",
            )


def check_reward(probe: Probe) -> None:
    """Rule ``reward``."""
    mdp, (state, action) = probe.mdp, probe.at(slice(None))
    total = mdp.reward_terms(state, action).sum(axis=-1)
    total = total + mdp.endogenous_reward(state.endogenous, action)
    total = np.where(mdp.is_terminal(state), 0.0, total)
    infinite = np.argwhere(~np.isfinite(total))
    if len(infinite):
        fail("reward", f"the reward is not finite {probe.show(infinite[0][0])}")
    _compare(probe, "reward() gives", mdp.reward(state, action), total)


def check_payment(probe: Probe, mdp: AdaptedMDP) -> None:
    """Rule ``reward``: an adapted environment's own steps pay what the terms add up to."""
    state, action = probe.at(slice(None))
    _, paid = mdp.observed_step(state, action, probe.rng)
    hint = (
        " (do some variables pay only together? make one variable of them; or does the reward "
        "depend on chance? give AdaptedMDP reward_samples and check_mdp reward_range)"
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
