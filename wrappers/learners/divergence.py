"""The mutual-information step of the paper (line 3 of *Mask-Learning-Correlational*).

The score of a variable x given the reduced state s = (n, mask) is the divergence of the joint
transition model from the product of the two,

    E KL( P(s', x' | s, x) || P(s' | s) P(x' | x) )
        = I(x ; s' | s) + I(s ; x' | x) + I(s' ; x' | s, x).

The paper learns all three models from data, and notes that this takes a lot of data "unless the
state factors nicely". Two readings of this are here:

* :func:`joint_divergence`: the models are counted in joint values of s. A mask may have any number
  of variables; but where nearly every joint value occurs once, counting is all that these models
  do, and the score is that of the samples and not of the process.
* :func:`factored_divergence`: P(s' | s) is the factored model of the mask's reduced MDP, where each
  variable is given few parents. The score is the sum over the variables of s of what x adds to
  their prediction: the first of the three terms, and the paper's own words for the score ("how much
  better would we be able to predict the dynamics of s if s included x").

Both are plug-in estimates, which are biased upwards by (degrees of freedom) / (2 samples). So they
come with their degrees of freedom, and :meth:`Divergence.nats` can take the bias away.

n' is sampled with n and a drawn uniformly (:class:`Moves`). Given the present, n' and x' are
independent, so the parts of the score that are about n' and about x' add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.mdp import FloatArray, IntArray
from planners import Cases, EndogenousSurvey, ReducedMDP, Rows, TransitionCounts


class Divergence(NamedTuple):
    """The scores of some candidates, as they are counted."""

    statistic: FloatArray  # (candidates,): G, twice the samples times the plug-in score
    freedom: FloatArray  # (candidates,): its degrees of freedom
    samples: int

    def nats(self, bias_corrected: bool) -> FloatArray:
        """The scores in nats; less their bias they may be below 0."""
        found = self.statistic - self.freedom if bias_corrected else self.statistic
        return found / (2.0 * self.samples)


class Moves(NamedTuple):
    """n' where the transitions of some rollouts begin, with n and a drawn uniformly."""

    pair: Rows  # the samples by (n, a)
    surveyed: NDArray[np.intp]  # (samples,): the pair's number in the survey
    following: Rows  # the samples by n'

    @classmethod
    def draw(
        cls,
        mdp: ExoMDP,
        counts: TransitionCounts,
        survey: EndogenousSurvey,
        rng: np.random.Generator,
    ) -> Moves:
        """Ask the model at the n of a survey, and at the x of the transitions that are counted."""
        x = counts.data.values[counts.rollouts, :-1].reshape(counts.count, -1).astype(np.int64)
        surveyed = rng.integers(len(survey.relevant), size=counts.count)
        number, action = np.divmod(surveyed, mdp.num_actions)
        state = State(survey.endogenous[number], x)
        following = mdp.sample_endogenous(state, action, rng)
        numbered = _split(Rows.of(counts.count), following, mdp.endogenous_sizes)
        pair = Rows.of(counts.count).split(surveyed, len(survey.relevant))
        return cls(pair, surveyed, numbered)

    def cases(self, rows: Rows) -> Cases:
        """The samples by their row and by n'."""
        return Cases(rows, self.following.row, self.following.count)


def joint_divergence(
    counts: TransitionCounts, moves: Moves, mask: IntArray, candidates: IntArray
) -> Divergence:
    """The score with models of joint values.

    Args:
        counts: transitions of x.
        moves: n' of these transitions.
        mask: the variables of the reduced state, by their positions in the data.
        candidates: the variables to score.
    """
    exogenous = joint_exogenous_divergence(counts, mask, candidates)
    rows = moves.pair
    for j in mask.tolist():
        rows = rows.split(counts.columns().column(j), int(counts.data.sizes[j]))
    statistic, freedom = counts.columns().information(moves.cases(rows), candidates)
    return Divergence(exogenous.statistic + statistic, exogenous.freedom + freedom, counts.count)


def joint_exogenous_divergence(
    counts: TransitionCounts, mask: IntArray, candidates: IntArray
) -> Divergence:
    """The exogenous part of :func:`joint_divergence`: the mask against each candidate."""
    before, after, sizes = counts.columns().column, counts.later, counts.data.sizes

    def split(rows: Rows, j: int, *, now: bool, later: bool) -> Rows:
        rows = rows.split(before(j), int(sizes[j])) if now else rows
        return rows.split(after(j), int(sizes[j])) if later else rows

    everything = Rows.of(counts.count)
    present = everything
    for j in mask.tolist():
        present = split(present, j, now=True, later=False)
    both = present
    for j in mask.tolist():
        both = split(both, j, now=False, later=True)
    found = np.empty((2, len(candidates)))
    for k, j in enumerate(candidates.tolist()):
        alone = split(everything, j, now=True, later=False)
        moving = split(alone, j, now=False, later=True)
        joint = split(present, j, now=True, later=False)
        joint_moving = split(both, j, now=True, later=True)
        # The entropies, and likewise the parameters, of each model of what follows.
        models = ((joint_moving, joint), (both, present), (moving, alone))
        (divergence, *apart), (freedom, *fewer) = zip(*map(_model_of, models), strict=True)
        found[:, k] = 2.0 * (divergence - sum(apart)), freedom - sum(fewer)
    return Divergence(np.maximum(found[0], 0.0), found[1], counts.count)


def factored_divergence(
    counts: TransitionCounts,
    moves: Moves,
    survey: EndogenousSurvey,
    reduced: ReducedMDP,
    candidates: IntArray,
) -> Divergence:
    """The score with factored models: what candidates add to the prediction of each variable.

    A variable of the mask is given its parents in the reduced model. n' is given n, a and those
    variables of the mask that move it there.

    Args:
        counts: transitions of x.
        moves: n' of these transitions.
        survey: which variables move n', for each (n, a).
        reduced: the reduced model of the mask.
        candidates: the variables to score, by their positions in the data.
    """

    def informations() -> Iterator[tuple[FloatArray, FloatArray]]:
        for name, parents in reduced.parents.items():
            (target,) = counts.data.positions([name]).tolist()
            yield counts.screen(target, counts.data.positions(parents).tolist(), candidates)
        rows = moves.pair
        for j in reduced.columns.tolist():
            moving = survey.relevant[moves.surveyed, j]
            if moving.any():
                value = np.where(moving, counts.columns().column(j), 0)
                rows = rows.split(value, int(counts.data.sizes[j]))
        yield counts.columns().information(moves.cases(rows), candidates)

    statistic, freedom = np.sum(list(informations()), axis=0)
    return Divergence(statistic, freedom, counts.count)


def _split(rows: Rows, values: IntArray, sizes: NDArray[np.int64]) -> Rows:
    """The rows that some more variables, (samples, k), make of these."""
    for k, size in enumerate(sizes):
        rows = rows.split(np.ascontiguousarray(values[:, k]), int(size))
    return rows


def _model_of(moving_and_present: tuple[Rows, Rows]) -> tuple[float, int]:
    """Of a model of what follows the present: the sum of c log P over its counts c; parameters."""
    moving, present = moving_and_present
    return _weight(moving) - _weight(present), moving.count - present.count


def _weight(rows: Rows) -> float:
    """The sum of c log c over the counts of the rows."""
    counts = np.bincount(rows.row, minlength=rows.count)
    return float((counts * np.log(np.maximum(counts, 1))).sum())
