"""Whether an agent that knows more earns less: masks that contain each other."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

from benchmarks.gap.domains import Domain, difference
from benchmarks.gap.masks import earned
from benchmarks.gap.tables import Table
from planners import Mask

#: The probability that any comparison of the table is flagged by chance, if none is a loss.
LEVEL = 0.01


def chain_of(domain: Domain) -> list[Mask]:
    """From nothing to everything: growing prefixes, what matters first."""
    first = len(set(domain.study.survey().paying) | set(domain.study.survey().moving))
    relevant = domain.relevant
    rest = tuple(name for name in domain.mdp.exogenous_names if name not in set(relevant))
    order = (*relevant, *rest)
    sizes = {0, first // 2, first, (first + len(relevant)) // 2, len(relevant), len(order)}
    chosen = [set(order[:size]) for size in sorted(sizes)]
    return [tuple(name for name in domain.mdp.exogenous_names if name in kept) for kept in chosen]


def nested_masks(domains: Sequence[Domain]) -> Table:
    """Each mask against the best of those that it contains, and a flag where it is worse."""
    played = {
        domain.name: [domain.objective(mask) for mask in chain_of(domain)] for domain in domains
    }
    comparisons = sum(len(chain) * (len(chain) - 1) // 2 for chain in played.values())
    errors = NormalDist().inv_cdf(1 - LEVEL / max(1, comparisons))
    rows = []
    for name, chain in played.items():
        for k, objective in enumerate(chain):
            smaller = [difference(objective, other) for other in chain[:k]]
            worst = min(smaller, key=lambda gain: gain.mean, default=None)
            losses = [gain for gain in smaller if gain.mean + errors * gain.standard_error < 0]
            rows.append(
                {
                    "domain": name,
                    "variables": len(objective.mask),
                    "planned by": objective.plan.method,
                    "return": earned(objective),
                    "over the best smaller one": "" if worst is None else worst,
                    "a loss": bool(losses),
                }
            )
    note = (
        f"Paired on {len(domains[0].scenarios):,} trajectories. A mask is flagged if it earns less "
        f"than any mask that it contains by {errors:.1f} standard errors: one-sided, level "
        f"{LEVEL:g} over all {comparisons} comparisons."
    )
    return Table("Masks that contain each other", rows, note)
