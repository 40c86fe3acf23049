"""The bound on small random models, whose best value can be worked out."""

from __future__ import annotations

from collections import Counter

import numpy as np

from benchmarks.gap.domains import Settings
from benchmarks.gap.tables import Table
from benchmarks.problems import small_problem
from exo_envs import State, Successors
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.mdp import IntArray
from planners import bracket
from planners.tables.factored_mdp import FactoredMDP
from planners.value_iteration.sweeps import backward_induction

LEVEL = 0.999
KINDS = ("n' given by the model", "n' certain", "n' drawn")


class Silent(CountedMDP):
    """Draws n', and does not give its probabilities."""

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """None."""
        return None


def best_value(mdp: FactoredMDP) -> float:
    """V*: of the best policy that sees everything and counts the steps."""
    *_, values = (table.copy() for table in backward_induction(mdp, mdp.horizon))
    x = np.ravel_multi_index(tuple(mdp.initial.exogenous.T), tuple(mdp.exogenous_sizes))
    return float(values[x, mdp.endogenous_index(mdp.initial.endogenous)].mean())


def small_models(settings: Settings) -> Table:
    """How often the bracket contains the best value, by what is known of n'."""
    total, inside, width = Counter[str](), Counter[str](), Counter[str]()
    for seed in range(settings.small_models):
        kind = KINDS[seed % len(KINDS)]
        rng = np.random.default_rng([settings.seed, seed])
        mdp = small_problem(rng, horizon=1 + seed % 6, certain=kind == "n' certain")
        model = Silent(mdp) if kind == "n' drawn" else mdp
        found = bracket(
            model,
            lambda state: (state.endogenous.sum(axis=-1) + state.exogenous.sum(axis=-1)) % 3,
            settings.small_rollouts,
            rng=seed,
            **({"values": ()} if seed % 4 == 0 else {"model": mdp}),
        )
        low, high = found.lower.interval(LEVEL)[0], found.upper.interval(LEVEL)[1]
        best = best_value(mdp)
        total[kind] += 1
        inside[kind] += low <= best <= high
        width[kind] += (found.upper.mean - best) / max(1e-9, abs(best))
    rows = [
        {
            "models": kind,
            "number": total[kind],
            "contain the best value": inside[kind],
            "bound above it, %": 100 * width[kind] / total[kind],
        }
        for kind in KINDS
        if total[kind]
    ]
    note = (
        f"Intervals at {LEVEL:.1%}, from {settings.small_rollouts} trajectories of a policy that "
        "is no good. Every fourth bound has no penalty, the others that of the model itself."
    )
    return Table("The bracket where the best value is known", rows, note)
