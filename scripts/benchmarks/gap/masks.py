"""What policies with more and more variables earn, and what no policy can exceed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.gap.domains import Domain
from benchmarks.gap.tables import Percentage, Table
from benchmarks.timing import timed
from exo_envs import State
from planners import DefaultPlanner, Estimate, Mask, Objective, Policy, ReducedMDP
from planners.core.evaluation import paired_difference

LANES = 500
#: Seconds for a plan with everything, to see whether the limit holds.
LIMITS = (0.5, 2.0)


def rows_of(domain: Domain) -> dict[str, Mask]:
    """The masks of the table, by name."""
    masks = {"nothing, blind": (), "what pays": domain.paying}
    if domain.cost_weight is not None:
        masks[f"learned, λ = {domain.cost_weight:g}"] = domain.learned(domain.cost_weight)
    masks["all that matters, λ = 0"] = domain.learned(0.0)
    if domain.name == "ExoCrowd":
        crowd = domain.starting_with(("occupancy", "object", "porter"))
        masks["porters and all that pays"] = crowd
    return {**masks, "everything": domain.mdp.exogenous_names}


def earned_by_masks(domain: Domain) -> Table:
    """Returns, and their distance from the bound."""
    objectives = {name: domain.objective(mask) for name, mask in rows_of(domain).items()}
    best = max(objectives.values(), key=lambda objective: objective.mean_return)
    found = domain.bracket(best.plan.policy)
    rows = []
    for name, objective in objectives.items():
        left = paired_difference(found.upper_values, objective.returns)
        batch, single = decision_times(domain, objective.plan.policy)
        rows.append(
            {
                "mask": name,
                "variables": len(objective.mask),
                "planned by": objective.plan.method,
                "return": earned(objective),
                "no policy exceeds": found.upper,
                "gap": Percentage.of(left, found.upper.mean),
                "plan, s": objective.plan.seconds,
                f"µs a decision, {LANES} at once": batch,
                "µs, one": single,
            }
        )
    weights = ", ".join(f"{weight:g}" for weight in found.weights) or "none"
    gap = Percentage.of(found.difference, found.upper.mean)
    note = (
        f"{len(domain.scenarios):,} trajectories, shared by all rows; 95 % intervals. The gap is "
        f"(U - return)/U, where U is what no policy exceeds: {found.hindsight} with the future "
        f"known, less a penalty (weight {weights}; n' {found.successors}). With luck that is zero "
        f"on average taken out, the best row earns {found.lower}, and its gap is {gap}."
    )
    return Table(f"{domain.name}: what masks earn, and what nobody can exceed", rows, note)


def earned(objective: Objective) -> Estimate:
    """The mean return with its error."""
    return Estimate(objective.mean_return, objective.standard_error)


def decision_times(domain: Domain, policy: Policy) -> tuple[float, float]:
    """Microseconds for a decision: of many at once, and one by one. The best of a few."""
    states = domain.states(LANES)
    policy(states)  # compilation
    batch = min(timed(partial(policy, states))[0] for _ in range(3)) / len(states.endogenous)
    ones = [State(states.endogenous[k], states.exogenous[k]) for k in range(20)]
    policy(ones[0])
    single = float(np.median([timed(partial(policy, one))[0] for one in ones]))
    return 1e6 * batch, 1e6 * single


def earned_by_rules(domains: Sequence[Domain]) -> Table:
    """Masks learned with averages of ignored rewards, beside those learned with zeros."""
    rows = []
    for domain in domains:
        weight = domain.cost_weight or 0.0
        averaged = domain.objective(domain.learned(weight))
        paper = domain.new_study(ignored_rewards="zero")
        zero = domain.objective(domain.learned(weight, paper), paper)
        gain = paired_difference(averaged.returns, zero.returns)
        price = weight * (len(averaged.mask) - len(zero.mask))
        row: dict[str, object] = {"domain": domain.name, "λ": weight}
        for rule, objective in (("average", averaged), ("zero", zero)):
            value = objective.mean_return - weight * len(objective.mask)
            row |= {
                f"{rule}: variables": len(objective.mask),
                f"{rule}: return": earned(objective),
                f"{rule}: J": value,
            }
        rows.append({**row, "gain of J": Estimate(gain.mean - price, gain.standard_error)})
    return Table("Learned masks: ignored rewards averaged, and forgotten", rows)


def kept_time_limits(domains: Sequence[Domain]) -> Table:
    """How long a plan with everything takes if there is a limit."""
    rows = []
    for domain in domains:
        rng, known = domain.study.rng("time limit"), domain.study
        shared = {"data": known.data(), "survey": known.survey()}  # and nothing that was counted
        for limit in LIMITS:
            model = ReducedMDP.estimate(domain.mdp, domain.mdp.exogenous_names, rng=rng, **shared)
            seconds, plan = timed(partial(DefaultPlanner().plan, model, rng=rng, time_limit=limit))
            rows.append(
                {
                    "domain": domain.name,
                    "limit, s": limit,
                    "took, s": seconds,
                    "planned by": plan.method,
                    "finished": plan.converged,
                }
            )
    return Table("Planning with everything under a time limit", rows)
