"""Theorem 1 for a mask: what the ignored variables must not do, looked for one by one.

A mask loses nothing (section 5.2) if no ignored variable

1. moves the reward,
2. moves n' given (n, a, x̃), or
3. moves x̃' given x̃: of the theorem's third condition the proof uses only this. What is ignored may
   well depend on what is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, get_args

import gymnasium as gym
import numpy as np

from exo_envs.core.arguments import as_generator, check_flag, check_level, check_whole, optional
from exo_envs.core.batches import as_mask
from exo_envs.core.mdp import ExoMDP
from exo_envs.core.statistics import detectable_information
from planners.core.policy import Mask
from wrappers.fitting.relevance import over_all_tests
from wrappers.fitting.study import Study
from wrappers.reports.effects import (
    Interventions,
    TellsTables,
    effect_on_exogenous,
    effect_on_reward,
)
from wrappers.reports.ignoring import CostOfIgnoring
from wrappers.reports.paired_tests import PairedTest
from wrappers.reports.tables import ReportTable, Tabular

#: In the order in which violations are told.
TheoremCondition = Literal["reward", "endogenous", "exogenous"]

#: How an effect is told, by its unit.
WORDS = {
    "reward": "changes the reward by up to {effect:.3g}",
    "probability": "changes P({target}') by {effect:.2g}",
    "nats": "tells {effect:.2g} nats about {target}'",
}
#: Differences of probabilities and of rewards below this are rounding.
ROUNDING_ERROR = 1e-9
#: States that x' is drawn from for each ignored variable, and (n, a, x) that n' is drawn from.
N_STATES, N_PAIRS = 20_000, 6_000
#: The same for a model that is asked one state at a time.
SLOW_STATES, SLOW_PAIRS = 400, 200


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
    condition: TheoremCondition
    method: Literal["exact", "interventional", "observational"]
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
        return WORDS[self.unit].format(effect=self.effect, target=self.target)


@dataclass(frozen=True)
class Certificate(Tabular):
    """The conditions of Theorem 1 for a mask, variable by variable.

    As a table for people it has the violations, and then of each other variable the check that says
    least; :meth:`to_pandas` has a row for each check.

    Attributes:
        mask: the variables that are kept.
        ignored: the others.
        checks: one for each ignored variable and each target.
        level: the probability that a right mask is said to violate something, at most.
        power: the probability with which detectable effects are found.
    """

    noun = "certificate"

    mask: Mask
    ignored: Mask
    checks: tuple[Check, ...]
    level: float
    power: float
    _cost: Callable[[], CostOfIgnoring] = field(repr=False, compare=False)

    @cached_property
    def violations(self) -> tuple[Check, ...]:
        """The checks that failed: rewards first, then the largest effects."""
        failed, order = [c for c in self.checks if c.violated], get_args(TheoremCondition)
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

    def _values(self) -> ReportTable:
        header = [own.name for own in fields(Check)]
        return ReportTable(header, [astuple(check) for check in self.checks])

    def _table(self) -> ReportTable:
        bad = {check.variable for check in self.violations}
        weakest: dict[str, Check] = {}
        for check in self.checks:
            known = weakest.setdefault(check.variable, check)
            if (check.detectable or 0.0) > (known.detectable or 0.0):
                weakest[check.variable] = check
        header = ("variable", "target", "by", "violated", "effect", "p", "would have been found")
        rows = []
        for check in (*self.violations, *(c for c in weakest.values() if c.variable not in bad)):
            seen = "" if check.detectable is None else f"{check.detectable:.2g}"
            rows.append(
                (
                    *(check.variable, check.target, check.method),
                    *("yes" if check.violated else "no", f"{check.effect:.2g} {check.unit}"),
                    *(f"{check.p_value:.2g}", "all" if check.method == "exact" else seen),
                )
            )
        return ReportTable(header, rows)

    def __str__(self) -> str:
        if self.violations:
            told = [f"{check.variable}: {check.reason}" for check in self.violations[:6]]
            more = len(self.violations) - len(told)
            told += [f"... and {more} more"] if more > 0 else []
            number = len({check.variable for check in self.violations})
            verdict = "1 ignored variable matters" if number == 1 else f"{number} matter"
            return f"violated at level {self.level:g} ({verdict}):\n  " + "\n  ".join(told)
        found = f"no violation at level {self.level:g} by ignoring {len(self.ignored)} variables"
        if not self.detectable:
            return f"{found}; every condition was checked exactly" if self.checks else found
        return (
            f"{found}; an effect above {self.detectable:.2g} on the probability of a next value "
            f"would have been found with power {self.power:g}"
        )


def certify(
    mdp_or_env: ExoMDP | gym.Env[Any, Any] | Study,
    mask: Any,
    *,
    rng: np.random.Generator | int | None = None,
    level: float = 0.05,
    power: float = 0.9,
    n_samples: int | None = None,
    exact: bool = True,
) -> Certificate:
    """Check the conditions of Theorem 1 for a mask, variable by variable.

    Each ignored variable is changed in states that occur, to values that occur, while everything
    else stays, and what follows is compared with what follows without the change. What the model
    says itself is taken at its word: what each variable pays, P(n'|n, a, x) of
    ``endogenous_distribution``, and P(x'^i | parents) of a method
    ``exogenous_table(name) -> (parents, table)`` where it has one. Where x was recorded it cannot
    be changed; then the variables that predict the mask are those that tests found in the record.

    >>> from exo_envs.domains.grid import GridMDP
    >>> certificate = certify(GridMDP(), ["object", "carrier", "guard"], n_samples=2000)
    >>> certificate.holds
    False
    >>> [(check.variable, check.target) for check in certificate.violations]
    [('guard_intent', 'guard')]

    Args:
        mdp_or_env: the model, an environment over it, or a :class:`~wrappers.Study` of it, whose
            rollouts and survey are used then (``learner.study_``, say).
        mask: names, patterns, indices or booleans.
        rng: a generator or a seed; by default seed 0.
        level: the probability that something is said to be violated although nothing is, at most.
        power: the probability with which ``detectable`` effects are found.
        n_samples: states that x' is drawn from, for each ignored variable; twice, with the change
            and without. By default 20,000, or 400 if the model is asked one state at a time.
        exact: whether tables that the model gives are taken at their word, or x' is drawn.
    """
    level, power = check_level("level", level), check_level("power", power)
    n_samples = optional(check_whole)("n_samples", n_samples, 6)
    exact = check_flag("exact", exact)
    rng = as_generator("rng", rng, default=0)
    study = mdp_or_env if isinstance(mdp_or_env, Study) else Study(mdp_or_env, rng)
    kept = as_mask(study.mdp, mask)
    ignored = tuple(name for name in study.mdp.exogenous_names if name not in kept)
    is_fast = study.mdp.is_batched
    states = n_samples or (N_STATES if is_fast else SLOW_STATES)
    pairs = min(states, N_PAIRS if is_fast else SLOW_PAIRS)
    changes = Interventions(study, kept, rng, states, pairs)
    found = [one for name in ignored for one in _effects(changes, name, exact, power)]
    tests = sum(isinstance(one, _Effect) and isinstance(one.size, PairedTest) for one in found)
    return Certificate(
        kept,
        ignored,
        tuple(one if isinstance(one, Check) else one.judged(level, power, tests) for one in found),
        level,
        power,
        partial(CostOfIgnoring.of_mask, study.evaluator, kept),
    )


class _Effect(NamedTuple):
    """What one ignored variable does to one target; tests of draws are judged together."""

    variable: str
    target: str
    condition: TheoremCondition
    size: float | PairedTest
    unit: str = "probability"
    observed_p: float | None = None

    def judged(self, level: float, power: float, tests: int) -> Check:
        """The check, if so many tests share the level."""
        about = self._asdict()
        size = about.pop("size")
        if isinstance(size, PairedTest):
            p_value = min(1.0, tests * math.exp(size.log_p))
            return Check(
                **about,
                method="interventional",
                violated=p_value < level,
                effect=size.effect,
                p_value=p_value,
                detectable=size.detectable(level / tests, power),
                detectable_mixed=size.detectable_mixed(level / tests, power),
                samples=2 * size.states,
            )
        violated = size > ROUNDING_ERROR
        return Check(
            **about,
            method="exact",
            violated=violated,
            effect=size if violated else 0.0,
            p_value=0.0 if violated else 1.0,
            detectable=0.0,
        )


def _effects(
    changes: Interventions, name: str, exact: bool, power: float
) -> Iterator[_Effect | Check]:
    study, mask, mdp = changes.study, changes.mask, changes.study.mdp
    (j,) = study.data().positions([name]).tolist()
    paid = effect_on_reward(study.survey(), study.data(), j)
    yield _Effect(name, "reward", "reward", paid, "reward")
    parts = [variable.name for variable in study.coarse.endogenous_variables]
    varies = len(changes.values(j)) > 1
    moved = changes.on_endogenous(j) if varies else [0.0] * len(parts)
    for target, size in zip(parts, moved, strict=True):
        yield _Effect(name, target, "endogenous", size)
    if mdp.is_recorded:
        yield from _watched(study, mask, name, power)
        return
    sizes: Sequence[float | PairedTest] = [0.0] * len(mask)
    observed: dict[str, float] = {}
    if exact and isinstance(mdp, TellsTables):
        sizes = [effect_on_exogenous(mdp, name, target) for target in mask]
    elif varies and mask:
        sizes, observed = changes.on_exogenous(j), _observed(study, mask, name)
    for target, size in zip(mask, sizes, strict=True):
        yield _Effect(name, target, "exogenous", size, observed_p=observed.get(target))


def _watched(study: Study, mask: Mask, name: str, power: float) -> Iterator[Check]:
    observed, parents, data = _observed(study, mask, name), study.parents(mask), study.data()
    transitions, tests = len(data.fitted) * data.num_steps, len(data.names) ** 2
    sizes = dict(zip(data.names, data.sizes.tolist(), strict=True))
    for target in mask:
        freedom = max(1, (sizes[name] - 1) * (sizes[target] - 1))
        yield Check(
            variable=name,
            target=target,
            condition="exogenous",
            method="observational",
            violated=target in observed,
            effect=parents[target][name].information if target in observed else 0.0,
            unit="nats",
            p_value=observed.get(target, 1.0),
            detectable=detectable_information(transitions, freedom, tests, study.level, power),
            samples=transitions,
            observed_p=observed.get(target),
        )


def _observed(study: Study, mask: Mask, name: str) -> dict[str, float]:
    """The p-values of tests in undisturbed rollouts, where a variable predicts one of a mask."""
    return {
        target: over_all_tests(study, evidence[name].log_p)
        for target, evidence in study.parents(mask).items()
        if name in evidence
    }
