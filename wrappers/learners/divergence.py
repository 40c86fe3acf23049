"""The mutual-information step of the paper (line 3 of *Mask-Learning-Correlational*).

The score of a variable x given the reduced state s is the divergence of the joint transition
model from the product of the two,

    E KL( P(s', x' | s, x) || P(s' | s) P(x' | x) ),

with all three models estimated by counting. Joint values are numbered as they occur, so a mask
may have any number of variables; but where nearly every joint value occurs once, counting is all
that these models do, and the score is that of the samples and not of the process. The plug-in
estimate is biased upwards by about (degrees of freedom) / (2 samples).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.mdp import FloatArray, IntArray
from planners import Cases, ExogenousData, Rows, conditional_information


def transition_divergence(
    data: ExogenousData, mask: Sequence[int], candidates: Sequence[int]
) -> FloatArray:
    """The exogenous part of the score: the mask's variables against each candidate, in nats.

    Args:
        data: rollouts of x; all transitions are counted.
        mask: the variables of the reduced state, by their positions in the data.
        candidates: the variables to score.

    Returns:
        The plug-in divergences, shape (candidates,).
    """
    everything = np.arange(data.num_rollouts)
    samples = data.num_rollouts * data.num_steps

    def split(rows: Rows, j: int, *, now: bool, later: bool) -> Rows:
        size = int(data.sizes[j])
        if now:
            rows = rows.split(data.before(j, everything), size)
        return rows.split(data.after(j, everything), size) if later else rows

    present = Rows.of(samples)
    for j in mask:
        present = split(present, j, now=True, later=False)
    both = present
    for j in mask:
        both = split(both, j, now=False, later=True)
    fixed = _weight(present) - _weight(both)
    scores = np.empty(len(candidates))
    for k, j in enumerate(candidates):
        alone = split(Rows.of(samples), j, now=True, later=False)
        moving = split(alone, j, now=False, later=True)
        joint = split(present, j, now=True, later=False)
        joint_moving = split(both, j, now=True, later=True)
        divergence = _weight(joint_moving) - _weight(joint) + _weight(alone) - _weight(moving)
        scores[k] = (divergence + fixed) / samples
    return np.maximum(scores, 0.0)


def endogenous_divergence(
    mdp: ExoMDP,
    data: ExogenousData,
    mask: Sequence[int],
    candidates: Sequence[int],
    rng: np.random.Generator,
) -> FloatArray:
    """The endogenous part of the score: I(x ; n' | n, a, mask), with n and a drawn uniformly.

    Given the present, n' and x' are independent; so this and :func:`transition_divergence` add up
    to the divergence for s = (n, mask).
    """
    x = data.values[:, :-1].reshape(-1, len(data.names)).astype(np.int64)
    endogenous = mdp.sample_uniform(len(x), rng).endogenous
    action = rng.integers(mdp.num_actions, size=len(x))
    following = mdp.sample_endogenous(State(endogenous, x), action, rng)
    rows = _codes(endogenous, mdp.endogenous_sizes).split(action, mdp.num_actions)
    for j in mask:
        rows = rows.split(x[:, j], int(data.sizes[j]))
    target = _codes(following, mdp.endogenous_sizes)
    cases = Cases(rows, target.row, target.count)
    found = [conditional_information(cases, x[:, j], int(data.sizes[j])) for j in candidates]
    return np.array([information.statistic for information in found]) / (2 * len(x))


def _codes(values: IntArray, sizes: NDArray[np.int64]) -> Rows:
    """Samples by their joint value."""
    rows = Rows.of(len(values))
    for k, size in enumerate(sizes):
        rows = rows.split(np.ascontiguousarray(values[:, k]), int(size))
    return rows


def _weight(rows: Rows) -> float:
    """The sum of c log c over the counts of the rows."""
    counts = np.bincount(rows.row, minlength=rows.count)
    return float((counts * np.log(np.maximum(counts, 1))).sum())
