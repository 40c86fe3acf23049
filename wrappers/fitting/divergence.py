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

Both are plug-in estimates. If samples are independent they are biased upwards by (degrees of
freedom) / (2 samples), so the degrees of freedom are counted too and :meth:`Divergence.nats` can
take the bias away. What is left of the noise, about the root of (degrees of freedom / 2) / samples,
is above the paper's threshold of 1e-5 all the same: where nothing is left to be found, it is J that
stops the search. And where joint values occur once, no degrees of freedom are left to correct by.

n' is sampled with (n, a) drawn uniformly from those of the survey that are not terminal
(:class:`EndogenousTransitions`). Given the present, n' and x' are independent, so the parts of the
score that are about n' and about x' add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State
from planners.dependence.contingency import Cases, Rows
from planners.dependence.transitions import TransitionCounts
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import EndogenousSurvey


class Divergence(NamedTuple):
    """The scores of some candidates, before they are turned into nats."""

    statistic: FloatArray  # (candidates,): G, twice the samples times the plug-in score
    freedom: FloatArray  # (candidates,): its degrees of freedom
    samples: int

    def nats(self, bias_corrected: bool) -> FloatArray:
        """The scores in nats; less their bias they may be below 0."""
        found = self.statistic - self.freedom if bias_corrected else self.statistic
        return found / (2.0 * self.samples)


class EndogenousTransitions(NamedTuple):
    """n' where the transitions of some rollouts begin, with (n, a) drawn uniformly."""

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
    ) -> EndogenousTransitions:
        """Ask the model at the n of a survey, and at the x of the transitions that are counted."""
        x = counts.data.values[counts.rollouts, :-1].reshape(counts.count, -1).astype(np.int64)
        pairs = np.repeat(~survey.terminal, mdp.num_actions)
        surveyed = rng.choice(np.flatnonzero(pairs if pairs.any() else ~pairs), counts.count)
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
    counts: TransitionCounts,
    endogenous: EndogenousTransitions,
    mask: IntArray,
    candidates: IntArray,
) -> Divergence:
    """The score with models of joint values.

    Args:
        counts: transitions of x.
        endogenous: n' of these transitions.
        mask: the variables of the reduced state, by their positions in the data.
        candidates: the variables to score.
    """
    exogenous = joint_exogenous_divergence(counts, mask, candidates)
    rows = endogenous.pair
    for j in mask.tolist():
        rows = rows.split(counts.columns().column(j), int(counts.data.sizes[j]))
    statistic, freedom = counts.columns().information(endogenous.cases(rows), candidates)
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
        # The log-likelihood, and likewise the number of parameters, of each of the three models.
        models = ((joint_moving, joint), (both, present), (moving, alone))
        (divergence, *apart), (freedom, *fewer) = zip(*map(_model_of, models), strict=True)
        found[:, k] = 2.0 * (divergence - sum(apart)), freedom - sum(fewer)
    statistic, freedom = np.maximum(found, 0.0)
    return Divergence(statistic, freedom, counts.count)


def factored_divergence(
    counts: TransitionCounts,
    endogenous: EndogenousTransitions,
    survey: EndogenousSurvey,
    reduced: ReducedMDP,
    candidates: IntArray,
) -> Divergence:
    """The score with factored models: what candidates add to the prediction of each variable.

    A variable of the mask is given its parents in the reduced model. n' is given n, a and those
    variables of the mask that move it there.

    Args:
        counts: transitions of x.
        endogenous: n' of these transitions.
        survey: which variables move n', for each (n, a).
        reduced: the reduced model of the mask.
        candidates: the variables to score, by their positions in the data.
    """

    def informations() -> Iterator[tuple[FloatArray, FloatArray]]:
        for name, parents in reduced.parents.items():
            (target,) = counts.data.positions([name]).tolist()
            yield counts.screen(target, counts.data.positions(parents).tolist(), candidates)
        rows = endogenous.pair
        for j in reduced.columns.tolist():
            moving = survey.relevant[endogenous.surveyed, j]
            if moving.any():
                value = np.where(moving, counts.columns().column(j), 0)
                rows = rows.split(value, int(counts.data.sizes[j]))
        yield counts.columns().information(endogenous.cases(rows), candidates)

    statistic, freedom = np.sum(list(informations()), axis=0)
    return Divergence(statistic, freedom, counts.count)


def _split(rows: Rows, values: IntArray, sizes: NDArray[np.int64]) -> Rows:
    """The rows that some more variables, (samples, k), make of these."""
    for k, size in enumerate(sizes):
        rows = rows.split(np.ascontiguousarray(values[:, k]), int(size))
    return rows


def _model_of(moving_and_present: tuple[Rows, Rows]) -> tuple[float, int]:
    """The log-likelihood of a counted model of what follows the present, and its parameters."""
    moving, present = moving_and_present
    return _weight(moving) - _weight(present), moving.count - present.count


def _weight(rows: Rows) -> float:
    """The sum of c log c over the counts of the rows."""
    counts = np.bincount(rows.row, minlength=rows.count)
    return float((counts * np.log(np.maximum(counts, 1))).sum())
