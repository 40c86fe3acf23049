"""Damaged and forged files of policies, models and masks: one clear error, or what was saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from exo_envs import ExoMDP
from planners import Policy, ReducedMDP
from planners.core.files import HEAD_NAME, checksum_of, read_text, replacing
from planners.discretization.coarse import BinnedPolicy
from planners.forecasting.planner import ForecastPolicy
from planners.reduced.reduced_mdp import TabulatedReducedMDP
from planners.value_iteration.tabular_policy import TabularPolicy
from reliability import subjects
from reliability.odd import EDGES, NOT_WHOLE, Odd, UserError, Wrong
from reliability.registry import Attempt, entry
from reliability.user_models import Market
from wrappers import LearnedMask
from wrappers.fitting.saved import SavedMask

LOADERS: dict[str, Callable[[Path], Any]] = {
    "tabular": TabularPolicy.load,
    "forecast": ForecastPolicy.load,
    "tabulated": ReducedMDP.load,
    "blind": TabulatedReducedMDP.load,
    "binned": BinnedPolicy.load,
    "any": Policy.load,
    "mask": SavedMask.load,
    "learned": SavedMask.load,
}
#: What is saved for each; by default what has its name.
SAVED = {"any": "forecast"}


def _use(loaded: Any) -> None:
    """What was loaded is used at once: a forged file shows only then."""
    rng = np.random.default_rng(0)
    if isinstance(loaded, ExoMDP):
        state = loaded.sample_initial(4, rng)
        for _ in range(3):
            state = loaded.sample_next(state, np.zeros(4, dtype=np.int64), rng)
        loaded.reward(state, np.zeros(4, dtype=np.int64))
        loaded.endogenous_distribution(state, np.zeros(4, dtype=np.int64))
        loaded.describe()  # type: ignore[attr-defined]
    elif isinstance(loaded, SavedMask):
        loaded.check(Market())
    else:
        batch = subjects.sound_state(Market(), (8,), rng)
        if np.shape(loaded(batch)) != (8,):
            raise Wrong("a loaded policy does not answer for each observation")


def _damaged_bytes(odd: Odd, content: bytes) -> bytes:
    """Bytes flipped, cut, doubled, or other ones."""
    kind = odd.below(6)
    data = bytearray(content)
    if kind == 0:
        return bytes(data[: odd.below(len(data))])
    if kind == 1:
        return bytes(data) + bytes(odd.rng.integers(256, size=odd.below(50)).astype(np.uint8))
    if kind == 2:
        return odd.pick((b"", b"\0" * 100, b"\2" + b"\0" * 7 + b"{}", b"{}", b"[1]", b"null", b"x"))
    for _ in range(1 + odd.below(8)):
        data[odd.below(len(data))] = odd.below(256)
    return bytes(data)


def _forged_file(odd: Odd, content: bytes) -> bytes:
    """A whole file with a checksum that is right, of which one array or number is another."""
    head, arrays = _parts(content)
    if not arrays or odd.chance(0.3):
        head = _forged_json(odd, head)
    else:
        name = odd.pick(sorted(arrays))
        arrays[name] = _forged_array(odd, arrays[name])
    if arrays and odd.chance(0.1):
        arrays.pop(odd.pick(sorted(arrays)))
    if odd.chance(0.05):
        arrays["another"] = np.arange(3)
    text = json.dumps(head)
    return save(arrays, {HEAD_NAME: f"{checksum_of(text, arrays):08x} {text}"})


def _parts(content: bytes) -> tuple[Any, dict[str, Any]]:
    """The head of a file, and its arrays by name."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"][HEAD_NAME].partition(" ")[2]), load(content)


def _forged_array(odd: Odd, array: Any) -> Any:
    kind = odd.below(8)
    if kind < 4 and array.size and array.dtype.kind in "iuf":
        out = array.copy()
        with np.errstate(all="ignore"):
            values = np.array([-1, 1, 10**9, -(10**9), 2**40, 127, 255, 0.5, np.nan, np.inf])
            where = odd.rng.integers(out.size, size=1 + odd.below(4))
            out.reshape(-1)[where] = odd.rng.choice(values, size=len(where)).astype(out.dtype)
        return out
    if kind == 4:
        return array.astype(odd.pick(("f8", "i1", "u1", "i8", "?", "f4", "f2", "c8")))
    if kind == 5:
        flat = array.reshape(-1)
        return odd.pick((flat, flat[:-1], array[None], flat[:0], np.concatenate([flat, flat])))
    if kind == 6:
        return np.zeros(odd.pick(((), (0,), (3, 3), (10**6,))), dtype=array.dtype)
    return odd.pick(
        (array[::-1].copy() if array.ndim else array, -array if array.dtype.kind in "if" else array)
    )


