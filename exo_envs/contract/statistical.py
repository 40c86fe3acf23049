"""Rules about distributions. A model that keeps them fails with at most a stated probability."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from exo_envs.contract.comparison import find_difference
from exo_envs.contract.form import check_answer, draw_initial
from exo_envs.contract.probe import Probe, fail
from exo_envs.core.mdp import IntArray, State
from exo_envs.sources.simulators.mdp import AdaptedMDP

_BATCH_STATES = 4  # states whose samples `batching` compares
_STEP_STATES = 12  # states whose steps are compared with those of an adapted environment


def check_batching(probe: Probe, num_samples: int, error_probability: float) -> None:
    """A batch in which each of several states has N lanes against N calls of each alone."""
    mdp, rng = probe.mdp, probe.rng

    def comparisons() -> Iterator[tuple[str, str, State, State]]:
        singles = [draw_initial(mdp, 1, rng) for _ in range(num_samples)]
        apart = State(*(np.concatenate(part) for part in zip(*singles, strict=True)))
        yield "sample_initial", "", draw_initial(mdp, num_samples, rng), apart
        lanes = rng.integers(len(probe.actions), size=_BATCH_STATES)
        batch = _draw(probe, *probe.at(np.tile(lanes, num_samples)))
        for k, lane in enumerate(lanes):
            singles = [_draw(probe, *probe.at(lane)) for _ in range(num_samples)]
            apart = State(*(np.array(part) for part in zip(*singles, strict=True)))
            together = State(*(part[k::_BATCH_STATES] for part in batch))
            yield "sample_{part}", probe.show(lane), together, apart

    parts = {"endogenous": mdp.endogenous_variables, "exogenous": mdp.exogenous_variables}
    share = error_probability / ((1 + _BATCH_STATES) * max(1, sum(map(len, parts.values()))))
    for method, where, together, apart in comparisons():
        for part, variables in parts.items():
            for i, variable in enumerate(variables):
                found = find_difference(
                    getattr(together, part)[:, i], getattr(apart, part)[:, i], share
                )
                if found:
                    fail(
                        "batching",
                        f"{method.format(part=part)} has another distribution in a batch than one "
                        f"by one: {variable.name!r} is {found.value} in {found.first:.0%} against "
                        f"{found.second:.0%} of the samples {where} (do lanes share their "
                        "noise, or look at each other?)",
                    )


def _draw(probe: Probe, state: State, action: Any) -> State:
    """Both parts of the next state, also of a terminal one."""
    mdp = probe.mdp
    n = mdp.sample_endogenous(state, action, probe.rng)
    check_answer(mdp, "sample_endogenous", n, state, action)
    x = mdp.sample_exogenous(state.exogenous, probe.rng)
    check_answer(mdp, "sample_exogenous", x, state, action)
    return State(n, x)


def check_exogeneity(
    probe: Probe, mdp: AdaptedMDP, num_samples: int, error_probability: float
) -> None:
    """An adapted environment's own steps against P(n'|n,a,x) P(x'|x), which the model draws from.

    Compared are each x'^i, and each pair of an n'^j and an x'^i, among the steps that go on: what
    x' is after the end does not matter. An end that looks at x' shows all the same, since it
    changes the distribution of x' in the steps that go on.
    """
    k, m = len(mdp.endogenous_variables) - 1, len(mdp.exogenous_variables)  # without `done`
    lanes = np.flatnonzero(~mdp.is_terminal(probe.states))
    if not len(lanes) or not m:
        return
    share = error_probability / (_STEP_STATES * (m + k * m))
    for lane in probe.rng.choice(lanes, size=_STEP_STATES):
        state, action = probe.at(np.full(num_samples, lane))
        seen = _going_on(mdp, mdp.observed_step(state, action, probe.rng)[0])
        claimed = _going_on(mdp, mdp.sample_next(state, action, probe.rng))
        for i, name in enumerate(mdp.exogenous_names):
            found = find_difference(seen.exogenous[:, i], claimed.exogenous[:, i], share)
            if found:
                fail(
                    "exogeneity",
                    f"with the same x, {name!r} becomes {found.value} in {found.first:.0%} of the "
                    f"steps {probe.show(lane)}, but in {found.second:.0%} of those from the "
                    f"reference n = {mdp.reference.endogenous.tolist()} with its action "
                    f"{mdp.reference_action} (among steps that go on: does x' depend on n or the "
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


def _going_on(mdp: AdaptedMDP, states: State) -> State:
    alive = ~mdp.is_terminal(states)
    return State(states.endogenous[alive], states.exogenous[alive])


def _pairs(states: State, j: int, i: int, size: int) -> IntArray:
    """The values of n^j and x^i as one integer each; x^i has ``size`` values."""
    return states.endogenous[:, j] * size + states.exogenous[:, i]


def check_mean_payment(
    probe: Probe, mdp: AdaptedMDP, num_samples: int, reward_range: float, error_probability: float
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
        _, paid = mdp.observed_step(*probe.at(np.full(num_samples, lane)), probe.rng)
        if np.ptp(paid) > reward_range:
            fail(
                "reward",
                f"the environment pays {paid.min():g} and {paid.max():g}, further apart than "
                f"reward_range={reward_range:g} {probe.show(lane)}",
            )
        state, action = probe.at(lane)
        total = float(mdp.reward(state, action))
        changed = int(np.count_nonzero(state.exogenous != mdp.reference.exogenous))
        width = 3 if mdp.tells_reward_terms else max(1, 2 * changed - 1)
        spread = 1 / num_samples + width**2 / mdp.reward_samples
        bound = math.sqrt(math.log(2 * _STEP_STATES / error_probability) / 2 * spread)
        if abs(paid.mean() - total) > bound * reward_range:
            fail(
                "reward",
                f"the environment pays {paid.mean():g} on average over {num_samples} steps, but "
                f"the terms add up to {total:g} {probe.show(lane)}",
            )
