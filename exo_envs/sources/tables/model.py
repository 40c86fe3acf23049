"""An MDP from a table of what nobody controls, and small functions for what the agent does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import (
    check_choice,
    check_discount,
    check_flag,
    check_horizon,
    check_whole,
    shown,
)
from exo_envs.core.batches import as_batch, as_part, as_size, flat_rows, flatten
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    Ranges,
    State,
    Successors,
    Variable,
    as_pair,
)
from exo_envs.sources.tables.forecasts import Forecast, with_calendar, with_lags_and_forecasts
from exo_envs.sources.tables.frames import TimedTable, is_table, read_table, split
from exo_envs.sources.tables.functions import Interface, NamedColumns, fitting
from exo_envs.sources.tables.gaps import Fill, without_gaps
from exo_envs.sources.tables.record import MAX_LEVELS, RecordedRows, codings_of
from exo_envs.sources.tables.rewards import Probes, RewardTerms, split_reward

Initial = Mapping[str, float] | Callable[[int, np.random.Generator], Any] | None

#: States in which a new model's functions are tried, and columns are changed to split the reward.
NUM_PROBES = 2048


class TraceMDP(ExoMDP):
    """A model whose x was recorded; :meth:`from_frame` makes one from a table.

    x is followed where it was recorded: :meth:`trajectories` are windows of the record, and
    :meth:`sample_exogenous` goes to a row after one that is equal to x. If several are equal, one
    of those is drawn that a whole episode's rows follow (if there is none, one that most rows
    follow), so that an episode never runs over the end of the record. After the last row nothing is
    known, and x stays as it is: there an episode is over. An x that was never recorded is refused.

    Attributes:
        record: the rows that are followed.
        interface: calls the functions of the user.
        actions: what each action is to these functions, shape (num_actions,).
        codings: what the values of each exogenous variable stand for.
    """

    is_recorded = True

    def __init__(
        self,
        record: RecordedRows,
        interface: Interface,
        rewards: RewardTerms,
        *,
        horizon: int,
        discount: float,
        initial: Initial = None,
        held_out: TraceMDP | None = None,
    ) -> None:
        if not isinstance(record, RecordedRows) or not isinstance(interface, Interface):
            raise ArgumentTypeError(
                "a TraceMDP is made by TraceMDP.from_frame(table, ...), which makes its record, "
                f"not of {shown(record)}"
            )
        self.record = record
        self.interface = interface
        self.actions = interface.actions
        self.codings = interface.codings
        self.endogenous_variables = interface.endogenous
        self.exogenous_variables = tuple(coding.variable for coding in interface.codings)
        self.num_actions = len(interface.actions)
        self.horizon = check_horizon("horizon", horizon)
        self.discount = check_discount("discount", discount)
        self.reward_scopes = rewards.scopes
        self._terms = rewards
        self._initial = initial
        self._held_out = held_out
        record.starts(horizon - 1)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        endogenous: Sequence[Variable],
        actions: int | Sequence[Any],
        step: Callable[..., Any],
        reward: Callable[..., Any],
        horizon: int | None = None,
        test: Any = None,
        discount: float = 0.99,
        initial: Initial = None,
        terminal: Callable[[NamedColumns], Any] | None = None,
        scopes: Any = None,
        columns: Sequence[str] | None = None,
        time: str | None = None,
        episode: str | None = None,
        fill: Fill = None,
        lags: Mapping[str, int | Sequence[int]] | None = None,
        calendar: bool = False,
        forecasts: Mapping[str, Forecast | None] | None = None,
        max_levels: int = MAX_LEVELS,
    ) -> TraceMDP:
        """A model from a table of what nobody controls.

        Functions get ``n``, ``a`` and ``x`` of many states at once: ``n.charge`` and ``x.price``
        are arrays of shape (B,), with the values of the table; ``a`` is an array of actions, by
        number or as the list says.

        >>> rng = np.random.default_rng(0)
        >>> table = {"price": rng.integers(1, 5, size=200), "moon": rng.integers(2, size=200)}
        >>> mdp = TraceMDP.from_frame(
        ...     table,
        ...     endogenous=[Variable("stock", 4)],
        ...     actions=["sell", "wait", "buy"],
        ...     step=lambda n, a, x: np.clip(n.stock + (a == "buy") - 1 * (a == "sell"), 0, 3),
        ...     reward=lambda n, a, x: (
        ...         x.price * ((a == "sell") & (n.stock > 0)) - x.price * (a == "buy")
        ...     ),
        ...     horizon=10,
        ...     test=0.3,
        ... )
        >>> mdp.exogenous_names, mdp.reward_scopes, len(mdp.record), len(mdp.held_out.record)
        (('price', 'moon'), (('price',),), 130, 60)

        Args:
            frame: a table, time by columns: a pandas or polars DataFrame, a structured NumPy array,
                a 2-D one with ``columns``, or a mapping from names to arrays. Whole numbers,
                booleans and strings of few different values become whole variables, other numbers
                real ones.
            endogenous: the variables of n.
            actions: how many, or a list of their names or values.
            step: (n, a, x) -> n': a mapping from names to arrays (what is not named stays), a tuple
                of them, or one array. With a fourth argument it is given a generator.
            reward: (n, a, x) -> what is paid: one array, or a mapping from scopes to arrays,
                ``{("price", "load"): ..., (): ...}``. Of one array, it is found which columns it
                looks at and which of them pay together.
            horizon: steps of an episode. By default the rows of the shortest of several episodes.
            test: what is held out (:attr:`held_out`): the last share of the rows (0.3), everything
                from a row (5000) or a local date on, or a second table. Nothing is learned from as
                many rows before as an episode, the longest lag and the longest look ahead have.
            discount: gamma.
            initial: the n in which episodes begin: a mapping from names to values, or a function of
                a number of states and a generator that returns such a mapping, of arrays. What is
                not named begins anywhere.
            terminal: n -> whether an episode is over.
            scopes: of a reward that is one array: the columns that it looks at, or several groups
                of columns whose terms it is the sum of.
            columns: the names of the columns of a 2-D array; of any other table, those to take.
            time: the column that says when; by default a DatetimeIndex, or the only one with dates.
            episode: the column that says to which episode a row belongs.
            fill: what to do about missing rows and values, which are refused by default: "forward",
                "linear", "split", or a mapping for single columns.
            lags: ``{"price": [1, 24]}`` adds ``price_lag_1`` and ``price_lag_24``.
            calendar: whether to add hour, weekday and month, as far as they change: those of the
                clock on the wall, if the times have a time zone.
            forecasts: ``{"price": Perfect([1, 6])}`` adds ``price_forecast_1`` and
                ``price_forecast_6``. Those of a file are columns of the table, which
                ``FromColumns`` names. See :mod:`exo_envs.sources.tables.forecasts`.
            max_levels: different whole numbers that are counted one by one at most.
        """
        variables = _as_variables(endogenous)
        max_levels = check_whole("max_levels", max_levels, 1)
        discount = check_discount("discount", discount)

        def prepare(frame: Any) -> tuple[TimedTable, dict[str, tuple[int, int]], int]:
            """A table with all columns; known ranges; rows that it looks back and ahead."""
            table = read_table(frame, columns=columns, time=time, episode=episode)
            table = without_gaps(table, fill)
            ranges: dict[str, tuple[int, int]] = {}
            if check_flag("calendar", calendar):
                table, ranges = with_calendar(table)
            table, reach = with_lags_and_forecasts(table, lags, forecasts)
            return table, ranges, reach

        table, ranges, reach = prepare(frame)
        later = prepare(test)[0] if test is not None and is_table(test) else None
        if later is not None and later.columns.keys() != table.columns.keys():
            odd = sorted(later.columns.keys() ^ table.columns.keys())
            raise ArgumentError(f"the two tables have the same columns, but these differ: {odd}")
        more = None if later is None else later.columns
        codings = codings_of(table.columns, more, ranges, max_levels)
        for name in {v.name for v in variables} & table.columns.keys():
            raise ArgumentError(f"{name!r} is an endogenous variable and a column of the table")
        horizon = _horizon_of(table, horizon, episode)
        if test is not None and later is None:
            by_segment = episode is not None
            table, later = split(table, test, gap=horizon + reach, by_segment=by_segment)
        interface = Interface(variables, codings, actions, step, reward, terminal)
        record = RecordedRows(table, codings, horizon)
        rewards = split_reward(interface, _probes_of(interface, record), scopes)
        settings: Any = {"horizon": horizon, "discount": discount, "initial": initial}
        held_out = None
        if later is not None:
            judged = RecordedRows(later, codings, horizon)
            held_out = cls(judged, interface, rewards, **settings)
        mdp = cls(record, interface, rewards, **settings, held_out=held_out)
        mdp._try_out()
        return mdp

    def _try_out(self) -> None:
        """Call everything once, so that mistakes show where the model is made."""
        rng = np.random.default_rng(0)
        state = self.sample_initial(8, rng)
        misfit = self.endogenous_ranges.misfit(state.endogenous)
        if misfit is not None:
            raise ArgumentError(
                f"initial gives {misfit.variable.name!r} the value {misfit.value}; its values are "
                f"{misfit.variable.range}"
            )
        anywhere = self.sample_uniform(NUM_PROBES, rng)
        a = rng.integers(self.num_actions, size=NUM_PROBES)
        misfit = self.endogenous_ranges.misfit(self.sample_endogenous(anywhere, a, rng))
        if misfit is not None:
            raise ArgumentError(
                f"step moves {misfit.variable.name!r} to {misfit.value}; its values are "
                f"{misfit.variable.range}. Clip it: np.clip(..., low, high)"
            )
        self.is_terminal(state)

    # --- the record -----------------------------------------------------------------------

    @property
    def held_out(self) -> TraceMDP:
        """The model of later time, or this one if nothing was held out."""
        return self if self._held_out is None else self._held_out

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Windows of the record, with n to begin in."""
        size = as_size(self, size)
        return self.windows(self.record.draw(size, num_steps, rng), num_steps, rng)

    def windows(
        self, starts: NDArray[np.int64], num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """The windows that begin at some rows of the record."""
        rows, (begin, num_steps) = self.record.rows, self.record.check_windows(starts, num_steps)
        state = State(self.initial_endogenous(len(begin), rng), rows[begin])
        return state, (rows[begin + t] for t in range(1, num_steps + 1))

    def initial_endogenous(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """The n in which episodes begin, shape (size, k)."""
        size = as_size(self, size)
        n = self.endogenous_ranges.draw(size, rng)
        given = self._initial(size, rng) if callable(self._initial) else self._initial
        if given is None:
            return n
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(
                "initial is a mapping from names to values, or a function that returns one, not "
                f"{shown(given)}"
            )
        names = [v.name for v in self.endogenous_variables]
        for name, value in given.items():
            check_choice("endogenous variable", name, names)
            i = names.index(name)
            n[:, i] = fitting("initial", self.endogenous_variables[i], value, size)
        return n

    # --- the ExoMDP -----------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The first row of a window of the record, and n to begin in."""
        size = as_size(self, size)
        starts = self.record.starts(self.horizon - 1)
        rows = starts[rng.integers(len(starts), size=size)]
        return State(self.initial_endogenous(size, rng), self.record.rows[rows])

    def sample_uniform(self, size: int, rng: np.random.Generator) -> State:
        size = as_size(self, size)
        rows = rng.integers(len(self.record), size=size)
        return State(self.endogenous_ranges.draw(size, rng), self.record.rows[rows])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """A row after one that is equal to x, where there is one."""
        return self.record.following(exogenous, rng)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        shape, n, x, a = as_batch(self, state, action)
        return self.interface.next_endogenous(n, a, x, rng).reshape(*shape, n.shape[1])

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """One n', unless step takes a generator: then n' can only be drawn."""
        if self.interface.takes_noise:
            return None
        return Successors.certain(self.sample_endogenous(state, action, _NO_NOISE))

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        shape, n, x, a = as_batch(self, state, action)
        return self._terms.terms(n, a, x).reshape(*shape, len(self.reward_scopes))

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        n = as_part(self, "endogenous", endogenous)
        shape, (n,), a = flatten(self, (n,), action)
        return self._terms.base(n, a).reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        n = as_part(self, "endogenous", as_pair(state).endogenous)
        return self.interface.ended(flat_rows(n)).reshape(n.shape[:-1])

    def decoded(self, exogenous: IntArray) -> dict[str, NDArray[Any]]:
        """What x says in the words of the table: name -> values (...)."""
        x = as_part(self, "exogenous", exogenous)
        return {coding.name: coding.decode(x[..., j]) for j, coding in enumerate(self.codings)}


_NO_NOISE = np.random.default_rng(0)  # is handed to functions that do not take it


def _horizon_of(table: TimedTable, horizon: int | None, episode: str | None) -> int:
    """The steps of an episode: as given, or as long as the shortest episode of the table."""
    lengths = np.bincount(np.unique(table.segment, return_inverse=True)[1])
    if horizon is None:
        if episode is None:
            raise ArgumentError("one long series needs the steps of an episode: horizon=...")
        return int(lengths.min())
    horizon = check_horizon("horizon", horizon)
    if horizon > lengths.max():
        raise ArgumentError(
            f"horizon={horizon} needs as many rows that follow each other; the longest part of the "
            f"table without a gap has {int(lengths.max())}"
        )
    return horizon


def _as_variables(endogenous: Any) -> tuple[Variable, ...]:
    try:
        given = [endogenous] if isinstance(endogenous, Variable) else list(endogenous)
    except TypeError:
        raise ArgumentTypeError(
            f"endogenous is a sequence of Variable, not {shown(endogenous)}"
        ) from None
    if not given:
        raise ArgumentError("endogenous has one Variable at least: what the agent moves")
    for variable in given:
        if not isinstance(variable, Variable):
            raise ArgumentTypeError(
                f"endogenous is a sequence of Variable, such as [Variable('stock', 12)], not of "
                f"{shown(variable)}"
            )
        low, high = variable.bounds
        if variable.is_real and not math.isfinite(high - low):
            raise ArgumentError(
                f"endogenous variable {variable.name!r} needs finite bounds: low=..., high=..."
            )
    if len({variable.name for variable in given}) != len(given):
        raise ArgumentError("endogenous variables have different names")
    return tuple(given)


def _probes_of(interface: Interface, record: RecordedRows) -> Probes:
    """States to find out what the reward looks at: rows of the record, any n and action."""
    rng = np.random.default_rng(0)
    rows, others = rng.integers(len(record), size=(2, NUM_PROBES))
    n = Ranges(interface.endogenous).draw(NUM_PROBES, rng)
    a = rng.integers(len(interface.actions), size=NUM_PROBES)
    return Probes(n, a, record.rows[rows], record.rows[others])
