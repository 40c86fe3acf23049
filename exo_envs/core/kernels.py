"""What a model of the suite may offer beside its methods: kernels that take a whole batch.

Random numbers for x' are drawn block by block. A batch of thousands of variables takes as many of
them, which leave the cache before they are used if all are drawn first. So a block of lanes is
drawn and stepped at a time. Of a large batch each thread takes a part, with a generator that begins
where the part does: the bytes are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.noise import beginning_anywhere

#: Values of x in a batch from which on its lanes are shared by threads.
MANY_VALUES = 2**18
#: Random numbers that are drawn at a time: 256 kB.
BLOCK = 2**15


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
        lanes = len(x)
        if lanes * self.uniforms <= BLOCK:
            numbers = rng.random((lanes, self.uniforms))
            return self.kernel(0, lanes, x, numbers, *self.arguments, following)
        if x.size < MANY_VALUES:
            return self._write_part(x, rng, following)
        begin = beginning_anywhere(rng, lanes * self.uniforms)
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
        rows = max(1, BLOCK // self.uniforms)
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
