"""Rolling policies out in the full model, on exogenous trajectories that can be shared.

The exogenous trajectory does not depend on the policy. So it is drawn once, as
:class:`Scenarios`, and every policy is run through the same ones: the difference of two policies
is then a paired difference, whose noise is far smaller than that of either mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.borders import Question, check_part, checked
from exo_envs.inputs import (
    as_actions,
    as_generator,
    check_function,
    check_horizon,
    check_lanes,
    check_level,
    check_whole,
)
from exo_envs.mdp import FloatArray
from planners.checks import check_kind, real_numbers

#: Standard errors that decide a comparison: wrong less than once in 1,000 times, with eight looks.
DECIDED = 4.0

ActionRule = Callable[[State], Any]
#: (t, states (B,), actions (B,)) of the rollouts that go on at step t.
Watch = Callable[[int, State, NDArray[Any]], None]


@dataclass(frozen=True)
class Scenarios:
    """Initial states and exogenous trajectories, shared by the policies that are compared."""

    endogenous: NDArray[Any]  # (n, k) where each rollout starts
    exogenous: NDArray[Any]  # (horizon, n, m) in as few bytes as it takes
    seed: int  # of the endogenous noise

    def __post_init__(self) -> None:
        """Refuse what are no trajectories."""
        shapes = []
        for name, ndim in (("endogenous", 2), ("exogenous", 3)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
                raise TypeError(f"{name} of scenarios is an array of numbers")
            if array.ndim != ndim:
                raise ValueError(f"{name} of scenarios has shape {array.shape}, not {ndim} axes")
            shapes.append(array.shape)
        if shapes[0][0] != shapes[1][1] or 0 in shapes[1][:2]:
            raise ValueError(
                f"scenarios have n and x of as many rollouts, not of the shapes {shapes[0]} "
                f"(rollouts, ...) and {shapes[1]} (horizon, rollouts, ...)"
            )
        check_whole("seed", self.seed, 0)

    def __len__(self) -> int:
        """The number of rollouts."""
        return len(self.endogenous)

    @classmethod
    def sample(
        cls,
        mdp: ExoMDP,
        n_rollouts: int,
        rng: np.random.Generator | int,
        *,
        horizon: int | None = None,
    ) -> Scenarios:
        """Draw trajectories from ``mdp``, as long as its episodes unless told otherwise."""
        rng = as_generator("rng", rng)
        mdp = checked(mdp)
        n_rollouts = check_lanes("n_rollouts", n_rollouts, len(mdp.exogenous_variables), 1)
        horizon = check_horizon("horizon", mdp.horizon if horizon is None else horizon)
        state, following = mdp.trajectories(n_rollouts, horizon - 1, rng)
        dtype = np.min_scalar_type(int(max(mdp.exogenous_sizes, default=1)) - 1)
        if mdp.exogenous_ranges.is_real:
            dtype = np.dtype(np.float64)
        exogenous = np.empty((horizon, *state.exogenous.shape), dtype=dtype)
        exogenous[0] = state.exogenous
        for t, x in enumerate(following, 1):
            exogenous[t] = x
        endogenous = np.array(state.endogenous, dtype=mdp.dtype_of("endogenous"))
        return cls(endogenous, exogenous, int(rng.integers(2**63)))

    def check(self, mdp: ExoMDP) -> None:
        """Refuse trajectories of another model."""
        n, x = self.endogenous, self.exogenous
        k, m = len(mdp.endogenous_variables), len(mdp.exogenous_variables)
        if n.shape[1] != k or x.shape[2] != m:
            raise ValueError(
                f"the scenarios are not of {mdp!r}: n and x have the shapes {n.shape} and "
                f"{x.shape}, not (rollouts, {k}) and (horizon, rollouts, {m})"
            )
        check_part(mdp, "Scenarios.sample", "endogenous", n, n.shape[:1], Question())

    def first(self, count: int) -> Scenarios:
        """The first trajectories; where n' is random, its noise is not that of the whole."""
        count = check_whole("count", count, 1)
        return Scenarios(self.endogenous[:count], self.exogenous[:, :count], self.seed)

    @classmethod
    def join(cls, parts: Sequence[Scenarios]) -> Scenarios:
        """All trajectories of some scenarios; the endogenous noise is that of the last ones."""
        shapes = {(part.endogenous.shape[1:], part.exogenous.shape[::2]) for part in parts}
        if len(shapes) != 1:
            raise ValueError(
                f"needed: scenarios of one model and length, to join them; there are {len(parts)} "
                f"of {len(shapes)} kinds"
            )
        return cls(
            np.concatenate([part.endogenous for part in parts]),
            np.concatenate([part.exogenous for part in parts], axis=1),
            parts[-1].seed,
        )


