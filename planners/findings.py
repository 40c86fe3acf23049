"""What was asked of a model, and what was found out from it: rollouts of x, a survey, predictors.

None of it depends on a mask, so all masks share it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.arguments import check_level, check_rollouts, check_whole, optional
from exo_envs.core.mdp import ExoMDP
from planners.core.memory import Memory, Shelf
from planners.core.policy import Mask
from planners.dependence.interventions import actors_of, influence_given
from planners.dependence.pairwise import duplicates
from planners.dependence.parents import ParentEvidence, ParentSearch
from planners.discretization.coarse import coarsened
from planners.reduced.ignored_rewards import IgnoredRewards, check_ignored_rewards
from planners.reduced.rewards import Reward, check_reward
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData

#: A variable acts clearly on another one if it changes it in this share of the states.
CLEAR_SHARE = 0.1

#: variable -> the variables that act on it, with the strength of the effect.
ACTORS = Shelf[str, dict[int, float]]("actors")
#: variable -> the variables that predict it, with the evidence.
PARENTS = Shelf[str, dict[str, ParentEvidence]]("parents")
#: variable -> the variables that act on it and have no place in its table, with how often.
LEFT_OUT = Shelf[str, dict[str, float]]("left_out")


class Findings:
    """A model, and what was found out about it.

    Nothing is asked of the model before it is needed, and nothing twice. Every stream of random
    numbers has a name, so results do not depend on the order of questions.

    Args:
        mdp: the model.
        rng: a seed or a generator; by default seed 0.
        n_data_rollouts: rollouts of x that models and tests are estimated from; by default about
            100,000 transitions' worth.
        reward: "terms" if the model tells what each variable pays, "total" if it is a black box.
        ignored_rewards: what the variables outside a mask pay in its reduced model: their
            "average", or "zero" as in the paper ("optimistic" is for relaxed problems); see
            :meth:`~planners.ReducedMDP.estimate`.
        level: of the tests for what predicts a variable, over all variables and candidates.
        max_parents: variables that a variable may be predicted from at most.

    Attributes:
        mdp: the model.
        counted: the model again; it counts what it is asked.
        seed: what all randomness is derived from.
        memory: everything that was found out, in one place.
    """

    def __init__(
        self,
        mdp: ExoMDP,
        rng: np.random.Generator | int | None = None,
        *,
        n_data_rollouts: int | None = None,
        reward: Reward = "terms",
        ignored_rewards: IgnoredRewards = "average",
        level: float = 0.05,
        max_parents: int = 6,
    ) -> None:
        check_ignored_rewards(ignored_rewards)
        check_reward(reward)
        self.mdp, self.counted = mdp, CountedMDP(mdp)
        self.n_data_rollouts = optional(check_whole)("n_data_rollouts", n_data_rollouts, 1)
        self.max_parents = check_whole("max_parents", max_parents, 1)
        self.level = check_level("level", level)
        self.reward: Reward = reward
        self.ignored_rewards: IgnoredRewards = ignored_rewards
        if not mdp.is_recorded:  # a record has only so many
            size = self.counted.horizon + 1, len(mdp.exogenous_variables)
            optional(check_rollouts)("n_data_rollouts", self.n_data_rollouts, *size)
        drawn = rng.integers(2**63) if isinstance(rng, np.random.Generator) else rng
        self.seed = 0 if drawn is None else check_whole("rng, if it is a seed,", drawn, 0)
        self.memory = Memory()

    def rng(self, *name: str | int) -> np.random.Generator:
        """A generator of its own for everything that has a name."""
        words = [part if isinstance(part, int) else zlib.crc32(part.encode()) for part in name]
        return np.random.default_rng([self.seed, *words])

    def data(self) -> ExogenousData:
        """Rollouts of x, without a policy."""
        if self.memory.data is None:
            rng = self.rng("data")
            self.memory.data = ExogenousData.collect(self.counted, self.n_data_rollouts, rng)
        return self.memory.data

    @property
    def coarse(self) -> ExoMDP:
        """The counted model as the data shows it: with bins where there are very many values."""
        return coarsened(self.counted, self.data().bins)

    def survey(self) -> EndogenousSurvey:
        """The variables that move n and those that pay, with tables of both."""
        if self.memory.survey is None:
            self.memory.survey = EndogenousSurvey.collect(
                self.counted, self.data(), self.rng("survey"), reward=self.reward
            )
        return self.memory.survey

    def parents(self, names: Sequence[str]) -> dict[str, dict[str, ParentEvidence]]:
        """The variables that predict each of some, itself included, with the evidence.

        All variables are candidates, and the level is divided by their number and again by that
        of the variables that may be asked for. Variables that act only together (XOR) are found
        by changing one at a time (:mod:`planners.dependence.interventions`) and tested as a group.
        """
        everything, known = self.mdp.exogenous_names, self.memory.entries(PARENTS)
        asked = [name for name in names if name not in known]
        if asked:
            data, actors = self.data(), self.actors(asked)
            level = self.level / len(everything)
            search = ParentSearch(
                data, level=level, max_parents=self.max_parents, memory=self.memory
            )
            for name, i in zip(asked, data.positions(asked).tolist(), strict=True):
                found = search.parents(i, range(len(everything)), actors[name])
                evidence = search.explain(i, found, actors[name])
                left_out = self._left_out(search, i, found, actors[name])
                self.memory.entries(LEFT_OUT)[name] = left_out
                known[name] = {everything[j]: evidence[j] for j in found}
        return {name: known[name] for name in names}

    def _left_out(
        self, search: ParentSearch, i: int, found: Sequence[int], actors: dict[int, float]
    ) -> dict[str, float]:
        """The variables beside the parents that clearly act on one while these stay the same."""
        data, share = self.data(), {}
        for j in search.left_out(i, found, actors):
            if actors[j] >= CLEAR_SHARE:
                rows = search.all.rows(found)
                share[j] = influence_given(self.counted, data, j, i, rows)
        return {data.names[j]: own for j, own in share.items() if own >= CLEAR_SHARE}

    def same_as(self, name: str) -> Mask:
        """The other variables that say the same: in all rollouts, each value with one of these."""
        data = self.data()
        (place,) = data.positions([name]).tolist()
        return tuple(data.names[j] for j in duplicates(data, place))

    def actors(self, names: Sequence[str]) -> dict[str, dict[int, float]]:
        """Which variables act on each of some variables, found by changing them in the model."""
        known = self.memory.entries(ACTORS)
        asked = [name for name in names if name not in known]
        if asked:
            data = self.data()
            targets = data.positions(asked).tolist()
            acting = actors_of(self.counted, data, targets, memory=self.memory)
            known.update(zip(asked, acting, strict=True))
        return {name: known[name] for name in names}
