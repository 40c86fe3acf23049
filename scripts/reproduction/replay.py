"""One episode of ExoCrowd as data: what is there, what the agent sees, and what it expects.

The report's page draws it. Values of variables are exported as they are, in the order of their
names, so that nothing but the page has to know how they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import exo_envs  # noqa: F401 registers the environments
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.floor import Move
from planners import DefaultPlanner, Policy, ReducedMDP
from planners.forecasting.planner import ForecastPolicy
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from wrappers import MaskedObservation

#: How many steps ahead forecasts are exported.
AHEAD = (1, 3, 5, 10)

Episode = dict[str, Any]  # what becomes JSON
PlanWith = Callable[[Sequence[str]], Policy]


def planning_in(mdp: CrowdMDP, *, seed: int, num_rollouts: int | None = None) -> PlanWith:
    """A function that plans with a mask; all masks are planned with from the same samples."""
    data = ExogenousData.collect(mdp, num_rollouts, np.random.default_rng([seed, 0]))
    survey = EndogenousSurvey.collect(mdp, data, np.random.default_rng([seed, 1]))

    def plan(mask: Sequence[str]) -> Policy:
        rng = np.random.default_rng([seed, 2])
        reduced = ReducedMDP.estimate(mdp, mask, rng=rng, data=data, survey=survey)
        return DefaultPlanner().plan(reduced, rng=rng).policy

    return plan


def play(
    policy: Policy, *, seed: int, title: str = "", forecasts: bool = True, **parameters: Any
) -> Episode:
    """Play one episode with a policy, which is shown its masked observations and nothing else.

    Args:
        policy: knows its mask.
        seed: of the environment.
        title: what the page calls the episode.
        forecasts: whether to export what the policy expects.
        **parameters: of ExoCrowd, for example its goal.

    Returns:
        An object for JSON. ``steps[t]`` has the robot's cell (None once the goal is reached), the
        values of all variables (``there``), those of the masked ones (``seen``), and, except in
        the last one, the action, its reward, what was expected of each action, and the forecasts
        in per cent: ``occupancy[h][cell]`` and ``places[h][object][place]``, in the order of
        ``ahead`` and of ``forecast``.
    """
    env = MaskedObservation(gym.make("ExoCrowd-v0", **parameters), policy.mask)
    mdp: CrowdMDP = env.unwrapped.mdp  # type: ignore[attr-defined]
    outlook = Outlook.of(policy, mdp)
    observation, _ = env.reset(seed=seed)
    steps: list[dict[str, Any]] = []
    earned, over = 0.0, False
    while not over:
        action = int(policy(observation))
        step = _look(env, mdp, observation) | {"action": action}
        if forecasts:
            step |= outlook.at(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        earned += mdp.discount ** len(steps) * float(reward)
        steps.append(step | {"reward": float(reward)})
        over = terminated or truncated
    steps.append(_look(env, mdp, observation))
    env.close()
    return {
        "title": title,
        "goal": mdp.parameters.goal,
        "seed": seed,
        "discount": mdp.discount,
        "return": round(earned, 6),
        "rows": mdp.floor.rows,
        "columns": mdp.floor.columns,
        "tables": mdp.table_cells.tolist(),
        "names": list(mdp.exogenous_names),
        "mask": list(policy.mask),
        "actions": [move.name.lower() for move in Move],
        "ahead": list(outlook.ahead),
        "forecast": {"cells": [*outlook.cells], "objects": [*outlook.objects]},
        "steps": steps,
    }


def typical_seed(policy: Policy, seeds: Sequence[int], **parameters: Any) -> int:
    """Of these seeds, the one whose episode has the median return."""
    episodes = [play(policy, seed=seed, forecasts=False, **parameters) for seed in seeds]
    episodes.sort(key=lambda episode: (episode["return"], episode["seed"]))
    return int(episodes[len(episodes) // 2]["seed"])


def _look(env: gym.Env[Any, Any], mdp: CrowdMDP, observation: dict[str, Any]) -> dict[str, Any]:
    state = env.unwrapped.state  # type: ignore[attr-defined]
    robot = int(state.endogenous[0])
    return {
        "robot": None if robot == mdp.done else robot,
        "there": state.exogenous.tolist(),
        "seen": _masked(observation).tolist(),
    }


def _masked(observation: dict[str, Any]) -> NDArray[np.int64]:
    """The exogenous part, which an empty mask leaves out."""
    return np.asarray(observation.get("exogenous", []), dtype=np.int64)


@dataclass(frozen=True)
class Outlook:
    """What a policy expects; nothing unless it plans with forecasts.

    Attributes:
        policy: whose expectations they are.
        ahead: how many steps ahead.
        cells: those whose occupancy is forecast, with the numbers of their forecasts.
        objects: those whose place is forecast, with the numbers of their forecasts.
        num_places: where an object can be: the tables, and a hand.
    """

    policy: Policy
    ahead: tuple[int, ...]
    cells: dict[int, int]
    objects: dict[int, int]
    num_places: int

    @classmethod
    def of(cls, policy: Policy, mdp: CrowdMDP) -> Outlook:
        """Find out which variables are forecast."""
        numbers: dict[str, int] = {}
        ahead: tuple[int, ...] = ()
        if isinstance(policy, ForecastPolicy):
            forecasts = policy.forecasts
            numbers = {policy.mask[v]: f for f, v in enumerate(forecasts.variables.tolist())}
            ahead = tuple(h for h in AHEAD if h <= forecasts.horizon)
        cells, objects = (
            {i: numbers[name] for i, name in enumerate(names) if name in numbers}
            for names in (
                mdp.exogenous_names[mdp.occupancy_slice],
                mdp.exogenous_names[mdp.object_slice],
            )
        )
        return cls(policy, ahead, cells, objects, mdp.parameters.num_tables + 1)

    def at(self, observation: dict[str, Any]) -> dict[str, Any]:
        """The forecasts from one observation, in per cent, and what each action should earn."""
        if not isinstance(self.policy, ForecastPolicy):
            return {}
        exogenous = _masked(observation)[None]
        endogenous = np.asarray(observation["endogenous"])[None]
        policy, steps = self.policy, np.array(self.ahead) - 1

        def forecast(number: int) -> NDArray[np.float32]:
            return policy.probabilities(exogenous, number)[0, steps]  # (len(ahead), size)

        occupied = [forecast(f)[:, 1] for f in self.cells.values()]
        places = [  # whether an object is the goal is summed out
            forecast(f).reshape(-1, 2, self.num_places).sum(axis=1) for f in self.objects.values()
        ]
        return {
            "expected": self.policy.action_values(endogenous, exogenous)[0].round(1).tolist(),
            "occupancy": _per_cent(occupied, len(steps)),
            "places": _per_cent(places, len(steps)),
        }


def _per_cent(forecasts: list[NDArray[np.float32]], steps: int) -> list[Any]:
    """Forecasts of several variables, (variables, steps, ...), as one list for each step."""
    rounded = [np.rint(100 * forecast).astype(int).tolist() for forecast in forecasts]
    return [[forecast[step] for forecast in rounded] for step in range(steps)]
