"""Models that remember, mix lanes, write to what is not theirs, declare nonsense, or raise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exo_envs import ExoMDP, State, Variable
from reliability.bugs.bug import MODELS, Bug, Change, changed
from reliability.odd import UserError, raise_user_error
from reliability.user_models import Changed, Ferry, Market

METHODS = ("sample_exogenous", "sample_endogenous")


def _counting(part: Callable[[Any, int], Any]) -> Change:
    """An answer that depends on how often the model was asked."""
    asked = 0

    def change(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        nonlocal asked
        asked += 1
        return part(np.array(right()), asked)

    return change


def _own_noise() -> Change:
    """Noise from a generator that the model keeps."""
    own = np.random.default_rng(0)

    def change(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        answer = np.array(right())
        return np.where(own.random(answer.shape) < 0.5, answer, 0)

    return change


def _written(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    answer = right()
    given = args[0].exogenous if isinstance(args[0], State) else args[0]
    given[...] = 0
    return answer


def _kept() -> Change:
    """The same array each time, which the caller may have written to."""
    kept: dict[tuple[int, ...], Any] = {}

    def change(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        answer = np.array(right())
        return kept.setdefault(answer.shape, answer)

    return change


def _of_first_lane(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    answer = np.array(right(), dtype=np.float64)
    return answer + np.arange(answer.size).reshape(answer.shape) if answer.ndim else answer


def _of_neighbours(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    answer = np.array(right(), dtype=np.float64)
    return answer - answer.mean(axis=0) if answer.ndim else answer


def _of_next_lane(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    """The first variable is that of the lane before."""
    answer = np.array(right())
    given = args[0].endogenous if isinstance(args[0], State) else args[0]
    if answer.ndim > 1:
        answer[..., 0] = np.roll(given[..., 0], 1, axis=0)
    return answer


def _of_all_lanes(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    """The first variable stays where it is while most lanes are low."""
    answer = np.array(right())
    given = args[0].endogenous if isinstance(args[0], State) else args[0]
    if given[..., 0].mean() < 1:
        answer[..., 0] = given[..., 0]
    return answer


def _of_place(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    """Noise that depends on the place in the batch, and on nothing else."""
    answer = np.array(right())
    answer[..., 0] = np.random.default_rng(0).integers(2, size=answer.shape[:-1])
    return answer


def _for_rows(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
    """Written for batches of one dimension."""
    given = args[0].exogenous if isinstance(args[0], State) else args[0]
    return np.where(given[:, :1] >= 0, right(), 0)


def _following_actions() -> dict[str, Change]:
    """The first variable of x is made of the last action."""
    last: list[Any] = []

    def remember(_: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        last[:] = [np.asarray(args[1])]
        return right()

    def follow(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        answer = np.array(right())
        if last and last[0].shape == answer.shape[:-1]:
            answer[..., 0] = last[0]
        return answer

    return {"sample_endogenous": remember, "sample_exogenous": follow}


def _bugs_of_lanes() -> Iterator[Bug]:
    for model in MODELS:
        for method in METHODS:
            for variant, change in (
                ("the lane before", _of_next_lane),
                ("the mean of the batch", _of_all_lanes),
                ("its place only", _of_place),
            ):
                yield changed("neighbours", f"{method} looks at {variant}", model, method, change)
            words = (method, r"x\[\.\.\., 0\]")
            yield changed("rows", f"{method} takes rows only", model, method, _for_rows, *words)


def _bugs_of_overriding() -> Iterator[Bug]:
    def reward(_: Any, state: State, __: Any) -> Any:
        return np.asarray(state.exogenous[..., 0] * state.exogenous[..., 1] * 1.0)

    def sample_next(self: Any, state: State, action: Any, rng: Any) -> State:
        exogenous = np.array(state.exogenous)
        exogenous[..., 1] = np.asarray(action) > 0
        return State(self.sample_endogenous(state, action, rng), exogenous)

    for model in MODELS:
        for override, advice in (
            (reward, "reward_terms.*reward_scopes"),
            (sample_next, "sample_endogenous"),
        ):
            name = override.__name__
            make = type(f"Own{model.__name__}", (model,), {name: override})
            yield Bug("override", f"{name} of {model.__name__}", make, (repr(name), advice))


def _bugs_of_memory() -> Iterator[Bug]:
    for model in MODELS:
        yield Bug(
            "memory",
            f"sample_exogenous follows the action ({model.__name__})",
            lambda model=model: Changed(model(), **_following_actions()),
            ("sample_exogenous", "after other questions"),
        )
    for model in MODELS:
        for method in ("reward_terms", "endogenous_reward"):
            change = _counting(lambda a, asked: a + asked)
            yield changed("memory", f"{method} counts calls", model, method, change)
        for method in METHODS:
            yield changed("memory", f"{method} has its own noise", model, method, _own_noise())
            yield changed("memory", f"{method} returns what it keeps", model, method, _kept())
            yield changed("arguments", f"{method} writes to x", model, method, _written)
        yield changed("arguments", "reward_terms writes to x", model, "reward_terms", _written)
        for variant, change in (("number", _of_first_lane), ("neighbours", _of_neighbours)):
            method = "endogenous_reward"
            yield changed("lanes", f"{method} looks at its {variant}", model, method, change)


def _bugs_of_declarations() -> Iterator[Bug]:
    declared: dict[str, tuple[Any, ...]] = {
        "discount": (0, 1.5, math.nan, -0.1, "0.9"),
        "horizon": (0, -1, 2.5, None),
        "num_actions": (0, -1, 2.5, None, "3"),
    }
    for name, values in declared.items():
        for value in values:
            yield _declared(Market, name, value, name)
    twice = (*Market.exogenous_variables[:2], Variable("price", 2))
    yield _declared(Market, "exogenous_variables", twice, "'price'")
    yield _declared(Market, "exogenous_variables", list(Market.exogenous_variables))
    yield _declared(Market, "exogenous_variables", ("price", "season", "news"))
    yield _declared(Market, "endogenous_variables", None)
    yield _declared(
        Ferry, "endogenous_variables", (Variable("wind", 3), Variable("fuel", 2)), "wind"
    )
    fewer = Market.exogenous_variables[:2]
    yield _declared(Market, "exogenous_variables", fewer, "sample_initial|sample_exogenous")
    more = (*Ferry.exogenous_variables, Variable("moon", 2))
    yield _declared(Ferry, "exogenous_variables", more, "sample_initial|sample_exogenous")


def _declared(model: type[ExoMDP], name: str, value: Any, *words: str) -> Bug:
    variant = f"{name} = {value!r} ({model.__name__})"[:90]
    changed = {name: value}
    return Bug("declaration", variant, lambda: Changed(model(), **changed), words or (name,))


def _bugs_that_raise() -> Iterator[Bug]:
    for model in MODELS:
        for method in ("sample_initial", "sample_exogenous", "sample_endogenous", "reward_terms"):
            yield Bug(
                "exception",
                f"{method} of {model.__name__}",
                lambda model=model, method=method: Changed(model(), **{method: raise_user_error}),
                ("the user's own code fails",),
                (UserError,),
            )


HABITS: tuple[Bug, ...] = (
    *_bugs_of_memory(),
    *_bugs_of_lanes(),
    *_bugs_of_overriding(),
    *_bugs_of_declarations(),
    *_bugs_that_raise(),
)
