"""Observations as one flat array, which is what neural networks read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import DTypeLike, NDArray

from exo_envs.core.arguments import check_choice, kind_of
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.spaces import batched_space
from wrappers.observation.flat_parts import Flat, Part, RealPart, parts_of
from wrappers.observation.wrapper_layers import VectorObservation, observed_space

KINDS = ("one-hot", "scaled")
#: Numbers in one flat observation, at most: 400 MB of the default type.
MAX_WIDTH = 100_000_000


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
    """

    kind: str
    dtype: np.dtype[Any]
    _parts: tuple[Part, ...] = field(repr=False)

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
        check_choice("encoding", kind, KINDS)
        try:
            dtype = np.dtype(dtype)
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"dtype names a type of numbers, not {dtype!r}") from None
        if dtype.kind not in "iuf" or dtype.itemsize > 8 or not dtype.isnative:
            wanted = "a native real dtype of at most 64 bits"
            raise ArgumentError(f"a flat observation has {wanted}, not {dtype}")
        if kind == "scaled" and dtype.kind != "f":
            raise ArgumentError(
                f"scaled values are fractions; dtype is a floating one, not {dtype}"
            )
        made = cls(str(kind), dtype, tuple(parts_of(space, wide=kind == "one-hot")))
        if dtype.kind != "f" and any(isinstance(part, RealPart) for part in made._parts):
            raise ArgumentError(
                f"real variables are fractions; dtype is a floating one, not {dtype}"
            )
        if made._width > MAX_WIDTH:
            raise ArgumentError(
                f"a one-hot observation of {made._width:,} numbers is too long, at most "
                f'{MAX_WIDTH:,} will do; encoding="scaled" has one number for each variable'
            )
        return made

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
        parts: list[Any] = [part.values(observation) for part in self._parts]
        batch = parts[0].shape[:-1]
        if any(values.shape[:-1] != batch for values in parts):
            shapes = {part.key: parts[i].shape[:-1] for i, part in enumerate(self._parts)}
            raise ArgumentError(
                f"the parts of the observation are batches of different shapes: {shapes}"
            )
        lanes = math.prod(batch)
        flat = np.zeros((lanes, self._width), dtype=self._written)
        for part, values in zip(self._parts, parts, strict=True):
            part.write(values, flat, one_hot=self.kind == "one-hot")
        return flat.astype(self.dtype, copy=False).reshape(*batch, self._width)

    @property
    def space(self) -> spaces.Box:
        """The space of one flat observation.

        >>> Encoding.of(spaces.Dict(exogenous=spaces.MultiDiscrete([2, 2]))).space
        Box(0.0, 1.0, (4,), float32)
        """
        low, high = np.zeros(self._width, self.dtype), np.ones(self._width, self.dtype)
        for part in self._parts:
            if isinstance(part, RealPart):
                zero, unit = part.scale
                columns = list(part.columns)
                low[columns] = (np.array(part.low) - zero) / unit
                high[columns] = (np.array(part.high) - zero) / unit
        return spaces.Box(low, high, dtype=cast("Any", self.dtype))

    @cached_property
    def _width(self) -> int:
        return sum(part.width(self.kind == "one-hot") for part in self._parts)

    @cached_property
    def _written(self) -> np.dtype[Any]:
        """What the kernel writes: Numba does not know half precision."""
        return np.dtype(np.float64) if self.dtype == np.float16 else self.dtype

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(part.key for part in self._parts)


class FlatWrapper(RecordConstructorArgs):
    """What the two wrappers share."""

    _wraps: ClassVar[type[Any]]

    def __init__(self, env: Any, encoding: str, dtype: DTypeLike) -> None:
        """Make the encoding, before the wrapper takes hold of ``env``."""
        space = observed_space(self, env, self._wraps)
        self.encoding = Encoding.of(space, encoding, dtype)
        # Strings survive JSON.
        RecordConstructorArgs.__init__(
            self, encoding=self.encoding.kind, dtype=self.encoding.dtype.name
        )

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

    def __init__(
        self,
        env: gym.Env[Any, Any],
        encoding: str = "one-hot",
        *,
        dtype: DTypeLike = "float32",
    ) -> None:
        FlatWrapper.__init__(self, env, encoding, dtype)
        gym.ObservationWrapper.__init__(self, env)
        self.observation_space = self.encoding.space


class FlatVectorObservation(FlatWrapper, VectorObservation):
    """The vector twin of :class:`FlatObservation`, with the same arguments and attributes.

    All three autoreset modes work, and ``infos["final_obs"]`` is flat too.

    >>> env = gym.make_vec("exo_envs:ExoGrid-v0", num_envs=3)
    >>> env = FlatVectorObservation(env, "scaled")
    >>> env.reset(seed=0)[0].shape
    (3, 6)
    """

    _wraps = VectorEnv

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        encoding: str = "one-hot",
        *,
        dtype: DTypeLike = "float32",
    ) -> None:
        FlatWrapper.__init__(self, env, encoding, dtype)
        VectorWrapper.__init__(self, env)
        self.single_observation_space = self.encoding.space
        batch = batched_space(spaces.Dict(flat=self.encoding.space), env.num_envs)
        self.observation_space = batch["flat"]

    def final(self, observations: Any, lanes: NDArray[np.intp]) -> NDArray[np.object_]:
        """The last observations of some lanes, encoded as one batch; None for the others."""
        final = np.full(self.num_envs, None, dtype=np.object_)
        if len(lanes):
            ended = observations[lanes]
            batch = {key: np.array([o[key] for o in ended]) for key in self.encoding._keys}
            for lane, row in zip(lanes, self.observation(batch), strict=True):
                final[lane] = row
        return final