def evaluate(
    policy: ActionRule,
    mdp: ExoMDP,
    n_rollouts: int = 500,
    rng: np.random.Generator | int | None = None,
    *,
    scenarios: Scenarios | None = None,
    watch: Watch | None = None,
) -> FloatArray:
    """Discounted returns of ``policy`` in ``mdp``, one for each rollout, all stepped together.

    Args:
        policy: maps a batched :class:`~exo_envs.State` of ``mdp`` to actions; a
            :class:`~planners.Policy` takes the variables of its mask out of it.
        mdp: the full model.
        n_rollouts: how many; with ``scenarios``, theirs.
        rng: a generator or a seed from which scenarios are drawn, if none are given.
        scenarios: trajectories to share with other policies.
        watch: is shown every step: its number, the states and the actions.

    Returns:
        The returns, shape (n_rollouts,). A rollout ends at a terminal state or at the horizon.
    """
    check_function("policy", policy)
    check_function("watch", watch, optional=True)
    check_kind("scenarios", scenarios, Scenarios, optional=True)
    if scenarios is None:
        if rng is None:
            raise ValueError("evaluate needs a generator, or scenarios drawn beforehand")
        scenarios = Scenarios.sample(mdp, n_rollouts, rng)
    mdp = checked(mdp)
    returns = np.zeros(len(scenarios))
    for t, step in enumerate(play(policy, mdp, scenarios)):
        if watch is not None:
            watch(t, step.state, step.actions)
        returns[step.lanes] += mdp.discount**t * mdp.reward(step.state, step.actions)
    return returns


class Step(NamedTuple):
    """One step of all rollouts that have not ended."""

    lanes: NDArray[np.intp]  # (B,) which of the rollouts
    state: State  # (B,)
    actions: NDArray[Any]  # (B,)


def play(policy: ActionRule, mdp: ExoMDP, scenarios: Scenarios) -> Iterator[Step]:
    """Run a policy through scenarios, step by step, until all rollouts have ended."""
    check_function("policy", policy)
    check_kind("scenarios", scenarios, Scenarios)
    mdp = checked(mdp)
    scenarios.check(mdp)
    noise = np.random.default_rng(scenarios.seed)
    endogenous = scenarios.endogenous
    alive = np.arange(len(scenarios))
    for exogenous in scenarios.exogenous:
        state = State(endogenous, exogenous[alive].astype(mdp.dtype_of("exogenous")))
        going_on = ~mdp.is_terminal(state)
        if not going_on.all():
            alive = alive[going_on]
            state = State(state.endogenous[going_on], state.exogenous[going_on])
            if not len(alive):
                break
        actions = as_actions(mdp, policy(state), (len(alive),))
        yield Step(alive, state, actions)
        endogenous = mdp.sample_endogenous(state, actions, noise)


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error; printed with half of its 95 % interval instead."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, samples: FloatArray) -> Estimate:
        """The mean of independent samples; one sample has no finite standard error."""
        samples = real_numbers("samples", samples, finite=False)
        if not len(samples):
            raise ValueError("there are no samples to take the mean of")
        error = samples.std(ddof=1) / np.sqrt(len(samples)) if len(samples) > 1 else np.inf
        return cls(float(samples.mean()), float(error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval (normal approximation).

        >>> low, high = Estimate(mean=10.0, standard_error=1.0).interval(0.95)
        >>> round(low, 2), round(high, 2)
        (8.04, 11.96)
        """
        level = check_level("level", level)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        """The mean, plus or minus half of its 95 % interval."""
        return f"{self.mean:.1f} ± {self.mean - self.interval()[0]:.1f}"


def paired_difference(returns: FloatArray, others: FloatArray) -> Estimate:
    """How much better ``returns`` are than ``others``, rollout by rollout on the same scenarios."""
    returns, others = np.asarray(returns), np.asarray(others)
    if returns.shape != others.shape:
        raise ValueError(
            f"paired returns come from the same scenarios; these have the shapes "
            f"{returns.shape} and {others.shape}"
        )
    return Estimate.of(returns - others)
