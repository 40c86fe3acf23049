"""What was recorded: columns as variables, rows that follow each other, and where an x was seen.

Few different values of a column are counted one by one, other numbers stay real.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import is_plain
from exo_envs.core.arguments import MAX_HORIZON, as_integers, check_lanes, check_whole, shown
from exo_envs.core.batches import as_values, flat_rows
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import IntArray, Ranges, Variable
from exo_envs.sources.tables.frames import Column, TimedTable

Rows = NDArray[np.int64]

#: Different values that whole numbers have at most to be counted one by one, unless told otherwise.
MAX_LEVELS = 64
#: The same for numbers with fractions, such as the three prices of a tariff.
MAX_FRACTIONS = 16
#: Different strings that a column has at most.
MAX_STRINGS = 256
#: The largest whole number below which 64-bit floats leave none out.
LARGEST_EXACT_FLOAT = 2**53
#: Rows left out between windows that share no transition, as a share of a window. Without that,
#: windows of 24 hours would all begin at the same hour.
SLACK_SHARE = 1 / 12
#: Variables that an error message shows at most.
SHOWN_VARIABLES = 4


@dataclass(frozen=True, eq=False)
class Coding:
    """A column as a variable.

    Attributes:
        variable: of a model, with the name of the column.
        levels: the different values, in order, that a whole variable stands for; None if real.
    """

    variable: Variable
    levels: NDArray[Any] | None

    @classmethod
    def of(cls, name: str, values: Column, max_levels: int = MAX_LEVELS) -> Coding:
        """The coding of all values that a column ever has, those of the later part among them.

        That much is declared and not learned: nothing is counted in the later part.
        """
        if values.dtype.kind == "O":
            levels = np.unique(values.astype(str))
            if len(levels) > MAX_STRINGS:
                raise ArgumentError(
                    f"column {name!r} has {len(levels)} different strings, {shown(str(levels[0]))} "
                    f"... {shown(str(levels[-1]))}; at most {MAX_STRINGS} are told apart. Join "
                    "those that act alike, or drop the column"
                )
            return cls(Variable(name, len(levels)), levels)
        levels = np.unique(values)
        is_whole = values.dtype.kind != "f" or bool((levels == np.floor(levels)).all())
        if len(levels) <= (max_levels if is_whole else min(max_levels, MAX_FRACTIONS)):
            if (
                is_whole
                and values.dtype.kind == "f"
                and np.abs(levels).max() <= LARGEST_EXACT_FLOAT
            ):
                levels = levels.astype(np.int64)
            return cls(Variable(name, len(levels)), levels)
        return cls(Variable(name, low=float(levels[0]), high=float(levels[-1])), None)

    @property
    def name(self) -> str:
        return self.variable.name

    def encode(self, values: Column) -> NDArray[Any]:
        """Values of the column as a model has them: numbers of levels, or floats."""
        if self.levels is None:
            return values
        return np.searchsorted(self.levels, values.astype(self.levels.dtype))

    def decode(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the column, given values of a model that have been checked."""
        if self.levels is None:
            return values
        return self.levels[values.astype(np.int64, copy=False)]


def codings_of(
    columns: Mapping[str, Column],
    more: Mapping[str, Column] | None,
    ranges: Mapping[str, tuple[int, int]],
    max_levels: int,
) -> tuple[Coding, ...]:
    """A coding for each column, of its values in one table or in two.

    Ranges are of columns whose values are known beforehand, such as the hours of a day.
    """
    found = []
    for name, own in columns.items():
        values = own if more is None else np.concatenate([own, more[name]])
        if more is not None and (more[name].dtype.kind == "O") != (own.dtype.kind == "O"):
            raise ArgumentTypeError(
                f"column {name!r} holds strings in one table and numbers in another"
            )
        if name in ranges:
            low, high = ranges[name]
            levels = np.arange(low, high + 1)
            found.append(Coding(Variable(name, len(levels)), levels))
        else:
            found.append(Coding.of(name, values, max_levels))
    return tuple(found)


