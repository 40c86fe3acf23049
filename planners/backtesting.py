"""Backtests: what a policy would have earned in recorded time that nothing was learned from.

Windows of a record follow each other, and what they pay is alike in neighbouring ones. So intervals
come from a *block bootstrap* (Künsch 1989; circular, Politis and Romano 1992): whole blocks of
neighbouring windows are drawn with replacement, and the last window is followed by the first. How
long blocks are follows from how long windows stay alike (Politis and White 2004). Resampled means
vary too little if there are few blocks, so intervals are stretched: by n / (n - block), and as
Student's t is wider than the normal distribution.

Measured on 1,000 autoregressive series of 300 windows, an interval of 95 % has the mean 96 % of the
time without dependence, 93 % with a correlation of 0.4 between neighbours, 91 % with 0.7 and 88 %
with 0.9. With 50 windows it is 97, 91, 86 and only 68 %: few windows that stay alike for long say
little, and the interval does not show how little.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked, unchecked
from exo_envs.core.arguments import (
    as_generator,
    check_discount,
    check_flag,
    check_function,
    check_horizon,
    check_kind,
    check_level,
    check_whole,
)
from exo_envs.core.batches import as_actions
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, require
from exo_envs.core.mdp import FloatArray, State
from exo_envs.sources.simulators.conversion import as_mdp
from exo_envs.sources.tables.model import TraceMDP
from planners.core.evaluation import ActionRule, Estimate, Scenarios, play

if TYPE_CHECKING:
    import pandas as pd

#: Resamples of a bootstrap.
NUM_RESAMPLES = 2000
#: Windows below which an interval is a guess.
FEWEST_WINDOWS = 10
RowNumbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Backtest:
    """What a policy earned in each window of a record, in the order of time.

    Attributes:
        returns: of each window, shape (windows,).
        times: when each window begins: its time, or the number of its row, shape (windows,).
        block: neighbouring windows that the bootstrap keeps together.
        horizon: rows of a window.
        stride: rows from one window to the next.
    """

    returns: FloatArray
    times: NDArray[Any]
    block: int
    horizon: int
    stride: int

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    @property
    def total(self) -> float:
        return float(self.returns.sum())

    @cached_property
    def resampled_means(self) -> FloatArray:
        """Means of as many windows, drawn in circular blocks, in increasing order.

        The last block is cut; the shape is (NUM_RESAMPLES,).
        """
        number, block = len(self), self.block
        blocks = math.ceil(number / block)
        rng = np.random.default_rng(0)  # the same data has the same interval
        starts = rng.integers(number, size=(NUM_RESAMPLES, blocks))
        around = np.concatenate([self.returns, self.returns[: block - 1]])
        sums = np.concatenate([[0.0], np.cumsum(around)])
        lengths = np.full(blocks, block)
        lengths[-1] = number - block * (blocks - 1)
        return np.sort((sums[starts + lengths] - sums[starts]).sum(axis=1) / number)

    @property
    def _stretch(self) -> float:
        """Resampled means vary too little by this factor; infinite if one block has all windows."""
        number = len(self)
        return math.sqrt(number / (number - self.block)) if number > self.block else math.inf

    @property
    def standard_error(self) -> float:
        """How far off the mean may be, by the bootstrap; infinite if one block has all windows."""
        if math.isinf(self._stretch):
            return math.inf
        return float(self.resampled_means.std()) * self._stretch

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval for the mean: the middle of the resampled means, stretched for few blocks."""
        level = check_level("level", level)
        if math.isinf(self._stretch):
            return -math.inf, math.inf
        bounds = np.quantile(self.resampled_means, [(1 - level) / 2, (1 + level) / 2])
        z = NormalDist().inv_cdf((1 + level) / 2)
        # The first terms of Student's t (Cornish and Fisher).
        student = 1 + (z**2 + 1) / (4 * max(1.0, len(self) / self.block - 1))
        low, high = self.mean + (bounds - self.mean) * self._stretch * student
        return float(low), float(high)

    @property
    def estimate(self) -> Estimate:
        """The mean with its standard error, beside those of rollouts that are independent."""
        return Estimate(self.mean, self.standard_error)

    def difference(self, other: Backtest) -> Backtest:
        """How much more this policy earned than another one, window by window.

        >>> first, second = (
        ...     Backtest(np.arange(20.0) + more, np.arange(20), block=3, horizon=5, stride=5)
        ...     for more in (2.0, 0.0)
        ... )
        >>> gain = first.difference(second)
        >>> gain.mean, gain.interval()
        (2.0, (2.0, 2.0))
        """
        check_kind("other", other, Backtest)
        if len(other) != len(self) or (other.times != self.times).any():
            raise ArgumentError(
                f"backtests are compared on the same windows; these have {len(self)} from "
                f"{self.times[0]} on and {len(other)} from {other.times[0]} on"
            )
        return Backtest(
            self.returns - other.returns,
            self.times,
            max(self.block, other.block, block_length(self.returns - other.returns)),
            self.horizon,
            self.stride,
        )

    def to_pandas(self) -> pd.DataFrame:
        """One row for each window: when it begins, and what was earned."""
        pandas = require("pandas", "Backtest.to_pandas() needs pandas: pip install pandas")
        return cast("pd.DataFrame", pandas.DataFrame({"time": self.times, "return": self.returns}))

    def __str__(self) -> str:
        low, high = self.interval()
        few = "" if len(self) >= FEWEST_WINDOWS else "; so few windows hardly make an interval"
        return (
            f"{self.mean:.4g} ({low:.4g} to {high:.4g}, 95 %) a window of {self.horizon} rows, "
            f"{len(self)} windows from {self.times[0]} on, bootstrap of blocks of {self.block}{few}"
        )


