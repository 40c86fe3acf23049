"""Observations as one flat array, which is what neural networks read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from numpy.typing import DTypeLike, NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import as_array, as_integers, check_choice, kind_of
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.spaces import NEEDED_SPACE
from wrappers.observation.masked import ObservationOf, VectorObservation

Flat: TypeAlias = NDArray[Any]
ENCODINGS = ("one-hot", "scaled")
#: Numbers in one flat observation, at most: 400 MB of the default type.
MAX_WIDTH = 100_000_000


@dataclass(frozen=True)
class Entry:
    """One entry of an observation.

    Attributes:
        key: its name.
        low: the first value of each variable.
        high: the last one.
        is_real: whether values are real numbers.
        is_number: whether the entry is a number, not an array of one (``Discrete``).
    """

    key: str
    low: tuple[Any, ...]
    high: tuple[Any, ...]
    is_real: bool
    is_number: bool

    @classmethod
    def of(cls, key: str, space: spaces.Space[Any]) -> Entry | None:
        """The entry that a space describes, if it can be encoded."""
        if isinstance(space, spaces.Box) and len(space.shape) == 1:
            return cls(key, tuple(space.low), tuple(space.high), True, False)
        if isinstance(space, spaces.Discrete):
            return cls(key, (int(space.start),), (int(space.start + space.n) - 1,), False, True)
        if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
            starts, sizes = space.start.tolist(), space.nvec.tolist()
            high = (start + size - 1 for start, size in zip(starts, sizes, strict=True))
            return cls(key, tuple(starts), tuple(high), False, False)
        return None

    def width(self, kind: str) -> int:
        """The number of its columns: one for a real variable, whatever the encoding."""
        if self.is_real or kind == "scaled":
            return len(self.low)
        return sum(self.high) - sum(self.low) + len(self.low)

    @cached_property
    def bounds(self) -> tuple[NDArray[Any], NDArray[Any]]:
        dtype = np.float64 if self.is_real else np.int64
        return np.array(self.low, dtype=dtype), np.array(self.high, dtype=dtype)

    @cached_property
    def scale(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The numbers of real variables shown as 0, and their distances to those shown as 1."""
        low, high = self.bounds
        bounded = np.isfinite(low) & np.isfinite(high)
        zero = np.where(bounded, low, 0.0)
        return zero, np.where(bounded & (high > low), high - zero, 1.0)

    def values(self, observation: Mapping[str, Any]) -> NDArray[Any]:
        """The numbers of this part, (..., m)."""
        if self.key not in observation:
            given = ", ".join(map(repr, observation)) or "nothing"
            raise ArgumentError(f"{self} is missing; there is {given}")
        if self.is_real:
            values = as_array(str(self), observation[self.key])
            if values.dtype.kind not in "iuf":
                raise ArgumentTypeError(f"{self} has dtype {values.dtype}; it should hold numbers")
            values = values.astype(np.float64)
        else:
            values = as_integers(str(self), observation[self.key])
        if self.is_number:
            return values[..., None]
        if values.shape[-1:] != (len(self.low),):
            raise ArgumentError(
                f"{self} has shape {values.shape}; it should be (..., {len(self.low)})"
            )
        return values

    def write(self, values: NDArray[Any], flat: Flat, first: int, kind: str) -> None:
        """Write numbers, (..., m), into the columns from ``first`` on of zeros, (lanes, D).

        Raises:
            ValueError: if a number is out of range.
        """
        low, high = self.bounds
        rows = np.ascontiguousarray(values, dtype=low.dtype).reshape(len(flat), len(low))
        if self.is_real:
            wrong = np.flatnonzero(~((rows >= low) & (rows <= high)))
            zero, unit = self.scale
            flat[:, first : first + len(low)] = (rows - zero) / unit
        else:
            found = _write(rows, low, high, flat, first, kind == "one-hot")
            wrong = np.array([found] if found >= 0 else [])
        if len(wrong):
            i = int(wrong[0]) % len(low)
            known = f"{low[i]:g} to {high[i]:g}" if self.is_real else f"{low[i]} ... {high[i]}"
            raise ArgumentError(
                f"variable {i} in {self} cannot be {values.flat[wrong[0]]}; its values are {known}"
            )

    def __str__(self) -> str:
        return f"the {self.key} part of the observation"


@njit(cache=True)
def _write(values: Any, low: Any, high: Any, flat: Any, first: Any, one_hot: Any) -> Any:
    """Write a part into zeros; the index of an entry that is out of range, or -1."""
    for lane in range(values.shape[0]):
        column = first
        for i in range(len(low)):
            if values[lane, i] < low[i] or values[lane, i] > high[i]:
                return lane * len(low) + i
            offset = values[lane, i] - low[i]
            if one_hot:
                flat[lane, column + offset] = 1
                column += high[i] - low[i] + 1
            else:
                flat[lane, column] = offset / max(high[i] - low[i], 1)
                column += 1
    return -1


