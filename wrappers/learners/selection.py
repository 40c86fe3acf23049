"""What pays its price: the second half of our learner, for lambda > 0.

Of the variables that matter (:mod:`wrappers.fitting.relevance`) a planner may be better
off without some: those that gain less in return than they cost. Masks are compared on the same
exogenous trajectories, so "J increases" is a paired comparison. Variables are tried in groups,
because J is expensive and because some pay only together:

* *forward*: what predicts the mask is added if J rises, all of it at once; a group that does not
  pay is halved, the more important half first, unless it shows no sign of being worth anything;
* *backward*: the least important variables are dropped if J does not fall, a quarter of the mask
  at first, then fewer, down to what the rollouts can tell apart from nothing.

If the plan of the mask that is behind ran out of time, the comparison decides nothing, and the mask
stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from planners.core.evaluation import DECIDED, Estimate
from planners.core.policy import Mask
from planners.worth import Comparison, Objective
from wrappers.fitting.history import SWITCHED, Action, Record
from wrappers.fitting.importance import blocks, importance
from wrappers.fitting.relevance import Relevance
from wrappers.fitting.session import Session

Group = list[Mask]  # blocks of variables, the most important first

REASONS = {
    ("add", True): "J rises",
    ("add", False): "J does not rise beyond doubt",
    ("drop", True): "J does not fall",
    ("drop", False): "J falls",
}


class Selection:
    """A search for the mask with the highest J among the variables that matter."""

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
        return importance(self.session.study, self.relevance, self.session.visits(self.mask))

    def _forward(self, candidates: Group) -> Iterator[Record]:
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
                parts: Group = group if len(group) > 1 else [(name,) for name in names]
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

    def _is_by_planning(
        self, action: Action, accepted: bool, tried: Objective, returns: Estimate
    ) -> bool:
        """Whether fewer variables won because only they could be planned with exactly.

        More information cannot hurt a perfect planner, so a loss beyond doubt is the planner's.
        """
        before = self.session.known.get(self.mask)
        if accepted == (action == "add") or before is None or not self._is_beyond_doubt(returns):
            return False
        more, fewer = (tried, before) if action == "add" else (before, tried)
        lost = returns.mean if action == "add" else -returns.mean
        return lost < 0 and more.plan.values is None and fewer.plan.values is not None

    def _try(self, action: Action, names: Mask) -> tuple[Record, Comparison]:
        """Add variables if J rises, beyond doubt; drop them if it does not fall."""
        kept = {*self.mask, *names} if action == "add" else set(self.mask).difference(names)
        mask = self.session.in_order(kept)
        tried = self.session.compare(mask, self.mask)
        gain, returns = tried.gain, tried.returns
        worse = returns.mean < -DECIDED * returns.standard_error
        if action == "add" and (worse or (gain.mean < 0 and tried.is_cut_short)):
            self.log_limit = min(self.log_limit, self._log_states(mask))
        accepted = gain.mean >= 0 and (action == "drop" or self._is_beyond_doubt(gain))
        reason = REASONS[action, accepted]
        if tried.is_cut_short:
            accepted, reason = False, "not decided"
            if gain.mean >= 0:
                reason += ": the plan with the mask before ran out of time"
        elif self._is_by_planning(action, accepted, tried.objective, tried.returns):
            reason += f"; {SWITCHED}"
            self.session.doubts.append(
                f"a mask of {len(mask if action == 'add' else self.mask)} variables earned less "
                f"than one of {len(self.mask if action == 'add' else mask)} of them: {SWITCHED}, "
                "so this says little about what they are worth"
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
