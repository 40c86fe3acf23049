"""Theorem 1 for a mask: what the ignored variables must not do, looked for one by one.

A mask loses nothing (section 5.2) if no ignored variable

1. moves the reward,
2. moves n' given (n, a, x̃), or
3. moves x̃' given x̃: of the theorem's third condition the proof uses only this. What is ignored may
   well depend on what is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.core.arguments import as_generator, check_flag, check_level, check_whole, optional
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP
from planners.core.policy import Mask
from wrappers.fitting.study import Study
from wrappers.reports.certificate import Certificate, Check
from wrappers.reports.evidence import Interventions
from wrappers.reports.exact import ROUNDING, TellsTables, effect_on_exogenous, effect_on_reward
from wrappers.reports.ignoring import CostOfIgnoring
from wrappers.reports.paired_tests import PairedTest, paired_tests
from wrappers.reports.power import detectable_information

#: States that x' is drawn from for each ignored variable, and (n, a, x) that n' is drawn from.
N_STATES, N_PAIRS = 20_000, 6_000
#: The same for a model that is asked one state at a time.
SLOW_STATES, SLOW_PAIRS = 400, 200


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
    interventions = Interventions(study, kept, rng, states, pairs)
    examiner = _Examiner(study, kept, interventions, exact=exact, power=power)
    found = [one for name in ignored for one in examiner.examine(name)]
    tests = max(1, sum(isinstance(evidence, PairedTest) for _, evidence in found))
    checks = tuple(_judge(check, evidence, level, power, tests) for check, evidence in found)
    return Certificate(kept, ignored, checks, level, power, lambda: _cost(study, kept))


class _Examiner:
    """Looks for everything that an ignored variable may do."""

    def __init__(
        self, study: Study, mask: Mask, interventions: Interventions, *, exact: bool, power: float
    ) -> None:
        self.study, self.mask, self.interventions = study, mask, interventions
        self.power = power
        self.tables = study.mdp if exact and isinstance(study.mdp, TellsTables) else None

    def examine(self, name: str) -> Iterator[tuple[Check, PairedTest | None]]:
        """What was found of a variable; a check with a test is yet to be judged by it."""
        (j,) = self.study.data().positions([name]).tolist()
        constant = len(self.interventions.values(j)) < 2
        yield self._reward(name, j), None
        yield from self._endogenous(name, j, constant)
        yield from self._exogenous(name, j, constant)

    def _reward(self, name: str, j: int) -> Check:
        effect = effect_on_reward(self.study.survey(), self.study.data(), j).largest
        return _exactly(name, "reward", "reward", effect, "reward")

    def _endogenous(
        self, name: str, j: int, constant: bool
    ) -> Iterator[tuple[Check, PairedTest | None]]:
        variables = self.study.coarse.endogenous_variables
        targets = [variable.name for variable in variables]
        if constant:
            yield from ((_exactly(name, target, "endogenous", 0.0), None) for target in targets)
            return
        found = self.interventions.on_endogenous(j)
        if isinstance(found, list):
            for target, effect in zip(targets, found, strict=True):
                yield _exactly(name, target, "endogenous", effect.mean), None
            return
        tests = paired_tests(found, [variable.size for variable in variables])
        for target, test in zip(targets, tests, strict=True):
            yield _drawn(name, target, "endogenous", test), test

    def _exogenous(
        self, name: str, j: int, constant: bool
    ) -> Iterator[tuple[Check, PairedTest | None]]:
        if self.study.mdp.is_recorded:
            yield from ((check, None) for check in self._watched(name))
        elif self.tables is not None:
            for target in self.mask:
                effect = effect_on_exogenous(self.tables, name, target).mean
                yield _exactly(name, target, "exogenous", effect), None
        elif constant:
            yield from ((_exactly(name, target, "exogenous", 0.0), None) for target in self.mask)
        elif self.mask:
            sizes = self.study.data().sizes[self.interventions.targets].tolist()
            tests = paired_tests(self.interventions.on_exogenous(j), sizes)
            observed = self._observed(name)
            for target, test in zip(self.mask, tests, strict=True):
                check = _drawn(name, target, "exogenous", test)
                yield replace(check, observed_p=observed.get(target)), test

    def _watched(self, name: str) -> Iterator[Check]:
        """What tests found in a record."""
        observed, parents = self._observed(name), self.study.parents(self.mask)
        data = self.study.data()
        transitions = len(data.fitted) * data.num_steps
        sizes = dict(zip(data.names, data.sizes.tolist(), strict=True))
        for target in self.mask:
            evidence = parents[target].get(name)
            freedom = max(1, (sizes[name] - 1) * (sizes[target] - 1))
            yield Check(
                variable=name,
                target=target,
                condition="exogenous",
                method="observational",
                violated=evidence is not None,
                effect=0.0 if evidence is None else evidence.information,
                unit="nats",
                p_value=observed.get(target, 1.0),
                detectable=detectable_information(
                    transitions, freedom, len(sizes) ** 2, self.study.level, self.power
                ),
                samples=transitions,
                observed_p=observed.get(target),
            )

    def _observed(self, name: str) -> dict[str, float]:
        """The p-values of tests in undisturbed rollouts, where the variable predicts a target."""
        tests = len(self.study.mdp.exogenous_names) ** 2
        return {
            target: min(1.0, tests * math.exp(evidence[name].log_p))
            for target, evidence in self.study.parents(self.mask).items()
            if name in evidence
        }


def _exactly(
    name: str, target: str, condition: Any, effect: float, unit: str = "probability"
) -> Check:
    violated = effect > ROUNDING
    return Check(
        variable=name,
        target=target,
        condition=condition,
        method="exact",
        violated=violated,
        effect=effect if violated else 0.0,
        unit=unit,
        p_value=0.0 if violated else 1.0,
        detectable=0.0,
    )


def _drawn(name: str, target: str, condition: Any, test: PairedTest) -> Check:
    return Check(
        variable=name,
        target=target,
        condition=condition,
        method="interventional",
        violated=False,
        effect=test.effect,
        unit="probability",
        p_value=1.0,
        detectable=None,
        samples=2 * test.states,
    )


def _judge(check: Check, test: PairedTest | None, level: float, power: float, tests: int) -> Check:
    """The check by its test, at a level that all tests share."""
    if test is None:
        return check
    p_value = min(1.0, tests * math.exp(test.log_p))
    return replace(
        check,
        violated=p_value < level,
        p_value=p_value,
        detectable=test.detectable(level / tests, power),
        detectable_mixed=test.detectable_mixed(level / tests, power),
    )


def _cost(study: Study, mask: Mask) -> CostOfIgnoring:
    evaluator = study.evaluator
    fresh = evaluator.fresh_scenarios()
    own, everything = (
        evaluator.objective(names, scenarios=fresh, thorough=True)
        for names in (mask, study.mdp.exogenous_names)
    )
    return CostOfIgnoring.of(own, everything)
