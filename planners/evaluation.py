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
from exo_envs.inputs import as_actions, check_level, check_whole
from exo_envs.mdp import FloatArray

#: Standard errors that decide a comparison: wrong less than once in 1,000 times, with eight looks.
DECIDED = 4.0

ActionRule = Callable[[State], Any]
#: (t, states (B,), actions (B,)) of the rollouts that go on at step t.
Watch = Callable[[int, State, NDArray[Any]], None]


@dataclass(frozen=True)
class Scenarios:
    """Initial states and exogenous trajectories, shared by the policies that are compared."""

    endogenous: NDArray[np.int64]  # (n, k) where each rollout starts
    exogenous: NDArray[np.unsignedinteger[Any]]  # (horizon, n, m) in as few bytes as it takes
    seed: int  # of the endogenous noise

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
        rng = np.random.default_rng(rng)
        check_whole("n_rollouts", n_rollouts, 1)
        horizon = mdp.horizon if horizon is None else horizon
        largest = int(max(mdp.exogenous_sizes, default=1)) - 1
        state = mdp.sample_initial(n_rollouts, rng)
        x = state.exogenous
        exogenous = np.empty((horizon, *x.shape), dtype=np.min_scalar_type(largest))
        for t in range(horizon):
            exogenous[t] = x
            if t + 1 < horizon:
                x = mdp.sample_exogenous(x, rng)
        return cls(np.array(state.endogenous, dtype=np.int64), exogenous, int(rng.integers(2**63)))

    def first(self, count: int) -> Scenarios:
        """The first trajectories; where n' is random, its noise is not that of the whole."""
        return Scenarios(self.endogenous[:count], self.exogenous[:, :count], self.seed)

    @classmethod
    def join(cls, parts: Sequence[Scenarios]) -> Scenarios:
        """All trajectories of some scenarios; the endogenous noise is that of the last ones."""
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
    if scenarios is None:
        if rng is None:
            raise ValueError("evaluate needs a generator, or scenarios drawn beforehand")
        scenarios = Scenarios.sample(mdp, n_rollouts, rng)
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
    noise = np.random.default_rng(scenarios.seed)
    endogenous = scenarios.endogenous
    alive = np.arange(len(scenarios))
    for exogenous in scenarios.exogenous:
        state = State(endogenous, exogenous[alive].astype(np.int64))
        going_on = ~mdp.is_terminal(state)
        if not going_on.all():
            alive = alive[going_on]
            state = State(state.endogenous[going_on], state.exogenous[going_on])
            if not len(alive):
                break
        actions = as_actions(mdp, policy(state), (len(alive),))
        yield Step(alive, state, actions)
        endogenous = mdp.sample_endogenous(state, actions, noise).astype(np.int64, copy=False)


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error; printed with half of its 95 % interval instead."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, samples: FloatArray) -> Estimate:
        """The mean of independent samples; one sample has no finite standard error."""
        error = samples.std(ddof=1) / np.sqrt(len(samples)) if len(samples) > 1 else np.inf
        return cls(float(samples.mean()), float(error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval (normal approximation).

        >>> low, high = Estimate(mean=10.0, standard_error=1.0).interval(0.95)
        >>> round(low, 2), round(high, 2)
        (8.04, 11.96)
        """
        check_level("level", level)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        """The mean, plus or minus half of its 95 % interval."""
        return f"{self.mean:.1f} ± {self.mean - self.interval()[0]:.1f}"


def paired_difference(returns: FloatArray, others: FloatArray) -> Estimate:
    """How much better ``returns`` are than ``others``, rollout by rollout on the same scenarios."""
    if returns.shape != others.shape:
        raise ValueError(
            f"paired returns come from the same scenarios; these have the shapes "
            f"{returns.shape} and {others.shape}"
        )
    return Estimate.of(returns - others)
