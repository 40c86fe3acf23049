"""A cache of what was counted: one :class:`Memory` for each collection of rollouts.

Masks overlap, so most counts for one of them are needed for the next one again. A caller with
several masks makes a :class:`Memory` and passes it on. It only ever saves time: with a memory or
without, with a large one or a small one, results are the same.

A module that has something to remember declares a :class:`Shelf` for it and asks for it there::

    ROWS = Shelf[Key, Rows]("rows")
    if (rows := memory.find(ROWS, key)) is None:
        rows = memory.keep(ROWS, key, count(key))
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Bytes that the entries of a shelf may take unless it says otherwise.
SHELF_BYTES = 2**25
#: Bytes that they may take where entries are large, and take long to make again.
MORE_BYTES = 2**28
#: Bytes that an entry takes besides its arrays: its key, and the objects that hold the arrays.
ENTRY_BYTES = 256

#: Variables by their positions in the collection, behind whatever else a key needs.
Key = tuple[int, ...]


def every_variable(key: Any) -> slice:  # noqa: ARG001
    """For :attr:`Shelf.about`: an entry depends on all variables of the collection."""
    return slice(None)


@dataclass(frozen=True)
class Shelf(Generic[K, V]):
    """The place of one kind of entry in every memory.

    Attributes:
        name: no other shelf has it.
        limit: in bytes; the entries that were not asked for longest are dropped.
        at_least: the number of entries that are kept whatever their size.
        about: the positions of the variables that the entry of a key was counted from. Only such
            entries serve another task over the same exogenous process (:meth:`Memory.take_over`).
        narrow: the part of a value that still holds where only some variables are the same, (m,).
    """

    name: str
    limit: int = SHELF_BYTES
    at_least: int = 0
    about: Callable[[K], list[int] | slice] | None = None
    narrow: Callable[[V, NDArray[np.bool_]], V] | None = None


class Entries(OrderedDict[K, V]):
    """The entries of one shelf, those that were not asked for longest first."""

    shelf: Shelf[K, V]

    def __init__(self) -> None:
        self.nbytes = 0
        self._sizes: dict[K, int] = {}

    def keep(self, key: K, value: V) -> None:
        """Add an entry, and drop others where there is no room."""
        self[key] = value
        self._sizes[key] = ENTRY_BYTES + _nbytes(value)
        self.nbytes += self._sizes[key]
        while self.nbytes > self.shelf.limit and len(self) > self.shelf.at_least:
            oldest, _ = self.popitem(last=False)
            self.nbytes -= self._sizes.pop(oldest)


class Memory:
    """What was counted in one collection of rollouts and the survey made with it.

    Args:
        data: the rollouts; by default those of the first call that has any.
        survey: the survey; by default that of the first call that has one.
    """

    def __init__(self, *, data: Any = None, survey: Any = None) -> None:
        self.data = data  # an ExogenousData
        self.survey = survey  # an EndogenousSurvey
        self._columns: NDArray[np.intp] | None = None  # all of the collection
        self._shelves: dict[str, Entries[Any, Any]] = {}

    def entries(self, shelf: Shelf[K, V]) -> Entries[K, V]:
        """What lies on a shelf, by key."""
        if shelf.name not in self._shelves:
            self._shelves[shelf.name] = Entries()
            self._shelves[shelf.name].shelf = shelf
        return self._shelves[shelf.name]

    def find(self, shelf: Shelf[K, V], key: K) -> V | None:
        """The entry of a key; None if it is still to be made, before which the time may be up."""
        entries = self.entries(shelf)
        if key in entries:
            entries.move_to_end(key)
            return entries[key]
        tick()
        return None

    def keep(self, shelf: Shelf[K, V], key: K, value: V) -> V:
        """Add an entry, and return it."""
        self.entries(shelf).keep(key, value)
        return value

    def part(self, columns: NDArray[np.intp]) -> Memory:
        """The same memory for a model of some variables only, given by their positions."""
        part = copy.copy(self)
        part._columns = columns
        return part

    def key(self, variables: Sequence[int]) -> Key:
        """Some variables of the model by their positions in the collection."""
        return tuple(variables if self._columns is None else self.places(variables).tolist())

    def places(self, variables: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        """The same as an array."""
        places = np.asarray(variables, dtype=np.intp)
        return places if self._columns is None else self._columns[places]

    def take_over(self, earlier: Memory, same: NDArray[np.bool_]) -> None:
        """Keep what an earlier memory counted, of variables whose rollouts are the same in both.

        Args:
            earlier: of other rollouts of the same variables, as many and as long.
            same: which variables have the same values there, shape (m,).
        """
        for known in earlier._shelves.values():
            shelf, entries = known.shelf, self.entries(known.shelf)
            if shelf.about is None:
                continue
            for key, value in known.items():
                if key not in entries and same[shelf.about(key)].all():
                    entries.keep(key, value if shelf.narrow is None else shelf.narrow(value, same))

    def bind(self, *, data: Any = None, survey: Any = None) -> None:
        """Be about these rollouts, or this survey, from now on; refuse others than the first."""
        self.data = self.data or data
        self.survey = self.survey or survey
        if data not in (None, self.data) or survey not in (None, self.survey):
            raise ArgumentError(
                "this memory is about other rollouts, or another survey; make a Memory for each "
                "collection of rollouts and the survey made with it"
            )


def _nbytes(value: Any) -> int:
    """The bytes of all arrays that a value is made of."""
    if isinstance(value, (int, float)):  # most parts are
        return 0
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    parts = value if isinstance(value, tuple) else getattr(value, "__dict__", {}).values()
    return sum(map(_nbytes, parts))
