"""What is remembered between masks: one :class:`Memory` for each collection of rollouts.

Masks overlap, so most of what is counted for one of them is counted for the next one again. Whoever
looks at several masks makes a :class:`Memory` and passes it to all that is done with them. It only
ever saves time: with a memory or without, with a large one or a small one, results are the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.arrays import Ints

if TYPE_CHECKING:
    from exo_envs.core.statistics import GTest
    from planners.dependence.contingency import Cases, Rows
    from planners.dependence.pairwise import Columns
    from planners.dependence.significance import Null
    from planners.reduced.survey import EndogenousSurvey
    from planners.samples.rollouts import ExogenousData
    from planners.tables.factors import Factor
    from planners.tables.rules import Rule

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Bytes that a store may take unless it says otherwise.
SMALL_STORE = 2**25
#: Bytes that a store may take where entries are large, and take long to make again.
LARGE_STORE = 2**28
#: Bytes that an entry takes besides its arrays: its key, and the objects that hold the arrays.
ENTRY_BYTES = 256

#: Variables by their positions in the collection, behind whatever else a key needs.
Key = tuple[int, ...]


class Store(Generic[K, V]):
    """Values by key, of limited size: those that were not asked for longest are dropped."""

    def __init__(self, limit: int = SMALL_STORE, at_least: int = 4) -> None:
        self.limit = limit  # in bytes
        self.at_least = at_least  # this many values are kept whatever their size
        self.nbytes = 0
        self.tick: Callable[[], object] | None = None  # is called before something is made
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._kept)

    def take_over(self, other: Store[K, V], keeps: Callable[[K], bool]) -> None:
        """Keep what another store keeps under some keys."""
        for key, (value, size) in other._kept.items():
            if key not in self._kept and keeps(key):
                self._kept[key] = value, size
                self.nbytes += size

    def change(self, change: Callable[[V], V]) -> None:
        """Put something as large in the place of every value."""
        for key, (value, size) in self._kept.items():
            self._kept[key] = change(value), size

    def get(self, key: K, make: Callable[[], V]) -> V:
        """What is kept under ``key``, or else what ``make`` makes, which is kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        if self.tick is not None:
            self.tick()
        value = make()
        size = ENTRY_BYTES + _nbytes(value)
        self._kept[key] = value, size
        self.nbytes += size
        while self.nbytes > self.limit and len(self._kept) > self.at_least:
            _, (_, oldest) = self._kept.popitem(last=False)
            self.nbytes -= oldest
        return value


def _nbytes(value: Any) -> int:
    """The bytes of all arrays that a value is made of."""
    if isinstance(value, (int, float)):  # most parts are
        return 0
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    parts = value if isinstance(value, tuple) else getattr(value, "__dict__", {}).values()
    return sum(map(_nbytes, parts))


def _large() -> Store[Any, Any]:
    return Store(LARGE_STORE, at_least=0)


#: Store -> the variables that an entry is about, by its key.
_ABOUT: dict[str, Callable[[Any], list[int]]] = {
    "num_rows": lambda key: [j for j in key[1:] if j >= 0],
    **dict.fromkeys(("forecasts", "trial_forecasts"), lambda key: list(key[1:])),
    **dict.fromkeys(("forecast_scores", "forecast_rows"), list),
    "factors": lambda key: [key[0], *key[1]],
}
#: Stores in which all variables have a part.
_ABOUT_ALL = (
    *("columns", "later", "rows", "cases", "screened", "information", "nulls"),
    *("base_states", "influence", "group_influence"),
)


