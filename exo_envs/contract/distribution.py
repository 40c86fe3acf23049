"""Rule ``distribution``: the probabilities of n' that a model gives are those it draws from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exo_envs.contract.answers import Question, check_part, check_rewards
from exo_envs.contract.probe import Probe, fail, rule
from exo_envs.core.mdp import FloatArray, IntArray, Successors

_RULE = "distribution"
_SAMPLED_STATES = 12  # states whose n' is drawn many times
_TOLERANCE = 1e-9  # how far probabilities may be from summing to 1


def gives_distribution(probe: Probe) -> bool:
    """Whether the model gives probabilities of n' at all."""
    return probe.mdp.endogenous_distribution(*probe.at(slice(None))) is not None


def check_given(probe: Probe) -> Successors:
    """Shapes, kinds and sums; what is given at all states."""
    for shape in ((), (2, 3)):
        _ask(probe, probe.rng.integers(len(probe.actions), size=shape))
    return _ask(probe, np.arange(len(probe.actions)))


def check_distribution(probe: Probe, num_samples: int, error_probability: float) -> None:
    """Every n' that is drawn is among those given, and as often as is said."""
    everything = np.arange(len(probe.actions))
    found = check_given(probe)
    drawn = probe.mdp.sample_endogenous(*probe.at(everything), probe.rng)
    for lane in everything:
        alone = _ask(probe, lane)
        _refuse_unknown(probe, lane, drawn[lane : lane + 1], alone)
        together = Successors(found.endogenous[lane], found.probabilities[lane])
        if not _are_equal(alone, together):
            fail(
                _RULE,
                f"endogenous_distribution gives something else in a batch {probe.show(lane)}",
            )
    share = error_probability / _SAMPLED_STATES
    for lane in probe.rng.integers(len(probe.actions), size=_SAMPLED_STATES):
        state, action = probe.at(np.full(num_samples, lane))
        _compare(probe, lane, probe.mdp.sample_endogenous(state, action, probe.rng), share)


def _ask(probe: Probe, index: Any) -> Successors:
    """What the model gives, of the right shape and kind."""
    (state, action), shape = probe.at(index), np.shape(index)
    found = probe.mdp.endogenous_distribution(state, action)
    method = "endogenous_distribution"
    if not isinstance(found, Successors):
        what = type(found).__name__
        fail(_RULE, f"{method} returns {what}; it should be Successors in all states, or None")
    for given, kept in zip(
        (*state, action), (*probe.at(index)[0], probe.at(index)[1]), strict=True
    ):
        if not np.array_equal(given, kept):
            fail("purity", f"{method} writes to its arguments")
    width = np.shape(found.probabilities)[-1:] or (0,)
    with rule("shapes", not_finite=_RULE):
        probabilities = (found.probabilities, (*shape, *width), Question())
        check_rewards(probe.mdp, method, *probabilities)
        check_part(probe.mdp, method, "endogenous", found.endogenous, (*shape, *width), Question())
    total = np.asarray(found.probabilities.sum(axis=-1))
    if (found.probabilities < 0).any() or not (np.abs(total - 1.0) <= _TOLERANCE).all():
        fail(_RULE, f"the probabilities of {method} are negative or do not sum to 1")
    return found


def _table(found: Successors) -> dict[tuple[int, ...], float]:
    """The probability of each n' of one state; what was given in parts is added up."""
    table: dict[tuple[int, ...], float] = {}
    for n, probability in zip(found.endogenous.tolist(), found.probabilities, strict=True):
        if probability > 0:
            table[tuple(n)] = table.get(tuple(n), 0.0) + float(probability)
    return table


def _are_equal(first: Successors, second: Successors) -> bool:
    one, two = _table(first), _table(second)
    return one.keys() == two.keys() and all(math.isclose(one[n], two[n]) for n in one)


def _refuse_unknown(probe: Probe, lane: Any, drawn: IntArray, found: Successors) -> None:
    table = _table(found)
    for n in drawn.tolist():
        if tuple(n) not in table:
            fail(
                _RULE,
                f"sample_endogenous gives n' = {n}, to which endogenous_distribution gives no "
                f"probability, {probe.show(lane)}",
            )


def _compare(probe: Probe, lane: Any, drawn: IntArray, error_probability: float) -> None:
    """Frequencies against probabilities.

    A third of the draws chooses the n' that are more frequent than they should be, the rest tests
    whether they are: by more than sqrt(log(1 / p) / (2 N)) with a probability of at most p
    (Hoeffding's inequality).
    """
    found = _ask(probe, lane)
    _refuse_unknown(probe, lane, drawn, found)
    table = _table(found)
    cut = len(drawn) // 3
    first, rest = _frequencies(drawn[:cut], table), _frequencies(drawn[cut:], table)
    said = np.array(list(table.values()))
    event = first > said
    excess = (rest - said)[event].sum()
    if excess > math.sqrt(math.log(1 / error_probability) / (2 * max(1, len(drawn) - cut))):
        most = int(np.abs(rest - said).argmax())
        fail(
            _RULE,
            f"n' = {list(table)[most]} has the probability {said[most]:.1%} by "
            f"endogenous_distribution, but {rest[most]:.1%} of the draws {probe.show(lane)}",
        )


def _frequencies(drawn: IntArray, table: dict[tuple[int, ...], float]) -> FloatArray:
    place = {n: k for k, n in enumerate(table)}
    codes = [place[tuple(n)] for n in drawn.tolist()]
    return np.bincount(codes, minlength=len(place)) / max(1, len(codes))
