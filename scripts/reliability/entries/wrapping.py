"""Wrappers: masks in every odd form, odd environments underneath, flat observations."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs import ExoEnv, ExoVectorEnv
from reliability import subjects
from reliability.entries.learners import odd_mask
from reliability.odd import Odd, Wrong
from reliability.registry import entry
from reliability.user_models import Ferry, Harbour, Market
from wrappers import (
    CalibratedMaskLearner,
    FlatObservation,
    FlatVectorObservation,
    LearnedMask,
    MaskedObservation,
    MaskedVectorObservation,
)
from wrappers.observation.flat import Encoding

NAMES = Market().exogenous_names


def _single(odd: Odd) -> Any:
    made = (ExoEnv(Market()), ExoEnv(Market()), ExoEnv(Ferry()), Harbour())
    other = (None, Market(), ExoVectorEnv(Market(), 2), subjects.env("ExoGrid-v0"))
    return odd.pick(made) if odd.chance(0.8) else odd.pick((*other, gym.make("CartPole-v1")))


def _vector(odd: Odd) -> Any:
    mode = odd.pick(("NextStep", "SameStep", "Disabled"))
    made = ExoVectorEnv(odd.pick((Market, Ferry))(), 2, autoreset_mode=mode)
    return made if odd.chance(0.8) else odd.pick((None, Market(), ExoEnv(Market())))


@entry("wrappers/masked")
def masked(odd: Odd) -> None:
    """A mask around one environment, and maybe another one around that."""
    env = odd.call(
        MaskedObservation, _single(odd), odd_mask(odd, NAMES), show_mask=odd.sound_or(True)
    )
    if odd.chance(0.3):
        env = odd.call(MaskedObservation, env, odd_mask(odd, env.mask))
    odd.must_work(env.reset, seed=0)
    odd.must_work(env.step, 0)
    if odd.chance(0.3):
        odd.must_work(copy.deepcopy, env)
    if isinstance(env.unwrapped, ExoEnv):
        odd.must_work(env.render)
    odd.call(env.observation, odd.pick(({}, None, {"exogenous": [0, 0, 0]}, {"exogenous": 3}, 3)))


@entry("wrappers/masked-vector")
def masked_vector(odd: Odd) -> None:
    """The vector twin."""
    env = odd.call(MaskedVectorObservation, _vector(odd), odd_mask(odd, NAMES))
    odd.must_work(env.reset, seed=0)
    call = odd.call if env.metadata["autoreset_mode"].value == "Disabled" else odd.must_work
    for _ in range(7):
        call(env.step, np.zeros(2, dtype=np.int64))
    odd.must_work(env.render)
    odd.call(env.reset, seed=odd.sound_or(1), options=odd.pick((None, {"state": 3}, {"x": 1}, {})))


@entry("wrappers/flat")
def flat(odd: Odd) -> None:
    """Flat observations of one environment or of many."""
    kind = odd.pick(("one-hot", "scaled", "one-hot", "x", None, 3, "onehot", []))
    dtype = odd.pick(
        ("float32", "f2", "f8", "u1", "i8", "x", None, "O", "c8", "U3", bool, int, ">f4", 3)
    )
    if odd.chance(0.5):
        env = odd.call(FlatObservation, _single(odd), kind, dtype=dtype)
        odd.must_work(env.reset, seed=0)
        odd.must_work(env.step, 0)
        return
    under: Any = _vector(odd)
    shown = under
    if odd.chance(0.3) and isinstance(under, ExoVectorEnv):
        shown = MaskedVectorObservation(under, [0])
    env = odd.call(FlatVectorObservation, shown, kind, dtype=dtype)
    odd.must_work(env.reset, seed=0)
    call = odd.call if under.autoreset_mode.value == "Disabled" else odd.must_work
    for _ in range(7):
        call(env.step, np.zeros(2, dtype=np.int64))


@entry("wrappers/flat-ends", weight=0.3)
def flat_ends(odd: Odd) -> None:
    """The last observations of episodes, flat, in steps that begin the next one at once."""
    inner = ExoVectorEnv(odd.pick((Market, Ferry))(), 2, autoreset_mode="SameStep")
    env = FlatVectorObservation(inner, odd.pick(("one-hot", "scaled")))
    odd.must_work(env.reset, seed=odd.below(100))
    steps = [odd.must_work(env.step, np.zeros(2, int)) for _ in range(inner.mdp.horizon)]
    if not any("final_obs" in infos for *_, infos in steps):
        raise Wrong("an episode is over, and nobody says how it ended")


@entry("wrappers/encoding")
def encoding(odd: Odd) -> None:
    """Encodings of odd spaces and odd observations."""
    whole = spaces.MultiDiscrete
    space: Any = odd.pick(
        (
            spaces.Dict(endogenous=whole([3]), exogenous=whole([2, 4])),
            spaces.Dict(endogenous=whole([3]), exogenous=whole([2, 4])),
            spaces.Dict(exogenous=whole([4, 3], start=[-1, 0])),
            spaces.Dict(a=spaces.Discrete(3, start=2)),
            spaces.Dict(a=spaces.Box(0, 1, (2,))),
            spaces.Dict(),
            spaces.Dict(exogenous=whole([2**31])),
            spaces.Dict(exogenous=whole([[2, 2], [2, 2]])),
            spaces.Discrete(3),
            None,
            3,
        )
    )
    made = odd.call(
        Encoding.of, space, odd.pick(("one-hot", "scaled", "x")), odd.pick(("f4", "u1", "x"))
    )
    observation: Any = {"endogenous": np.zeros(1, int), "exogenous": np.zeros(2, int)}
    if odd.chance(0.8):
        key = odd.pick(("endogenous", "exogenous"))
        size = {"endogenous": [3], "exogenous": [2, 4]}[key]
        observation[key] = odd.damaged(observation[key], size)
    odd.must_work(lambda: made.space)
    odd.call(made, observation if odd.chance(0.9) else odd.anything())


@entry("wrappers/learned", limit=60.0)
def learned(odd: Odd) -> None:
    """``LearnedMask``: learners that are none, masks that were given, copies, files."""
    learner: Any = CalibratedMaskLearner(**subjects.TINY)
    if odd.chance(0.3):
        learner = odd.pick(
            (None, CalibratedMaskLearner, subjects.learner(), 3, "calibrated", object())
        )
    given: dict[str, Any] = {}
    if odd.chance(0.5):
        given["mask"] = odd_mask(odd, NAMES)
        learner = learner if odd.chance(0.2) else None
    if learner is None and "mask" not in given:
        given["mask"] = (0,)  # the default learner takes seconds
    env = odd.call(LearnedMask, _single(odd), learner, odd.sound_or(0, 0.8), **given)
    odd.must_work(env.reset, seed=0)
    odd.must_work(env.step, 0)
    twin = odd.must_work(copy.deepcopy, env)
    odd.must_work(lambda: twin.policy)
    odd.call(env.save, subjects.folder() / "learned")
    if odd.chance(0.2):
        odd.call(lambda: env.cost_of_ignoring)
