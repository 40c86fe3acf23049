"""Environments that are used oddly: resets, steps, snapshots, pictures, lanes."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from exo_envs import ExoEnv, ExoVectorEnv, State
from exo_envs.shells.env import Snapshot
from reliability import subjects
from reliability.entries.learners import odd_mask
from reliability.odd import Odd, Wrong
from reliability.registry import Attempt, entry
from reliability.user_models import Market
from wrappers.sb3 import GatedExtractor, SB3VecEnv

SUBJECTS = (*subjects.IDS, "market", "ferry", "blind", "adapted")


def odd_state(odd: Odd, mdp: Any, shape: tuple[int, ...]) -> Any:
    """A state for a reset, sound or damaged, in any of the forms that are taken."""
    n, x = subjects.sound_state(mdp, shape, odd.rng)
    if odd.chance(0.4):
        n = odd.damaged(n, mdp.endogenous_sizes)
    elif odd.chance(0.5):
        x = odd.damaged(x, mdp.exogenous_sizes)
    forms = (State(n, x), {"endogenous": n, "exogenous": x}, (n, x), [n, x], {"endogenous": n})
    return odd.pick((*forms, *forms[:3], *forms[:3], odd.anything(), {**forms[1], "x": 1}))


def odd_options(odd: Odd, mdp: Any, lanes: int | None) -> Any:
    """Options of a reset."""
    shape = () if lanes is None or odd.chance(0.3) else (lanes,)
    options: Any = {"state": odd_state(odd, mdp, shape)}
    if odd.chance(0.3):
        options = odd.pick((None, {}, {"x": 1}, 3, "state", [], {"state": None}, {3: 4}))
    if lanes is not None and odd.chance(0.4) and isinstance(options, dict):
        masks = (
            np.ones(lanes, bool),
            np.zeros(lanes, bool),
            [True] * lanes,
            None,
            np.ones(2, bool),
        )
        options = {
            **options,
            "reset_mask": odd.pick((*masks, np.ones(lanes), np.ones((lanes, 1), bool))),
        }
    return options


def odd_seed(odd: Odd) -> Any:
    """A seed of a reset."""
    return odd.pick((None, None, 0, 3, -1, 1.5, "0", 2**70, True, np.int64(3), [1, 2, 3], np.nan))


def forged(odd: Odd, snapshot: Snapshot, mdp: Any, shape: tuple[int, ...]) -> Any:
    """A snapshot with one part replaced."""
    if odd.chance(0.1):
        return odd.anything()
    choices: dict[str, Any] = {
        "state": lambda: odd_state(odd, mdp, shape),
        "elapsed_steps": lambda: odd.pick(
            (odd.anything(), np.full(shape, -5), np.zeros(shape), 10**9)
        ),
        "noise": odd.anything,
        "np_random": lambda: odd.pick((np.random.default_rng(3), odd.anything())),
        "np_random_seed": odd.anything,
        "ended": lambda: odd.pick((odd.anything(), np.ones(shape, bool), np.zeros(2, bool))),
    }
    name = odd.pick(sorted(choices))
    return dataclasses.replace(snapshot, **{name: choices[name]()})


def _single(name: str) -> Attempt:
    def run(odd: Odd) -> None:
        env = subjects.make_env(name)
        env.reset(seed=0)
        inner = env.unwrapped
        for _ in range(1 + odd.below(4)):
            _one_use(odd, env, inner)
        odd.must_work(env.reset, seed=1)
        odd.must_work(env.step, 0)

    return entry(f"shells/{name.lower().removesuffix('-v0')}", weight=0.7)(run)


def _one_use(odd: Odd, env: Any, inner: ExoEnv) -> None:
    """One of the things that people do with an environment."""
    odd.pick(USES)(odd, env, inner)


def _reset(odd: Odd, env: Any, inner: ExoEnv) -> None:
    odd.call(env.reset, seed=odd_seed(odd), options=odd_options(odd, inner.mdp, None))


def _step(odd: Odd, env: Any, inner: ExoEnv) -> None:
    """A step that is refused leaves the environment as it was."""
    before = inner.get_state()
    try:
        odd.call(env.step, odd.sound_or(odd.below(inner.mdp.num_actions)))
    except Exception:
        if not all(map(np.array_equal, before.state, inner.get_state().state)):
            raise Wrong("a step that was refused changed the state") from None
        raise


def _go_back(odd: Odd, env: Any, inner: ExoEnv) -> None:
    odd.call(inner.set_state, forged(odd, inner.get_state(), inner.mdp, ()))
    odd.call(env.step, 0)


def _show_mask(odd: Odd, _: Any, inner: ExoEnv) -> None:
    odd.call(inner.show_mask, odd_mask(odd, inner.mdp.exogenous_names))
    odd.must_work(inner.show_mask, None)


def _copy(odd: Odd, _: Any, inner: ExoEnv) -> None:
    twin = odd.must_work(copy.deepcopy, inner)
    if inner.mdp.is_batched:
        odd.must_work(pickle.dumps, inner)
        ours, theirs = inner.step(0)[0], twin.step(0)[0]
        if not all(np.array_equal(ours[key], theirs[key]) for key in ours):
            raise Wrong("a copy goes on otherwise")


def _look(odd: Odd, _: Any, inner: ExoEnv) -> None:
    odd.must_work(lambda: (inner.state, inner.get_state(), inner.action_space, str(inner)))
    odd.must_work(inner.render)


USES = (_reset, _step, _step, _go_back, _show_mask, _copy, _look)

for _name in SUBJECTS:
    _single(_name)


@entry("shells/vector", weight=2.0)
def vector(odd: Odd) -> None:
    """Many lanes: options, actions, masks of lanes, snapshots."""
    name = odd.pick((*subjects.IDS, "market", "ferry"))
    env: ExoVectorEnv = subjects.make_vector_env(name)
    env.reset(seed=0)
    for _ in range(1 + odd.below(4)):
        kind = odd.below(6)
        if kind == 0:
            odd.call(env.reset, seed=odd_seed(odd), options=odd_options(odd, env.mdp, 3))
        elif kind == 1:
            sound = odd.rng.integers(env.mdp.num_actions, size=3)
            odd.call(env.step, odd.damaged(sound, env.mdp.num_actions))
        elif kind == 2:
            odd.must_work(env.reset, seed=0)
            for _ in range(3):
                odd.must_work(env.step, odd.rng.integers(env.mdp.num_actions, size=3))
        elif kind == 3:
            odd.call(env.set_state, forged(odd, env.get_state(), env.mdp, (3,)))
            odd.call(env.step, np.zeros(3, dtype=np.int64))
        elif kind == 4:
            odd.must_work(lambda: (env.state, env.render(), copy.deepcopy(env)))
        else:
            odd.call(env.step, odd.anything())
    odd.must_work(env.reset, seed=0)
    odd.must_work(env.step, np.zeros(3, dtype=np.int64))


@entry("shells/unreset", weight=0.3)
def unreset(odd: Odd) -> None:
    """Everything before the first reset."""
    if odd.chance(0.5):
        env: Any = ExoEnv(Market(), "ansi")
        odd.must_fail(odd.pick((lambda: env.step(0), env.get_state, env.render, lambda: env.state)))
    mode = odd.pick(list(AutoresetMode))
    env = ExoVectorEnv(Market(), 2, render_mode="ansi", autoreset_mode=mode)
    if odd.chance(0.5):
        env = subjects.env(odd.pick(subjects.IDS)).unwrapped
        odd.must_work(env.close)
        odd.must_work(env.reset)
        return
    asked = (lambda: env.step([0, 0]), env.get_state, env.render, lambda: env.state)
    odd.must_fail(odd.pick((*asked, lambda: env.reset(options={"reset_mask": np.ones(2, bool)}))))


@entry("shells/sb3", weight=1.0)
def sb3(odd: Odd) -> None:
    """The vector environment of Stable-Baselines3."""
    mode = odd.pick(("SameStep",) * 8 + ("NextStep", "Disabled"))
    env = ExoVectorEnv(odd.pick((Market(), subjects.model("grid"))), 2, autoreset_mode=mode)
    lanes = odd.call(SB3VecEnv, env if odd.chance(0.9) else odd.anything())
    odd.call(lanes.seed, odd.sound_or(0, 0.9))
    odd.call(lanes.set_options, odd.pick((None, {}, {}, [{}, {}], {"state": 3}, [{}], 3)))
    odd.call(lanes.reset)
    indices = odd.pick((None, 0, [0], [5], -1, "x", [1.5], slice(2)))
    kind = odd.below(7)
    if kind == 0:
        odd.call(lanes.step, odd.damaged(np.zeros(2, dtype=np.int64), 2))
    elif kind == 1:
        odd.call(lanes.set_attr, odd.pick(("y", "x")), 3, indices)
        with contextlib.suppress(AttributeError):  # which is what SB3 expects of one that is none
            odd.call(lanes.get_attr, odd.pick(("mdp", "x", "")), indices)
    elif kind == 2:
        with contextlib.suppress(AttributeError):
            odd.call(lanes.env_method, odd.pick(("close", "x", "get_state")), indices=indices)
    elif kind == 3:
        odd.call(lanes.env_is_wrapped, odd.pick((gym.Wrapper, int, 3)), indices)
        odd.call(lanes.get_images)
    elif kind == 4:
        odd.call(lanes.set_state, odd.pick((lanes.get_state(), odd.anything())))
    elif kind == 5:
        odd.must_work(lanes.step, np.zeros(2, dtype=np.int64))
        odd.must_work(lanes.close)
    else:
        space = odd.pick((gym.spaces.Box(0, 1, (6,)),) * 3 + (gym.spaces.Discrete(3), None))
        net = odd.call(GatedExtractor, space, odd.sound_or(2, 0.8), odd.sound_or(8, 0.8))
        _forward(odd, net)


def _forward(odd: Odd, net: Any) -> None:
    import torch

    odd.call(net, torch.zeros(2, 6))
