"""What a model declares and answers: its variables and their values, its states, its methods.

:class:`exo_envs.core.mdp.ExoMDP` adds what follows from the answers. So whoever passes questions on
to a model (:class:`exo_envs.contract.checked_mdp.CheckedMDP`) has everything here to override.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_list, check_choice, check_size, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.kernels import CompiledExogenous, CompiledStep, LazyModule

kernels = LazyModule("exo_envs.compiled.ranges")

IntArray: TypeAlias = NDArray[np.integer[Any]]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
Model = TypeVar("Model", bound="GenerativeModel")

#: The size of a real variable: as many values as 64-bit floats tell apart, more than any table has.
REAL_SIZE = 2**53


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable with the values ``0 ... size - 1``, or with real ones.

    >>> Variable("stock", 12)
    Variable(name='stock', size=12)
    >>> Variable("price", low=0.0, high=500.0)
    Variable(name='price', low=0.0, high=500.0)

    Args:
        name: what masks call it.
        size: how many values it has, if they are whole numbers. (That of a real variable is
            ``REAL_SIZE``.)
        low: the smallest value of a real variable; may be -inf.
        high: the largest one; may be inf.
    """

    name: str
    size: int = 0
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"a variable's name is a non-empty string, not {self.name!r}")
        if self.low is None and self.high is None:
            size = check_size(f"the size of {self.name!r}", self.size)
            object.__setattr__(self, "size", size)
            return
        if self.size not in (0, REAL_SIZE):
            raise ArgumentError(
                f"{self.name!r} has a size, which makes its values whole numbers, or low and high, "
                "which make them real; not both"
            )
        low, high = (_bound(self.name, name, getattr(self, name)) for name in ("low", "high"))
        if not low < high:
            raise ArgumentError(f"{self.name!r} needs low < high, not {low:g} and {high:g}")
        for attribute, value in (("size", REAL_SIZE), ("low", low), ("high", high)):
            object.__setattr__(self, attribute, value)

    @property
    def is_real(self) -> bool:
        """Whether the values are real numbers from ``low`` to ``high``."""
        return self.low is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        if self.low is None or self.high is None:
            return 0, self.size - 1
        return self.low, self.high

    @property
    def range(self) -> str:
        """The same for people.

        >>> Variable("stock", 12).range, Variable("price", low=0, high=9.5).range
        ('0 ... 11', '0 to 9.5')
        """
        low, high = self.bounds
        return f"{low:g} to {high:g}" if self.is_real else f"{low} ... {high}"

    def __repr__(self) -> str:
        values = f"low={self.low}, high={self.high}" if self.is_real else f"size={self.size}"
        return f"Variable(name={self.name!r}, {values})"


class Ranges:
    """The values that the variables of one part of a state may have, as arrays (variables,).

    Attributes:
        variables: of the part.
        is_real: whether one of them is real. Then the part is an array of floats, with whole ones
            for the variables that are not.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.is_real = any(variable.is_real for variable in variables)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if self.is_real else np.int64)

    @cached_property
    def low(self) -> NDArray[Any]:
        return np.array([v.bounds[0] for v in self.variables], dtype=self.dtype)

    @cached_property
    def high(self) -> NDArray[Any]:
        return np.array([v.bounds[1] for v in self.variables], dtype=self.dtype)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([v.size for v in self.variables], dtype=np.int64)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        return np.array([not v.is_real for v in self.variables], dtype=np.bool_)

    def fit(self, values: NDArray[Any]) -> bool:
        """Whether all values are in range, in a compiled pass over an array (B, variables)."""
        if self.is_real:
            return bool(kernels.all_within(values, self.low, self.high, self.whole))
        return bool(kernels.all_in_range(values, self.sizes))

    def misfits(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values, in an array (..., variables), their variables cannot have."""
        wrong = ~((values >= self.low) & (values <= self.high))  # so that NaN is wrong too
        if self.is_real:
            wrong |= self.whole & (values != np.floor(values))
        return np.asarray(wrong)

    def misfit(self, values: NDArray[Any]) -> Misfit | None:
        """The first value that its variable cannot have, in an array (..., variables)."""
        wrong = self.misfits(values)
        if not wrong.any():
            return None
        where = tuple(int(place) for place in np.argwhere(wrong)[0])
        return Misfit(where[:-1], self.variables[where[-1]], values[where])

    @cached_property
    def unbounded(self) -> NDArray[np.bool_]:
        """Which variables have no smallest or no largest value, shape (variables,)."""
        return ~np.isfinite(self.high) | ~np.isfinite(self.low)

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[Any]:
        """Values that are drawn uniformly, shape (size, variables); 0 of what is unbounded."""
        shape = (size, len(self.variables))
        if not self.is_real:
            return rng.integers(self.high + 1, size=shape)
        low, high = (np.where(self.unbounded, 0.0, bound) for bound in (self.low, self.high))
        values = low + (high - low + self.whole) * rng.random(shape)
        return np.minimum(np.where(self.whole, np.floor(values), values), high)


