"""What a certificate says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from planners.core.policy import Mask
from wrappers.reports.ignoring import CostOfIgnoring

Condition = Literal["reward", "endogenous", "exogenous"]
Method = Literal["exact", "interventional", "observational"]

#: How an effect is told, by its unit.
WORDS = {
    "reward": "changes the reward by up to {effect:.3g}",
    "probability": "changes P({target}') by {effect:.2g}",
    "nats": "tells {effect:.2g} nats about {target}'",
}
#: Names that a sentence lists at most.
LISTED = 6


@dataclass(frozen=True, kw_only=True)
class Check:
    """Whether ignoring one variable keeps one condition of Theorem 1, for one target.

    Attributes:
        variable: the variable that the mask ignores.
        target: what it must not move: "reward", an endogenous variable, or a variable of the mask.
        condition: "reward" (1), "endogenous": n' given (n, a, x̃) (2), or "exogenous": x̃' given x̃,
            which is what the proof needs of (3).
        method: "exact" if the model was asked itself, for tables or for rewards; "interventional"
            if the variable was changed and what follows was drawn; "observational" if x was only
            watched.
        violated: whether it moves the target.
        effect: by how much, on average over states; of rewards, the most.
        unit: of the effects: "reward", "probability" or "nats".
        p_value: over all checks of the certificate; exact checks have 0 or 1.
        detectable: the effect, always in one direction, that would have been found with the stated
            power; 0 if the check is exact, None if that is not known.
        detectable_mixed: the same if the direction of the effect depends on other variables.
        samples: draws, with the variable changed, that this rests on; 0 if the check is exact.
        observed_p: the p-value of the test in undisturbed rollouts, over all candidates, if the
            variable was found there to predict the target; else None.
    """

    variable: str
    target: str
    condition: Condition
    method: Method
    violated: bool
    effect: float
    unit: str
    p_value: float
    detectable: float | None
    detectable_mixed: float | None = None
    samples: int = 0
    observed_p: float | None = None

    @property
    def reason(self) -> str:
        """What was found, for people."""
        return WORDS[self.unit].format(effect=self.effect, target=self.target)


@dataclass(frozen=True)
class Certificate:
    """The conditions of Theorem 1 for a mask, variable by variable.

    Attributes:
        mask: the variables that are kept.
        ignored: the others.
        checks: one for each ignored variable and each target.
        level: the probability that a right mask is said to violate something, at most.
        power: the probability with which detectable effects are found.
    """

    mask: Mask
    ignored: Mask
    checks: tuple[Check, ...]
    level: float
    power: float
    _cost: Callable[[], CostOfIgnoring] = field(repr=False, compare=False)

    @cached_property
    def violations(self) -> tuple[Check, ...]:
        """The checks that failed: rewards first, then the largest effects."""
        order = ("reward", "endogenous", "exogenous")
        failed = [check for check in self.checks if check.violated]
        return tuple(sorted(failed, key=lambda c: (order.index(c.condition), -c.effect)))

    @property
    def holds(self) -> bool:
        """Whether nothing was found that the mask should not ignore."""
        return not self.violations

    @property
    def detectable(self) -> float | None:
        """The change of any probability that would have been found with the stated power.

        It is that of the least sensitive check; None if what follows was not drawn.
        """
        known = [c.detectable for c in self.checks if c.unit == "probability"]
        return max((one for one in known if one is not None), default=None)

    @cached_property
    def cost_of_ignoring(self) -> CostOfIgnoring:
        """What the mask's policy gives up in return, worked out when it is first read.

        ``high`` is the bound on all policies (:func:`planners.bracket`) less what the policy of the
        mask earns: no violation, found or not, can cost more. ``low`` is what a plan with
        all variables surely earns more.
        """
        return self._cost()

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with one row for each check (needs pandas)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        names = [own.name for own in fields(Check)]
        return pd.DataFrame(
            [[getattr(c, name) for name in names] for c in self.checks], None, names
        )

    def to_markdown(self) -> str:
        """A table of the violations, and below it of each ignored variable's worst check."""
        lines = [
            "| variable | target | by | violated | effect | p | would have been found |",
            "|---|---|---|---|---|---|---|",
        ]
        for check in (*self.violations, *self._worst()):
            seen = "" if check.detectable is None else f"{check.detectable:.2g}"
            lines.append(
                f"| {check.variable} | {check.target} | {check.method} | "
                f"{'yes' if check.violated else 'no'} | {check.effect:.2g} {check.unit} | "
                f"{check.p_value:.2g} | {'all' if check.method == 'exact' else seen} |"
            )
        return "\n".join(lines)

    def _worst(self) -> list[Check]:
        """Of each variable without violations, the check that says least."""
        bad = {check.variable for check in self.violations}
        worst: dict[str, Check] = {}
        for check in self.checks:
            if check.variable in bad:
                continue
            known = worst.setdefault(check.variable, check)
            if (check.detectable or 0.0) > (known.detectable or 0.0):
                worst[check.variable] = check
        return list(worst.values())

    def __str__(self) -> str:
        """The verdict, for people."""
        if self.violations:
            told = [f"{check.variable}: {check.reason}" for check in self.violations[:LISTED]]
            more = len(self.violations) - len(told)
            told += [f"... and {more} more"] if more > 0 else []
            number = len({check.variable for check in self.violations})
            verdict = "1 ignored variable matters" if number == 1 else f"{number} matter"
            return f"violated at level {self.level:g} ({verdict}):\n  " + "\n  ".join(told)
        found = f"no violation at level {self.level:g} by ignoring {len(self.ignored)} variables"
        if self.detectable is None:
            return f"{found}; every condition was checked exactly" if self.checks else found
        if self.detectable == 0.0:
            return f"{found}; every condition was checked exactly"
        return (
            f"{found}; an effect above {self.detectable:.2g} on the probability of a next value "
            f"would have been found with power {self.power:g}"
        )
