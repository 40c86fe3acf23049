"""Where the randomness of an environment comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
