"""How much of each penalty to charge: the weights that make the bound tightest.

The mean of the bound is convex in the weights, so it is enough to walk downhill. The trajectories
are not those that the bound is reported on: what was chosen on some is judged on others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exo_envs import ExoMDP
from exo_envs.mdp import FloatArray
from planners.bracket.penalty import ValueFunction
from planners.bracket.relaxation import Draws, relax
from planners.evaluation import Scenarios, paired_difference

#: Weights that are tried for each value function; 1 is right for the best values.
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1)

#: A penalty is charged only if it lowers the bound by this many standard errors.
NEEDED_ERRORS = 2.0


def fit_weights(
    mdp: ExoMDP, scenarios: Scenarios, values: Sequence[ValueFunction], draws: Draws
) -> FloatArray:
    """The weights of all value functions, shape (functions,); zeros if no penalty helps."""
    current = np.zeros(len(values))
    # One function is settled by one look at all its weights, several by changing one at a time.
    for _ in range(1 if len(values) == 1 else 2 * len(values)):
        changed = np.repeat(current[None], len(values) * len(WEIGHTS), axis=0)
        for f in range(len(values)):
            changed[f * len(WEIGHTS) : (f + 1) * len(WEIGHTS), f] = WEIGHTS
        tried = np.concatenate([current[None], changed])
        found = relax(mdp, scenarios, values, tried, draws).values
        best = int(found.mean(axis=0).argmin())
        gain = paired_difference(found[:, 0], found[:, best])
        if not gain.mean > NEEDED_ERRORS * gain.standard_error:
            break
        current = tried[best]
    return current
