"""What comes from the real world: real numbers, grids, records, and backtests of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exo_envs import TraceMDP, Variable
from exo_envs.trace import Noisy, Perfect, Persistence
from planners import (
    Backtest,
    Bins,
    CheckedEdge,
    CoarseMDP,
    CrossCheck,
    Grid,
    NeighbourTest,
    Responses,
    backtest,
    cross_check,
    neighbour_information,
    neighbour_test,
)
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
    kind = odd.below(5)
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
    else:
        n = odd.must_work(mdp.sample_initial, 3, np.random.default_rng(0)).endogenous
        odd.must_work(coarse.on_grid, n, np.random.default_rng(0))


@entry("real/tables", limit=60.0)
def tables(odd: Odd) -> None:
    """Tables that are none, functions that return what they should not, odd settings."""
    settings: dict[str, Any] = {
        "horizon": odd.sound_or(6),
        "test": odd.pick((None, 0.3, 0.0, 1.0, -1, "x", math.nan, 10**9, [], 30)),
        "discount": odd.sound_or_real(0.9),
        "lags": odd.pick((None, {"price": 1}, {"price": [1, 2]}, {"x": 1}, {"price": -1}, 3)),
        "forecasts": odd.pick(
            (
                None,
                {"price": Perfect([1])},
                {"price": Noisy([1], sigma=0.5, seed=0)},
                {"price": Persistence([1, 2])},
                {"price": 3},
                {"x": None},
            )
        ),
        "calendar": odd.pick((False, False, True, "x")),
    }
    which = odd.pick(sorted(settings))
    table = price_table(80)
    if odd.chance(0.3):
        table["price"] = odd.altered(table["price"], 6)
    elif odd.chance(0.1):
        table = odd.anything()
    odd.call(battery_on_record, table, **{which: settings[which]})


@entry("real/records")
def records(odd: Odd) -> None:
    """What only records have."""
    mdp: TraceMDP = subjects.model("trace")
    kind = odd.below(5)
    if kind == 0:
        odd.call(mdp.num_separate, odd.sound_or(3))
    elif kind == 1:
        odd.call(mdp.windows, odd.altered(np.array([0, 5]), 20), 3)
    elif kind == 2:
        odd.call(mdp.initial_endogenous, odd.pick((3, 0, 1)), np.random.default_rng(0))
    elif kind == 3:
        x = mdp.sample_initial(3, np.random.default_rng(0)).exogenous
        odd.call(mdp.decoded, odd.damaged(x, mdp.exogenous_sizes))
    else:
        x = mdp.sample_initial(3, np.random.default_rng(0)).exogenous
        odd.call(mdp.sample_exogenous, odd.damaged(x, mdp.exogenous_sizes), odd.rng)


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


@entry("real/neighbours", weight=0.5)
def neighbours(odd: Odd) -> None:
    """Information by nearest neighbours."""
    x, y = odd.rng.normal(size=(2, 60))
    kind = odd.below(4)
    if kind == 0:
        odd.call(neighbour_information, odd.altered(x, 3), y, num_neighbours=odd.sound_or(3))
    elif kind == 1:
        given = odd.pick((None, y, x[:, None], odd.array((60,)), 3))
        found = odd.call(neighbour_test, x, y, given, num_permutations=9, rng=odd.generator())
        odd.must_work(NeighbourTest, *found)
    elif kind == 2:
        mask = odd.pick((["price"], [], ["x"], "price", None))
        limits = {"num_samples": odd.pick((60, 60, 3, -1, "x")), "level": odd.sound_or_real(0.05)}
        data = subjects.data("battery")
        made: CrossCheck = odd.call(
            cross_check, subjects.model("battery"), mask, data=data, **limits
        )
        odd.must_work(lambda: (made.disagreements, made.to_pandas()))
    else:
        odd.must_work(lambda: CrossCheck(()).disagreements)
        odd.call(CheckedEdge, *[odd.anything() for _ in range(odd.below(9))])
