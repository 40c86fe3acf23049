"""*Mask-Learning-Correlational* (section 5.3): the paper's rule, and one that can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from exo_envs.errors import unknown_name
from exo_envs.inputs import check_probability, check_real, check_whole
from exo_envs.mdp import FloatArray
from wrappers.learners.base import MaskLearner, Session, in_order
from wrappers.learners.calibrated.relevance import find_relevance, search_relevance
from wrappers.learners.calibrated.selection import select
from wrappers.learners.divergence import endogenous_divergence, transition_divergence
from wrappers.learners.history import Mask, Record
from wrappers.learners.reward_variables import Sampling, check_first_phase, first_phase
from wrappers.learners.study import Study

RULES = ("calibrated", "paper")


@dataclass(kw_only=True)
class CorrelationalMaskLearner(MaskLearner):
    """*Mask-Learning-Correlational*: what pays, and what helps to predict it.

    **rule="calibrated"** (the default) first finds all variables that matter, by tests that state
    their level (:mod:`wrappers.learners.calibrated.relevance`): what pays, what moves n, and what predicts the mask,
    XOR pairs included. With ``cost_weight=0`` that is the mask. Otherwise a variable stays only
    if it pays its price, by comparisons of J on shared trajectories (:mod:`wrappers.learners.calibrated.selection`).

    **rule="paper"** is the paper's algorithm as written: *Estimate-Reward-Variables*; then the
    variable with the largest divergence (:mod:`wrappers.learners.divergence`) is added while J increases,
    each estimate of J having rollouts of its own, unless all divergences are below tau_correl. The
    mask is the last one for which J increased.

    Args:
        rule: "calibrated" or "paper".
        level: of the tests, over all variables and candidates, and of the comparisons of J by
            which variables are added (calibrated).
        patience: stop trying to drop variables after so many groups of them had to stay
            (calibrated).
        n1: see :class:`RewardVariableMaskLearner` (paper).
        n2: the same.
        tau_variance: the same.
        sampling: the same.
        tau_correl: stop if no divergence is as large as this, in nats (paper).
    """

    rule: Literal["calibrated", "paper"] = "calibrated"
    level: float = 0.05
    patience: int = 4
    n1: int = 250
    n2: int = 5
    tau_variance: float = 0.0
    sampling: Sampling = "uniform"
    tau_correl: float = 1e-5

    def _check(self) -> None:
        super()._check()
        if self.rule not in RULES:
            raise unknown_name("rule", self.rule, RULES)
        check_first_phase(self.n1, self.n2, self.tau_variance, self.sampling)
        check_real("tau_correl", self.tau_correl, 0.0)
        check_whole("patience", self.patience, 1)
        check_probability("level", self.level)
        if not 0 < self.level < 1:
            raise ValueError(f"level is a probability between 0 and 1, not {self.level!r}")

    def _study_settings(self) -> dict[str, Any]:
        return {**super()._study_settings(), "level": self.level}

    def _steps(self, session: Session) -> Iterator[Record]:
        return self._paper(session) if self.rule == "paper" else self._calibrated(session)

    # --- ours -----------------------------------------------------------------------------

    def _calibrated(self, session: Session) -> Iterator[Record]:
        study = session.study
        found: Mask = ()
        for finding in search_relevance(study, session.progress):
            found = in_order(study, (*found, finding.name))
            yield session.record(
                "find",
                (finding.name,),
                reason=finding.reason,
                role=finding.role,
                target=finding.target or None,
                mask=found,
                score=finding.score,
                p_value=finding.p_value,
            )
        if self.cost_weight > 0:
            relevance = find_relevance(study)
            yield from select(session, relevance, level=self.level, patience=self.patience)
        else:
            yield session.record(
                "start",
                found,
                reason="all that matters",
                mask=found,
                objective=session.objective(found),
            )

    # --- the paper's ----------------------------------------------------------------------

    def _paper(self, session: Session) -> Iterator[Record]:
        study = session.study
        mask: Mask = ()
        for record in first_phase(session, self.n1, self.n2, self.tau_variance, self.sampling):
            mask = record.mask
            yield record
        estimates = count()
        best = session.objective(mask, scenarios=study.independent_scenarios(next(estimates)))
        while len(mask) < len(study.mdp.exogenous_names):
            rest = [name for name in study.mdp.exogenous_names if name not in mask]
            session.report(f"scoring {len(rest)} variables")
            scores = _divergences(study, mask, rest)
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
            tried = in_order(study, (*mask, candidate))
            worth = session.objective(tried, scenarios=study.independent_scenarios(next(estimates)))
            before, accepted = best, worth.value > best.value
            if accepted:
                mask, best = tried, worth
            yield session.record(
                "add",
                (candidate,),
                accepted=accepted,
                reason="J increases" if accepted else "J no longer increases",
                mask=mask,
                objective=worth,
                gain=worth.gain_over(before),
                score=score,
            )
            if not accepted:
                return


def _divergences(study: Study, mask: Mask, candidates: list[str]) -> FloatArray:
    """The score of line 3 for s = (n, mask), remembered."""
    key = ("divergences", mask)
    if key not in study.memo:
        data = study.data
        inside, outside = (data.positions(names).tolist() for names in (mask, candidates))
        exogenous = transition_divergence(data, inside, outside)
        endogenous = endogenous_divergence(
            study.mdp, data, inside, outside, study.rng("divergence")
        )
        study.memo[key] = exogenous + endogenous
        study.samples += data.num_rollouts * data.num_steps
    scores: FloatArray = study.memo[key]
    return scores