@dataclass(frozen=True)
class Encoding:
    """Turns observations into one flat array, a whole batch at a time.

    The observations are those of ``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)``,
    where a part may be absent; any other keys with a one-dimensional MultiDiscrete, or with a
    Discrete, are encoded too. They follow each other in the order of the Dict.

    * ``"one-hot"``: as many columns for a variable as it has values, of which one is 1. These are
      the numbers of ``gymnasium.spaces.flatten``, which ``gymnasium.spaces.unflatten`` inverts.
    * ``"scaled"``: one column for a variable, 0 at its first value and 1 at its last; always 0 if
      it has only one.

    A part that is a one-dimensional ``Box``, of real variables, has one column for each of them in
    either encoding: 0 at its lower bound and 1 at its upper one, or the number as it is if one of
    these is infinite.

    >>> space = spaces.Dict(endogenous=spaces.MultiDiscrete([3]), exogenous=spaces.Discrete(2))
    >>> encoding = Encoding.of(space)
    >>> encoding({"endogenous": [2], "exogenous": 0})
    array([0., 0., 1., 1., 0.], dtype=float32)
    >>> encoding({"endogenous": [[2], [0]], "exogenous": [0, 1]}).shape  # a batch
    (2, 5)
    >>> Encoding.of(space, "scaled")({"endogenous": [1], "exogenous": 1})
    array([0.5, 1. ], dtype=float32)

    Attributes:
        kind: ``"one-hot"`` or ``"scaled"``.
        dtype: the dtype of the flat array.
        parts: the entries of an observation.
    """

    kind: str
    dtype: np.dtype[Any]
    parts: tuple[Entry, ...] = field(repr=False)

    @classmethod
    def of(
        cls, space: spaces.Space[Any], kind: str = "one-hot", dtype: DTypeLike = np.float32
    ) -> Encoding:
        """The encoding of a single environment's observations.

        >>> space = spaces.Dict(exogenous=spaces.MultiDiscrete([4, 3], start=[-1, 0]))
        >>> Encoding.of(space, dtype="uint8")({"exogenous": [-1, 2]})
        array([1, 0, 0, 0, 0, 0, 1], dtype=uint8)

        Args:
            space: their space.
            kind: ``"one-hot"`` or ``"scaled"``.
            dtype: of the flat array: floating, or, if one-hot, integer.

        Raises:
            TypeError: if the space is another.
            ValueError: if there is no such kind, or if it cannot have that dtype.
        """
        check_choice("encoding", kind, ENCODINGS)
        try:
            dtype = np.dtype(dtype)
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"dtype names a type of numbers, not {dtype!r}") from None
        if dtype.kind not in "iuf" or dtype.itemsize > 8 or not dtype.isnative:
            wanted = "a native real dtype of at most 64 bits"
            raise ArgumentError(f"a flat observation has {wanted}, not {dtype}")
        entries = space.spaces if isinstance(space, spaces.Dict) else {}
        parts = tuple(part for key in entries if (part := Entry.of(key, entries[key])) is not None)
        if not parts or len(parts) < len(entries):
            raise ArgumentTypeError(
                f"the observation space is {space}, not {NEEDED_SPACE}; only one-dimensional "
                "MultiDiscrete, Box and Discrete parts can be encoded, and there has to be one"
            )
        made = cls(str(kind), dtype, parts)
        fractions = "scaled values" if kind == "scaled" else "real variables"
        if dtype.kind != "f" and (kind == "scaled" or any(part.is_real for part in made.parts)):
            raise ArgumentError(f"{fractions} are fractions; dtype is a floating one, not {dtype}")
        if made.width > MAX_WIDTH:
            raise ArgumentError(
                f"a one-hot observation of {made.width:,} numbers is too long, at most "
                f'{MAX_WIDTH:,} will do; encoding="scaled" has one number for each variable'
            )
        return made

    @cached_property
    def width(self) -> int:
        """The numbers in one flat observation."""
        return sum(part.width(self.kind) for part in self.parts)

    def __call__(self, observation: Mapping[str, Any]) -> Flat:
        """Encode an observation, or a batch of them with any leading dimensions.

        >>> encoding = Encoding.of(spaces.Dict(exogenous=spaces.MultiDiscrete([2, 2])))
        >>> encoding({"exogenous": [0, 2]})
        Traceback (most recent call last):
        exo_envs.core.errors.ArgumentError: variable 1 in the exogenous part of the observation
        cannot be 2; its values are 0 ... 1

        Returns:
            A new array, shape (..., D).

        Raises:
            TypeError: if the observation is no mapping, or holds anything but numbers.
            ValueError: if a part is missing, or has a wrong shape or value.
        """
        if not isinstance(observation, Mapping):
            raise ArgumentTypeError(f"an observation is a mapping, not {kind_of(observation)}")
        values = [part.values(observation) for part in self.parts]
        batch = values[0].shape[:-1]
        if any(own.shape[:-1] != batch for own in values):
            shapes = {
                part.key: own.shape[:-1] for part, own in zip(self.parts, values, strict=True)
            }
            raise ArgumentError(
                f"the parts of the observation are batches of different shapes: {shapes}"
            )
        # Numba does not know half precision.
        written = np.dtype(np.float64) if self.dtype == np.float16 else self.dtype
        flat = np.zeros((math.prod(batch), self.width), dtype=written)
        for (part, first), own in zip(self._columns(), values, strict=True):
            part.write(own, flat, first, self.kind)
        return flat.astype(self.dtype, copy=False).reshape(*batch, self.width)

    @property
    def space(self) -> spaces.Box:
        """The space of one flat observation.

        >>> Encoding.of(spaces.Dict(exogenous=spaces.MultiDiscrete([2, 2]))).space
        Box(0.0, 1.0, (4,), float32)
        """
        low, high = np.zeros(self.width, self.dtype), np.ones(self.width, self.dtype)
        for part, first in self._columns():
            if part.is_real:
                zero, unit = part.scale
                columns = slice(first, first + len(zero))
                low[columns], high[columns] = ((bound - zero) / unit for bound in part.bounds)
        return spaces.Box(low, high, dtype=cast("Any", self.dtype))

    def _columns(self) -> Iterator[tuple[Entry, int]]:
        first = 0
        for part in self.parts:
            yield part, first
            first += part.width(self.kind)


