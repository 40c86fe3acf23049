"""Our mask learner: the aim of the paper's algorithm, by tests and paired comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from exo_envs.core.arguments import Constraints, check_level, whole
from exo_envs.core.batches import as_mask
from planners.core.evaluation import DECIDING_ERRORS, Estimate
from planners.core.policy import Mask
from planners.worth import MaskComparison
from wrappers.fitting.history import OUT_OF_TIME, SWITCHED, Action, Record
from wrappers.fitting.relevance import Relevance, importance
from wrappers.fitting.session import Session
from wrappers.learners.base import MaskLearner
from wrappers.reports.doubts import cannot_tell

Blocks = list[Mask]  # blocks of variables, the most important first

REASONS = {
    ("add", True): "J rises",
    ("add", False): "J does not rise beyond doubt",
    ("drop", True): "J does not fall",
    ("drop", False): "J falls",
}


@dataclass(kw_only=True)
class CalibratedMaskLearner(MaskLearner):
    """Finds what matters by tests that state their level, and keeps what pays its price.

    First all variables that matter are found (:mod:`wrappers.fitting.relevance`): what
    pays, what moves n, and what predicts the mask, XOR pairs included. With ``cost_weight=0`` that
    is the mask. Otherwise a variable stays only if it pays its price, by comparisons of J on shared
    trajectories (:class:`Selection`).

    :class:`CorrelationalMaskLearner` is the paper's algorithm with the same aim.

    Args:
        level: of the tests, over all variables and candidates, and of the comparisons of J by
            which variables are added.
        patience: stop trying to drop variables after so many groups of them had to stay.
    """

    level: float = 0.05
    patience: int = 4

    _of_the_study = (*MaskLearner._of_the_study, "level")
    constraints: ClassVar[Constraints] = {
        "patience": whole(1),
        "level": check_level,
    }

    def _steps(self, session: Session) -> Iterator[Record]:
        mask: Mask = ()
        relevance = Relevance()
        for finding in relevance.search(session.study, session.report):
            mask = session.in_order((*mask, finding.name))
            yield session.record(
                "find",
                (finding.name,),
                reason=finding.reason,
                role=finding.role,
                target=finding.target,
                mask=mask,
                score=finding.score,
                p_value=finding.p_value,
            )
        session.doubts += cannot_tell(session.study, relevance.findings)
        if self.cost_weight > 0:
            selection = Selection(session, relevance, level=self.level, patience=self.patience)
            yield from selection.steps()
        else:
            yield session.record(
                "start",
                mask,
                reason="all that matters",
                mask=mask,
                objective=session.glance(mask, first_look=True),
            )


class Selection:
    """A search for the mask with the highest J among the variables that matter, for lambda > 0.

    A planner may be better off without some of them: those that gain less in return than they
    cost. Masks are compared on the same exogenous trajectories, so "J increases" is a paired
    comparison. Variables are tried in groups, because J is expensive and because some pay only
    together:

    * *forward*: what predicts the mask is added if J rises, all of it at once; a group that does
      not pay is halved, the more important half first, unless it shows no sign of being worth
      anything;
    * *backward*: the least important variables are dropped if J does not fall, a quarter of the
      mask at first, then fewer, down to what the rollouts can tell apart from nothing.

    If the plan of the mask that is behind ran out of time, the comparison decides nothing, and the
    mask stays as it is.
    """

    def __init__(
        self, session: Session, relevance: Relevance, *, level: float, patience: int
    ) -> None:
        """The search starts with all that pays or moves n."""
        self.session = session
        self.relevance = relevance
        self.patience = patience
        self.log_limit = math.inf  # of joint values of x, from which on plans got worse
        self.confidence = NormalDist().inv_cdf(1 - level)
        self.mask = session.in_order(relevance.direct)

    def steps(self) -> Iterator[Record]:
        """Search; the mask of the last record is the result."""
        yield self.session.record(
            "start",
            self.mask,
            reason="all that pays or moves",
            mask=self.mask,
            objective=self.session.objective(self.mask, first_look=True),
        )
        others = tuple(name for name in self.relevance.findings if name not in self.mask)
        if others:
            yield from self._forward(blocks(self.relevance, others, self._worth()))
        worth = self._worth()  # the agent may go elsewhere now
        yield from self._backward(sorted(self.mask, key=lambda name: (worth[name], name)))
        if self.mask:
            yield self._try("drop", self.mask)[0]

    def _worth(self) -> dict[str, float]:
        study = self.session.study
        return importance(study, self.relevance, study.evaluator.visits(self.mask))

    def _forward(self, candidates: Blocks) -> Iterator[Record]:
        """Add what pays: everything at once, or else one half and then the other."""
        waiting = [candidates]
        while waiting:
            group = waiting.pop(0)
            names = tuple(name for block in group for name in block)
            # Planning with fewer states than these make may have been too much already.
            split = self._log_states((*self.mask, *names)) >= self.log_limit
            if not split:
                record, tried = self._try("add", names)
                yield record
                # More information cannot hurt a perfect planner: if returns did not rise there is
                # nothing in the group, unless they fell because planning with it was too much.
                too_much = tried.is_cut_short or self._is_beyond_doubt(tried.returns)
                split = not record.accepted and too_much
            if split and len(names) > 1:
                parts: Blocks = group if len(group) > 1 else [(name,) for name in names]
                half = -(-len(parts) // 2)
                waiting[:0] = [parts[:half], parts[half:]]

    def _is_beyond_doubt(self, gain: Estimate) -> bool:
        """Whether a gain, or a loss, is significant."""
        return abs(gain.mean) > self.confidence * gain.standard_error

    def _log_states(self, mask: Mask) -> float:
        data = self.session.study.data()
        return float(np.log(data.sizes[data.positions(mask)]).sum())

    def _backward(self, ascending: list[str]) -> Iterator[Record]:
        """Drop what does not pay, the least important first."""
        size, refusals = max(1, len(ascending) // 4), 0
        while ascending and refusals < self.patience:
            size = min(size, len(ascending))
            record, tried = self._try("drop", tuple(ascending[:size]))
            yield record
            if record.accepted:
                del ascending[:size]
                continue
            refusals += 1
            if size == 1:
                del ascending[0]
                continue
            size = max(1, size // 2)
            price = (tried.gain.mean - tried.returns.mean) / 2
            if price < tried.gain.standard_error and not self._is_beyond_doubt(tried.gain):
                return  # the rollouts cannot tell whether so few variables pay

    def _try(self, action: Action, names: Mask) -> tuple[Record, MaskComparison]:
        """Add variables if J rises, beyond doubt; drop them if it does not fall."""
        grows, before = action == "add", self.mask
        wanted = {*before, *names} if grows else {*before} - {*names}
        mask = as_mask(self.session.study.mdp, wanted)
        tried = self.session.compare(mask, before)
        gain, returns = tried.gain, tried.returns
        worse = returns.mean < -DECIDING_ERRORS * returns.standard_error
        if grows and (worse or (gain.mean < 0 and tried.is_cut_short)):
            self.log_limit = min(self.log_limit, self._log_states(mask))
        accepted = gain.mean >= 0 and (not grows or self._is_beyond_doubt(gain))
        reason = REASONS[action, accepted]
        if tried.is_cut_short:
            accepted, reason = False, "not decided"
            if gain.mean >= 0:
                reason += f": the plan with the mask before {OUT_OF_TIME}"
        elif accepted != grows and self._is_by_planning(tried, grows):
            more, fewer = (mask, before) if grows else (before, mask)
            reason += f"; {SWITCHED}"
            self.session.doubts.append(
                f"a mask of {len(more)} variables earned less than one of {len(fewer)} of them: "
                f"{SWITCHED}, so this says little about what they are worth"
            )
        if accepted:
            self.mask = mask
        record = self.session.record(
            action,
            names,
            accepted=accepted,
            reason=reason,
            mask=self.mask,
            objective=tried.objective,
            gain=gain,
            score=max(self.relevance.findings[name].score for name in names),
        )
        return record, tried

    def _is_by_planning(self, tried: MaskComparison, grows: bool) -> bool:
        """Whether fewer variables earned more because only they could be planned with exactly.

        More information cannot hurt a perfect planner, so a loss beyond doubt is the planner's.
        """
        masks = tried.objective, tried.rival
        more, fewer = masks if grows else masks[::-1]
        lost = tried.returns.mean if grows else -tried.returns.mean
        is_switched = more.plan.values is None and fewer.plan.values is not None
        return lost < 0 and is_switched and self._is_beyond_doubt(tried.returns)


def blocks(relevance: Relevance, names: Mask, worth: dict[str, float]) -> list[Mask]:
    """Candidates that predict each other belong together: the most valuable group first."""
    group = {name: {name} for name in names}
    for target in names:
        for name in relevance.parents.get(target, ()):
            if name in group and group[name] is not group[target]:
                group[target] |= group[name]
                for member in group[name]:
                    group[member] = group[target]
    distinct = {id(members): members for members in group.values()}.values()
    ordered = [tuple(sorted(members, key=lambda n: (-worth[n], n))) for members in distinct]
    return sorted(ordered, key=lambda members: (-worth[members[0]], members))
