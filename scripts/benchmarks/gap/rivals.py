"""Other ways to plan with the same variables, in the same reduced model."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.gap.domains import Domain
from benchmarks.gap.hindsight import HindsightPolicy
from benchmarks.gap.masks import decision_times
from benchmarks.gap.tables import Table
from benchmarks.timing import timed
from planners import UCT, Estimate, ForecastPlanner, Plan, Policy, evaluate
from planners.core.evaluation import paired_difference

#: Futures that hindsight optimisation draws for a decision.
FUTURES = 16


def other_ways(domain: Domain) -> Table:
    """Ours, open loop, hindsight optimisation and tree search, on the same trajectories."""
    mask = domain.rival_mask or ()
    ours = domain.objective(mask)
    model: Any = ours.reduced
    all_of_them, few = len(domain.scenarios), domain.settings.slow_rollouts
    ways: dict[str, tuple[Policy, int]] = {
        f"ours ({ours.plan.method})": (ours.plan.policy, all_of_them),
        "open loop": (open_loop(domain, model).policy, all_of_them),
        f"hindsight optimisation, {FUTURES} futures": (HindsightPolicy(model, FUTURES), few),
    }
    ours_batch, _ = decision_times(domain, ours.plan.policy)
    hurried = same_time(domain, model, ours_batch)
    for simulations in dict.fromkeys((hurried, domain.settings.simulations)):
        name = f"tree search, {simulations} simulations"
        if simulations == hurried:
            name += ", as long as ours or one for each action"
        ways[name] = UCT(simulations=simulations).plan(model).policy, few
    rows = []
    for name, (policy, count) in ways.items():
        decisions: list[int] = []  # in each step, of the episodes that have not ended
        seconds, returns = timed(
            partial(
                evaluate,
                policy,
                domain.mdp,
                scenarios=domain.some_scenarios(count),
                watch=lambda _, __, actions, counted=decisions: counted.append(len(actions)),
            )
        )
        gain = paired_difference(ours.returns[:count], returns)
        rows.append(
            {
                "way to plan": name,
                "return": Estimate.of(returns),
                "trajectories": count,
                "ours earns more by": gain if policy is not ours.plan.policy else "",
                "µs a decision": 1e6 * seconds / sum(decisions),
            }
        )
    note = (
        f"All plan in the same reduced model of {len(mask)} variables and are played in the full "
        "one, on the same trajectories, slow ones on the first of them. The time is that of "
        "playing: of all trajectories at once, the model's own steps included."
    )
    return Table(f"{domain.name}, {len(mask)} variables: other ways to plan", rows, note)


def open_loop(domain: Domain, model: Any) -> Plan:
    """The forecast planner that neglects what later decisions will know."""
    planner = ForecastPlanner(recourse=False, additive=False)
    return planner.plan(model, rng=domain.study.rng("open loop"))


def same_time(domain: Domain, model: Any, microseconds: float) -> int:
    """How many simulations take as long as this for a decision; at least one for each action."""
    probe = UCT(simulations=10).plan(model).policy
    batch, _ = decision_times(domain, probe)
    return max(domain.mdp.num_actions, round(10 * microseconds / batch))
