"""What comes from the real world: real numbers, grids, records, and backtests of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from exo_envs import TraceMDP, Variable
from exo_envs.sources.tables.forecasts import FromColumns, Noisy, Perfect, Persistence
from exo_envs.sources.tables.functions import NamedColumns
from planners import backtest
from planners.backtesting import Backtest
from planners.discretization.bins import Bins, Grid, Responses
from planners.discretization.coarse import CoarseMDP
from reliability import subjects
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import battery_on_record, price_table


@entry("real/declarations")
def declarations(odd: Odd) -> None:
    """Real variables, and what models say of themselves."""
    kind = odd.below(3)
    if kind == 0:
        made = odd.call(Variable, "price", low=odd.sound_or_real(0.0), high=odd.sound_or_real(9.0))
        odd.must_work(lambda: (made.bounds, made.is_real, made.range, repr(made)))
    elif kind == 1:
        odd.call(Variable, "price", odd.number_(), odd.number_(), odd.anything())
    else:
        mdp = subjects.model(odd.pick(("battery", "planted-real", "trace", "market", "factored")))
        odd.must_work(lambda: (mdp.reward_scopes, mdp.scope_indices, mdp.held_out, repr(mdp)))
        odd.must_work(lambda: [mdp.ranges_of(part).dtype for part in ("endogenous", "exogenous")])
        odd.must_work(lambda: (mdp.dtype_of("exogenous"), mdp.declare_as(mdp)))
        state, following = odd.must_work(mdp.trajectories, 2, 3, np.random.default_rng(0))
        odd.must_work(lambda: (state, list(following)))


@entry("real/grids")
def grids(odd: Odd) -> None:
    """Points and bins of real variables."""
    mdp = subjects.model("battery")
    coarse: CoarseMDP = subjects.model("battery-coarse")
    *_, grid = coarse.bins
    kind = odd.below(7)
    if kind == 0:
        made = odd.call(Grid, "charge", odd.altered(np.arange(4.0), 4).astype(np.float64))
        odd.must_work(lambda: (len(made), made.size))
    elif kind == 1:
        values = np.array([odd.real() for _ in range(3)], dtype=np.float64)
        odd.call(grid.nearest, values)
        with np.errstate(invalid="ignore"):
            odd.call(grid.split, values, odd.rng.random(3))
    elif kind == 2:
        met = mdp.sample_initial(20, np.random.default_rng(0))
        responses = Responses(mdp, met, np.random.default_rng(0))
        column = odd.rng.normal(size=1 + odd.below(99)) * odd.pick((0.0, 1.0, 50.0))
        odd.must_work(Bins.of_real, mdp.exogenous_variables[0], column, responses)
    elif kind == 3:
        n = np.zeros((3, 1), dtype=np.int64)
        odd.call(coarse.at_points, odd.damaged(n, [len(grid)]))
    elif kind == 4:
        state, following = odd.must_work(coarse.trajectories, 2, 3, np.random.default_rng(0))
        odd.must_work(lambda: (state, list(following)))
    elif kind == 5:
        planted = subjects.model("planted-real")
        x = planted.sample_initial(3, np.random.default_rng(0)).exogenous
        odd.call(planted.latent, odd.damaged(x, planted.exogenous_sizes))
    else:
        n = odd.must_work(mdp.sample_initial, 3, np.random.default_rng(0)).endogenous
        odd.must_work(coarse.on_grid, n, np.random.default_rng(0))
        odd.must_work(lambda: (len(grid), grid.size))


@entry("real/tables", weight=2.0, limit=60.0)
def tables(odd: Odd) -> None:
    """Tables that are none, functions that return what they should not, odd settings."""
    settings: dict[str, Any] = {
        "horizon": odd.sound_or(6),
        "test": odd.pick((None, 0.3, 0.0, 1.0, -1, "x", math.nan, 10**9, [], 30)),
        "discount": odd.sound_or_real(0.9),
        "lags": odd.pick((None, {"price": 1}, {"price": [1, 2]}, {"x": 1}, {"price": -1}, 3)),
        "calendar": odd.pick((False, False, True, "x")),
        "endogenous": odd.pick(_VARIABLES),
        "actions": odd.pick((3, [-1, 0, 1], [-1.0, 0.0, 1.0], [math.nan, 1], 10**30, "x", [[1]])),
        "step": _odd_function(odd),
        "reward": _odd_function(odd),
        "initial": odd.pick((None, {"charge": odd.number_()}, {"x": 1}, 3, lambda *_: 3)),
        "terminal": _odd_function(odd),
        "scopes": odd.pick((None, "price", ["price"], [("price",), ("wind",)], 3, [3], [["x"]])),
        "max_levels": odd.sound_or(8),
    }
    which = odd.pick(sorted(settings))
    if odd.chance(0.1) and which != "calendar":
        settings[which] = odd.anything()
    table = price_table(80)
    if odd.chance(0.3):
        table["price"] = odd.altered(table["price"], 6)
    elif odd.chance(0.1):
        table["price"] = odd.damaged(table["price"], 6)
    elif odd.chance(0.1):
        table = odd.anything()
    odd.call(battery_on_record, table, **{which: settings[which]})


_VARIABLES = (
    [Variable("charge", 5), Variable("mode", 3)],
    [Variable("charge", low=0.0, high=4.0)],
    [Variable("charge", low=-1e308, high=1e308)],
    *([Variable("charge", 5)] * 2, ["charge"], [], 3, np.array(3), None, Variable("charge", 5)),
)


def _odd_function(odd: Odd) -> Any:
    """What a step, a reward or an end might return, and what is no function."""
    answer = odd.pick((odd.anything(), odd.array((3,)), [[1], [2, 3]], {"charge": 1}, {(): 1}, {}))
    return odd.pick(
        (
            lambda *_: answer,
            lambda n, *_: np.zeros(len(n)) + odd.pick((0.0, 0.5, -1.0, math.nan, 1e300)),
            lambda n, *_: n,
            lambda n, a, x: x,
            lambda n, a, x: {("price", "wind"): x.price, ("wind", "price"): x.wind},
            lambda n, *_: n.charge == 4,
            odd.anything(),
        )
    )


@entry("real/forecasts", weight=0.5, limit=60.0)
def forecasts(odd: Odd) -> None:
    """Handlers of forecasts: first sound ones, then of odd steps, noise, seasons and names."""
    sound = (Perfect([1]), Noisy([1], sigma=0.5), Persistence([1]), FromColumns({1: "wind"}))
    if odd.number < len(sound):
        odd.must_work(battery_on_record, price_table(80), forecasts={"price": sound[odd.number]})
    odd.call(battery_on_record, price_table(80), forecasts={"price": _odd_forecast(odd)})


def _odd_forecast(odd: Odd) -> Any:
    sound = (1, [1], [1, 2], np.array([2]))
    steps = odd.pick((*sound, *sound, (), [1, 1], 10**30, [[1], [2, 3]], "1", None))
    names = odd.pick(({1: "wind"}, {1: "x"}, {1: ["wind"]}, {0: "wind"}, {}, ["wind"], 3))
    return odd.pick(
        (
            None,
            Perfect(steps),
            Noisy(steps, sigma=odd.sound_or_real(0.5), seed=odd.sound_or(0)),
            Noisy([1, 2], sigma=odd.pick(([1.0, 2.0], [1.0], [[1.0], [2.0, 3.0]], "x", None))),
            Persistence(steps, season=odd.sound_or(None)),
            FromColumns(names),
            odd.anything(),
        )
    )


@entry("real/times", weight=1.5, limit=60.0)
def times(odd: Odd) -> None:
    """Tables with times, episodes, gaps and names of columns, of which one or two are odd."""
    table, rows = _timetable(), 40
    settings: dict[str, Any] = {"time": "when", "fill": odd.pick(("forward", "split", "linear"))}
    settings |= {"horizon": 3, "calendar": False, "episode": odd.pick((None, "day"))}
    for _ in range(1 + odd.below(2)):
        kind = odd.below(6)
        if kind == 0:
            table["when"] = odd.pick(_odd_times())
        elif kind == 1:
            table["day"] = odd.pick((*_odd_days(), odd.array((rows,))))
        elif kind == 2:
            missing = odd.rng.random(rows) < odd.pick((0.05, 0.2, 1.0))
            table["price"] = np.where(missing, np.nan, table["price"])
            table["sky"] = odd.pick(
                (["sun", None] * 20, ["sun", 3] * 20, odd.array((rows,)), "sun")
            )
        else:
            name = odd.pick(sorted(_ODD_SETTINGS))
            settings[name] = odd.pick(_ODD_SETTINGS[name])
            if odd.chance(0.1):
                settings[name] = odd.anything()
    if odd.chance(0.3):
        settings["test"] = odd.pick(
            (0.3, "2024-02-01", 20, dict(table), {"price": [1.0]}, 1j, [[1]])
        )
    frame = table
    if odd.chance(0.3) and all(np.shape(values) == (rows,) for values in table.values()):
        frame = odd.must_work(pd.DataFrame, table)
        frame = frame if odd.chance(0.5) else frame.astype(object)
    odd.call(battery_on_record, frame, **settings)


def _timetable() -> dict[str, Any]:
    """Forty hours with prices and the sky, the last hours of a month among them."""
    count = np.arange(40)
    dates = np.datetime64("2024-01-31T02") + count * np.timedelta64(1, "h")
    return {
        "price": count % 5 * 1.0,
        "when": dates,
        "day": count // 10,
        "sky": ["sun", "rain"] * 20,
    }


def _odd_times() -> tuple[Any, ...]:
    dates, count = _timetable()["when"], np.arange(40)
    gaps = [np.where(count < 20, count, count + gap) for gap in (1, 3, 10**6, 10**15)]
    return (
        *(count, dates[::-1], dates.astype(str), dates.astype("M8[us]").astype(object), *gaps),
        *(gaps[1].astype("u8"), (100 * gaps[1]).astype("i1"), gaps[3] * 1.0, count * 1e307),
        *(count.astype("u1")[::-1], count**2, count == 3, np.where(count == 3, np.nan, count)),
        *(np.array(["x"] * 40), np.full(40, 10**30, dtype=object), dates.astype("M8[M]")),
        *(dates.astype("M8[D]"), dates + (count > 20) * np.timedelta64(7, "m"), None, [dates]),
    )


def _odd_days() -> tuple[Any, ...]:
    dates, day = _timetable()["when"].astype("M8[D]"), np.arange(40) // 10
    lists = np.empty(40, dtype=object)
    lists[:] = [[1]] * 40
    return (
        *(day.astype(str), day % 2, np.where(day == 2, np.nan, day), dates, dates.astype(object)),
        *(lists, np.arange(40), day[:, None], day * 1j, np.where(day == 2, None, day)),
    )


_ODD_SETTINGS: dict[str, tuple[Any, ...]] = {
    "time": (None, "x", 3, ["when"], "sky", "price"),
    "episode": (None, "day", "x", 3, ["day"], "when", "sky"),
    "fill": (None, "x", 3, {"price": 0.0}, {"price": "linear", "sky": "sun"}, {"sky": 3}, {"x": 1}),
    "columns": (["price"], ["price", "sky"], ["x"], "price", 3, [["price"]], np.array(3), []),
    "calendar": (True, True, "x", None, 1),
    "horizon": (None, 1, 40, 41),
    "lags": ({"sky": 1}, {"price": [1, 2]}, {"price": 39}, {"price": 10**30}, {"day": 1}),
    "forecasts": ({"sky": Perfect(1)}, {"sky": Noisy(1)}, {"price": FromColumns({1: "day"})}),
}


@entry("real/records", weight=1.5)
def records(odd: Odd) -> None:
    """What only records have."""
    mdp: TraceMDP = subjects.model("trace")
    rng, record = np.random.default_rng(0), mdp.record
    steps, size = odd.sound_or(3), odd.sound_or(4)
    if isinstance(size, (int, np.integer)) and size > 10**6:
        size = 5  # asks for that much memory, and gets it
    kind = odd.below(9)
    if kind == 0:
        odd.call(record.num_separate, steps)
    elif kind == 1:
        state, following = odd.call(mdp.windows, odd.damaged(np.array([0, 5]), 20), steps, rng)
        odd.must_work(lambda: (state, list(following)))
    elif kind == 2:
        odd.call(mdp.initial_endogenous, size, rng)
    elif kind == 3:
        x = mdp.sample_initial(3, rng).exogenous
        odd.call(mdp.decoded, odd.damaged(x, mdp.exogenous_sizes))
    elif kind == 4:
        x = mdp.sample_initial(3, rng).exogenous
        odd.call(mdp.sample_exogenous, odd.damaged(x, mdp.exogenous_sizes), odd.rng)
    elif kind == 5:
        odd.call(odd.pick((record.draw, mdp.trajectories)), size, steps, rng)
    elif kind == 6:
        odd.call(record.spaced, odd.pick((3, steps)), odd.sound_or(4))
        odd.must_work(lambda: (record.segments(), record.longest, record.starts(3)))
        odd.must_work(record.num_separate, 3)
    elif kind == 7:
        odd.call(TraceMDP, odd.anything(), mdp.interface, odd.anything(), horizon=3, discount=0.9)
    else:
        columns = odd.must_work(NamedColumns, np.zeros((2, 1)), ("price",))
        odd.must_work(lambda: (columns.price, np.asarray(columns), list(columns)))
        odd.call(columns.__getitem__, odd.anything())


def _idle(state: Any) -> Any:
    return np.ones(len(state.endogenous), dtype=np.int64)


@entry("real/backtests")
def backtests(odd: Odd) -> None:
    """Backtests with odd settings, of what is no record, and what is asked of them."""
    settings = {
        "stride": odd.sound_or(6),
        "horizon": odd.sound_or(6),
        "continued": odd.pick((False, True, "x")),
        "discount": odd.sound_or_real(0.9),
        "block": odd.sound_or(2),
        "rng": odd.generator(),
    }
    which = odd.pick(sorted(settings))
    mdp = subjects.model(odd.pick(("trace", "trace", "trace", "market")))
    policy = _idle if odd.chance(0.9) else odd.anything()
    made: Backtest = odd.call(backtest, policy, mdp, **{which: settings[which]})
    odd.must_work(lambda: (made.mean, made.total, made.standard_error, made.estimate, str(made)))
    odd.must_work(lambda: (made.resampled_means, made.to_pandas(), made.difference(made)))
    odd.call(made.interval, odd.sound_or_real(0.9))
