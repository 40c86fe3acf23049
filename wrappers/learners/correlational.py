"""*Mask-Learning-Correlational* (section 5.3 of the paper), as written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exo_envs.inputs import check_real
from exo_envs.mdp import FloatArray
from planners import Mask
from wrappers.learners.divergence import endogenous_divergence, transition_divergence
from wrappers.learners.history import Record
from wrappers.learners.reward_variables import RewardVariableMaskLearner
from wrappers.learners.session import Session
from wrappers.learners.study import Study


@dataclass(kw_only=True)
class CorrelationalMaskLearner(RewardVariableMaskLearner):
    """*Mask-Learning-Correlational*: what pays, and what is correlated with it.

    The first phase is *Estimate-Reward-Variables* (:class:`RewardVariableMaskLearner`, whose
    arguments this learner has too: n1, n2, tau_variance, sampling, and ignored_rewards, which is
    "zero" as in the paper). Then the variable with the
    largest divergence (:mod:`wrappers.learners.divergence`) is added while J increases, each
    estimate of J having rollouts of its own, unless all divergences are below tau_correl. The mask
    is the last one for which J increased.

    :class:`CalibratedMaskLearner` does what this algorithm is after, by tests that state their
    level.

    Args:
        tau_correl: stop if no divergence is as large as this, in nats.
    """

    tau_correl: float = 1e-5

    def _check(self) -> None:
        super()._check()
        check_real("tau_correl", self.tau_correl, 0.0)

    def _steps(self, session: Session) -> Iterator[Record]:
        mask: Mask = ()
        for record in super()._steps(session):
            mask = record.mask
            yield record
        names = session.study.mdp.exogenous_names
        best = session.objective(mask, independent=True)
        while len(mask) < len(names):
            rest = [name for name in names if name not in mask]
            session.report(f"scoring {len(rest)} variables")
            scores = _divergences(session.study, mask, rest)
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
            tried = session.in_order((*mask, candidate))
            worth = session.objective(tried, independent=True)
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
    """The score of line 3 for s = (n, mask), remembered by the study."""
    known = study.memory.divergences
    if mask not in known:
        data = study.data()
        inside, outside = (data.positions(names).tolist() for names in (mask, candidates))
        exogenous = transition_divergence(data, inside, outside)
        endogenous = endogenous_divergence(
            study.counted, data, inside, outside, study.rng("divergence")
        )
        known[mask] = exogenous + endogenous
    return known[mask]
