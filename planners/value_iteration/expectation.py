"""The expectation over the next exogenous state, factor by factor.

W(x, n) = sum_x' P(x'|x) V(x', n), computed by the steps of an
:class:`~planners.value_iteration.elimination.Elimination`, without the joint matrix P(x'|x).
The pieces of that work are the same however many threads share them, and each writes to a place of
its own, so that a plan does not depend on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.compiled.threads import others_at, parts_of
from exo_envs.core.clock import tick
from exo_envs.core.mdp import IntArray
from planners.core.arrays import Floats, Ints, joint_index, joint_values
from planners.tables.factors import Factor, joint_factor
from planners.value_iteration.elimination import Axis, Elimination, SumStep, eliminate

#: Multiplications of a piece, which take less than a millisecond. In between, the clock is looked
#: at, and threads take turns.
PIECE_MULTIPLICATIONS = 1 << 20
#: Elements of a row that are worked on at a time, so that sums stay in the nearest cache.
BLOCK_ELEMENTS = 512


def share(pieces: Iterable[Callable[[], object]], threads: int = 1) -> None:
    """Call all pieces of some work, in any order, unless the time is up in between.

    So many threads take pieces at the same time, at most as many as Numba may use.
    """
    left = iter(list(pieces))

    def take(*_part: int) -> None:
        try:
            for piece in left:
                tick()  # only the thread that calls has a clock
                piece()
        finally:
            deque(left, maxlen=0)  # after an error the others stop at their next piece

    if threads == 1:
        take()
        return
    parts = parts_of(threads)
    with others_at(take, parts) as others:
        take(*parts[0])
    for other in others:
        other.result()


class _StepTables(NamedTuple):
    """A step of the elimination, ready for the kernel, for functions of x alone.

    Both tensors are seen as (axes before all that are involved, the involved, axes after them):
    the element (i, j, k) of the result is the sum, over the entries e of the row ``rows[j]``, of
    ``probabilities[e]`` times the input's element ``i * stride + bases[j] + offsets[e] + k``. For
    functions of x and n every element stands for N numbers.
    """

    output_size: int
    middle: int  # the number of j
    inner: int  # the number of k
    stride: int
    bases: Ints  # (middle,)
    rows: Ints  # (middle,)
    starts: IntArray
    offsets: IntArray
    probabilities: Floats


class Expectation:
    """W of all states from V, or E[f(x') | x] from a function of x alone.

    Args:
        sizes: of the exogenous variables.
        factors: the dynamics of each of them.
        num_endogenous: N.
        dtype: of V and W.
    """

    def __init__(
        self,
        sizes: Sequence[int] | IntArray,
        factors: Sequence[Factor],
        num_endogenous: int,
        dtype: Any,
    ) -> None:
        self.elimination = elimination = eliminate(sizes, factors, num_endogenous)
        self._steps = [_make_step(elimination, factors, dtype, step) for step in elimination.steps]
        self._buffers = [np.empty(size * num_endogenous, dtype) for size in elimination.buffers()]

    def of(self, values: Floats, threads: int = 1) -> Floats:
        """W from V, shape (X, N), until the next call; without a step, that is V itself."""
        source = values.reshape(-1)
        for k, step in enumerate(self._steps):
            target = self._buffers[k % 2]
            share(_pieces(step, source, target, values.shape[1]), threads)
            source = target
        return source[: values.size].reshape(values.shape)

    def of_exogenous(self, function: Floats) -> Floats:
        """E[f(x') | x] of a function of x alone, in double precision; both have shape (X,)."""
        source = function
        for step in self._steps:
            exact = step._replace(probabilities=step.probabilities.astype(np.float64, copy=False))
            target = np.empty(step.output_size)
            share(_pieces(exact, source, target, 1))
            source = target
        return source


def _pieces(
    step: _StepTables, source: Floats, target: Floats, size: int
) -> Iterator[Callable[[], None]]:
    """Split a step, of elements of that many numbers, so that the clock can be looked at.

    A piece works out rows (i, j) from first to last, of each the numbers from start to end.
    """
    # Numba recognises a plain tuple in a fraction of the time, and a small step takes microseconds.
    plain = tuple(step)
    rows, inner = step.output_size // step.inner, step.inner * size
    entries = max(1, len(step.offsets) // max(1, len(step.starts) - 1))
    width = min(inner, max(BLOCK_ELEMENTS, PIECE_MULTIPLICATIONS // (step.middle * entries)))
    height = max(1, PIECE_MULTIPLICATIONS // (width * entries))
    for start in range(0, inner, width):
        for first in range(0, rows, height):
            piece = first, min(first + height, rows), start, min(start + width, inner), size
            yield partial(_apply, plain, piece, source, target)


def _make_step(
    elimination: Elimination, factors: Sequence[Factor], dtype: Any, step: SumStep
) -> _StepTables:
    sizes = elimination.sizes
    after = [axis for axis in step.after if axis[0] in step.span]
    inner = elimination.size([axis for axis in step.after if axis[0] >= step.span.stop])
    strides: dict[Axis, int] = {}  # of the input, in elements
    stride = inner
    for axis in reversed(step.before):
        if axis[0] in step.span:
            strides[axis] = stride
            stride *= sizes[axis[0]]
    middle = elimination.size(after)
    values = joint_values(np.arange(middle), [sizes[variable] for variable, _ in after])
    moved = [strides[i, True] for i in step.group]
    table = joint_factor(factors, step.group, step.parents, sizes, moved)
    current = [after.index((parent, False)) for parent in step.parents]
    return _StepTables(
        output_size=elimination.size(step.after),
        middle=middle,
        inner=inner,
        stride=stride,
        bases=values @ np.array([strides.get(axis, 0) for axis in after]),  # 0: the step adds it
        rows=joint_index(values[:, current], [sizes[parent] for parent in step.parents]),
        starts=table.starts,
        offsets=table.values,
        probabilities=table.probabilities.astype(dtype),
    )


@njit(cache=True, nogil=True)
def _apply(  # noqa: C901 - calls of functions with arrays would count references
    step: Any, piece: Any, source: Any, target: Any
) -> None:
    first, last, start, end, size = piece
    _, middle, inner, stride, bases, rows, starts, offsets, probabilities = step
    for outer in range(first // middle, (last + middle - 1) // middle):
        low = max(first - outer * middle, 0)
        high = min(last - outer * middle, middle)
        for k in range(start, end, BLOCK_ELEMENTS):
            width = min(BLOCK_ELEMENTS, end - k)
            for j in range(low, high):
                place = (outer * middle + j) * inner * size + k
                out = target[place : place + width]
                base = (outer * stride + bases[j]) * size + k
                entry = starts[rows[j]]
                stop = starts[rows[j] + 1]
                if width == 1:
                    total = probabilities[entry] * source[base + offsets[entry] * size]
                    for e in range(entry + 1, stop):
                        total += probabilities[e] * source[base + offsets[e] * size]
                    target[place] = total
                    continue
                at = base + offsets[entry] * size
                p0, v0 = probabilities[entry], source[at : at + width]
                for i in range(width):
                    out[i] = p0 * v0[i]
                entry += 1
                # Four at a time: each element of the result is loaded and stored less often.
                while entry + 4 <= stop:
                    at = base + offsets[entry] * size
                    p0, v0 = probabilities[entry], source[at : at + width]
                    at = base + offsets[entry + 1] * size
                    p1, v1 = probabilities[entry + 1], source[at : at + width]
                    at = base + offsets[entry + 2] * size
                    p2, v2 = probabilities[entry + 2], source[at : at + width]
                    at = base + offsets[entry + 3] * size
                    p3, v3 = probabilities[entry + 3], source[at : at + width]
                    for i in range(width):
                        out[i] += (p0 * v0[i] + p1 * v1[i]) + (p2 * v2[i] + p3 * v3[i])
                    entry += 4
                while entry < stop:
                    at = base + offsets[entry] * size
                    p0, v0 = probabilities[entry], source[at : at + width]
                    for i in range(width):
                        out[i] += p0 * v0[i]
                    entry += 1
