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

**How much of the penalty to charge** is fitted on other trajectories than those that the bound is
reported on. Weights are compared by what the policy gives away: that differs from the bound by the
policy's value, which does not depend on the weight, and has far less noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.contract.checked_mdp import checked
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, State
from planners.bounds.penalty import ValueFunction, penalties
from planners.core.arrays import Ints, chunks, joint_index, joint_values
from planners.core.evaluation import ActionRule, Scenarios, paired_difference, play
from planners.tables.indexing import num_endogenous_states

#: Weights that are tried; 1 is right for the best values.
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1)
#: A penalty is charged only if it lowers the bound by this many standard errors.
NEEDED_ERRORS = 2.0


class Relaxed(NamedTuple):
    """The best returns in hindsight, one for each trajectory and each choice of weights."""

    values: FloatArray  # (B, E)
    given_away: FloatArray  # (B, E) by the policy: the sum of γ^t δ_t
    halved: FloatArray  # (B, E) the values with half as many draws of n', if it is drawn
    given: bool  # whether the model gave the probabilities of n'
    differed: bool  # whether draws of n' for the same (n, a, x) ever differed


class BoundDraws(NamedTuple):
    """How many samples the relaxation takes, and from which seed."""

    num_fresh: int  # of x'' for each x on a trajectory, for the penalty
    num_successors: int  # of n' for each (t, n, a), if the model does not give its probabilities
    seed: int


def relax_fitted(
    mdp: ExoMDP,
    policy: ActionRule,
    training: Scenarios,
    scenarios: Scenarios,
    function: ValueFunction | None,
    draws: BoundDraws,
) -> tuple[float, Relaxed]:
    """The relaxation with the weight that is best on the training trajectories.

    The best one has the least mean there, clearly less than that of no penalty.

    Returns:
        The weight, 0 if no penalty helps; and the relaxation on ``scenarios`` in two columns, with
        this weight and with none.
    """
    if function is None:
        new = draws._replace(seed=draws.seed + 1)
        return 0.0, relax(mdp, policy, scenarios, None, np.zeros(2), new)
    both = Scenarios.join([training, scenarios])  # one pass does for both
    found = relax(mdp, policy, both, function, np.array(WEIGHTS), draws)
    given_away = found.given_away[: len(training)]
    best = int(given_away.mean(axis=0).argmin())
    gain = paired_difference(given_away[:, 0], given_away[:, best])
    if gain.mean <= NEEDED_ERRORS * gain.standard_error:
        best = 0
    rows, columns = slice(len(training), None), [best, 0]
    parts = {
        name: getattr(found, name)[rows, columns] for name in ("values", "given_away", "halved")
    }
    return WEIGHTS[best], found._replace(**parts)


