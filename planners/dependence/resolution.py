"""What bins hide: whether a variable of very many values acts within its bins.

Tests and plans see bins (:mod:`planners.discretization.coarse`). That is as good as seeing values
if what the
variable does changes from bin to bin, and of no use if it changes within them, as with a price of
which only the last digit matters. So the model is asked about values of the same bin and about
values of other bins, with the same noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State
from planners.discretization.bins import NUM_STAND_INS, Bins
from planners.discretization.coarse import CoarseMDP
from planners.samples.rollouts import ExogenousData

#: States in which a variable is changed, within its bin and beyond.
NUM_STATES = 256
#: States, in the same calls of the model, that are left alone.
NUM_UNCHANGED = 32
#: Effects in fewer states than this share are not looked at.
RARE = 0.05


def hidden_in_bins(
    mdp: ExoMDP, data: ExogenousData, name: str, targets: Sequence[str], endogenous: IntArray
) -> float:
    """How much of what a variable does happens within its bins: about 0 if nothing, 1 if all.

    It is the largest ratio of two effects, that of another value in the same bin and that of
    another bin, on x' of the targets, on n', and on what the variable pays, by itself or together
    with others. An effect is the share of states in which something changes; of numbers and bins,
    the mean square of the change. Without common random numbers nothing can be said, and it is 0;
    if x was recorded, nothing can be said about x'.

    Args:
        mdp: the model, of values.
        data: rollouts of all its variables.
        name: the variable, one of those in bins.
        targets: the variables whose x' matters.
        endogenous: the n to ask about, shape (S, k).
    """
    coarse = CoarseMDP(mdp, data.bins)
    in_bins = [own.name for own in data.bins if isinstance(own, Bins)]  # the others are grids of n
    j, k = data.names.index(name), in_bins.index(name)
    rng = np.random.default_rng([data.seed, j])
    number = NUM_STATES + NUM_UNCHANGED
    x, changed = data.sample(number, rng), np.arange(number) < NUM_STATES
    chosen = rng.integers(NUM_STAND_INS, size=(number, len(in_bins)))
    other = chosen.copy()
    other[changed, k] = (
        chosen[changed, k] + rng.integers(1, NUM_STAND_INS, size=NUM_STATES)
    ) % NUM_STAND_INS
    elsewhere = x.copy()
    elsewhere[changed, j] = data.sample(number, rng)[changed, j]
    values = [coarse.values(*asked) for asked in ((x, chosen), (x, other), (elsewhere, chosen))]
    n = coarse.at_points(endogenous[rng.integers(len(endogenous), size=number)])
    action = rng.integers(mdp.num_actions, size=number)
    targets = () if mdp.is_recorded else tuple(targets)
    columns = data.positions(targets)
    endogenous_names = [variable.name for variable in mdp.endogenous_variables]
    own_terms = [k for k, scope in enumerate(mdp.scope_indices) if j in scope]

    def answers(exogenous: IntArray) -> tuple[IntArray, FloatArray]:
        """What follows, (states, variables), and what is paid, (states,)."""
        state, noise = State(n, exogenous), np.random.default_rng(data.seed)
        following = exogenous if mdp.is_recorded else mdp.sample_exogenous(exogenous, noise)
        after = coarse.in_bins(following)[:, columns]
        moved = coarse.on_grid(mdp.sample_endogenous(state, action, noise), noise)
        paid = mdp.reward_terms(state, action)[:, own_terms].sum(axis=1)
        return np.concatenate([after, moved], axis=1), paid

    (here, paid), *rest = map(answers, values)
    if any((there[~changed] != here[~changed]).any() for there, _ in rest):
        return 0.0
    binned = {own.name for own in data.bins}
    ranked = np.array([own in binned for own in (*targets, *endogenous_names)], dtype=np.bool_)
    within, beyond = (_effects(here, there, ranked) for there, _ in rest)
    within_pay, beyond_pay = (((pays - paid) ** 2).mean() for _, pays in rest)
    ratios = within[beyond > RARE] / beyond[beyond > RARE]
    hidden = float(ratios.max(initial=0.0))
    return max(hidden, float(within_pay / beyond_pay)) if beyond_pay > 0 else hidden


def _effects(here: IntArray, there: IntArray, ranked: BoolArray) -> FloatArray:
    """How much each of some variables (last axis) changes; ranked ones have an order."""
    squared = ((there - here).astype(np.float64) ** 2).mean(axis=0)
    return np.asarray(np.where(ranked, squared, (there != here).mean(axis=0)))
