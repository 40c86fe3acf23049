"""Random numbers, and the kernels that a model may offer beside its methods for a whole batch.

Random numbers for x' are drawn block by block. A batch of thousands of variables takes as many of
them, which leave the cache before they are used if all are drawn first. So a block of lanes is
drawn and stepped at a time. Of a large batch each thread takes a part, with a generator that begins
where the part does: the bytes are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Values of x in a batch from which on its lanes are shared by threads.
MANY_VALUES = 2**18
#: Random numbers that are drawn at a time: 256 kB.
BLOCK_VALUES = 2**15


class LazyModule:
    """Stands for a module until one of its names is asked for.

    Compiled functions need Numba, which takes longer to import than everything else. Whoever only
    makes an environment, or asks for its spaces, does not wait for that.

    >>> json = LazyModule("json")
    >>> json.dumps([1])
    '[1]'
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # of this object, when it is copied or pickled
            raise AttributeError(attribute)
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


@dataclass(slots=True)
class Noise:
    """Two independent generators: one for x', one for n'.

    The exogenous noise has a generator of its own, so two policies under one seed meet the same
    exogenous trajectory, however differently they behave.
    """

    exogenous: np.random.Generator
    endogenous: np.random.Generator

    @classmethod
    def unseeded(cls) -> Noise:
        """Two generators that wait for :meth:`reseed`."""
        return cls(*(np.random.Generator(np.random.PCG64(0)) for _ in range(2)))

    def reseed(self, rng: np.random.Generator) -> None:
        """Start both anew with states from ``rng``, which moves on by the same amount each time.

        A generator's state is two numbers of 128 bits, the second of them odd; setting it takes a
        fifth of the time that making a generator does, which short episodes would notice.
        """
        words = rng.integers(2**64, size=8, dtype=np.uint64).tolist()
        for generator, (a, b, c, d) in (
            (self.exogenous, words[:4]),
            (self.endogenous, words[4:]),
        ):
            generator.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": a << 64 | b, "inc": c << 64 | d | 1},
                "has_uint32": 0,
                "uinteger": 0,
            }


def drawing_in_parts(
    rng: np.random.Generator, uniforms: NDArray[np.float64]
) -> Callable[[int, int], None]:
    """A function that fills some rows with what ``rng.random(out=uniforms)`` would give them.

    It may be called by several threads at once. The generator itself has moved on already.

    Args:
        rng: of the kind that :class:`Noise` has, it can be moved on by any number of draws; with
            any other the rows are filled at once.
        uniforms: (rows, width).
    """
    begin = beginning_anywhere(rng, uniforms.size)
    if begin is None:
        rng.random(out=uniforms)
        return lambda first, last: None

    def draw(first: int, last: int) -> None:
        begin(first * uniforms.shape[1]).random(out=uniforms[first:last])

    return draw


def beginning_anywhere(
    rng: np.random.Generator, numbers: int
) -> Callable[[int], np.random.Generator] | None:
    """A function that makes generators of the next ``numbers`` of ``rng.random``, or of the last.

    Its argument says how many are left out. The generator itself moves on behind all of them. It
    has to be of the kind that :class:`Noise` has; for any other there is None, and it stays where
    it is.
    """
    bits = rng.bit_generator
    if not isinstance(bits, np.random.PCG64):
        return None
    before = bits.state
    bits.advance(numbers)
    # Half a number that is left over from whole numbers is kept, as it is when reals are drawn.
    bits.state = {**before, "state": bits.state["state"]}

    def begin(left_out: int) -> np.random.Generator:
        twin = np.random.PCG64(0)
        twin.state = before
        twin.advance(left_out)
        return np.random.Generator(twin)

    return begin


@dataclass(frozen=True)
class CompiledStep:
    """A kernel, what it takes beside states and actions, and its random numbers.

    Attributes:
        kernel: ``kernel(first, last, n, x, actions, uniforms for n', uniforms for x', next n,
            next x, rewards, terminal, *arguments)`` fills the last four arrays for the lanes
            ``first ... last - 1`` and returns whether all values were in range. States and actions
            are in range when it is called. It releases Python's lock.
        arguments: what the kernel takes at the end.
        uniforms: how many numbers n' and x' need in each lane. They are drawn as the model's
            methods draw them: in one batch of shape (lanes, number) each.
    """

    kernel: Callable[..., bool]
    arguments: tuple[Any, ...]
    uniforms: tuple[int, int]


@dataclass(frozen=True)
class CompiledExogenous:
    """A kernel, what it takes beside x, and its random numbers.

    Attributes:
        kernel: ``kernel(first, last, x, uniforms, *arguments, x')`` writes the x' of the lanes
            ``first ... last - 1`` and returns whether their x were in range. x and x' are of one
            integer type that holds all values, whichever it is. It releases Python's lock.
        arguments: what the kernel takes in between.
        uniforms: how many numbers x' needs in each lane. They are drawn as ``sample_exogenous``
            draws them: in one batch of shape (lanes, uniforms).
    """

    kernel: Callable[..., bool]
    arguments: tuple[Any, ...]
    uniforms: int

    def write(self, x: NDArray[Any], rng: np.random.Generator, following: NDArray[Any]) -> bool:
        """Write x' of all lanes, (lanes, m), to another array; return whether x was in range."""
        lanes, numbers = len(x), len(x) * self.uniforms
        is_large = numbers > BLOCK_VALUES and x.size >= MANY_VALUES
        begin = beginning_anywhere(rng, numbers) if is_large else None
        if begin is None:
            return self._write_part(x, rng, following)
        from exo_envs.compiled.threads import in_parts

        def part(first: int, last: int) -> bool:
            own = begin(first * self.uniforms)
            return self._write_part(x[first:last], own, following[first:last])

        return all(in_parts(part, lanes))

    def _write_part(
        self, x: NDArray[Any], rng: np.random.Generator, following: NDArray[Any]
    ) -> bool:
        rows = max(1, min(len(x), BLOCK_VALUES // max(1, self.uniforms)))
        block = np.empty((rows, self.uniforms))
        in_range = True
        for first in range(0, len(x), rows):
            last = min(first + rows, len(x))
            numbers = block[: last - first]
            rng.random(out=numbers)
            in_range &= self.kernel(
                0, last - first, x[first:last], numbers, *self.arguments, following[first:last]
            )
        return in_range
