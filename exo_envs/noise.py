"""Where the randomness of an environment comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