class Misfit(NamedTuple):
    """A value that its variable cannot have."""

    lane: tuple[int, ...]
    variable: Variable
    value: Any


def _bound(name: str, which: str, value: Any) -> float:
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or math.isnan(value):
        raise ArgumentError(
            f"{which} of {name!r} is a number (-inf and inf too), not {shown(value)}"
        )
    return float(value)


class State(NamedTuple):
    """A state, or a batch of states: leading dimensions are batch dimensions.

    A part with a real variable is an array of floats.
    """

    endogenous: IntArray  # (..., k)
    exogenous: IntArray  # (..., m)


class Transition(NamedTuple):
    """What one step of an :class:`ExoMDP` gives."""

    state: State  # the next state
    reward: FloatArray  # (...)
    reward_terms: FloatArray  # (..., m), or as many as there are reward_scopes


class Successors(NamedTuple):
    """All n' that may follow, with their probabilities.

    Those of probability 0 are padding; they too are values in range.
    """

    endogenous: IntArray  # (..., K, k)
    probabilities: FloatArray  # (..., K)

    @classmethod
    def certain(cls, endogenous: IntArray) -> Successors:
        """One n' for each state, of shape (..., k): nothing is left to chance."""
        if not np.ndim(endogenous):
            raise ArgumentError(
                f"n' is an array (..., k) of whole numbers, not {shown(endogenous)}"
            )
        return cls(endogenous[..., None, :], np.ones((*endogenous.shape[:-1], 1)))


