"""The samples of a model, the findings from them, and the worth of its masks.

Exogenous rollouts, what moves n and what pays, who predicts whom, and the worth of every mask that
was tried: none of it depends on the learner, so learners that are given the same :class:`Study`
share it.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from exo_envs.contract.check import check_quickly
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.arguments import check_level, check_rollouts, check_whole, optional
from exo_envs.core.clock import check_time_limit
from exo_envs.core.ends import CarriedEnd, EndCarryingMDP, carry_end
from exo_envs.core.mdp import ExoMDP
from exo_envs.sources.simulators.conversion import as_mdp, warn_of_ignored_wrappers
from planners.core.memory import Memory, Shelf
from planners.core.planner import Planner, check_planner
from planners.core.policy import Mask
from planners.default_planner import DefaultPlanner
from planners.dependence.interventions import actors_of, influence_given
from planners.dependence.pairwise import Duplicates
from planners.dependence.parents import ParentEvidence, ParentSearch
from planners.discretization.coarse import coarsened
from planners.objective import MaskEvaluator
from planners.reduced.ignored_rewards import IgnoredRewards, check_ignored_rewards
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.rewards import Reward, check_reward
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData

#: A variable acts clearly on another one if it changes it in this share of the states.
CLEAR_SHARE = 0.1
#: What the default planner may lose, as a part of the largest reward.
TOLERANCE_SHARE = 1e-3
#: How an episode ends of models whose end is known to look at n alone.
KNOWN_ENDS = (ExoMDP.is_terminal, EndCarryingMDP.is_terminal)

#: variable -> the variables that act on it, with the strength of the effect.
ACTORS = Shelf[str, dict[int, float]]("actors")
#: variable -> the variables that predict it, with the evidence.
PARENTS = Shelf[str, dict[str, ParentEvidence]]("parents")
#: variable -> the variables that act on it and have no place in its table, with how often.
LEFT_OUT = Shelf[str, dict[str, float]]("left_out")
#: () -> which variables say the same.
DUPLICATES = Shelf[tuple[()], Duplicates]("duplicates", at_least=1)


class EndCarriedWarning(UserWarning):
    """The end of an episode depends on x, and is carried in n by an endogenous variable."""


class Study:
    """A model, and what was found out about it and its masks.

    Nothing is asked of the model before it is needed, and nothing twice. Every stream of random
    numbers has a name, so results do not depend on the order of questions; but exact plans start
    from one of those before, so they are the same only as far as the planner is precise.

    Args:
        mdp_or_env: an :class:`~exo_envs.ExoMDP`, or an environment (:func:`exo_envs.as_mdp`).
        rng: a seed or a generator; by default seed 0.
        n_rollouts: episodes that each policy plays; all play the same exogenous trajectories.
        n_data_rollouts: rollouts of x that models and tests are estimated from; by default about
            100,000 transitions' worth.
        planner: by default one that chooses by size, as precise as the rollouts can tell.
        planning_time_limit: for one plan, in seconds; the time for compiling does not count.
        reward: "terms" if the model tells what each variable pays, "total" if it is a black box.
        ignored_rewards: what the variables outside a mask pay in its reduced model: their
            "average", or "zero" as in the paper ("optimistic" is for relaxed problems); see
            :meth:`~planners.ReducedMDP.estimate`.
        level: of the tests for what predicts a variable, over all variables and candidates.
        max_parents: variables that a variable may be predicted from at most.

    Attributes:
        mdp: the model.
        spec: of the environment, as Gymnasium writes it to JSON; None if there is none.
        seed: what all randomness is derived from.
        memory: everything that was found out, in one place.
        counted: the model again; it counts what it is asked.
        evaluator: estimates J of masks.
    """

    def __init__(
        self,
        mdp_or_env: ExoMDP | gym.Env[Any, Any],
        rng: np.random.Generator | int | None = None,
        *,
        n_rollouts: int = 500,
        n_data_rollouts: int | None = None,
        planner: Planner | None = None,
        planning_time_limit: float | None = 60.0,
        reward: Reward = "terms",
        ignored_rewards: IgnoredRewards = "average",
        level: float = 0.05,
        max_parents: int = 6,
    ) -> None:
        n_rollouts = check_whole("n_rollouts", n_rollouts, 1)
        check_ignored_rewards(ignored_rewards)
        check_planner(planner)
        check_reward(reward)
        limit = check_time_limit("planning_time_limit", planning_time_limit, positive=True)
        self.n_data_rollouts = optional(check_whole)("n_data_rollouts", n_data_rollouts, 1)
        self.max_parents = check_whole("max_parents", max_parents, 1)
        self.level = check_level("level", level)
        self.reward: Reward = reward
        self.ignored_rewards: IgnoredRewards = ignored_rewards
        self.mdp = as_mdp(mdp_or_env)
        warn_of_ignored_wrappers(mdp_or_env, self.mdp)
        self.spec = _spec_of(mdp_or_env)
        self.counted = CountedMDP(self.mdp)
        if not self.mdp.is_recorded:  # a record has only so many
            size = self.counted.horizon + 1, len(self.mdp.exogenous_variables)
            check_rollouts("n_rollouts", n_rollouts, *size)
            optional(check_rollouts)("n_data_rollouts", self.n_data_rollouts, *size)
        drawn = rng.integers(2**63) if isinstance(rng, np.random.Generator) else rng
        self.seed = 0 if drawn is None else check_whole("rng, if it is a seed,", drawn, 0)
        self.memory = Memory()
        self._is_checked = False
        self._with_end: Study | None = None
        self._given_planner = planner
        self.evaluator = MaskEvaluator(
            self.counted,
            reduce=self.reduce,
            planner=self.planner,
            rng=self.rng,
            n_rollouts=n_rollouts,
            time_limit=limit,
            memory=self.memory,
        )

    def check(self) -> None:
        """Refuse a model that breaks its contract; it is looked at once."""
        if not self._is_checked:
            check_quickly(self.counted)
            self._is_checked = True

    def of_task(self, mdp_or_env: ExoMDP | gym.Env[Any, Any]) -> Study:
        """A study of another task, with the same seed and settings, that knows nothing yet."""
        return Study(
            mdp_or_env,
            self.seed,
            n_rollouts=self.evaluator.n_rollouts,
            n_data_rollouts=self.n_data_rollouts,
            planner=self._given_planner,
            planning_time_limit=self.evaluator.time_limit,
            reward=self.reward,
            ignored_rewards=self.ignored_rewards,
            level=self.level,
            max_parents=self.max_parents,
        )

    def with_carried_end(self) -> Study:
        """This study, or that of the model with its end in an endogenous variable.

        Learners ask for it first: a planner has to know from n whether an episode is over. If its
        end looks at x, it is carried in n (:func:`exo_envs.carry_end`).
        """
        if self._with_end is None:
            study: Study = self
            carried: ExoMDP = self.counted
            if type(self.mdp).is_terminal not in KNOWN_ENDS:
                carried = carry_end(self.counted, rng=self.rng("end"))
            if isinstance(carried, CarriedEnd):
                study = self.of_task(CarriedEnd(self.mdp, carried.looks_at))
                study.spec = self.spec
                study.counted.add(self.counted)
                warnings.warn(
                    f"the end of an episode depends on {', '.join(map(repr, carried.looks_at))}, "
                    "and a planner has to know it from n. It is carried in the endogenous variable "
                    f"{study.mdp.endogenous_variables[-1].name!r}; give exo_envs.carry_end(mdp) "
                    "to say so yourself",
                    EndCarriedWarning,
                    stacklevel=5,
                )
            self._with_end = study
        return self._with_end

    @property
    def samples(self) -> int:
        """The number of x', n' and rewards asked of the model, by tree search's policies too."""
        return self.counted.samples

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
        if (duplicates := self.memory.find(DUPLICATES, ())) is None:
            duplicates = self.memory.keep(DUPLICATES, (), Duplicates(data))
        (place,) = data.positions([name]).tolist()
        return tuple(data.names[j] for j in duplicates.of(place))

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

    def reduce(self, mask: Mask, rng: np.random.Generator, *, relaxed: bool = False) -> ReducedMDP:
        """The reduced model of a mask, from the samples that all masks share.

        In the ``relaxed`` one every variable moves by itself, whatever the others do, and what the
        mask ignores is seen with optimism.
        """
        settings: dict[str, Any] = {}
        if relaxed:
            settings |= {"max_parents": 1, "interventions": False, "ignored_rewards": "optimistic"}
        else:
            settings |= {"max_parents": self.max_parents, "known_parents": self.parents}
            settings |= {"ignored_rewards": self.ignored_rewards}
            self.actors(mask)  # asked now, and not when somebody reads the tables of the model
        self.survey()  # is in the memory from then on
        return ReducedMDP.estimate(self.counted, mask, rng=rng, memory=self.memory, **settings)

    def planner(self, thorough: bool = False) -> Planner:
        """The planner; the default one is as precise as rollouts can tell.

        Plans for comparisons of masks are made in less time than ``thorough`` ones, if they cannot
        be exact (:class:`~planners.DefaultPlanner`).
        """
        if self._given_planner is not None:
            return self._given_planner
        tables = [self.survey().base_reward, *self.survey().scoped_terms.values()]
        largest = max(float(np.abs(table).max(initial=0.0)) for table in tables)
        tolerance = TOLERANCE_SHARE * (largest or 1.0)
        return DefaultPlanner(tolerance=tolerance, dtype=np.float32, thorough=thorough)


def _spec_of(mdp_or_env: Any) -> dict[str, Any] | None:
    """The spec of an environment as Gymnasium writes it; None if it has none that JSON can hold."""
    spec = getattr(mdp_or_env, "spec", None)
    try:
        return json.loads(spec.to_json()) if isinstance(spec, EnvSpec) else None
    except (TypeError, ValueError):
        return None