def _forged_json(odd: Odd, value: Any) -> Any:
    """The same JSON with one thing somewhere inside replaced."""
    if isinstance(value, dict) and value and odd.chance(0.9):
        key = odd.pick(sorted(value))
        changed = dict(value)
        if odd.chance(0.1):
            changed.pop(key)
        elif odd.chance(0.05):
            changed[odd.text()] = changed.pop(key)
        else:
            changed[key] = _forged_json(odd, value[key])
        return changed
    if isinstance(value, list) and value and odd.chance(0.9):
        place = odd.below(len(value))
        kept = [*value[:place], *value[place + 1 :]]
        if odd.chance(0.1):
            return kept
        if odd.chance(0.1):
            return [*value, value[place]]
        return [*value[:place], _forged_json(odd, value[place]), *value[place + 1 :]]
    return _other_value(odd, value)


def _other_value(odd: Odd, value: Any) -> Any:
    if isinstance(value, (int, float)) and odd.chance(0.5):
        return odd.pick((value + 1, value - 1, -value, value * 10**6, 2 * value))
    if isinstance(value, str) and odd.chance(0.5):
        return odd.text()
    plain = (bool, int, float, str, type(None), list, dict)
    return odd.pick([v for v in (*EDGES, *NOT_WHOLE) if isinstance(v, plain)])


def _try_file(odd: Odd, kind: str) -> None:
    saved = subjects.saved(SAVED.get(kind, kind))
    content = saved.read_bytes()
    path = subjects.folder() / f"tried-{kind}"
    how = odd.below(10)
    if how == 0:
        _use(odd.must_work(LOADERS[kind], saved))
        return
    if how == 1:
        given = (
            subjects.folder(),
            path.with_name("none"),
            "",
            3,
            None,
            b"x",
            subjects.saved("mask"),
        )
        other = subjects.saved(odd.pick([name for name in LOADERS if name != "any"]))
        other = other if odd.chance(0.5) else odd.pick(given)
        odd.call(LOADERS[kind], other)
        return
    if how < 5:
        path.write_bytes(_damaged_bytes(odd, content))
    elif kind == "mask":
        path.write_text(json.dumps(_forged_json(odd, json.loads(content))), encoding="utf-8")
    else:
        path.write_bytes(_forged_file(odd, content))
    loaded = odd.call(LOADERS[kind], path)
    odd.call(_use, loaded)


def _entry(kind: str) -> Attempt:
    def run(odd: Odd) -> None:
        _try_file(odd, kind)

    return entry(f"files/{kind}", weight=1.5)(run)


for _kind in LOADERS:
    _entry(_kind)


@entry("files/wrapper")
def wrapper(odd: Odd) -> None:
    """``LearnedMask.load`` of files that are damaged, or of another model."""
    env = subjects.env(odd.pick(("market", "ferry", "grid")))
    path = subjects.folder() / "tried-wrapper"
    with_policy = odd.chance(0.5)
    content = subjects.saved("learned" if with_policy else "mask").read_bytes()
    if odd.chance(0.3):
        content = _damaged_bytes(odd, content)
    elif with_policy:
        content = _forged_file(odd, content) if odd.chance(0.8) else content
    elif odd.chance(0.7):
        content = json.dumps(_forged_json(odd, json.loads(content))).encode()
    path.write_bytes(content)
    if odd.chance(0.1):
        odd.call(read_text, path, odd.pick(("mask", "x", "", "header")))
    loaded = odd.call(LearnedMask.load, env, path)
    observation, _ = odd.must_work(loaded.reset, seed=0)
    if loaded.policy is not None:
        odd.call(loaded.policy, observation)


@entry("files/saving", weight=0.5)
def saving(odd: Odd) -> None:
    """Saving to places that are none."""
    here = subjects.folder()
    path = odd.pick(
        (here, here / "none" / "x", here / "ok", str(here / "ok"), 3, None, "", "/", b"x")
    )
    kind = odd.below(4)
    if kind == 0:
        odd.call(subjects.policy(odd.pick(("tabular", "forecast"))).save, path)
    elif kind == 1:
        odd.call(subjects.learner().save, path)
    elif kind == 2:
        odd.call(subjects.model("tabulated").save, path)
    else:
        _replace(odd, path)


def _replace(odd: Odd, path: Any) -> None:
    with odd.call(replacing, path) as part:
        if odd.chance(0.5):
            raise UserError("while writing")
        part.write_text("x", encoding="utf-8")
