"""Rule ``batching``: lanes of a batch neither look at each other nor share their noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from exo_envs.contract.probe import Probe, check_answer, draw_initial, fail
from exo_envs.core.mdp import FloatArray, IntArray, State
from exo_envs.core.statistics import find_difference

_BATCH_STATES = 4  # states whose samples `batching` compares
_METHODS = {"sample_exogenous": "exogenous", "sample_endogenous": "endogenous"}
_KEPT = 8  # lanes that stay as they are, at most
_COLUMNS = 4  # variables of n and of x whose least and greatest value other lanes are given
_SEEDS = 16  # batches that are drawn to look at their noise
_STATES = 4  # states that many lanes of a batch are in, to look at their noise


def check_neighbours(probe: Probe, num_samples: int, error_probability: float) -> None:
    """Rule ``batching``: lanes have the distribution that they have beside other lanes.

    A few lanes keep their states and actions, and all others are moved to one state. Under one
    seed those that are kept should stay as they are. A model whose noise depends on the state
    may do otherwise for good reasons, so only then ``num_samples`` of both are compared. A good
    model fails with at most ``error_probability``.
    """
    lanes, here = np.arange(len(probe.actions)), probe.at(slice(None))
    order, few = probe.rng.permutation(len(lanes)), min(_KEPT, len(lanes) // 2)
    others = [
        (kept, _with_others(probe, np.delete(lanes, kept), place))
        for kept in (order[:few], order[few : 2 * few])  # so each lane is moved at least once
        for place in _extreme_lanes(probe)
    ]
    for method in _METHODS:
        seed = int(probe.rng.integers(2**31))
        drawn = _draw(probe, method, here, seed)
        changes = [
            int(np.count_nonzero((_draw(probe, method, there, seed) != drawn)[kept]))
            for kept, there in others
        ]
        if any(changes):
            kept, there = others[int(np.argmax(changes))]
            seeds = probe.rng.integers(2**31, size=(2, num_samples))
            samples = [
                np.stack([_draw(probe, method, batch, int(k))[kept] for k in own])
                for batch, own in zip((here, there), seeds, strict=True)
            ]
            _compare(probe, method, kept, samples, error_probability / len(_METHODS))


def _draw(probe: Probe, method: str, batch: tuple[State, IntArray], seed: int) -> IntArray:
    state, action = batch
    copies = State(*(part.copy() for part in state)), action.copy()
    return probe.calls()[method](*copies, np.random.default_rng(seed))


def _extreme_lanes(probe: Probe) -> list[int]:
    """Lanes whose states have the least and the greatest values of some variables."""
    found = set()
    for part in probe.states:
        for column in probe.rng.permutation(part.shape[-1])[:_COLUMNS]:
            found |= {int(part[:, column].argmin()), int(part[:, column].argmax())}
    return sorted(found)


def _with_others(probe: Probe, moved: IntArray, place: int) -> tuple[State, IntArray]:
    """The batch with some lanes in the state of one of them, all with its action."""
    state, action = probe.at(slice(None))
    for values in (*state, action):
        values[moved] = values[place]
    return state, action


def _compare(
    probe: Probe, method: str, kept: IntArray, samples: list[Any], error_probability: float
) -> None:
    """Compare the lane and the variable that differ most in the first third of both samples.

    :func:`find_difference` tests on the rest.
    """
    first, second = (sample[: len(sample) // 3] for sample in samples)  # (N, lanes, variables)
    if not first.size:
        return
    gaps = _largest_gap(first, second)
    lane, column = np.unravel_index(int(gaps.argmax()), gaps.shape)
    one, other = (sample[:, lane, column] for sample in samples)
    found = find_difference(one, other, error_probability)
    if found:
        variable = getattr(probe.mdp, f"{_METHODS[method]}_variables")[column]
        fail(
            "batching",
            f"{method} looks at other lanes of the batch: {variable.name!r} is {found.value} in "
            f"{found.first:.0%} of the samples {probe.show(kept[lane])}, but in {found.second:.0%} "
            "if other lanes are in another state",
        )


def _largest_gap(first: Any, second: Any) -> FloatArray:
    """The distance of Kolmogorov and Smirnov between two samples, of each lane and variable."""
    both = np.concatenate([first, second])  # (samples, lanes, variables)
    order = both.argsort(axis=0, kind="stable")
    steps = np.where(order < len(first), 1 / len(first), -1 / len(second))
    values = np.take_along_axis(both, order, axis=0)
    is_last = np.ones(both.shape, dtype=np.bool_)  # of its value
    is_last[:-1] = values[1:] != values[:-1]
    return np.abs(steps.cumsum(axis=0) * is_last).max(axis=0)


def shares_noise(probe: Probe) -> bool:
    """Whether lanes seem to be drawn with the same noise, or without that of the generator.

    Lanes of one state should not all be drawn alike while seeds differ, and not differ while all
    seeds give the same batch. This only says where a statistical test is worth its time.
    """
    seed, count = int(probe.rng.integers(2**31)), min(_STATES, len(probe.actions))
    same = np.arange(len(probe.actions)) % count
    for method in _METHODS:
        call = probe.calls()[method]
        seeds = range(seed, seed + _SEEDS)
        drawn = np.stack([call(*probe.at(same), np.random.default_rng(k)) for k in seeds])
        for state in range(count):
            lanes = drawn[:, state::count]
            alike = (lanes == lanes[:, :1]).all(axis=(0, 1))
            fixed = (lanes == lanes[:1]).all(axis=(0, 1))
            if (alike != fixed).any():
                return True
    return False


def check_batching(probe: Probe, num_samples: int, error_probability: float) -> None:
    """A batch in which each of several states has N lanes against N calls of each alone."""
    mdp, rng = probe.mdp, probe.rng

    def comparisons() -> Iterator[tuple[str, str, State, State]]:
        singles = [draw_initial(mdp, 1, rng) for _ in range(num_samples)]
        apart = State(*(np.concatenate(part) for part in zip(*singles, strict=True)))
        yield "sample_initial", "", draw_initial(mdp, num_samples, rng), apart
        lanes = rng.integers(len(probe.actions), size=_BATCH_STATES)
        batch = _draw_next(probe, *probe.at(np.tile(lanes, num_samples)))
        for k, lane in enumerate(lanes):
            singles = [_draw_next(probe, *probe.at(lane)) for _ in range(num_samples)]
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


def _draw_next(probe: Probe, state: State, action: Any) -> State:
    """Both parts of the next state, also of a terminal one."""
    mdp = probe.mdp
    n = mdp.sample_endogenous(state, action, probe.rng)
    check_answer(mdp, "sample_endogenous", n, state, action)
    x = mdp.sample_exogenous(state.exogenous, probe.rng)
    check_answer(mdp, "sample_exogenous", x, state, action)
    return State(n, x)
