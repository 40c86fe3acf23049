"""Answers of the wrong value, shape or type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exo_envs import ExoMDP, State
from reliability.bugs.bug import MODELS, Bug, Change, changed, whole_answer
from reliability.user_models import Changed, Ferry, Market

METHODS = ("sample_exogenous", "sample_endogenous")
#: Which part of an answer is spoiled: (method, part).
PARTS = (
    ("sample_initial", "endogenous"),
    ("sample_initial", "exogenous"),
    ("sample_exogenous", "exogenous"),
    ("sample_endogenous", "endogenous"),
)


def _edited(method: str, part: str, edit: Callable[[Any, Any], Any]) -> Change:
    """Edit one part of an answer; ``edit`` takes its array and the model."""

    def change(model: Any, _: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        answer = right()
        if method != "sample_initial":
            return edit(np.array(answer), model)
        edited = edit(np.array(getattr(answer, part)), model)
        return answer._replace(**{part: edited})

    return change


def _sizes(model: ExoMDP, part: str) -> Any:
    return np.array([variable.size for variable in getattr(model, f"{part}_variables")])


def _first_name(model: type[ExoMDP], part: str) -> str:
    return getattr(model, f"{part}_variables")[0].name


def _bugs_of_values() -> Iterator[Bug]:
    offsets: dict[str, Callable[[Any, int], Any]] = {
        "one too high": lambda values, size: np.where(values == size - 1, size, values),
        "below zero": lambda values, size: np.where(values == 0, -1, values),
        "far out": lambda values, size: np.full_like(values, 2**40),
        "one-based": lambda values, size: values + 1,
    }
    for kind, offset in offsets.items():
        for method, part in PARTS:
            for model in MODELS:
                if kind == "one-based" and method == "sample_initial":
                    continue
                yield _bug_of_values(kind, model, method, part, _shifted(part, offset))
    for method, part in PARTS:
        for model in MODELS:
            yield _bug_of_values("now and then", model, method, part, _rarely(part))


def _shifted(part: str, offset: Callable[[Any, int], Any]) -> Callable[[Any, Any], Any]:
    def edit(values: Any, model: Any) -> Any:
        size = int(_sizes(model, part)[0])
        # The last variable of n may never reach its end, so all of the first are moved there.
        values[..., 0] = offset(np.where(values[..., 0] >= 0, values[..., 0], 0), size)
        if (values[..., 0] < size).all() and (values[..., 0] >= 0).all():
            values[..., 0] = offset(np.full_like(values[..., 0], size - 1), size)
        return values

    return edit


def _rarely(part: str) -> Callable[[Any, Any], Any]:
    rng = np.random.default_rng(0)

    def edit(values: Any, model: Any) -> Any:
        now = rng.random(values.shape[:-1]) < 0.01
        values[..., 0] = np.where(now, _sizes(model, part)[0], values[..., 0])
        return values

    return edit


def _bug_of_values(
    kind: str, model: type[ExoMDP], method: str, part: str, edit: Callable[[Any, Any], Any]
) -> Bug:
    changes = {method: _edited(method, part, edit)}
    name = _first_name(model, part)
    variant = f"{method} of {model.__name__}, {part}"
    return Bug(kind, variant, lambda: Changed(model(), **changes), (method, repr(name)))


def _bugs_of_walks() -> Iterator[Bug]:
    """The commonest mistake there is: a random walk without ``clip``."""
    for model, name in ((Market, "price"), (Ferry, "wind")):
        for words, steps in (("both ways", (-1, 2)), ("up", (0, 2)), ("down", (-1, 1))):
            make = _walking(model, *steps)
            yield Bug("walk", f"{model.__name__}, {words}", make, ("sample_exogenous", f"'{name}'"))


def _walking(model: type[ExoMDP], low: int, high: int) -> Callable[[], ExoMDP]:
    def walk(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        exogenous, rng = args
        following = np.array(right())
        following[..., 0] = exogenous[..., 0] + rng.integers(low, high, exogenous.shape[:-1])
        return following

    return lambda: Changed(model(), sample_exogenous=walk)


SHAPES: dict[str, Callable[[Any], Any]] = {
    "one column too many": lambda a: np.concatenate([a, a[..., :1]], axis=-1),
    "one column too few": lambda a: a[..., 1:],
    "without columns": lambda a: a[..., 0],
    "one axis too many": lambda a: a[..., None],
    "columns first": lambda a: np.moveaxis(a, -1, 0) if a.ndim > 1 else a[None],
}
TYPES: dict[str, Callable[[Any], Any]] = {
    "floats": lambda a: a.astype(np.float64),
    "fractions": lambda a: a + 0.5,
    "objects": lambda a: a.astype(object),
    "a list": lambda a: a.tolist(),
    "nothing": lambda a: None,
}


def _bugs_of_form() -> Iterator[Bug]:
    for kind, edits in (("shape", SHAPES), ("type", TYPES)):
        for name, edit in edits.items():
            for method in METHODS:
                for model in MODELS:
                    yield changed(kind, f"{name} from {method}", model, method, whole_answer(edit))
    for name, edit in {**SHAPES, "floats": TYPES["floats"], "a list": TYPES["a list"]}.items():
        for method, part in PARTS[:2]:
            change = _edited(method, part, lambda a, _, edit=edit: edit(a))
            yield changed("initial", f"{name}, {part}", Market, method, change)
    whole: dict[str, Change] = {
        "a plain tuple": lambda _, __, right: tuple(right()),
        "a dict": lambda _, __, right: right()._asdict(),
        "nothing": lambda *_: None,
        "one lane whatever the size": lambda _, __, right: State(*(a[:1] for a in right())),
        "parts swapped": lambda _, __, right: State(*reversed(right())),
    }
    for name, change in whole.items():
        yield changed("initial", name, Market, "sample_initial", change)


ANSWERS: tuple[Bug, ...] = (*_bugs_of_values(), *_bugs_of_walks(), *_bugs_of_form())
