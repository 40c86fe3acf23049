"""Whether two models have the same exogenous process P(x' | x), whatever x begins with.

Both are asked about the same x, which occur in one or the other, with *common random numbers*: the
same seed. If all x' are equal the process is taken to be the same; one that differs in a share q of
the states that occur is missed with probability (1 - q) ** (number of states), which for 1,024
states and q = 1 % is 3e-5. If they are not, noise may be used in another order. Then many x' are
drawn from a few states, and a G-test for each variable tells distributions apart, over all states
and at a level that is divided by the number of variables. Values that hardly occur are merged, so
that the test holds its level.

What was recorded (``mdp.is_recorded``) is the same if its windows are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray
from exo_envs.core.statistics import g_test
from planners.core.arrays import Ints
from planners.dependence.contingency import count_table

#: Trajectories of each model, and their steps at most, on which x' is compared.
NUM_LANES, NUM_STEPS = 64, 15
#: States in which x' is compared at most.
MAX_STATES = 1_024
#: A model that answers one question at a time is asked about this many times fewer states.
SLOW_MODEL_DIVISOR = 16
#: Without common random numbers: states, and draws of x' from each at most.
NUM_STATES, NUM_DRAWS = 64, 1_024
#: Values, over all variables, that are drawn at most in one comparison.
MAX_VALUES = 2**23
#: Values of one variable that are told apart at most; of more, or real ones, this many bins are.
MAX_LABELS, NUM_BINS = 256, 32
#: Draws, of both models, that a value needs to be counted by itself.
MIN_COUNT = 10


class ProcessComparison(NamedTuple):
    common_noise: bool  # whether all x' were equal under the same noise
    difference: str | None  # a sentence for people; None if none was found


def compare_processes(
    first: ExoMDP, second: ExoMDP, rng: np.random.Generator, *, error_probability: float = 1e-4
) -> ProcessComparison:
    """Tell the exogenous processes of two models apart, which have the same variables.

    Args:
        first: a model.
        second: another one.
        rng: where the randomness comes from.
        error_probability: of finding a difference between two models that have none, as far as a
            G-test is exact.
    """
    seed = int(rng.integers(2**63))
    if first.is_recorded or second.is_recorded:
        return _compare_records(first, second, seed)
    states = _states(first, second, rng)
    after, other = (
        mdp.sample_exogenous(states, np.random.default_rng(seed)) for mdp in (first, second)
    )
    if np.array_equal(after, other):
        return ProcessComparison(True, None)
    # Where x' was another one in the most variables, there is most to be found.
    states = states[np.argsort(-(after != other).sum(axis=1), kind="stable")]
    return ProcessComparison(False, _find_difference(first, second, states, rng, error_probability))


def _share(first: ExoMDP, second: ExoMDP) -> int:
    """How many times fewer states than usual are asked about."""
    return 1 if first.is_batched and second.is_batched else SLOW_MODEL_DIVISOR


def _states(first: ExoMDP, second: ExoMDP, rng: np.random.Generator) -> IntArray:
    """Some x that occur in either model, shape (states, m)."""
    share, width = _share(first, second), max(1, len(first.exogenous_variables))
    lanes = max(1, min(NUM_LANES, MAX_VALUES // (2 * (NUM_STEPS + 1) * width)) // share)
    met = []
    for mdp in (first, second):
        state, following = mdp.trajectories(lanes, min(NUM_STEPS, mdp.horizon), rng)
        met += [state.exogenous, *following]
    states = rng.permutation(np.concatenate(met))
    return np.asarray(states[: max(1, MAX_STATES // share)])


def _compare_records(first: ExoMDP, second: ExoMDP, seed: int) -> ProcessComparison:
    """Whether two records are the same, where they are looked at."""
    steps = min(NUM_STEPS, first.horizon, second.horizon)
    windows = []
    for mdp in (first, second):
        state, following = mdp.trajectories(NUM_LANES, steps, np.random.default_rng(seed))
        windows.append(np.stack([state.exogenous, *following]))
    one, two = windows
    if first.is_recorded == second.is_recorded and np.array_equal(one, two):
        return ProcessComparison(True, None)
    column = int((one != two).any(axis=(0, 1)).argmax())
    return ProcessComparison(False, f"{first.exogenous_names[column]!r} was recorded otherwise")


def _find_difference(
    first: ExoMDP,
    second: ExoMDP,
    states: IntArray,
    rng: np.random.Generator,
    error_probability: float,
) -> str | None:
    """What is said of the variable whose x' differs beyond doubt, the clearest of several."""
    names = first.exogenous_names
    states = states[: max(1, NUM_STATES // _share(first, second))]
    draws = max(32, min(NUM_DRAWS // _share(first, second), MAX_VALUES // states.size))
    asked = np.repeat(states, draws, axis=0)
    row = np.repeat(np.arange(len(states)), draws)
    drawn = [mdp.sample_exogenous(asked, rng) for mdp in (first, second)]
    clearest = math.log(error_probability / len(names))
    found = None
    for j, name in enumerate(names):
        values, labels = _labels(np.concatenate([x[:, j] for x in drawn]))
        one, two = (
            count_table(row, len(states), part, len(values)) for part in np.split(labels, 2)
        )
        if (one == two).all():
            continue
        log_p = g_test(*_merged(one, two)).log_p
        if log_p < clearest:
            clearest = log_p
            state, label = np.unravel_index(np.abs(one - two).argmax(), one.shape)
            shares = (counts[state, label] / draws for counts in (one, two))
            found = (
                f"there is a state from which {name!r} becomes {values[label]:g} with probability "
                "{:.3f} in the one model and {:.3f} in the other".format(*shares)
            )
    return found


def _labels(column: IntArray) -> tuple[FloatArray | IntArray, Ints]:
    """The values that a variable may have, and which of them each draw is.

    Of real numbers, and where there are very many values, neighbouring ones are taken together.
    """
    lowest, highest = column.min(), column.max()
    if column.dtype.kind != "f" and highest - lowest < MAX_LABELS:
        return np.arange(lowest, highest + 1), (column - lowest).astype(np.int64)
    values = np.unique(np.quantile(column, np.arange(NUM_BINS) / NUM_BINS, method="lower"))
    return values, np.searchsorted(values, column, side="right").astype(np.int64) - 1


def _merged(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Counts (states, values) with values that hardly occur taken together, state by state."""
    rare = first + second < MIN_COUNT

    def merge(counts: Ints) -> Ints:
        rest = np.where(rare, counts, 0).sum(axis=1, keepdims=True)
        return np.concatenate([np.where(rare, 0, counts), rest], axis=1)

    return merge(first), merge(second)
