"""What a mask's policy gives up by ignoring the rest: an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from exo_envs.core.arguments import check_level
from planners.core.evaluation import Estimate, paired_difference
from planners.core.policy import Mask
from planners.objective import MaskEvaluator
from planners.worth import Objective


@dataclass(frozen=True)
class CostOfIgnoring:
    """What the policy of a mask earns less than the best policy that may look at everything.

    Attributes:
        low: at least this much: a plan with all variables was played and earns so much more, at
            the stated level. Zero if it does not: a larger mask can be planned with less well.
        high: at most this much: no policy can earn more, whatever it sees. Infinite if there
            is no such bound: n has too many values, or the model is too slow to ask.
        level: of the interval.
        everything: what the plan with all variables earned more, paired on the same trajectories.
        possible: the bound on all policies less what the mask's policy earns; None if there is no
            bound.
    """

    low: float
    high: float
    level: float
    everything: Estimate
    possible: Estimate | None

    @classmethod
    def of(cls, objective: Objective, everything: Objective, level: float = 0.95) -> CostOfIgnoring:
        """From the objective of the mask and that of all variables, on the same trajectories.

        Each end is missed with half of the probability that ``level`` leaves.
        """
        level = check_level("level", level)
        gain = paired_difference(everything.returns, objective.returns)
        low = max(0.0, gain.interval(level)[0])
        possible = None if objective.bracket is None else objective.bracket.difference
        high = math.inf if possible is None else max(low, possible.interval(level)[1])
        return cls(low, high, level, gain, possible)

    @classmethod
    def of_mask(
        cls,
        evaluator: MaskEvaluator,
        mask: Mask,
        own: Objective | None = None,
        *,
        thorough: bool = True,
    ) -> CostOfIgnoring:
        """Plan with the mask, unless ``own`` has that, and with everything; play both afresh."""
        fresh, names = evaluator.fresh_scenarios(), evaluator.mdp.exogenous_names
        own = own or evaluator.objective(mask, scenarios=fresh, thorough=thorough)
        return cls.of(own, evaluator.objective(names, scenarios=fresh, thorough=True))

    def __iter__(self) -> Iterator[float]:
        """Both ends: ``low, high = cost``."""
        return iter((self.low, self.high))

    def __str__(self) -> str:
        least = f"at least {self.low:.1f}" if self.low > 0 else "perhaps nothing"
        if math.isinf(self.high):
            return f"{least}; how much at most is not known ({self.level:.0%})"
        return f"{least}, at most {self.high:.1f} ({self.level:.0%})"