@dataclass(eq=False)
class Memory:
    """What is known from one collection of rollouts and the survey made with it.

    In the stores variables are named by their positions in that collection, so that masks share
    what is there. What the search for parents counts is remembered by the *stride* first: 1 for
    all rollouts that are not held out, k for every k-th of them.
    """

    #: The rollouts that it is about; None before they are collected.
    data: ExogenousData | None = None
    #: The survey that it is about; None before it is made.
    survey: EndogenousSurvey | None = None

    # --- the search for parents: planners.dependence.transitions -----------------------------

    #: stride -> the values of all variables where transitions begin.
    columns: Store[int, Columns] = field(default_factory=_large)
    #: (stride, i) -> x_i where transitions end.
    later: Store[Key, IntArray] = field(default_factory=Store)
    #: (stride, *given) -> the samples by the joint value of some variables.
    rows: Store[Key, Rows] = field(default_factory=Store)
    #: (stride, i, *given) -> the samples by the joint value of some variables and x'_i.
    cases: Store[Key, Cases] = field(default_factory=Store)
    #: (stride, *given), or (stride, *given, -1, i) with x'_i -> how many joint values occur.
    num_rows: Store[Key, int] = field(default_factory=Store)
    #: (stride, i, *given) -> G and freedom of every candidate, (2, m); not a number if unknown.
    screened: Store[Key, FloatArray] = field(default_factory=Store)
    #: (stride, i, *given, -1, *group) -> what several variables together tell about x'_i.
    information: Store[Key, GTest] = field(default_factory=Store)
    #: (stride, i, *given, -1, *group) -> how G is distributed if the group tells nothing.
    nulls: Store[Key, Null] = field(default_factory=Store)

    # --- changing one variable at a time: planners.dependence.interventions ------------------

    #: number of states -> that many x from the rollouts, and the x' that follow them.
    base_states: Store[int, tuple[IntArray, IntArray]] = field(default_factory=Store)
    #: j -> how much a change of x_j changes each variable, (m,).
    influence: Store[int, FloatArray] = field(default_factory=_large)
    #: k -> the k-th groups of variables, (m,), and which variables each of these acts on.
    group_influence: Store[int, tuple[NDArray[np.int64], NDArray[np.bool_]]] = field(
        default_factory=Store
    )

    # --- reduced models: planners.reduced ----------------------------------------------------

    #: (i, parents, smoothing) -> the table of x'_i, its log-loss, and that without parents.
    factors: Store[tuple[int, Key, float], tuple[Factor, float, float]] = field(
        default_factory=_large
    )
    #: j -> x_j in the states of the rollouts that averages are taken over.
    backgrounds: Store[int, Ints] = field(default_factory=_large)
    #: (rules, given, j) -> what x_j tells about the last rule's decision, and the rows it makes;
    #: (("reward", i), given, j) -> the same about what x_i pays;
    #: (("reward", scope), given, j) -> the same about what the variables of a scope pay.
    rule_information: Store[tuple[Hashable, Key, int], tuple[GTest, int]] = field(
        default_factory=_large
    )
    #: rules -> the backgrounds that reach the last of them, what it says in each, and the number
    #: of different things that it says.
    rule_questions: Store[Hashable, tuple[Ints, Ints, int]] = field(default_factory=_large)
    #: (rules, given) -> the last of some rules, averaged over what it is not given.
    averaged_rules: Store[tuple[Hashable, Key], Rule] = field(default_factory=_large)
    #: j -> which values of x_j pay the same, (size,), and what they pay in all pairs (n, a).
    paid_amounts: Store[int, tuple[Ints, FloatArray]] = field(default_factory=_large)
    #: scope, kept -> which joint values of the other variables of a scope pay the same, whatever
    #: those that are kept are.
    alike: Store[tuple[Key, Key], Ints] = field(default_factory=_large)
    #: scope, given -> what the variables of a scope pay on average given others, (rows, pairs).
    averaged_scopes: Store[tuple[Key, Key], FloatArray] = field(default_factory=_large)
    #: (j, *given) -> how often x_j pays each of its amounts, and what each given variable adds.
    averaged_rewards: Store[Key, tuple[FloatArray, ...]] = field(default_factory=_large)

    # --- forecasts: planners.forecasting -------------------------------------------------------

    #: given -> score and log p of every candidate for a forecast, (2, m); not a number if unknown.
    forecast_scores: Store[Key, FloatArray] = field(default_factory=_large)
    #: given -> how many joint values of some variables occur.
    forecast_rows: Store[Key, int] = field(default_factory=Store)
    #: (horizon, *forecast parents) -> row of each of their joint values, and the table.
    forecasts: Store[Key, tuple[NDArray[np.int32], NDArray[np.float32]]] = field(
        default_factory=_large
    )
    #: (steps, *forecast parents) -> the same, counted without the rollouts that are held out.
    trial_forecasts: Store[Key, tuple[NDArray[np.int32], NDArray[np.float32]]] = field(
        default_factory=_large
    )

    @contextmanager
    def ticking(self, tick: Callable[[], object]) -> Iterator[None]:
        """Call ``tick`` before anything is counted from now on; what it raises ends the counting.

        What is interrupted so is not remembered.
        """
        stores = [part for part in vars(self).values() if isinstance(part, Store)]
        before = [store.tick for store in stores]
        for store in stores:
            store.tick = tick
        try:
            yield
        finally:
            for store, earlier in zip(stores, before, strict=True):
                store.tick = earlier

    def take_over(self, earlier: Memory, same: NDArray[np.bool_]) -> None:
        """Keep what an earlier memory counted, of variables whose rollouts are the same in both.

        Args:
            earlier: of other rollouts of the same variables, as many and as long.
            same: which variables have the same values there, shape (m,).
        """
        for name, variables in _ABOUT.items():
            getattr(self, name).take_over(
                getattr(earlier, name), lambda key, own=variables: same[own(key)].all()
            )
        if same.all():
            for name in _ABOUT_ALL:
                getattr(self, name).take_over(getattr(earlier, name), lambda _: True)
        else:  # what candidates tell that are not the same is not known
            self.forecast_scores.change(lambda scores: np.where(same, scores, np.nan))

    def bind(
        self, *, data: ExogenousData | None = None, survey: EndogenousSurvey | None = None
    ) -> None:
        """Be about these rollouts, or this survey, from now on; refuse others than the first."""
        self.data = self.data or data
        self.survey = self.survey or survey
        if data not in (None, self.data) or survey not in (None, self.survey):
            raise ArgumentError(
                "this memory is about other rollouts, or another survey; make a Memory for each "
                "collection of rollouts and the survey made with it"
            )


class MaskMemory(NamedTuple):
    """A memory, for a model that has some variables of the collection only."""

    memory: Memory  # of the whole collection
    columns: NDArray[np.intp]  # (m,): the positions of the model's variables in it
    total: int  # how many variables the collection has

    @classmethod
    def fresh(cls, total: int) -> MaskMemory:
        """Nothing is remembered yet, of variables that are the whole collection."""
        return cls(Memory(), np.arange(total), total)

    def key(self, variables: Sequence[int]) -> Key:
        """Some variables of the model by their positions in the collection."""
        return tuple(self.columns[list(variables)].tolist())