def backtest(
    policy: ActionRule,
    mdp: Any,
    *,
    stride: int | None = None,
    horizon: int | None = None,
    continued: bool = False,
    discount: float | None = None,
    block: int | None = None,
    rng: np.random.Generator | int = 0,
) -> Backtest:
    """Play a policy through the part of a record that was held out, window by window.

    Args:
        policy: maps a batched :class:`~exo_envs.State` to actions, as for :func:`evaluate`.
        mdp: a :class:`~exo_envs.TraceMDP`. Its ``held_out`` part is played, which is the model
            itself if nothing was held out.
        stride: rows from one window to the next. By default a window's, or the next number of rows
            without a factor 2, 3 or 7: so none overlap, and of hours or days windows begin at every
            hour and on every weekday, and not all at the same.
        horizon: rows of a window; by default the model's.
        continued: whether the agent goes on from window to window, as in operation, instead of
            beginning anew in each. Then windows do not overlap.
        discount: within a window; by default the model's. With 1, returns are plain sums.
        block: neighbouring windows that the bootstrap keeps together; by default as many as stay
            alike (:func:`block_length`), and as many as overlap.
        rng: for the n to begin in and for random n': a generator or a seed. With the same seed,
            policies begin in the same n.

    Raises:
        ValueError: the record has no window of this length.
    """
    check_function("policy", policy)
    model = unchecked(as_mdp(mdp))
    if not isinstance(model, TraceMDP):
        raise ArgumentTypeError(
            f"a backtest plays a record (exo_envs.TraceMDP), not {type(model).__name__}; "
            "planners.evaluate plays other models"
        )
    model = model.held_out
    rng = as_generator("rng", rng)
    horizon = check_horizon("horizon", model.horizon if horizon is None else horizon)
    continued = check_flag("continued", continued)
    if stride is None:  # in step with neither days nor weeks, unless the agent goes on
        mixed = (k for k in itertools.count(horizon) if all(k % factor for factor in (2, 3, 7)))
        stride = horizon if continued else next(mixed)
    stride = check_whole("stride", stride, 1)
    discount = check_discount("discount", model.discount if discount is None else discount)
    if continued and stride != horizon:
        raise ArgumentError(
            f"an agent that goes on from window to window cannot play stride={stride} with windows "
            f"of {horizon} rows; leave stride out"
        )
    starts = model.record.spaced(horizon - 1, stride)
    steps = _continued if continued else _separate
    returns = np.zeros(len(starts))
    for t, windows, rewards in steps(policy, model, starts, horizon, rng):
        returns[windows] += discount**t * rewards
    found = max(block_length(returns), math.ceil(horizon / stride))
    block = check_whole("block", found if block is None else block, 1)
    return Backtest(returns, model.record.labels[starts], min(block, len(starts)), horizon, stride)


