"""``gym.make``, ``gym.make_vec`` and constructors with odd arguments."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium as gym
import numpy as np

import exo_envs
from exo_envs import AdaptedMDP, ExoEnv, ExoVectorEnv, State, Successors, Variable
from exo_envs.core.mdp import Transition
from exo_envs.domains.crowd import CrowdEnv, CrowdMDP, CrowdParameters, CrowdVectorEnv
from exo_envs.domains.factory import FactoryEnv, FactoryMDP, FactoryParameters, FactoryVectorEnv
from exo_envs.domains.grid import GridEnv, GridMDP, GridParameters, GridVectorEnv
from exo_envs.domains.synthetic import (
    SyntheticEnv,
    SyntheticMDP,
    SyntheticParameters,
    SyntheticVectorEnv,
    exact_return,
)
from exo_envs.shells.env import Snapshot
from exo_envs.testing import ContractError
from reliability import subjects
from reliability.entries.learners import odd_mask
from reliability.odd import Odd, Wrong
from reliability.registry import Attempt, entry
from reliability.user_models import Harbour, Market

PARAMETERS = {
    "ExoGrid-v0": GridParameters,
    "ExoFactory-v0": FactoryParameters,
    "ExoCrowd-v0": CrowdParameters,
    "ExoSynthetic-v0": SyntheticParameters,
}
CLASSES = {
    "ExoGrid-v0": (GridMDP, GridEnv, GridVectorEnv),
    "ExoFactory-v0": (FactoryMDP, FactoryEnv, FactoryVectorEnv),
    "ExoCrowd-v0": (CrowdMDP, CrowdEnv, CrowdVectorEnv),
    "ExoSynthetic-v0": (SyntheticMDP, SyntheticEnv, SyntheticVectorEnv),
}


def odd_parameters(odd: Odd, env_id: str) -> dict[str, Any]:
    """Parameters of a domain, of which one or two are odd; whole numbers of any type too."""
    fields = dataclasses.fields(PARAMETERS[env_id])
    given: dict[str, Any] = {}
    for _ in range(1 + odd.below(2)):
        field = odd.pick(fields)
        value = odd.number_()
        if odd.chance(0.4):
            whole = int(odd.pick((0, 1, 2, 3, 4, 7, 100)))
            value = np.dtype(odd.pick(("i1", "u1", "i2", "i8", "u8", "f4"))).type(whole)
        if odd.chance(0.1):
            value = odd.pick((10**4, 10**6, 10**8, 0.3, 0.5, 1.0, "fixed", "movable"))
        given[field.name] = value
    return given


def _entry(env_id: str) -> Attempt:
    def run(odd: Odd) -> None:
        given = odd_parameters(odd, env_id)
        if odd.chance(0.1):
            given[odd.text() or "x"] = odd.number_()
        if odd.chance(0.2):
            given["render_mode"] = odd.pick(("ansi", "rgb_array", "x", None, "human "))
        if env_id in ("ExoFactory-v0", "ExoCrowd-v0") and odd.chance(0.2):
            given["render_backend"] = odd.pick(("flat", "x", None, 3))
        how = odd.below(4)
        model, env_class, vector_class = CLASSES[env_id]
        if how == 0:
            env = odd.call(gym.make, env_id, **given)
        elif how == 1:
            env = odd.call(
                gym.make_vec, env_id, num_envs=odd.sound_or(2, 0.8), **_vector(odd), **given
            )
        elif how == 2:
            env = odd.call(odd.pick((env_class, vector_class)), **given)
        else:
            own = {k: v for k, v in given.items() if not k.startswith("render")}
            mdp = odd.call(model, odd.call(PARAMETERS[env_id], **own))
            env = odd.must_work(ExoEnv, mdp)
        _play(odd, env, given)
        env.close()

    return entry(f"make/{env_id[3:-3].lower()}", weight=1.5)(run)


def _vector(odd: Odd) -> dict[str, Any]:
    if odd.chance(0.7):
        return {}
    if odd.chance(0.5):
        return {"max_episode_steps": odd.number_()}
    return {"autoreset_mode": odd.pick(("NextStep", "SameStep", "Disabled", "x", None, 3))}


def _play(odd: Odd, env: Any, given: dict[str, Any]) -> None:
    """What was accepted works, and is what was asked for."""
    odd.must_work(env.reset, seed=0)
    odd.must_work(env.step, env.action_space.sample())
    parameters = env.unwrapped.mdp.parameters
    for name, value in given.items():
        if hasattr(parameters, name):
            kept = getattr(parameters, name)
            same = kept == value or (isinstance(kept, float) and kept == float(value))
            if not same or isinstance(kept, np.generic):
                raise Wrong(f"{name}={value!r} is kept as {kept!r}, a {type(kept).__name__}")


for _env_id in PARAMETERS:
    _entry(_env_id)


@entry("make/ids", weight=0.3)
def ids(odd: Odd) -> None:
    """Ids that are none."""
    name = odd.pick(
        ("ExoGrid-v1", "ExoGrid", "Exo-v0", "", "ExoCrwd-v0", 3, None, "exo_envs:ExoGrid-v0")
    )
    odd.call(exo_envs.register_envs)
    odd.call(odd.pick((gym.make, gym.make_vec)), name)


@entry("make/shells")
def shells(odd: Odd) -> None:
    """The two shells over models that are none, with odd arguments."""
    mdp = odd.pick((Market(), Market, None, subjects.model("blind"), subjects.model("adapted")))
    mode = odd.pick((None, None, "ansi", "rgb_array", "human", "x", 3, ["ansi"]))
    if odd.chance(0.5):
        env = odd.call(ExoEnv, mdp, mode, viewer=odd.sound_or(None, 0.9))
    else:
        given = _vector(odd)
        lanes = odd.sound_or(2, 0.5)
        env = odd.call(ExoVectorEnv, mdp, lanes, render_mode=mode, **given)
    odd.must_work(env.reset, seed=0)
    odd.must_work(env.step, env.action_space.sample())
    env.close()


@entry("make/adapted", weight=1.0)
def adapted(odd: Odd) -> None:
    """The adapter's arguments."""
    calls = (
        None,
        lambda *_: None,
        lambda *_: ([0], [0, 0]),
        3,
        lambda *_: ([9], [9, 9]),
        lambda: 0,
    )
    variables = (
        None,
        ["a"],
        [Variable("a", 4)],
        [],
        3,
        ["a", "a"],
        [Variable("a", 2)] * 2,
        "ab",
        ("x", "y"),
    )
    given: dict[str, Any] = {"horizon": odd.sound_or(5, 0.8), "discount": odd.sound_or(0.9, 0.8)}
    for name, choices in (
        *(("split", calls), ("get_state", calls), ("set_state", calls)),
        *(("endogenous_variables", variables), ("exogenous_variables", variables)),
        (
            "reference",
            (None, ([0], [0, 0]), ([9], [0, 0]), 3, State(np.zeros(1, int), np.zeros(2, int))),
        ),
    ):
        if odd.chance(0.3):
            given[name] = odd.pick(choices)
    given["reference_action"] = odd.sound_or(0, 0.8)
    samples = odd.sound_or(1, 0.8)
    too_many = isinstance(samples, (int, np.integer)) and samples > 20
    given["reward_samples"] = 2 if too_many else samples
    env = odd.pick(
        (Harbour(), Harbour(), Harbour(), None, subjects.env("ExoGrid-v0"), gym.make("CartPole-v1"))
    )
    mdp = odd.call(AdaptedMDP, env, **given)
    state = odd.must_work(mdp.sample_initial, 3, np.random.default_rng(0))
    odd.call(mdp.sample_next, state, np.zeros(3, dtype=np.int64), np.random.default_rng(0))
    odd.call(mdp.observed_step, state, odd.sound_or(np.zeros(3, int)), np.random.default_rng(0))
    odd.must_work(mdp.close)


