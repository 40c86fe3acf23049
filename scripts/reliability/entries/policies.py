"""Policies on odd observations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exo_envs import ExoVectorEnv, State
from planners.forecasting.planner import ForecastPolicy
from planners.tree_search import UCTPolicy
from planners.value_iteration.tabular_policy import TabularPolicy
from reliability import subjects
from reliability.odd import Odd
from reliability.registry import Attempt, entry
from reliability.user_models import Ferry, Market
from wrappers import AgentPolicy, FlatObservation, FlatVectorObservation, MaskedVectorObservation

NAMES = Market().exogenous_names


def _observation(odd: Odd, seen: tuple[str, ...]) -> tuple[Any, bool | None]:
    """An observation, and whether it is sound (True), cannot be (False), or may be (None).

    Args:
        odd: where all of it comes from.
        seen: the exogenous variables that the policy looks at.
    """
    market = subjects.model("market")
    shape = odd.pick(((), (1,), (4,), (2, 2)))
    state = subjects.sound_state(market, shape, odd.rng)
    masked = State(state.endogenous, state.exogenous[..., :2]) if odd.chance(0.4) else state
    parts: dict[str, Any] = masked._asdict()
    kind = odd.below(10)
    if kind < 2:
        return (masked if kind else parts), True
    if kind == 2:
        parts.pop(odd.pick(sorted(parts)))
        return parts, False
    if kind == 3:
        name = odd.pick(sorted(parts))
        values = parts[name].astype(np.float64)
        place = values.reshape(-1)
        where = odd.below(place.size)
        place[where] = odd.pick((math.nan, math.inf, -math.inf, 0.5))
        spoiled = {**parts, name: values.reshape(parts[name].shape)}
        return spoiled, may_hold(name, where % values.shape[-1], place[where], seen)
    if kind == 4:
        return odd.anything(), False
    if kind == 5:
        return {**parts, odd.text(): 3}, None
    name = odd.pick(sorted(parts))
    sizes = {"endogenous": market.endogenous_sizes, "exogenous": market.exogenous_sizes}[name]
    parts[name] = odd.damaged(parts[name], sizes[: parts[name].shape[-1]])
    return (State(**parts) if odd.chance(0.3) else parts), None


def may_hold(part: str, column: int, value: float, seen: tuple[str, ...]) -> bool | None:
    """Whether an observation with a value that is no whole number cannot be (False) or may (None).

    Of a variable that a policy ignores it cannot know whether it is real.
    """
    is_ignored = part == "exogenous" and NAMES[column] not in seen
    return None if is_ignored and math.isfinite(value) else False


def _entry(kind: str) -> Attempt:
    def run(odd: Odd) -> None:
        policy = subjects.policy(kind)
        observation, sound = _observation(odd, policy.mask)
        function = policy if odd.chance(0.7) else policy.predict
        call = {True: odd.must_work, False: odd.must_fail, None: odd.call}[sound]
        if kind == "agent" and sound:
            call = odd.call  # it knows full observations only
        call(function, observation)

    return entry(f"policies/{kind}")(run)


for _kind in subjects.POLICIES:
    _entry(_kind)


@entry("policies/act", weight=0.5)
def act(odd: Odd) -> None:
    """The inner methods of policies, called from outside."""
    policy: Any = subjects.policy(odd.pick(("tabular", "forecast", "uct")))
    market = subjects.model("market")
    state = subjects.sound_state(market, (3,), odd.rng)
    n = odd.altered(state.endogenous, market.endogenous_sizes)
    x = odd.altered(state.exogenous[:, :2], market.exogenous_sizes[:2])
    if odd.chance(0.5):
        n, x = (state.endogenous, x) if odd.chance(0.5) else (n, state.exogenous[:, :2])
    kind = odd.below(4)
    if kind == 0 and isinstance(policy, ForecastPolicy):
        odd.call(policy.action_values, n, x)
    elif kind == 1 and isinstance(policy, ForecastPolicy):
        odd.call(policy.probabilities, x, odd.pick((0, 1, 9, -1)))
    elif kind == 2 and isinstance(policy, TabularPolicy):
        odd.call(policy.widened, odd.pick((("price", "season"), NAMES, ("x",))), NAMES)
    else:
        odd.call(policy.act, n, x)
    odd.must_work(lambda: policy.arguments() if hasattr(policy, "arguments") else None)


@entry("policies/made", weight=0.5)
def made(odd: Odd) -> None:
    """Policies that users make themselves, of odd parts."""
    kind = odd.below(4)
    if kind == 0:
        given: dict[str, Any] = {
            "exogenous_sizes": odd.pick(((2, 3), (2, 3), (6,), (0, 3), (-2, -3), (2.5, 3), ())),
            "endogenous_sizes": odd.pick(((2,), (2,), (1, 2), (0,), (2**40,))),
            "mask": odd.pick((("a", "b"), ("a", "b"), ("a", "a"), ("a",), ())),
            "full": odd.pick((None, None, ("a", "b", "c"), ("c",))),
        }
        actions = odd.damaged(np.zeros((6, 2), dtype=np.int64), np.full(2, 3))
        policy = odd.call(TabularPolicy, actions, **given)
        odd.call(policy, State(np.zeros((2, 1), int), np.zeros((2, 2), int)))
    elif kind == 1:
        mdp = subjects.model("factored")
        odd.call(TabularPolicy.planned_in, mdp, odd.array((6, 4)))
        odd.must_work(TabularPolicy.names_of, mdp)
    elif kind == 2:
        given = {name: odd.sound_or(2) for name in ("simulations", "depth", "seed")}
        given["exploration"] = odd.sound_or(1.0)
        big = ("simulations", "depth")
        given |= {k: 2 for k in big if isinstance(given[k], (int, np.integer)) and given[k] > 40}
        policy = odd.call(UCTPolicy, odd.sound_or(Market(), 0.8), **given)
        odd.call(policy, Market().sample_initial(2, np.random.default_rng(0)))
    else:
        _try_agent(odd)


def _try_agent(odd: Odd) -> None:
    answers = odd.pick((np.zeros(2, int), None, [5, 5], [0.5, 0], "x", [[0], [0]], 0, [np.nan, 0]))
    agent = odd.pick((lambda flat: answers, odd.anything(), lambda: 0, subjects.policy("tabular")))
    env: Any = odd.pick(
        (
            ExoVectorEnv(Market(), 2),
            FlatVectorObservation(ExoVectorEnv(Market(), 2)),
            FlatVectorObservation(MaskedVectorObservation(ExoVectorEnv(Ferry(), 2), ["fog"])),
            FlatObservation(subjects.env("market")),
            subjects.env("ExoGrid-v0"),
            None,
            odd.anything(),
        )
    )
    policy = odd.call(AgentPolicy, agent, env, deterministic=odd.sound_or(True, 0.9))
    odd.call(policy, Market().sample_initial(2, np.random.default_rng(0)))
