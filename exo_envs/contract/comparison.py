"""Whether two samples come from one distribution, with a stated error probability."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray

#: Bins in which samples of real numbers are compared.
NUM_BINS = 16


class Difference(NamedTuple):
    """A value whose frequency differs between two samples."""

    value: float  # whole, or the least of a bin of real ones
    first: float
    second: float


def find_difference(
    first: IntArray, second: IntArray, error_probability: float
) -> Difference | None:
    """Tell two samples of numbers, shapes (N,) and (M,), apart.

    A third of each sample chooses an event: the values that are more frequent in the first. The
    rest tests it. An event that has the same probability in both samples has a frequency that is
    higher in the first by more than sqrt(log(1 / p) / 2 * (1 / N' + 1 / M')) with a probability of
    at most p (Hoeffding's inequality; N' and M' are what is left). Choosing first finds
    differences that are spread over many values, at the price of a single comparison.

    Returns:
        The value that differs most, or None if the samples may well come from one distribution;
        samples of one distribution give a value with at most ``error_probability``.
    """
    cut, other_cut = len(first) // 3, len(second) // 3
    if not cut or not other_cut:
        return None
    both = np.concatenate([first, second])
    if both.dtype.kind == "f":
        both = _in_bins(both)
    values, codes = np.unique(both, return_inverse=True)
    one, two = codes[: len(first)], codes[len(first) :]

    def frequencies(sample: IntArray) -> FloatArray:
        return np.bincount(sample, minlength=len(values)) / len(sample)

    event = frequencies(one[:cut]) > frequencies(two[:other_cut])
    gap = (frequencies(one[cut:]) - frequencies(two[other_cut:]))[event].sum()
    spread = 1 / len(one[cut:]) + 1 / len(two[other_cut:])
    if gap <= math.sqrt(math.log(1 / error_probability) / 2 * spread):
        return None
    in_first, in_second = frequencies(one), frequencies(two)
    most = int(np.abs(in_first - in_second).argmax())
    value = values[most].item()
    return Difference(value, float(in_first[most]), float(in_second[most]))


def _in_bins(values: FloatArray) -> FloatArray:
    """Real numbers by the least of their bin: as many in each, whichever sample they are of."""
    starts = np.unique(np.quantile(values, np.arange(NUM_BINS) / NUM_BINS, method="lower"))
    return starts[np.searchsorted(starts, values, side="right") - 1]