class FlatWrapper(ObservationOf):
    """The part that both wrappers share."""

    def __init__(
        self, env: Any, encoding: str = "one-hot", *, dtype: DTypeLike = "float32"
    ) -> None:
        self.encoding = Encoding.of(self._observed_space(env), encoding, dtype)
        # Strings survive JSON.
        recorded = {"encoding": self.encoding.kind, "dtype": self.encoding.dtype.name}
        self._take(env, self.encoding.space, recorded)

    def observation(self, observation: Mapping[str, Any]) -> Flat:
        """The flat array of an observation, or of a batch of them."""
        return self.encoding(observation)


class FlatObservation(FlatWrapper, gym.ObservationWrapper[Flat, Any, Any]):
    """Shows the agent each observation as one flat array, one-hot or scaled.

    One-hot it is Gymnasium's ``FlattenObservation``, only faster and with a dtype to choose. It
    goes around masks; the rest of the environment stays as it is, states included.

    >>> env = FlatObservation(gym.make("exo_envs:ExoGrid-v0"), "scaled")
    >>> env.observation_space
    Box(0.0, 1.0, (6,), float32)
    >>> env.reset(options={"state": ([0], [2, 0, 1, 0, 1])})[0]
    array([0., 1., 0., 1., 0., 1.], dtype=float32)
    >>> gym.make(env.spec).get_wrapper_attr("encoding") == env.encoding
    True

    Args:
        env: the environment, wrapped or not.
        encoding: ``"one-hot"`` or ``"scaled"``, see :class:`Encoding`.
        dtype: of the array: floating, or, if one-hot, integer.

    Attributes:
        encoding: the :class:`Encoding`.

    Raises:
        TypeError: if the observations are of another kind.
        ValueError: if there is no such encoding, or if it cannot have that dtype.
    """

    _wraps = gym.Env


class FlatVectorObservation(FlatWrapper, VectorObservation):
    """The vector twin of :class:`FlatObservation`, with the same arguments and attributes.

    All three autoreset modes work, and ``infos["final_obs"]`` is flat too.

    >>> env = gym.make_vec("exo_envs:ExoGrid-v0", num_envs=3)
    >>> env = FlatVectorObservation(env, "scaled")
    >>> env.reset(seed=0)[0].shape
    (3, 6)
    """

    _wraps = VectorEnv

    def final(self, observations: Any, lanes: NDArray[np.intp]) -> NDArray[np.object_]:
        """The last observations of some lanes, encoded as one batch; None for the others."""
        final = np.full(self.num_envs, None, dtype=np.object_)
        if len(lanes):
            ended = observations[lanes]
            batch = {key: np.array([own[key] for own in ended]) for key in ended[0]}
            for lane, row in zip(lanes, self.observation(batch), strict=True):
                final[lane] = row
        return final
