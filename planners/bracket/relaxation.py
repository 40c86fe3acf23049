"""The information relaxation: the best return of somebody who knows the trajectory of x.

With x_0 ... x_{T-1} known, only n is left to plan for, and there are few of those:

    U_t(n) = max_a { r(n, x_t, a) + γ Σ P(n' | n, a, x_t) [ U_{t+1}(n') - η penalty_{t+1}(n') ] }

The noise of n' stays an expectation. The mean of U_0 over trajectories is at least the value of the
best policy, which does not know the future; it is convex in η, and η = 0 is plain hindsight.

If n' is drawn instead of known, U_t is a maximum of means over draws that are independent of
U_{t+1}. The mean of a maximum is at least the maximum of the means, so U_0 only becomes larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from exo_envs import ExoMDP
from exo_envs.mdp import FloatArray
from planners.arrays import Ints, chunks, joint_index
from planners.bracket.penalty import ValueFunction, ValuesAt, penalties
from planners.bracket.questions import Questions
from planners.evaluation import Scenarios


class Relaxed(NamedTuple):
    """The best returns in hindsight, one for each trajectory and each choice of weights."""

    values: FloatArray  # (B, E)
    halved: FloatArray  # (B, E) with half as many draws of n'; the same if none were needed
    given: bool  # whether the model gave the probabilities of n'
    differed: bool  # whether draws of n' for the same (n, a, x) ever differed


class Draws(NamedTuple):
    """How many samples the relaxation takes, and from which seed."""

    num_fresh: int  # of x'' for each x on a trajectory, for the penalty
    num_successors: int  # of n' for each (t, n, a), if the model does not give its probabilities
    seed: int


def relax(
    mdp: ExoMDP,
    scenarios: Scenarios,
    values: Sequence[ValueFunction],
    weights: FloatArray,
    draws: Draws,
) -> Relaxed:
    """Backward induction on every trajectory, for several weights of the penalties at once.

    Args:
        mdp: the full model.
        scenarios: the trajectories.
        values: what the penalties are made of.
        weights: the η of each function, shape (E, functions).
        draws: how many samples to take.
    """
    fresh_rng, draw_rng = (np.random.default_rng((draws.seed, k)) for k in range(2))
    horizon, count, width = scenarios.exogenous.shape
    questions = Questions(mdp, draws.num_successors, draw_rng)
    later = np.zeros((2, count, questions.num_states, len(weights)))
    branches = 1 if questions.given else 2  # the second one has half of the draws
    used = [draws.num_successors, max(1, draws.num_successors // 2)]
    per_row = questions.num_states * mdp.num_actions * max(1, width)
    left = [function.backwards(horizon) for function in values] if np.any(weights) else []
    following: Ints = np.zeros((count, width), np.int64)
    for t in reversed(range(horizon)):
        x = scenarios.exogenous[t].astype(np.int64)
        functions = [_next(values_left) for values_left in left]
        if functions and t + 1 < horizon:
            cost = penalties(mdp, functions, x, following, draws.num_fresh, fresh_rng)
            later[:branches] -= cost @ weights.T
        for part in chunks(count, per_row):
            answers = questions.ask(x[part])
            for k in range(branches):
                kept = answers.targets.shape[-1] if questions.given else used[k]
                _maximise(
                    answers.rewards,
                    answers.terminal,
                    answers.targets[..., :kept],
                    answers.probabilities[..., :kept],
                    mdp.discount * (1.0 if questions.given else used[0] / kept),
                    later[k, part],
                )
        following = x
    start = joint_index(scenarios.endogenous, mdp.endogenous_sizes)
    first, second = (later[k, np.arange(count), start] for k in range(2))
    halved = first if questions.given else second
    return Relaxed(first, halved, questions.given, questions.differed)


def _next(left: Iterator[ValuesAt]) -> ValuesAt:
    found = next(left, None)
    if found is None:
        raise ValueError("a value function ends before the horizon")
    return found


@njit(cache=True)
def _maximise(
    rewards: Any,  # (B, N, A)
    terminal: Any,  # (B, N)
    targets: Any,  # (B, N, A, K)
    probabilities: Any,  # (B, N, A, K)
    discount: float,
    values: Any,  # (B, N, E)
) -> None:
    """Replace the values of the next step by those of this one."""
    count, num_states, num_actions, width = targets.shape
    columns = values.shape[2]
    later = np.empty((num_states, columns))
    total = np.empty(columns)
    for b in range(count):
        later[:] = values[b]
        for n in range(num_states):
            for e in range(columns):
                values[b, n, e] = 0.0 if terminal[b, n] else -np.inf
            if terminal[b, n]:
                continue
            for a in range(num_actions):
                total[:] = 0.0
                for k in range(width):
                    probability = probabilities[b, n, a, k]
                    target = targets[b, n, a, k]
                    for e in range(columns):
                        total[e] += probability * later[target, e]
                for e in range(columns):
                    value = rewards[b, n, a] + discount * total[e]
                    values[b, n, e] = max(values[b, n, e], value)