#: The number of a step, the windows that take it, and the reward of each.
Paid = tuple[int, NDArray[Any], FloatArray]


def _separate(
    policy: ActionRule, model: TraceMDP, starts: RowNumbers, horizon: int, rng: np.random.Generator
) -> Iterator[Paid]:
    """The steps of windows that each begin anew, all stepped together."""
    state, following = model.windows(starts, horizon - 1, rng)
    exogenous = np.stack([state.exogenous, *following])
    scenarios = Scenarios(state.endogenous, exogenous, int(rng.integers(2**63)))
    for t, step in enumerate(play(policy, checked(model), scenarios, with_rewards=True)):
        yield t, step.lanes, step.rewards


def _continued(
    policy: ActionRule, model: TraceMDP, starts: RowNumbers, horizon: int, rng: np.random.Generator
) -> Iterator[Paid]:
    """The steps of one agent for each part of the record without a gap; no window begins anew."""
    mdp = checked(model)
    counts = np.array([rows // horizon for _, rows in model.record.segments()])
    counts = counts[counts > 0]  # windows of each agent, one after another
    first = np.cumsum(counts) - counts
    n = model.initial_endogenous(len(counts), rng)
    for k in range(counts.max()):
        alive = np.flatnonzero(counts > k)
        windows = first[alive] + k
        for t in range(horizon):
            state = State(n[alive], model.record.rows[starts[windows] + t])
            ended = mdp.is_terminal(state)
            if ended.any():  # the next episode begins
                n[alive[ended]] = model.initial_endogenous(int(ended.sum()), rng)
                state = State(n[alive], state.exogenous)
            actions = as_actions(mdp, policy(state), (len(alive),))
            yield t, windows, mdp.reward(state, actions)
            n[alive] = mdp.sample_endogenous(state, actions, rng)


def block_length(returns: FloatArray) -> int:
    """How many neighbouring windows a circular bootstrap should keep together.

    The rule of Politis and White (2004, corrected by Patton, Politis and White 2009): longer where
    neighbours are alike for longer. At least the cube root of the number of windows.
    """
    number = len(returns)
    least = math.ceil(number ** (1 / 3) - 1e-9)
    centred = returns - returns.mean()
    # As many correlations in a row that are nearly none, and lags that are looked at.
    in_a_row = max(5, math.ceil(math.sqrt(math.log10(max(number, 2)))))
    most = min(number - 1, math.ceil(math.sqrt(number)) + in_a_row)
    covariance = np.array(
        [centred[: number - lag] @ centred[lag:] / number for lag in range(most + 1)]
    )
    if most < 1 or covariance[0] <= 0:
        return least
    is_none = np.abs(covariance / covariance[0]) < 2 * math.sqrt(math.log10(number) / number)
    ends = (lag for lag in range(1, most + 1) if is_none[lag : lag + in_a_row].all())
    reach = min(2 * max(next(ends, most + 1) - 1, 1), most)
    lags = np.arange(reach + 1)
    weights = np.clip(2 * (1 - lags / reach), 0, 1) * np.where(lags > 0, 2, 1)
    variance, bias = (weights * covariance[lags] * kind for kind in (1, lags))
    if variance.sum() == 0:
        return least
    length = (1.5 * (bias.sum() / variance.sum()) ** 2 * number) ** (1 / 3)
    longest = math.ceil(min(3 * math.sqrt(number), number / 3))
    return min(max(math.ceil(length), least), max(longest, least))