class RecordedRows:
    """The rows of a table, as a model has them.

    Attributes:
        rows: (T, m), int64, or float64 if a column is real.
        remaining: rows that follow each row in its segment, shape (T,).
        labels: when each row was recorded: its time, by the clock on the wall if the table has a
            time zone, or the number of the row, shape (T,).
    """

    def __init__(self, table: TimedTable, codings: tuple[Coding, ...], horizon: int) -> None:
        dtype = np.float64 if any(coding.levels is None for coding in codings) else np.int64
        rows = np.stack([c.encode(table.columns[c.name]) for c in codings], axis=1).astype(dtype)
        # With floats, there is one zero, and not a negative one beside it.
        self.rows: NDArray[Any] = np.ascontiguousarray(rows + dtype(0))
        self.horizon = horizon
        times = table.wall_time
        self.labels: NDArray[Any] = table.row if times is None else times
        self._codings = codings
        self._ranges = Ranges([coding.variable for coding in codings])
        _, self._first, lengths = np.unique(table.segment, return_index=True, return_counts=True)
        self._transitions: Rows = lengths - 1
        self._position: Rows = np.arange(len(rows)) - np.repeat(self._first, lengths)
        self.remaining: Rows = np.repeat(lengths, lengths) - 1 - self._position

    def __len__(self) -> int:
        return len(self.rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordedRows:
        """What was recorded does not change: a copy is the record itself."""
        return self

    @property
    def longest(self) -> int:
        return int(self._transitions.max()) + 1

    def segments(self) -> list[tuple[int, int]]:
        """The first row and the number of rows of each segment."""
        return list(zip(self._first.tolist(), (self._transitions + 1).tolist(), strict=True))

    # --- windows --------------------------------------------------------------------------

    def starts(self, num_steps: int) -> Rows:
        """The rows that at least ``num_steps`` rows follow; there has to be one."""
        num_steps = _check_steps("num_steps", num_steps)
        found = np.flatnonzero(self.remaining >= num_steps)
        if not len(found):
            raise ArgumentError(
                f"windows of {num_steps + 1} rows were asked for, and the longest part of the "
                f"record without a gap has {self.longest}"
            )
        return found

    def check_windows(self, starts: Any, num_steps: Any) -> tuple[Rows, int]:
        """Rows at which windows of so many steps begin, shape (windows,); others are refused."""
        num_steps, rows = _check_steps("num_steps", num_steps), as_integers("starts", starts)
        if rows.ndim != 1:
            raise ArgumentError(
                f"starts has one axis, a row for each window, not shape {rows.shape}"
            )
        wrong = (rows < 0) | (rows >= len(self))
        if wrong.any():
            raise ArgumentError(
                f"there is no row {rows[wrong][0]}; the rows of the record are 0 ... "
                f"{len(self) - 1}"
            )
        short = self.remaining[rows] < num_steps
        if short.any():
            row = int(rows[short][0])
            raise ArgumentError(
                f"a window of {num_steps + 1} rows cannot begin at row {row}, which "
                f"{int(self.remaining[row])} follow without a gap"
            )
        return rows, num_steps

    def draw(self, size: int, num_steps: int, rng: np.random.Generator) -> Rows:
        """Where ``size`` windows begin, in random order.

        As long as there is room they have no transition in common. More of them overlap: one
        begins by chance in each of as many parts of the record.
        """
        num_steps = _check_steps("num_steps", num_steps)
        size = check_lanes("size", size, self.rows.shape[1])
        starts = self.starts(num_steps)
        room = self._transitions // max(num_steps, 1)  # windows of each segment
        if size == 0 or size > int(room.sum()):
            place = (rng.permutation(size) + rng.random(size)) * (len(starts) / max(size, 1))
            return starts[np.minimum(place.astype(np.int64), len(starts) - 1)]
        slots = rng.permutation(np.repeat(np.arange(len(room)), room))[:size]
        found = []
        for number, count in zip(*np.unique(slots, return_counts=True), strict=True):
            slack = self._transitions[number] - count * num_steps
            gaps = np.sort(rng.integers(slack + 1, size=count))
            found.append(self._first[number] + gaps + np.arange(count) * num_steps)
        return rng.permutation(np.concatenate(found))

    def num_separate(self, num_steps: int) -> int:
        """Windows with no transition in common that use up the record, save for some slack.

        Statistical tests count transitions, and one that was recorded once counts once.
        """
        num_steps = _check_steps("num_steps", num_steps)
        looser = self._transitions // (num_steps + max(1, round(SLACK_SHARE * num_steps)))
        has_room = self._transitions >= max(num_steps, 1)
        return int(np.where(has_room, np.maximum(looser, 1), 0).sum())

    def spaced(self, num_steps: int, stride: int) -> Rows:
        """Where windows begin in order of time, ``stride`` rows apart in each segment."""
        stride = _check_steps("stride", stride, least=1)
        starts = self.starts(num_steps)
        return starts[self._position[starts] % stride == 0]

    # --- following an x -------------------------------------------------------------------

    def following(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """A row after one that is equal to x, for each x of shape (..., m); see :class:`TraceMDP`.

        Values are not looked at unless an x was never recorded: all others are in range.
        """
        x: NDArray[Any] = exogenous
        if not is_plain(x, self.rows.dtype, (*getattr(x, "shape", ())[:1], self.rows.shape[1])):
            x = as_values("exogenous", x, self._ranges, check=False)
        group, places = self._groups_of(x if x.ndim == 2 else flat_rows(x)), self._places
        draws = rng.random(len(group))  # as many whatever x is
        chosen = places.first[group] + (draws * places.followed[group]).astype(np.int64)
        row = places.order[chosen]
        return self.rows[row + (self.remaining[row] > 0)].reshape(x.shape)

    def _groups_of(self, x: NDArray[Any]) -> Rows:
        """Which group of equal rows each x, (B, m), belongs to; one of none is refused."""
        keys, groups = _keys(x), self._places.group
        try:
            return np.fromiter(map(groups.__getitem__, keys), np.int64, len(keys))
        except KeyError:
            as_values("exogenous", x, self._ranges)  # some values are out of range altogether
            row = x[next(i for i, key in enumerate(keys) if key not in groups)]
            values = ", ".join(
                f"{coding.name}={coding.decode(row[j : j + 1])[0]}"
                for j, coding in enumerate(self._codings[:SHOWN_VARIABLES])
            )
            more = " ..." if len(self._codings) > SHOWN_VARIABLES else ""
            raise ArgumentError(
                f"x = ({values}{more}) was never recorded, so nobody knows what follows it: a "
                "record can be followed where it has been, and there are no interventions on x"
            ) from None

    @cached_property
    def _places(self) -> _Places:
        # Who begins with a whole episode ahead, and follows rows with as much ahead wherever there
        # are some and those with the most ahead elsewhere, never comes to an end too early.
        ahead = np.minimum(self.remaining, self.horizon - 1)
        groups: dict[bytes, int] = {}
        group = np.array([groups.setdefault(key, len(groups)) for key in _keys(self.rows)])
        order = np.lexsort((-ahead, group))
        first = np.searchsorted(group[order], np.arange(len(groups)))
        followed = np.bincount(group, weights=ahead == ahead[order[first]][group])
        return _Places(groups, order, first, followed.astype(np.int64))


def _check_steps(name: str, number: Any, least: int = 0) -> int:
    """A number of rows as a Python integer."""
    return check_whole(name, number, least, MAX_HORIZON, why="more than any record has")


class _Places(NamedTuple):
    """Where each x was seen: equal rows are a group."""

    group: dict[bytes, int]  # by the bytes of a row
    order: Rows  # (T,) rows by group; in each, those that most rows follow come first
    first: Rows  # (groups,) where each group begins in the order
    followed: Rows  # (groups,) how many of its rows are followed


def _keys(rows: NDArray[Any]) -> list[Any]:
    """The bytes of each row, shape (B, m); one zero is both of a float's."""
    rows = np.ascontiguousarray(rows + 0.0 if rows.dtype.kind == "f" else rows)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel().tolist()