@entry("make/values", weight=0.5)
def values(odd: Odd) -> None:
    """Small values that models are written with."""
    kind = odd.below(6)
    if kind == 0:
        made = odd.call(Variable, odd.sound_or("x"), odd.sound_or(3))
        if type(made.size) is not int or not isinstance(made.name, str):
            raise Wrong(f"{made!r} keeps a size of type {type(made.size).__name__}")
    elif kind == 1:
        odd.call(Successors.certain, odd.altered(np.zeros((2, 1), int), 2))
    elif kind == 2:
        odd.must_work(State, odd.anything(), odd.anything())
        odd.must_work(Transition, odd.anything(), 1, 2)
        odd.must_work(Successors, odd.anything(), 1)
    elif kind == 3:
        odd.must_work(ContractError, "rule", "message")
    elif kind == 4:
        odd.must_work(Snapshot, *(odd.anything() for _ in range(6)))
    else:
        mdp = subjects.model("synthetic")
        mask = odd_mask(odd, mdp.exogenous_names) if odd.chance(0.7) else None
        state = odd.pick((None, mdp.sample_initial(1, odd.rng), 3, ([0], [0]), {}))
        given = mdp if odd.chance(0.9) else odd.anything()
        odd.call(exact_return, given, mask, state=state, by_site=odd.sound_or(True))
