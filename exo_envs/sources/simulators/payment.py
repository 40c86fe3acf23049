"""What an environment pays: rewards of whole states, and the terms that they are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.sources.simulators.episodes import NUM_SEEDS, Episodes
from exo_envs.sources.simulators.foreign import ForeignEnv, Row, Rows
from exo_envs.sources.simulators.rewards import RecoveredTerms, Scope
from exo_envs.sources.simulators.scopes import find_scopes

#: States in which it is looked for variables that pay only together, at most and at least.
MAX_STATES, MIN_STATES = 256, 8
#: Rewards that are asked for to find them.
MAX_REWARDS = 4_000
#: Seeds under which they are looked for: what two variables pay together shows under few.
FEW_SEEDS = 4
#: Draws the seeds under which rewards are asked for.
SEED = 1


class Payment:
    """The rewards of an environment.

    Args:
        foreign: the environment.
        reference: the x at which terms that are recovered are 0.
        reward_samples: the number of seeds a reward is averaged over.
        scopes: positions in x that each term looks at; by default they are found, or, if the
            environment tells its terms, one each.
        horizon: of the episodes in which they are looked for.

    Attributes:
        scopes: the same.
    """

    def __init__(
        self,
        foreign: ForeignEnv,
        reference: Row,
        *,
        reward_samples: int,
        scopes: Sequence[Scope] | None,
        horizon: int,
    ) -> None:
        self._foreign = foreign
        self._reference = reference
        self._reward_samples = reward_samples
        self._seeds = np.random.default_rng(SEED).integers(NUM_SEEDS, size=reward_samples)
        if scopes is None and (foreign.tells_terms or len(reference) < 2):
            scopes = [frozenset({i}) for i in range(len(reference))]
        elif scopes is None:
            scopes = self._find_scopes(horizon)
        self.scopes = list(scopes)
        self._terms = RecoveredTerms(self.scopes, len(foreign.parts[0]), reference)

    def terms(self, rows: Rows, actions: IntArray) -> FloatArray:
        """What the variables of each scope pay, shape (B, scopes)."""
        if self._foreign.tells_terms:
            return self.pay(rows, actions)[1]
        return self._terms.terms(rows, actions, self.rewards)

    def rewards(self, rows: Rows, actions: IntArray) -> FloatArray:
        """R(n, x, a), shape (B,)."""
        return self.pay(rows, actions)[0]

    def pay(
        self, rows: Rows, actions: IntArray, num_seeds: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """R(n, x, a) and what the environment says of its terms (0 if nothing), per row.

        With ``num_seeds`` it is averaged over so many seeds at most.

        Rows that occur more than once are asked for once. All rows are asked for under the same
        seeds. So what n, x or the action changes is seen under the same random numbers, and no
        state looks better than another one because its noise happened to be larger.
        """
        queries, inverse = np.unique(np.column_stack([rows, actions]), axis=0, return_inverse=True)
        asked, took = queries[:, :-1], queries[:, -1].astype(np.int64)
        reward, terms = np.zeros(len(queries)), np.zeros((len(queries), self._foreign.num_terms))
        seeds = self._seeds[:num_seeds]
        for seed in seeds:
            steps = self._foreign.step(asked, took, np.full(len(asked), seed))
            reward += steps.reward
            terms += steps.reward_terms
        where = inverse.reshape(-1)
        return (reward / len(seeds))[where], (terms / len(seeds))[where]

    def joint_scopes(
        self, rows: Rows, actions: IntArray, num_seeds: int | None = None
    ) -> list[Scope]:
        """The variables that pay only together in some states, and each other one by itself."""
        return find_scopes(
            rows,
            actions,
            lambda rows, actions: self.pay(rows, actions, num_seeds)[0],
            num_endogenous=len(self._foreign.parts[0]),
            reference=self._reference,
            names=[variable.name for variable in self._foreign.parts[1]],
        )

    def _find_scopes(self, horizon: int) -> list[Scope]:
        seeds = min(FEW_SEEDS, self._reward_samples)
        affordable = MAX_REWARDS // ((len(self._reference) + 2) * seeds)
        wanted = max(MIN_STATES, min(MAX_STATES, affordable))
        met = Episodes.record(self._foreign, 2 * wanted, 0, horizon)
        chosen = np.linspace(0, len(met) - 1, min(wanted, len(met))).astype(np.intp)
        return self.joint_scopes(met.rows[chosen], met.actions[chosen], seeds)
