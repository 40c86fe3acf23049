"""How much of each penalty to charge: the weights that make the bound tightest.

The mean of the bound is convex in the weights, so it is enough to walk downhill. The trajectories
are not those that the bound is reported on: what was chosen on some is judged on others.

Weights are compared by what the policy gives away against the bound. That differs from the bound by
the policy's value, which does not depend on the weights, and has far less noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.bounds.penalty import ValueFunction
from planners.bounds.relaxation import Draws, Paths, Relaxed, relax
from planners.core.evaluation import ActionRule, Scenarios, paired_difference

#: Weights that are tried for each value function; 1 is right for the best values.
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1)

#: A penalty is charged only if it lowers the bound by this many standard errors.
NEEDED_ERRORS = 2.0


def relax_fitted(
    mdp: ExoMDP,
    policy: ActionRule,
    training: Scenarios,
    scenarios: Scenarios,
    values: Sequence[ValueFunction],
    draws: Draws,
) -> tuple[FloatArray, Relaxed]:
    """The relaxation with the weights that are best on the training trajectories.

    Returns:
        The weights, zeros if no penalty helps; and the relaxation on ``scenarios`` in two columns,
        with these weights and with none.
    """
    current = np.zeros(len(values))
    if len(values) == 1:  # one pass does for both
        both = Scenarios.join([training, scenarios])
        tried = np.array(WEIGHTS)[:, None]
        found = relax(mdp, both, Paths.of(policy, mdp, both), values, tried, draws)
        best = _best(found.given_away[: len(training)])
        return tried[best], found.part(slice(len(training), None), [best, 0])
    if values:
        paths = Paths.of(policy, mdp, training)
        for _ in range(2 * len(values)):
            tried = _one_changed(current)
            found = relax(mdp, training, paths, values, tried, draws)
            best = _best(found.given_away)
            if best == 0:
                break
            current = tried[best]
    paths = Paths.of(policy, mdp, scenarios)
    final, new = np.stack([current, np.zeros(len(values))]), draws._replace(seed=draws.seed + 1)
    return current, relax(mdp, scenarios, paths, values, final, new)


def _one_changed(current: FloatArray) -> FloatArray:
    """The current weights first, then all that differ from them in one function."""
    functions = np.repeat(np.arange(len(current)), len(WEIGHTS))
    changed = np.repeat(current[None], len(functions), axis=0)
    changed[np.arange(len(functions)), functions] = np.tile(WEIGHTS, len(current))
    return np.concatenate([current[None], changed])


def _best(given_away: FloatArray) -> int:
    """The column with the least mean, if it is clearly less than that of the first; else that."""
    best = int(given_away.mean(axis=0).argmin())
    gain = paired_difference(given_away[:, 0], given_away[:, best])
    return best if gain.mean > NEEDED_ERRORS * gain.standard_error else 0