def relax(
    mdp: ExoMDP,
    policy: ActionRule,
    scenarios: Scenarios,
    function: ValueFunction | None,
    weights: FloatArray,
    draws: BoundDraws,
) -> Relaxed:
    """Backward induction on every trajectory, for several weights η of the penalty, (E,), at once.

    The policy is played on the trajectories. The penalty is made of ``function``.
    """
    fresh_rng, draw_rng = (np.random.default_rng((draws.seed, k)) for k in range(2))
    mdp, given, differed = checked(mdp), gives_successors(mdp), False
    horizon, count, width = scenarios.exogenous.shape
    path = np.zeros((horizon, count), np.int64)  # the n of the policy, numbered
    chosen = np.full((horizon, count), -1)  # its actions, or -1 where the rollout has ended
    for t, step in enumerate(play(policy, mdp, scenarios)):
        path[t, step.lanes] = joint_index(step.state.endogenous, mdp.endogenous_sizes)
        chosen[t, step.lanes] = step.actions
    num_draws, num_states = 0 if given else draws.num_successors, num_endogenous_states(mdp)
    used = [num_draws] if given else [num_draws, max(1, num_draws // 2)]  # in each branch
    later = np.zeros((len(used), count, num_states, len(weights)))
    given_away = np.zeros((len(used), count, len(weights)))
    per_row = num_states * mdp.num_actions * max(1, width)
    left = function.backwards(horizon) if function is not None and weights.any() else None
    dtype = mdp.dtype_of("exogenous")
    following = np.zeros((count, width), dtype)
    for t in reversed(range(horizon)):
        x = scenarios.exogenous[t].astype(dtype)
        values_at = None if left is None else next(left, None)
        if left is not None and values_at is None:
            raise ArgumentError("a value function ends before the horizon")
        if values_at is not None and t + 1 < horizon:
            cost = penalties(mdp, values_at, x, following, draws.num_fresh, fresh_rng)
            later -= cost[..., None] * weights
        for part in chunks(count, per_row):
            rewards, terminal, targets, probabilities = _ask(mdp, x[part], num_draws, draw_rng)
            differed |= not given and bool((targets != targets[..., :1]).any())
            for k, number in enumerate(used):
                kept = number or targets.shape[-1]
                _maximise(
                    rewards,
                    terminal,
                    targets[..., :kept],
                    probabilities[..., :kept] * (targets.shape[-1] / kept),
                    mdp.discount,
                    path[t, part],
                    chosen[t, part],
                    later[k, part],
                    given_away[k, part],
                )
        following = x
    start = joint_index(scenarios.endogenous, mdp.endogenous_sizes)
    found = later[:, np.arange(count), start]
    return Relaxed(found[0], given_away[0], found[-1], given, differed)


def _ask(
    mdp: ExoMDP, exogenous: Ints, num_draws: int, rng: np.random.Generator
) -> tuple[FloatArray, BoolArray, Ints, FloatArray]:
    """What the model says about all (n, a) at these x, shape (B, m).

    n' is drawn so many times; with no draws the model gives its probabilities.

    Returns:
        Rewards (B, N, A); which n are terminal (B, N); the n' that may follow, or draws of it, and
        their probabilities, (B, N, A, K) each.
    """
    sizes, num_actions = mdp.endogenous_sizes, mdp.num_actions
    num_states = num_endogenous_states(mdp)
    shape = len(exogenous), num_states, num_actions
    x = np.repeat(exogenous, num_states * num_actions, axis=0)
    every_n = joint_values(np.arange(num_states), sizes)
    n = np.tile(np.repeat(every_n, num_actions, axis=0), (len(exogenous), 1))
    state, action = State(n, x), np.tile(np.arange(num_actions), len(exogenous) * num_states)
    rewards = mdp.reward(state, action)
    ended = mdp.is_terminal(State(n[::num_actions], x[::num_actions]))
    if num_draws:
        draws = [mdp.sample_endogenous(state, action, rng) for _ in range(num_draws)]
        targets = np.stack([joint_index(drawn, sizes) for drawn in draws], axis=-1)
        probabilities = np.full(targets.shape, 1.0 / num_draws)
    else:
        found = mdp.endogenous_distribution(state, action)
        if found is None:
            raise ArgumentError(
                f"{mdp!r} gives the probabilities of n' in one state and not in another"
            )
        targets, probabilities = joint_index(found.endogenous, sizes), found.probabilities
    return (
        rewards.reshape(shape),
        ended.reshape(shape[:2]),
        targets.reshape(*shape, -1),
        probabilities.reshape(*shape, -1),
    )


def gives_successors(mdp: ExoMDP) -> bool:
    """Whether a model gives the probabilities of n', found out by asking once."""
    model = checked(mdp)
    state = model.sample_initial(1, np.random.default_rng(0))
    return model.endogenous_distribution(state, np.zeros(1, np.int64)) is not None


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
    count, num_states, num_actions, draws = targets.shape
    columns = values.shape[2]
    later = np.empty((num_states, columns))
    total, taken = np.empty(columns), np.empty(columns)
    for b in range(count):
        later[:] = values[b]
        for n in range(num_states):
            values[b, n] = 0.0 if terminal[b, n] else -np.inf
            for a in range(0 if terminal[b, n] else num_actions):
                total[:] = rewards[b, n, a]
                for k in range(draws):
                    share = discount * probabilities[b, n, a, k]
                    for e in range(columns):
                        total[e] += share * later[targets[b, n, a, k], e]
                for e in range(columns):
                    values[b, n, e] = max(values[b, n, e], total[e])
                if n == path[b] and a == chosen[b]:
                    taken[:] = total
        if chosen[b] < 0:
            given_away[b] = 0.0
        else:
            given_away[b] = values[b, path[b]] - taken + discount * given_away[b]
