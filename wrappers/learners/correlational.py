"""*Mask-Learning-Correlational* (section 5.3 of the paper).

Line 3 of the procedure, its mutual-information step, scores a variable x given the reduced state
s = (n, mask) by the divergence of the joint transition model from the product of the two,

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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import Constraints, check_choice, check_flag, real, whole
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State
from planners.core.memory import MORE_BYTES, Shelf
from planners.core.policy import Mask
from planners.dependence.contingency import Cases, Rows
from planners.dependence.parents import TransitionCounts
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import EndogenousSurvey
from wrappers.fitting.history import Record
from wrappers.fitting.session import Session
from wrappers.fitting.study import Study
from wrappers.learners.reward_variables import RewardVariableMaskLearner

TransitionModel = Literal["joint", "factored"]


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
    """n' where the transitions of some rollouts begin.

    (n, a) is drawn uniformly from those of the survey that are not terminal. Given the present, n'
    and x' are independent, so the parts of the score that are about n' and about x' add up.
    """

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
        numbered = Rows.of(counts.count)
        for k, size in enumerate(mdp.endogenous_sizes.tolist()):
            numbered = numbered.split(np.ascontiguousarray(following[:, k]), size)
        pair = Rows.of(counts.count).split(surveyed, len(survey.relevant))
        return cls(pair, surveyed, numbered)

    def cases(self, rows: Rows) -> Cases:
        return Cases(rows, self.following.row, self.following.count)


#: (transition model, mask) -> what the paper's score of each variable outside of it is made of.
DIVERGENCES = Shelf[tuple[TransitionModel, Mask], Divergence]("divergences", MORE_BYTES)
#: () -> how n moves where the transitions of the rollouts begin.
ENDOGENOUS_TRANSITIONS = Shelf[tuple[()], EndogenousTransitions](
    "endogenous_transitions", at_least=1
)


@dataclass(kw_only=True)
class CorrelationalMaskLearner(RewardVariableMaskLearner):
    """*Mask-Learning-Correlational*: what pays, and what is correlated with it.

    The first phase is *Estimate-Reward-Variables* (:class:`RewardVariableMaskLearner`, whose
    arguments this learner has too: n1, n2, tau_variance, sampling, uniform_share, and
    ignored_rewards, which is "zero" as in the paper). Then the variable with the largest score
    (:class:`Divergence`) is added, until J has not increased for ``patience``
    variables or all scores are below tau_correl. The mask is the one with the highest J on this
    way. A record's candidates are all variables since J was highest, the last one added last: its
    gain is what they bring together.

    The paper's text leaves some of this open, and on one point, the patience, we depart from it.
    The defaults are those with which this loop does what the paper reports, and each of them is a
    switch. The narrowest reading of the text is
    ``CorrelationalMaskLearner(transition_model="joint", bias_corrected=False, paired=False,
    patience=1)``.

    :class:`CalibratedMaskLearner` does what this algorithm is after, by tests that state their
    level.

    Args:
        tau_correl: stop if no score is as large as this, in nats.
        transition_model: what the empirical transition models are. "joint" counts joint values of
            the reduced state, nearly all of which occur once if the mask is large. "factored"
            predicts each of its variables from few parents, and the score is the sum over these
            variables of what a candidate adds; what the reduced state tells about the candidate,
            which a planner has no use for, is part of the joint score only.
        bias_corrected: whether the scores' bias, (degrees of freedom) / (2 samples), is taken away.
            Without, candidates of many values score high whatever they tell.
        paired: whether all masks are played on the same trajectories, or each on its own, whose
            noise may be larger than what single variables are worth.
        patience: stop when J has not increased for so many variables in a row; 1 in the paper. Some
            variables pay only together, as where an agent is and where it is going.
    """

    tau_correl: float = 1e-5
    transition_model: TransitionModel = "factored"
    bias_corrected: bool = True
    paired: bool = True
    patience: int = 2

    constraints: ClassVar[Constraints] = {
        "tau_correl": real(0.0),
        "transition_model": partial(check_choice, choices=get_args(TransitionModel)),
        "patience": whole(1),
        "bias_corrected": check_flag,
        "paired": check_flag,
    }

    def _steps(self, session: Session) -> Iterator[Record]:
        mask: Mask = ()
        for record in super()._steps(session):
            mask = record.mask
            yield record
        names = session.study.mdp.exogenous_names
        estimate = partial(session.objective, independent=not self.paired)
        best = tried = estimate(mask)
        added: Mask = ()  # since J was highest
        while len(mask) + len(added) < len(names) and len(added) < self.patience:
            grown = session.in_order((*mask, *added))
            rest = [name for name in names if name not in grown]
            session.report(f"scoring {len(rest)} variables")
            scores = self._scores(session.study, tried.reduced, rest)
            candidate, score = rest[int(scores.argmax())], float(scores.max())
            if score < self.tau_correl:
                yield session.record(
                    "try",
                    (candidate,),
                    accepted=False,
                    reason="all scores are below tau_correl",
                    mask=mask,
                    score=score,
                )
                return
            grown, added = session.in_order((*grown, candidate)), (*added, candidate)
            tried = estimate(grown)
            accepted = tried.value > best.value
            yield session.record(
                "add",
                added,
                accepted=accepted,
                reason="J increases" if accepted else "J does not increase",
                mask=grown if accepted else mask,
                objective=tried,
                gain=tried.gain_over(best),
                score=score,
            )
            if accepted:
                mask, best, added = grown, tried, ()

    def _scores(self, study: Study, reduced: ReducedMDP, candidates: list[str]) -> FloatArray:
        """The score of line 3 for s = (n, the mask of a reduced model), remembered by the study."""
        memory, counts = study.memory, TransitionCounts(study.data(), 1, study.memory)
        key = (self.transition_model, reduced.mask)
        if (found := memory.find(DIVERGENCES, key)) is None:
            survey, others = study.survey(), study.data().positions(candidates)
            if (endogenous := memory.find(ENDOGENOUS_TRANSITIONS, ())) is None:
                rng = study.rng("divergence")
                endogenous = EndogenousTransitions.draw(study.coarse, counts, survey, rng)
                memory.keep(ENDOGENOUS_TRANSITIONS, (), endogenous)
            if self.transition_model == "joint":
                found = joint_divergence(counts, endogenous, reduced.columns, others)
            else:
                found = factored_divergence(counts, endogenous, survey, reduced, others)
            memory.keep(DIVERGENCES, key, found)
        return found.nats(self.bias_corrected)


def joint_divergence(
    counts: TransitionCounts,
    endogenous: EndogenousTransitions,
    mask: IntArray,
    candidates: IntArray,
) -> Divergence:
    """The score with models of joint values; variables are given by their positions in the data."""
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
    sizes, everything = counts.data.sizes.tolist(), Rows.of(counts.count)

    def split(rows: Rows, now: Iterable[int] = (), later: Iterable[int] = ()) -> Rows:
        for j in now:
            rows = rows.split(counts.columns().column(j), sizes[j])
        for j in later:
            rows = rows.split(counts.later(j), sizes[j])
        return rows

    def model(moving: Rows, present: Rows) -> FloatArray:
        """Twice the log-likelihood of a counted model of what follows, and its parameters."""
        likelihood = _weight(moving) - _weight(present)
        return np.array([2.0 * likelihood, moving.count - present.count])

    present = split(everything, now=mask.tolist())
    both = split(present, later=mask.tolist())
    found = np.empty((2, len(candidates)))
    for k, j in enumerate(candidates.tolist()):
        alone = split(everything, now=[j])
        joint = model(split(both, now=[j], later=[j]), split(present, now=[j]))
        found[:, k] = joint - (model(both, present) + model(split(alone, later=[j]), alone))
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
    variables of the mask that move it there. Candidates are given by their positions in the data.
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


def _weight(rows: Rows) -> float:
    """The sum of c log c over the counts of the rows."""
    counts = np.bincount(rows.row, minlength=rows.count)
    return float((counts * np.log(np.maximum(counts, 1))).sum())
