"""The information relaxation: the best return of somebody who knows the trajectory of x.

With x_0 ... x_{T-1} known, only n is left to plan for, and there are few of those:

    U_t(n) = max_a { r(n, x_t, a) + γ Σ P(n' | n, a, x_t) [ U_{t+1}(n') - η penalty_{t+1}(n') ] }

The noise of n' stays an expectation. The mean of U_0 over trajectories is at least the value of the
best policy, which does not know the future; it is convex in η, and η = 0 is plain hindsight.

If n' is drawn instead of known, U_t is a maximum of means over draws that are independent of
U_{t+1}. The mean of a maximum is at least the maximum of the means, so U_0 only becomes larger.

What a policy gives away. With Q_t(n, a) for what is in the braces, let δ_t = U_t(n_t) -
Q_t(n_t, a_t) along the path n_0, a_0, n_1, ... of a policy that does not know the future. Then
U_0 - Σ γ^t δ_t is the policy's return, up to terms that are zero on average: the penalties that it
met, and the luck of its n'. So its mean is the policy's value. For a good policy it has far less
noise than the return; for a poor one it can have more, since it has that of U_0 and of all δ_t.
Since no δ_t is negative, the bound is above the policy's value on every trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.bounds.penalty import ValueFunction, ValuesAt, penalties
from planners.bounds.questions import Questions
from planners.core.arrays import Ints, chunks, joint_index
from planners.core.evaluation import ActionRule, Scenarios, play


class Paths(NamedTuple):
    """Where a policy was on each trajectory, and what it did."""

    states: Ints  # (T, B) the flat index of n
    actions: Ints  # (T, B), or -1 where the rollout has ended

    @classmethod
    def of(cls, policy: ActionRule, mdp: ExoMDP, scenarios: Scenarios) -> Paths:
        """Play the policy."""
        shape = scenarios.exogenous.shape[:2]
        paths = cls(np.zeros(shape, np.int64), np.full(shape, -1, np.int64))
        for t, step in enumerate(play(policy, mdp, scenarios)):
            paths.states[t, step.lanes] = joint_index(step.state.endogenous, mdp.endogenous_sizes)
            paths.actions[t, step.lanes] = step.actions
        return paths


class Relaxed(NamedTuple):
    """The best returns in hindsight, one for each trajectory and each choice of weights."""

    values: FloatArray  # (B, E)
    given_away: FloatArray  # (B, E) by the policy: the sum of γ^t δ_t
    halved: FloatArray  # (B, E) the values with half as many draws of n', if it is drawn
    given: bool  # whether the model gave the probabilities of n'
    differed: bool  # whether draws of n' for the same (n, a, x) ever differed

    def part(self, rows: slice, columns: Sequence[int]) -> Relaxed:
        """Some of the trajectories, and some of the weights."""
        return self._replace(
            values=self.values[rows, columns],
            given_away=self.given_away[rows, columns],
            halved=self.halved[rows, columns],
        )


class Draws(NamedTuple):
    """How many samples the relaxation takes, and from which seed."""

    num_fresh: int  # of x'' for each x on a trajectory, for the penalty
    num_successors: int  # of n' for each (t, n, a), if the model does not give its probabilities
    seed: int


def relax(
    mdp: ExoMDP,
    scenarios: Scenarios,
    paths: Paths,
    values: Sequence[ValueFunction],
    weights: FloatArray,
    draws: Draws,
) -> Relaxed:
    """Backward induction on every trajectory, for several weights of the penalties at once.

    Args:
        mdp: the full model.
        scenarios: the trajectories.
        paths: of the policy on these trajectories.
        values: what the penalties are made of.
        weights: the η of each function, shape (E, functions).
        draws: how many samples to take.
    """
    fresh_rng, draw_rng = (np.random.default_rng((draws.seed, k)) for k in range(2))
    horizon, count, width = scenarios.exogenous.shape
    questions = Questions(mdp, draws.num_successors, draw_rng)
    branches = 1 if questions.given else 2  # the second one has half of the draws
    later = np.zeros((branches, count, questions.num_states, len(weights)))
    given_away = np.zeros((branches, count, len(weights)))
    used = [draws.num_successors, max(1, draws.num_successors // 2)]
    per_row = questions.num_states * mdp.num_actions * max(1, width)
    left = [function.backwards(horizon) for function in values] if np.any(weights) else []
    dtype = mdp.dtype_of("exogenous")
    following = np.zeros((count, width), dtype)
    for t in reversed(range(horizon)):
        x = scenarios.exogenous[t].astype(dtype)
        functions = [_next(values_left) for values_left in left]
        if functions and t + 1 < horizon:
            cost = penalties(mdp, functions, x, following, draws.num_fresh, fresh_rng)
            later -= cost @ weights.T
        for part in chunks(count, per_row):
            answers = questions.ask(x[part])
            for k in range(branches):
                kept = answers.targets.shape[-1] if questions.given else used[k]
                _maximise(
                    answers.rewards,
                    answers.terminal,
                    answers.targets[..., :kept],
                    answers.probabilities[..., :kept] * (answers.targets.shape[-1] / kept),
                    mdp.discount,
                    paths.states[t, part],
                    paths.actions[t, part],
                    later[k, part],
                    given_away[k, part],
                )
        following = x
    start = joint_index(scenarios.endogenous, mdp.endogenous_sizes)
    found = later[:, np.arange(count), start]
    return Relaxed(found[0], given_away[0], found[-1], questions.given, questions.differed)


def _next(left: Iterator[ValuesAt]) -> ValuesAt:
    found = next(left, None)
    if found is None:
        raise ArgumentError("a value function ends before the horizon")
    return found


@njit(cache=True)
def _maximise(
    rewards: Any,  # (B, N, A)
    terminal: Any,  # (B, N)
    targets: Any,  # (B, N, A, K)
    probabilities: Any,  # (B, N, A, K)
    discount: float,
    path: Any,  # (B,) the n of the policy
    chosen: Any,  # (B,) its actions
    values: Any,  # (B, N, E)
    given_away: Any,  # (B, E)
) -> None:
    """Replace the values of the next step, and what was given away from there on, by this one's."""
    count, num_states, num_actions, _ = targets.shape
    columns = values.shape[2]
    later = np.empty((num_states, columns))
    total, taken = np.empty(columns), np.empty(columns)
    for b in range(count):
        later[:] = values[b]
        for n in range(num_states):
            values[b, n] = 0.0 if terminal[b, n] else -np.inf
            for a in range(0 if terminal[b, n] else num_actions):
                _expect(targets[b, n, a], probabilities[b, n, a], later, total)
                for e in range(columns):
                    total[e] = rewards[b, n, a] + discount * total[e]
                    values[b, n, e] = max(values[b, n, e], total[e])
                if n == path[b] and a == chosen[b]:
                    taken[:] = total
        if chosen[b] < 0:
            given_away[b] = 0.0
        else:
            given_away[b] = values[b, path[b]] - taken + discount * given_away[b]


@njit(cache=True)
def _expect(targets: Any, probabilities: Any, later: Any, total: Any) -> None:
    """Write the mean of ``later`` over the n' of one (n, a) to ``total``, for each column."""
    total[:] = 0.0
    for k in range(len(targets)):
        for e in range(len(total)):
            total[e] += probabilities[k] * later[targets[k], e]
