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
    def spawn(cls, rng: np.random.Generator) -> Noise:
        """Derive fresh generators from ``rng``, which moves on by the same amount each time."""
        return cls(*(np.random.default_rng(seed) for seed in rng.integers(2**63, size=2)))
