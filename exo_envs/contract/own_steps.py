"""Rules about the own steps of what a model was made of, such as an adapted environment."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from exo_envs.contract.original import HasOwnSteps
from exo_envs.contract.rules import ROUNDING, Probe, fail
from exo_envs.core.mdp import ExoMDP, IntArray, State
from exo_envs.core.statistics import find_difference

_STEP_STATES = 12  # states whose steps are compared with those of the model


def check_payment(probe: Probe, own: HasOwnSteps) -> None:
    """Rule ``reward``: an adapted environment's own steps pay what the terms add up to."""
    state, action = probe.at(slice(None))
    _, paid = own.observed_step(state, action, probe.rng)
    hint = (
        " (do some variables pay only together? give AdaptedMDP reward_scopes, or make one "
        "variable of them; or does the reward depend on chance? give AdaptedMDP reward_samples "
        "and check_mdp reward_range)"
    )
    total = probe.mdp.reward(state, action)
    wrong = np.flatnonzero(~np.isclose(paid, total, **ROUNDING, equal_nan=True))
    if len(wrong):
        lane = wrong[0]
        fail(
            "reward",
            f"the environment pays {paid[lane]:g} but the terms add up to {total[lane]:g} "
            f"{probe.show(lane)}{hint}",
        )


def check_exogeneity(
    probe: Probe, own: HasOwnSteps, num_samples: int, error_probability: float
) -> None:
    """An adapted environment's own steps against P(n'|n,a,x) P(x'|x), which the model draws from.

    Compared are each x'^i, and each pair of an n'^j and an x'^i, among the steps that go on: what
    x' is after the end does not matter. An end that looks at x' shows all the same, since it
    changes the distribution of x' in the steps that go on.
    """
    mdp = probe.mdp
    k, m = len(mdp.endogenous_variables) - 1, len(mdp.exogenous_variables)  # without `done`
    lanes = np.flatnonzero(~mdp.is_terminal(probe.states))
    if not len(lanes) or not m:
        return
    share = error_probability / (_STEP_STATES * (m + k * m))
    for lane in probe.rng.choice(lanes, size=_STEP_STATES):
        state, action = probe.at(np.full(num_samples, lane))
        seen = _going_on(mdp, own.observed_step(state, action, probe.rng)[0])
        claimed = _going_on(mdp, mdp.sample_next(state, action, probe.rng))
        for i, name in enumerate(mdp.exogenous_names):
            found = find_difference(seen.exogenous[:, i], claimed.exogenous[:, i], share)
            if found:
                fail(
                    "exogeneity",
                    f"with the same x, {name!r} becomes {found.value} in {found.first:.0%} of the "
                    f"steps {probe.show(lane)}, but in {found.second:.0%} of those from the "
                    f"reference n = {own.reference.endogenous.tolist()} with its action "
                    f"{own.reference_action} (among steps that go on: does x' depend on n or the "
                    "action, or the end of the episode on x'?)",
                )
        for j, i in product(range(k), range(m)):
            size = int(mdp.exogenous_sizes[i])
            found = find_difference(_pairs(seen, j, i, size), _pairs(claimed, j, i, size), share)
            if found:
                n, x = divmod(found.value, size)
                fail(
                    "exogeneity",
                    f"{mdp.endogenous_variables[j].name!r} looks at the next x: it becomes {n} "
                    f"and {mdp.exogenous_names[i]!r} becomes {x} in {found.first:.0%} of the "
                    f"steps, but in {found.second:.0%} if n' and x' are drawn independently, "
                    f"{probe.show(lane)}",
                )


def _going_on(mdp: ExoMDP, states: State) -> State:
    alive = ~mdp.is_terminal(states)
    return State(states.endogenous[alive], states.exogenous[alive])


def _pairs(states: State, j: int, i: int, size: int) -> IntArray:
    """The values of n^j and x^i as one integer each; x^i has ``size`` values."""
    return states.endogenous[:, j] * size + states.exogenous[:, i]


def check_mean_payment(
    probe: Probe, own: HasOwnSteps, num_samples: int, reward_range: float, error_probability: float
) -> None:
    """What an adapted environment pays on average against the sum of the terms.

    The sum is itself a mean, over ``reward_samples`` seeds. What is averaged there is made of
    2 d - 1 rewards if d variables differ from the reference (the terms' d, less d - 1 times the
    one with none changed), or of a reward and two sums of terms if the environment tells these.
    Means of N values with the range b and of M values with the range w b differ by more than
    b sqrt(log(2 / p) / 2 * (1 / N + w^2 / M)), if they have one expectation, with a probability
    of at most p (Hoeffding's inequality).
    """
    for lane in probe.rng.integers(len(probe.actions), size=_STEP_STATES):
        _, paid = own.observed_step(*probe.at(np.full(num_samples, lane)), probe.rng)
        if np.ptp(paid) > reward_range:
            fail(
                "reward",
                f"the environment pays {paid.min():g} and {paid.max():g}, further apart than "
                f"reward_range={reward_range:g} {probe.show(lane)}",
            )
        state, action = probe.at(lane)
        total = float(probe.mdp.reward(state, action))
        changed = int(np.count_nonzero(state.exogenous != own.reference.exogenous))
        width = 3 if own.tells_reward_terms else max(1, 2 * changed - 1)
        spread = 1 / num_samples + width**2 / own.reward_samples
        bound = math.sqrt(math.log(2 * _STEP_STATES / error_probability) / 2 * spread)
        if abs(paid.mean() - total) > bound * reward_range:
            fail(
                "reward",
                f"the environment pays {paid.mean():g} on average over {num_samples} steps, but "
                f"the terms add up to {total:g} {probe.show(lane)}",
            )
