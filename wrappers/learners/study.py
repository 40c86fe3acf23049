"""What is estimated once and shared by all masks that are looked at.

Exogenous rollouts, what moves n and what pays, the trajectories on which policies are compared,
and the worth of every mask that was tried: none of it depends on the learner, so learners that
are given the same :class:`Study` find it there.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from exo_envs import ExoMDP, State, as_mdp
from exo_envs.inputs import as_mask, check_whole
from exo_envs.mdp import FloatArray
from planners import (
    DefaultPlanner,
    EndogenousSurvey,
    Estimate,
    ExogenousData,
    Memory,
    Objective,
    Plan,
    Planner,
    ReducedMDP,
    Scenarios,
    evaluate,
    paired_difference,
)
from planners.information.interventions import actors_of, draws_for_actors
from planners.information.parents import Evidence, ParentSearch
from planners.objective import Cost
from planners.planner import warm_start_for
from planners.reduction.survey import Reward

Mask = tuple[str, ...]


#: What the default planner may lose, as a part of the largest reward.
PRECISION = 1e-3
#: Whether a contest is decided is seen after this share of the rollouts, or that, or after all,
LOOKS = (0.1, 0.4, 1.0)
#: but not after fewer than so many: their standard error would be a guess.
FIRST_LOOK = 30
#: Decided is: by so many standard errors; with three looks that is wrong about once in 1,000 times.
DECIDED = 4.0


@dataclass(eq=False)
class _Trial:
    """A mask that was planned with, and what its policy earned so far."""

    plan: Plan
    reduced: ReducedMDP
    returns: list[FloatArray]  # one array for each part of the shared trajectories
    visits: FloatArray  # (N * A,), of all rollouts so far


class Contest(NamedTuple):
    """A mask against another one, on the same trajectories.

    If it is clear which of them is better they are not played to the end: ``objective`` has fewer
    rollouts then.
    """

    objective: Objective
    gain: Estimate  # of J
    returns: Estimate  # the gain before the masks have paid their price


class Study:
    """A model, and what was found out about it and its masks.

    Args:
        mdp_or_env: an :class:`~exo_envs.ExoMDP`, or an environment (:func:`exo_envs.as_mdp`).
        rng: a seed or a generator; by default seed 0. What is estimated does not depend on the
            order in which it is asked for; but exact plans start from the one before, so they are
            the same only as far as the planner is precise.
        n_rollouts: episodes that each policy plays; all play the same exogenous trajectories.
        n_data_rollouts: rollouts of x that models and tests are estimated from; by default about
            100,000 transitions' worth.
        planner: by default one that chooses by size, as precise as the rollouts can tell.
        planning_time_limit: for one plan, in seconds.
        reward: "terms" if the model tells what each variable pays, "total" if it is a black box.
        level: of the tests for what predicts a variable, over all variables and candidates.

    Attributes:
        mdp: the model.
        spec: of the environment, as Gymnasium writes it to JSON; None if there is none.
        seed: what all randomness is derived from.
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
        level: float = 0.05,
    ) -> None:
        check_whole("n_rollouts", n_rollouts, 1)
        if n_data_rollouts is not None:
            check_whole("n_data_rollouts", n_data_rollouts, 1)
        self.mdp = as_mdp(mdp_or_env)
        self.spec = _spec_of(mdp_or_env)
        if isinstance(rng, np.random.Generator):
            self.seed = int(rng.integers(2**63))
        else:
            self.seed = 0 if rng is None else int(rng)
        self.n_rollouts = n_rollouts
        self.n_data_rollouts = n_data_rollouts
        self._planner = planner
        self.planning_time_limit = planning_time_limit
        self.reward: Reward = reward
        self.level = level
        self.memory = Memory()  # of the data and the survey
        self.samples = 0  # transitions and rewards that the model was asked for
        self.memo: dict[Any, Any] = {}  # what else was found, by whoever found it
        self._parents: dict[str, dict[str, Evidence]] = {}
        self._trials: dict[Mask, _Trial] = {}
        self._warm: Plan | None = None

    def rng(self, *stream: str | int) -> np.random.Generator:
        """A generator of its own for everything that has a name."""
        words = [part if isinstance(part, int) else zlib.crc32(part.encode()) for part in stream]
        return np.random.default_rng([self.seed, *words])

    @cached_property
    def data(self) -> ExogenousData:
        """Rollouts of x, without a policy."""
        data = ExogenousData.collect(self.mdp, self.n_data_rollouts, self.rng("data"))
        self.samples += data.num_rollouts * data.num_steps
        return data

    @cached_property
    def survey(self) -> EndogenousSurvey:
        """What moves n and what pays."""
        survey = EndogenousSurvey.collect(
            self.mdp, self.data, self.rng("survey"), reward=self.reward
        )
        self.samples += survey.moves_asked + survey.rewards_asked
        return survey

    def parents(self, names: Sequence[str]) -> dict[str, dict[str, Evidence]]:
        """What predicts each of some variables, itself included, and the evidence for it.

        All variables are candidates, and the level is divided by their number and again by that
        of the variables that may be asked for. Variables that act only together (XOR) are found
        by changing one at a time (:mod:`planners.information.interventions`) and tested as a group.
        """
        everything = self.mdp.exogenous_names
        asked = [name for name in names if name not in self._parents]
        if asked:
            search = ParentSearch(self.data, level=self.level / len(everything), memory=self.memory)
            targets = self.data.positions(asked).tolist()
            if not self._parents:
                self.samples += draws_for_actors(len(everything))
            acting = actors_of(self.mdp, self.data, targets, memory=self.memory)
            for i, actors in zip(targets, acting, strict=True):
                found = search.parents(i, range(len(everything)), actors)
                evidence = search.explain(i, found, actors)
                self._parents[everything[i]] = {everything[j]: evidence[j] for j in found}
        return {name: self._parents[name] for name in names}

    @cached_property
    def planner(self) -> Planner:
        """The planner; the default one is as precise as rollouts can tell."""
        if self._planner is not None:
            return self._planner
        tables = [self.survey.base_reward, *self.survey.terms.values()]
        largest = max(float(np.abs(table).max(initial=0.0)) for table in tables)
        return DefaultPlanner(tolerance=PRECISION * (largest or 1.0), dtype=np.float32)

    @cached_property
    def scenarios(self) -> list[Scenarios]:
        """The trajectories on which masks are compared while one is chosen, in a few parts."""
        ends = [
            min(self.n_rollouts, max(FIRST_LOOK, math.ceil(share * self.n_rollouts)))
            for share in LOOKS
        ]
        sizes = np.diff([0, *ends])
        return [
            self._sample_scenarios(int(size), "scenarios", k)
            for k, size in enumerate(sizes)
            if size
        ]

    @cached_property
    def fresh_scenarios(self) -> Scenarios:
        """Others, for an estimate of the chosen mask that its choice had no part in."""
        return self._sample_scenarios(self.n_rollouts, "fresh scenarios")

    def objective(
        self,
        mask: Any,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
        scenarios: Scenarios | None = None,
        first_look: bool = False,
        time_limit: float | None = None,
    ) -> Objective:
        """*Estimate-Objective* (section 5.1), remembered.

        Args:
            mask: names, indices or booleans.
            cost_weight: the paper's lambda.
            cost: see :func:`planners.estimate_objective`.
            scenarios: what to play instead of the shared trajectories.
            first_look: play the first part of the shared trajectories only.
            time_limit: for planning, if that is less than ``planning_time_limit``.
        """
        trial = self._trial(as_mask(self.mdp, mask), time_limit)
        if scenarios is None:
            returns = self._returns(trial, 1 if first_look else len(self.scenarios))
        else:
            returns = self._play(trial.plan, scenarios)[0]
        return Objective.of(returns, trial.plan, trial.reduced, cost_weight=cost_weight, cost=cost)

    def contest(
        self,
        mask: Any,
        over: Any,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
        time_limit: float | None = None,
    ) -> Contest:
        """J of a mask against J of another one, on as many rollouts as it takes to decide."""
        trials = [self._trial(as_mask(self.mdp, names), time_limit) for names in (mask, over)]
        parts = 0
        while True:
            parts += 1
            tried, rival = (
                Objective.of(
                    self._returns(trial, parts),
                    trial.plan,
                    trial.reduced,
                    cost_weight=cost_weight,
                    cost=cost,
                )
                for trial in trials
            )
            contest = Contest(
                tried, tried.gain_over(rival), paired_difference(tried.returns, rival.returns)
            )
            # No difference at all says little: what makes one may just be rare.
            decided = 0 < DECIDED * contest.gain.standard_error < abs(contest.gain.mean)
            if decided or parts == len(self.scenarios):
                return contest

    def independent_scenarios(self, number: int) -> Scenarios:
        """The ``number``-th set of trajectories that nothing else is played on."""
        return self._sample_scenarios(self.n_rollouts, "independent", number)

    def knows(self, mask: Mask) -> bool:
        """Whether a mask has been planned with already."""
        return mask in self._trials

    def visits(self, mask: Mask) -> FloatArray:
        """How often the policy of a mask meets each pair n * A + a in an episode, discounted."""
        trial = self._trial(mask, None)
        return trial.visits / len(self._returns(trial, max(1, len(trial.returns))))

    def _trial(self, mask: Mask, time_limit: float | None) -> _Trial:
        if mask in self._trials:
            return self._trials[mask]
        trial = self._plan(mask, time_limit)
        if trial.plan.converged or time_limit is None:  # not if it was cut short for one learner
            self._trials[mask] = trial
        return trial

    def _plan(self, mask: Mask, time_limit: float | None) -> _Trial:
        rng = self.rng("plan", *self.mdp.exogenous_indices(mask).tolist())
        reduced = ReducedMDP.estimate(
            self.mdp,
            mask,
            rng=rng,
            data=self.data,
            survey=self.survey,
            known_parents=self.parents,
            memory=self.memory,
        )
        limits = [limit for limit in (self.planning_time_limit, time_limit) if limit is not None]
        plan = self.planner.plan(
            reduced,
            rng=rng,
            time_limit=min(limits, default=None),
            **warm_start_for(self.planner, self._warm),
        )
        if plan.values is not None:
            self._warm = plan
        pairs = math.prod(int(n) for n in self.mdp.endogenous_sizes) * self.mdp.num_actions
        return _Trial(plan, reduced, [], np.zeros(pairs))

    def _returns(self, trial: _Trial, parts: int) -> FloatArray:
        """The returns on the first parts of the trajectories; what was not played yet is."""
        for scenarios in self.scenarios[len(trial.returns) : parts]:
            returns, visits = self._play(trial.plan, scenarios)
            trial.returns.append(returns)
            trial.visits += visits
        return np.concatenate(trial.returns[:parts])

    def _play(self, plan: Plan, scenarios: Scenarios) -> tuple[FloatArray, FloatArray]:
        sizes = tuple(int(size) for size in self.mdp.endogenous_sizes)
        visits = np.zeros(int(np.prod(sizes)) * self.mdp.num_actions)

        def watch(t: int, state: State, actions: NDArray[Any]) -> None:
            n = np.ravel_multi_index(tuple(np.moveaxis(state.endogenous, -1, 0)), sizes)
            seen = np.bincount(n * self.mdp.num_actions + actions, minlength=len(visits))
            visits[:] += self.mdp.discount**t * seen
            self.samples += len(actions)

        returns = evaluate(plan.policy, self.mdp, scenarios=scenarios, watch=watch)
        return returns, visits

    def _sample_scenarios(self, size: int, *stream: str | int) -> Scenarios:
        scenarios = Scenarios.sample(self.mdp, size, self.rng(*stream))
        self.samples += scenarios.exogenous.shape[0] * len(scenarios)
        return scenarios


def _spec_of(mdp_or_env: Any) -> dict[str, Any] | None:
    spec = getattr(mdp_or_env, "spec", None)
    if not isinstance(spec, EnvSpec):
        return None
    try:
        written: dict[str, Any] = json.loads(spec.to_json())
    except (TypeError, ValueError):
        return None  # with arguments that JSON cannot hold
    return written