class GenerativeModel(ABC):
    """The questions that a model is asked, what it declares, and what is read off that.

    See :class:`exo_envs.core.mdp.ExoMDP`, which everybody writes a subclass of.
    """

    endogenous_variables: tuple[Variable, ...]
    exogenous_variables: tuple[Variable, ...]
    num_actions: int
    discount: float
    horizon: int
    is_batched: bool = True
    is_recorded: bool = False

    # --- what a subclass writes -----------------------------------------------------------

    @abstractmethod
    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Draw ``size`` states from P(s_0), as arrays of shape (size, k) and (size, m)."""

    @abstractmethod
    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw x' from P(x' | x): neither the action nor n is there to be looked at."""

    @abstractmethod
    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Draw n' from P(n' | n, a, x), of shape (..., k); ``action`` has shape (...)."""

    @abstractmethod
    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The R^i(n, x^i, a) of the paper, shape (..., m); term i looks at no other x^j.

        With ``reward_scopes`` of its own a model has a column for each of these.
        """

    @cached_property
    def reward_scopes(self) -> tuple[tuple[str, ...], ...]:
        """The exogenous variables that each column of :meth:`reward_terms` looks at.

        By default, as in the paper, there is a column for each variable and it looks at no other.
        If some pay only together, such as price times load, a subclass says so in an attribute:
        ``reward_scopes = (("price", "load"), ("weather",))``.
        """
        return tuple((name,) for name in self.exogenous_names)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """The part of the reward that depends on no exogenous variable, shape (...)."""
        return np.zeros(batch_shape(endogenous))

    def is_terminal(self, state: State) -> BoolArray:
        """Whether the episode is over in ``state``, shape (...)."""
        return np.zeros(batch_shape(as_pair(state).endogenous), dtype=np.bool_)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """P(n' | n, a, x) itself, or None if the model can only draw from it (the default).

        Bounds (:func:`planners.bracket`) are tighter if a model says this. An n' may occur more
        than once; its probabilities are then added.
        """
        return None

    def compiled_step(self) -> CompiledStep | None:
        """A whole step of a batch in one call, or None if the model has none (the default).

        It gives what the methods give, but for the order of sums, and all values are in range.
        """
        return None

    def compiled_exogenous(self) -> CompiledExogenous | None:
        """What :meth:`sample_exogenous` gives, in any integer type, or None (the default)."""
        return None

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """``size`` initial states, and x_1 ... x_num_steps as they follow, each (size, m).

        A recorded model has windows of its record here.
        """
        state = self.sample_initial(size, rng)

        def following() -> Iterator[IntArray]:
            x = state.exogenous
            for _ in range(num_steps):
                x = self.sample_exogenous(x, rng)
                yield x

        return state, following()

    @property
    def held_out(self: Model) -> Model:
        """The model on whose trajectories results are judged: this one.

        That of a record is another one, of later time.
        """
        return self

    @cached_property
    def has_endogenous_reward(self) -> bool:
        """Whether there is more to the reward than zeros, which need not be added."""
        own = vars(self).get("endogenous_reward", type(self).endogenous_reward)
        return own is not GenerativeModel.endogenous_reward

    # --- sizes and names ------------------------------------------------------------------

    def declare_as(self, model: GenerativeModel) -> None:
        """Declare what another model does: variables, actions, scopes of the reward, and so on."""
        for name in (*GenerativeModel.__annotations__, "reward_scopes"):
            setattr(self, name, getattr(model, name))

    @cached_property
    def endogenous_ranges(self) -> Ranges:
        return Ranges(self.endogenous_variables)

    @cached_property
    def exogenous_ranges(self) -> Ranges:
        return Ranges(self.exogenous_variables)

    def ranges_of(self, part: str) -> Ranges:
        """The values of the variables of one part, "endogenous" or "exogenous"."""
        return self.endogenous_ranges if part == "endogenous" else self.exogenous_ranges

    def dtype_of(self, part: str) -> np.dtype[Any]:
        """The type of one part of a state: int64, or float64 if it has a real variable."""
        return self.ranges_of(part).dtype

    @cached_property
    def scope_indices(self) -> tuple[tuple[int, ...], ...]:
        """``reward_scopes`` as positions in x, increasing."""
        return tuple(
            tuple(sorted(self.exogenous_indices(scope).tolist())) for scope in self.reward_scopes
        )

    @cached_property
    def endogenous_sizes(self) -> NDArray[np.int64]:
        return self.endogenous_ranges.sizes

    @cached_property
    def exogenous_sizes(self) -> NDArray[np.int64]:
        return self.exogenous_ranges.sizes

    @cached_property
    def exogenous_names(self) -> tuple[str, ...]:
        """The names of the exogenous variables: what masks are made of."""
        return tuple(v.name for v in self.exogenous_variables)

    @cached_property
    def num_states(self) -> int:
        """The size of the whole state space, exactly; of real variables, as 64-bit floats."""
        return math.prod(int(v.size) for v in self.endogenous_variables + self.exogenous_variables)

    @cached_property
    def _exogenous_positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.exogenous_names)}

    def exogenous_indices(self, names: Iterable[str]) -> NDArray[np.intp]:
        """The positions of the named exogenous variables in x."""
        names = as_list("names of variables", names)
        positions = self._exogenous_positions
        for name in names:
            check_choice("exogenous variable", name, positions)
        return np.array([positions[name] for name in names], dtype=np.intp)

    def __repr__(self) -> str:
        states = f"10^{math.floor(10 * math.log10(self.num_states)) / 10:.1f} states"
        if self.endogenous_ranges.is_real or self.exogenous_ranges.is_real:
            states = "real values"
        return (
            f"{type(self).__name__}({len(self.exogenous_variables)} exogenous variables, "
            f"{states}, {self.num_actions} actions)"
        )


def is_as_new(mdp: GenerativeModel, method: str, others: Iterable[str]) -> bool:
    """Whether no class below that of a method, nor the model itself, has one of the others.

    A class that changes how its parent moves or pays inherits what the parent said of itself
    (a compiled step, probabilities of n'), which is then of another model.
    """
    owners = [vars(mdp), *(vars(owner) for owner in type(mdp).__mro__)]

    def depth(name: str) -> int:
        return next(i for i, owner in enumerate(owners) if name in owner)

    return depth(method) <= min(map(depth, others))


def as_pair(state: Any) -> State:
    """A state, of which only that much is looked at: it has two parts."""
    if isinstance(state, State):
        return state
    if isinstance(state, tuple) and len(state) == len(State._fields):
        return State(*state)
    raise ArgumentTypeError(
        f"a state is a State of its endogenous and exogenous part, not {shown(state)}"
    )


def batch_shape(part: Any) -> tuple[int, ...]:
    """The batch dimensions of one part of a state, which is an array (..., variables)."""
    if not isinstance(part, np.ndarray):
        raise ArgumentTypeError(
            f"a part of a state is an array of whole numbers, not {shown(part)}"
        )
    return part.shape[:-1]
