"""Rolling policies out in the full model, on exogenous trajectories that can be shared.

The exogenous trajectory does not depend on the policy. So it is drawn once, as
:class:`Scenarios`, and every policy is run through the same ones: the difference of two policies
is then a paired difference, whose noise is far smaller than that of either mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import Question, check_part
from exo_envs.contract.checked_mdp import CheckedMDP, checked
from exo_envs.contract.original import HasOriginal
from exo_envs.core.arguments import (
    as_generator,
    check_function,
    check_horizon,
    check_kind,
    check_level,
    check_rollouts,
    check_whole,
    real_numbers,
)
from exo_envs.core.batches import as_actions
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State
from planners.core.rare_events import Mixture, about_events, find_mixture

#: Standard errors that decide a comparison: wrong less than once in 1,000 times, with eight looks.
DECIDING_ERRORS = 4.0

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
        shapes = []
        for name, ndim in (("endogenous", 2), ("exogenous", 3)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
                raise ArgumentTypeError(f"{name} of scenarios is an array of numbers")
            if array.ndim != ndim:
                raise ArgumentError(f"{name} of scenarios has shape {array.shape}, not {ndim} axes")
            shapes.append(array.shape)
        if shapes[0][0] != shapes[1][1] or 0 in shapes[1][:2]:
            raise ArgumentError(
                f"scenarios have n and x of as many rollouts, not of the shapes {shapes[0]} "
                f"(rollouts, ...) and {shapes[1]} (horizon, rollouts, ...)"
            )
        check_whole("seed", self.seed, 0)

    def __len__(self) -> int:
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
        horizon = check_horizon("horizon", mdp.horizon if horizon is None else horizon)
        n_rollouts = check_rollouts("n_rollouts", n_rollouts, horizon, len(mdp.exogenous_variables))
        dtype = np.min_scalar_type(int(max(mdp.exogenous_sizes, default=1)) - 1)
        if mdp.exogenous_ranges.is_real:
            dtype = np.dtype(np.float64)
        exogenous = np.empty((horizon, n_rollouts, len(mdp.exogenous_variables)), dtype=dtype)
        begin = mdp.write_trajectories(exogenous.swapaxes(0, 1), rng)
        endogenous = np.array(begin, dtype=mdp.dtype_of("endogenous"))
        return cls(endogenous, exogenous, int(rng.integers(2**63)))

    def check(self, mdp: ExoMDP) -> None:
        """Refuse trajectories of another model."""
        n, x = self.endogenous, self.exogenous
        k, m = len(mdp.endogenous_variables), len(mdp.exogenous_variables)
        if n.shape[1] != k or x.shape[2] != m:
            raise ArgumentError(
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
        if len(parts) == 1:
            return parts[0]
        shapes = {(part.endogenous.shape[1:], part.exogenous.shape[::2]) for part in parts}
        if len(shapes) != 1:
            raise ArgumentError(
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

    If the model was made of an environment that somebody else wrote (:class:`~exo_envs.AdaptedMDP`)
    and no ``scenarios`` are given, the policy plays this environment itself, one episode after
    another. On scenarios it is played in the model, which is first compared with episodes of the
    environment (:func:`exo_envs.AdaptedMDP.check_claims`).

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
    original = checked(mdp).original
    if scenarios is not None:
        if original is not None and not isinstance(mdp, CheckedMDP):  # else its owner looks at it
            original.check_claims()
        return returns_on(policy, mdp, scenarios, watch=watch)
    if rng is None:
        raise ArgumentError("evaluate needs a generator, or scenarios drawn beforehand")
    if original is None:
        return returns_on(policy, mdp, Scenarios.sample(mdp, n_rollouts, rng), watch=watch)
    seed = int(as_generator("rng", rng).integers(2**63))
    return np.array(list(play_original(policy, original, n_rollouts, seed, watch=watch)))


def returns_on(
    policy: ActionRule, mdp: ExoMDP, scenarios: Scenarios, *, watch: Watch | None = None
) -> FloatArray:
    """Discounted returns of a policy on scenarios, in the model; see :func:`evaluate`."""
    mdp = checked(mdp)
    returns = np.zeros(len(scenarios))
    for t, step in enumerate(play(policy, mdp, scenarios, with_rewards=True)):
        if watch is not None:
            watch(t, step.state, step.actions)
        returns[step.lanes] += mdp.discount**t * step.rewards
    return returns


def play_original(
    policy: ActionRule,
    original: HasOriginal,
    n_rollouts: int,
    seed: int,
    *,
    horizon: int | None = None,
    watch: Watch | None = None,
) -> Iterator[float]:
    """The discounted return of each episode of what a model was made of.

    Args:
        policy: maps a batched :class:`~exo_envs.State` to actions.
        original: the model.
        n_rollouts: the number of episodes.
        seed: of the episodes: those of two policies begin alike under one seed.
        horizon: the length of an episode; by default the model's.
        watch: is shown all steps, once the last episode is over.
    """
    met: list[list[tuple[State, int]]] = []  # by the number of steps before

    def notice(t: int, state: State, action: int) -> None:
        if t == len(met):
            met.append([])
        met[t].append((state, action))

    def act(state: State) -> Any:
        one = State(state.endogenous[None], state.exogenous[None])
        return np.asarray(policy(one)).reshape(-1)[0]

    n_rollouts = check_whole("n_rollouts", n_rollouts, 1)
    noticed = None if watch is None else notice
    yield from original.play_episodes(act, n_rollouts, seed, horizon=horizon, watch=noticed)
    if watch is not None:
        for t, steps in enumerate(met):
            states, actions = zip(*steps, strict=True)
            watch(t, State(*map(np.array, zip(*states, strict=True))), np.array(actions))


class RolloutStep(NamedTuple):
    """One step of all rollouts that have not ended."""

    lanes: NDArray[np.intp]  # (B,) which of the rollouts
    state: State  # (B,)
    actions: NDArray[Any]  # (B,)
    rewards: FloatArray  # (B,), or (0,) if nobody asked for them


def play(
    policy: ActionRule, mdp: ExoMDP, scenarios: Scenarios, *, with_rewards: bool = False
) -> Iterator[RolloutStep]:
    """Run a policy through scenarios, step by step, until all rollouts have ended.

    With rewards, each step has what was paid for it (:func:`sample_outcome`).
    """
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
        if with_rewards:
            endogenous, rewards = sample_outcome(mdp, state, actions, noise)
            yield RolloutStep(alive, state, actions, rewards)
        else:
            yield RolloutStep(alive, state, actions, np.zeros(0))
            endogenous = mdp.sample_endogenous(state, actions, noise)


def sample_outcome(
    mdp: CheckedMDP, state: State, action: IntArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Draw n' and the reward of one step, of shapes (..., k) and (...).

    The reward is what the model says, or, if the model was made of something that can be played
    itself (:class:`exo_envs.contract.original.HasOriginal`), what that paid in this very step.
    """
    if mdp.original is not None:
        return mdp.sample_outcome(state, action, rng)
    reward = mdp.reward(state, action)
    return mdp.sample_endogenous(state, action, rng), reward


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error; printed with its 95 % interval instead.

    Attributes:
        mean: the mean.
        standard_error: of the mean.
        mixture: how the mean comes about, where a few rare events decide it and normal theory
            fails; see :mod:`planners.core.rare_events`. The interval is made from it then.
        caution: what to mind about the interval, for people; None if normal theory will do.
    """

    mean: float
    standard_error: float
    mixture: Mixture | None = field(default=None, repr=False)
    caution: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, samples: FloatArray) -> Estimate:
        """The mean of independent samples; one sample has no finite standard error."""
        samples = real_numbers("samples", samples, finite=False)
        if not len(samples):
            raise ArgumentError("there are no samples to take the mean of")
        error = samples.std(ddof=1) / np.sqrt(len(samples)) if len(samples) > 1 else np.inf
        mixture = find_mixture(samples)
        caution = None if mixture is None else about_events(mixture, len(samples))
        return cls(float(samples.mean()), float(error), mixture, caution)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval: by normal theory, or that of the mixture.

        >>> low, high = Estimate(mean=10.0, standard_error=1.0).interval(0.95)
        >>> round(low, 2), round(high, 2)
        (8.04, 11.96)
        """
        level = check_level("level", level)
        if self.mixture is not None:
            return self.mixture.interval(self.mean, level)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def is_decided(self) -> bool:
        """Whether it is clear on which side of 0 the mean is.

        A difference that is the same in all samples decides nothing: what makes another one may
        just be rare.
        """
        return 0 < DECIDING_ERRORS * self.standard_error < abs(self.mean)

    def __str__(self) -> str:
        """The mean, plus or minus half of its 95 % interval; or both ends, if they differ."""
        low, high = self.interval()
        if self.mixture is not None:
            return f"{self.mean:.1f} ({low:.1f} to {high:.1f})"
        return f"{self.mean:.1f} ± {self.mean - low:.1f}"


def paired_difference(returns: FloatArray, others: FloatArray) -> Estimate:
    """How much better ``returns`` are than ``others``, rollout by rollout on the same scenarios."""
    returns, others = np.asarray(returns), np.asarray(others)
    if returns.shape != others.shape:
        raise ArgumentError(
            f"paired returns come from the same scenarios; these have the shapes "
            f"{returns.shape} and {others.shape}"
        )
    return Estimate.of(returns - others)


def walk(mdp: ExoMDP, lanes: int, steps: int, rng: np.random.Generator) -> State:
    """All states of so many walks, (B, k) and (B, m); what was recorded is followed.

    x goes on after the end of an episode, and n stays as it is.
    """
    state, following = mdp.trajectories(lanes, steps, rng)
    met = [state]
    for x in following:
        action = rng.integers(mdp.num_actions, size=lanes)
        ended = mdp.is_terminal(state)[:, None]
        n = mdp.sample_endogenous(state, action, rng)
        state = State(np.where(ended, state.endogenous, n), x)
        met.append(state)
    return State(*(np.concatenate(part) for part in zip(*met, strict=True)))
