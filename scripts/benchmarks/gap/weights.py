"""ExoGrid at every λ: our learner against brute force."""

from __future__ import annotations

from benchmarks.gap.domains import Domain
from benchmarks.gap.tables import Table
from planners import Estimate
from planners.core.evaluation import paired_difference
from reproduction.settings import Settings
from wrappers import BruteForceMaskLearner


def weights_of_exogrid(domain: Domain) -> Table:
    """J of both, from one study, on trajectories that neither has seen."""
    rows = []
    for weight in Settings().small_cost_weights:
        best = domain.objective(BruteForceMaskLearner(cost_weight=weight).fit(domain.study).mask_)
        ours = domain.objective(domain.learned(weight))
        gain = paired_difference(ours.returns, best.returns)
        theirs, own = (
            Estimate(worth.mean_return - weight * len(worth.mask), worth.standard_error)
            for worth in (best, ours)
        )
        paired = Estimate(own.mean - theirs.mean, gain.standard_error)
        rows.append(
            {
                "λ": f"{weight:g}",
                "brute force": ", ".join(best.mask) or "nothing",
                "its J": theirs,
                "ours": ", ".join(ours.mask) or "nothing",
                "our J": own,
                "difference, paired": paired,
                "as good, by our interval": own.interval()[1] >= theirs.mean,
                "as good, paired": paired.interval()[1] >= 0,
            }
        )
    note = (
        "Both plan with averages of what a mask ignores, and share one study. J is estimated on "
        f"{len(domain.scenarios):,} trajectories that neither has seen."
    )
    return Table("ExoGrid: J at every λ", rows, note)
