"""*Mask-Learning-Correlational* (section 5.3 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, get_args

from exo_envs.core.arguments import (
    Constraints,
    check_choice,
    check_flag,
    real,
    whole,
)
from exo_envs.core.mdp import FloatArray
from planners.core.memory import LARGE, Shelf
from planners.core.policy import Mask
from planners.dependence.transitions import TransitionCounts
from planners.reduced.reduced_mdp import ReducedMDP
from wrappers.fitting.divergence import (
    Divergence,
    EndogenousTransitions,
    factored_divergence,
    joint_divergence,
)
from wrappers.fitting.history import Record
from wrappers.fitting.session import Session
from wrappers.fitting.study import Study
from wrappers.learners.reward_variables import RewardVariableMaskLearner

TransitionModel = Literal["joint", "factored"]

#: (transition model, mask) -> what the paper's score of each variable outside of it is made of.
DIVERGENCES = Shelf[tuple[TransitionModel, Mask], Divergence]("divergences", LARGE)
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
    (:mod:`wrappers.fitting.divergence`) is added, until J has not increased for ``patience``
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
        "patience": whole(1),
        "bias_corrected": check_flag,
        "paired": check_flag,
    }

    def _check(self) -> None:
        super()._check()
        check_choice("transition_model", self.transition_model, get_args(TransitionModel))

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

        def score() -> Divergence:
            counts, endogenous = TransitionCounts(study.data(), 1, study.memory), _endogenous(study)
            others = study.data().positions(candidates)
            if self.transition_model == "joint":
                return joint_divergence(counts, endogenous, reduced.columns, others)
            return factored_divergence(counts, endogenous, study.survey(), reduced, others)

        key = (self.transition_model, reduced.mask)
        return study.memory.get(DIVERGENCES, key, score).nats(self.bias_corrected)


def _endogenous(study: Study) -> EndogenousTransitions:
    """How n moves, asked once for all masks."""

    def draw() -> EndogenousTransitions:
        counts = TransitionCounts(study.data(), 1, study.memory)
        return EndogenousTransitions.draw(
            study.coarse, counts, study.survey(), study.rng("divergence")
        )

    return study.memory.get(ENDOGENOUS_TRANSITIONS, (), draw)
