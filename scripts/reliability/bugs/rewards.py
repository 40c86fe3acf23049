"""Rewards, ends and distributions that are none, and rewards that couple variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exo_envs import Successors
from reliability.bugs.bug import MODELS, Bug, Change, changed, whole_answer
from reliability.user_models import Ferry


def _somewhere(value: float) -> Callable[[Any], Any]:
    """One value in the middle of a batch, or the only one."""

    def edit(array: Any) -> Any:
        flat = np.array(array, dtype=np.float64)
        flat[...] = np.where(flat == flat.max(), value, flat)
        return flat

    return edit


def _bugs_of_rewards() -> Iterator[Bug]:
    for model in MODELS:
        for method in ("reward_terms", "endogenous_reward"):
            for value in (math.nan, math.inf, -math.inf):
                change = whole_answer(_somewhere(value))
                variant = f"{value} from {method}"
                yield changed("not finite", variant, model, method, change, rf"{method}|reward")
        shapes: dict[str, Callable[[Any], Any]] = {
            "summed already": lambda a: a.sum(axis=-1),
            "one column": lambda a: a.sum(axis=-1, keepdims=True),
            "one column too many": lambda a: np.concatenate([a, a[..., :1]], axis=-1),
            "a list": lambda a: a.tolist(),
            "nothing": lambda a: None,
        }
        for name, edit in shapes.items():
            yield changed("terms", name, model, "reward_terms", whole_answer(edit))
        for name, edit in {
            "one axis too many": lambda a: a[..., None],
            "a matrix": lambda a: np.zeros((*a.shape, 3)),
            "nothing": lambda a: None,
        }.items():
            yield changed("reward", name, model, "endogenous_reward", whole_answer(edit))
        for name, edit in {
            "one axis too many": lambda a: a[..., None],
            "whole numbers": lambda a: a.astype(np.int64),
            "a list": lambda a: a.tolist(),
            "nothing": lambda a: None,
        }.items():
            yield changed("end", name, model, "is_terminal", whole_answer(edit))


def _bugs_of_coupling() -> Iterator[Bug]:
    def product(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        x, terms = args[0].exogenous, np.array(right())
        terms[..., 0] = (1.0 + x[..., 0]) * x[..., 1]
        return terms

    def both(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        x, terms = args[0].exogenous, np.array(right())
        terms[..., 1] = 5.0 * ((x[..., 0] > 0) & (x[..., 1] > 0))
        return terms

    def differ(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        x, terms = args[0].exogenous, np.array(right())
        terms[..., 0] = x[..., 0] % 2 != x[..., 1] % 2
        return terms

    for model in MODELS:
        names = model().exogenous_names
        for variant, change, place in (
            ("product", product, 0),
            ("and", both, 1),
            ("xor", differ, 0),
        ):
            words = ("term", repr(names[place]))
            yield changed("coupling", variant, model, "reward_terms", change, *words)


def _bugs_of_distributions() -> Iterator[Bug]:
    changes: dict[str, Callable[[Successors], Any]] = {
        "sums to 2": lambda s: Successors(s.endogenous, 2 * s.probabilities),
        "negative": lambda s: Successors(s.endogenous, s.probabilities * [2, -1] + [0, 0]),
        "out of range": lambda s: Successors(s.endogenous + 5, s.probabilities),
        "without columns": lambda s: Successors(s.endogenous[..., 0], s.probabilities),
        "not finite": lambda s: Successors(s.endogenous, s.probabilities * math.nan),
        "an array": lambda s: s.probabilities,
    }
    for variant, edit in changes.items():
        change = _distribution(edit)
        name = "endogenous_distribution"
        yield changed("distribution", variant, Ferry, name, change, name)


def _distribution(edit: Callable[[Successors], Any]) -> Change:
    return lambda _, __, right: edit(right())


REWARDS: tuple[Bug, ...] = (*_bugs_of_rewards(), *_bugs_of_coupling(), *_bugs_of_distributions())
