"""The expectation over the next exogenous state, factor by factor.

W(x, n) = sum_x' P(x'|x) V(x', n), computed by the steps of an
:class:`~planners.value_iteration.elimination.Elimination`, without the joint matrix P(x'|x).
Threads share the pieces of that work. The pieces are the same however many threads there are, and
each writes to a place of its own, so that a plan does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from exo_envs.compiled.functions import njit
from exo_envs.compiled.threads import others_at, parts_of
from exo_envs.core.mdp import IntArray
from planners.core.arrays import Floats, Ints, joint_index, joint_values
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor, joint_factor
from planners.value_iteration.elimination import Axis, Elimination, Step, eliminate

Piece = TypeVar("Piece")

#: Multiplications of a piece, which take less than a millisecond. In between, the clock is looked
#: at, and threads take turns.
PIECE_MULTIPLICATIONS = 1 << 20
#: Elements of a row that are worked on at a time, so that sums stay in the nearest cache.
BLOCK_ELEMENTS = 512


def shared(
    pieces: Iterable[Piece],
    work: Callable[[int, Piece], None],
    tick: Callable[[], None],
    threads: int = 1,
) -> None:
    """Do all pieces, in any order.

    Args:
        pieces: what there is to do.
        work: does a piece, given the number of the thread that it runs in.
        tick: is called before each piece that this thread does, and may raise.
        threads: how many take pieces at the same time, at most as many as Numba may use.
    """
    left = iter(list(pieces))

    def take(thread: int, _: int) -> None:
        try:
            for piece in left:
                if thread == 0:
                    tick()
                work(thread, piece)
        finally:
            deque(left, maxlen=0)  # after an error the others stop at their next piece

    parts = parts_of(threads)
    with others_at(take, parts) as others:
        take(*parts[0])
    for other in others:
        other.result()


class _Step(NamedTuple):
    """A step of the elimination, ready for the kernel, for functions of x alone.

    Both tensors are seen as (axes before all that are involved, the involved, axes after them):
    the element (i, j, k) of the result is the sum, over the entries e of the row ``rows[j]``, of
    ``probabilities[e]`` times the input's element ``i * stride + bases[j] + offsets[e] + k``. For
    functions of x and n every element stands for N numbers.
    """

    input_size: int
    output_size: int
    middle: int  # the number of j
    inner: int  # the number of k
    stride: int
    bases: Ints  # (middle,)
    rows: Ints  # (middle,)
    starts: IntArray
    offsets: IntArray
    probabilities: Floats


#: The part of a step's result that one call of the kernel works out: rows (i, j) from first to
#: last, numbers of a row from start to end; the numbers of the input and of the result that the
#: given arrays begin with; and the numbers of an element.
_Piece = tuple[int, int, int, int, int, int, int]


class Expectation:
    """W(x, .) for all x, some at a time, from V.

    Args:
        elimination: the steps.
        factors: the dynamics of each exogenous variable.
        num_endogenous: N.
        dtype: of V and W.
    """

    def __init__(
        self, elimination: Elimination, factors: Sequence[Factor], num_endogenous: int, dtype: Any
    ) -> None:
        steps = [_make_step(elimination, factors, dtype, step) for step in elimination.steps]
        self.elimination = elimination
        self._global_steps = steps[: elimination.num_global]
        self._local_steps = steps[elimination.num_global :]
        buffers = [np.empty(size * num_endogenous, dtype) for size in elimination.buffers]
        self._buffers = buffers[:2]
        self._chunk_buffers = [buffers[2:]]  # of each thread
        self._num_endogenous = num_endogenous
        self._unit = math.prod(elimination.sizes) // elimination.num_units  # states x of a unit
        self._source: Floats = buffers[0]

    @classmethod
    def of(cls, mdp: FactoredMDP, dtype: Any) -> Expectation:
        """P(x'|x) of a model."""
        given = mdp.factors, mdp.num_endogenous_states
        return cls(eliminate(mdp.exogenous_sizes, *given), *given, dtype)

    @property
    def thread_bytes(self) -> int:
        """What each further thread takes."""
        return sum(buffer.nbytes for buffer in self._chunk_buffers[0])

    def make_room(self, threads: int) -> None:
        """Allocate what so many threads need to work on chunks at the same time."""
        while len(self._chunk_buffers) < threads:
            self._chunk_buffers.append([np.empty_like(own) for own in self._chunk_buffers[0]])

    def begin(self, values: Floats, tick: Callable[[], None], threads: int = 1) -> None:
        """Take in V, shape (X, N), and do what must be done for all x at once.

        ``values`` may be read again by :meth:`chunk`, but the rows of a chunk that was handed out
        can be overwritten. ``tick`` is called every few milliseconds and may raise.
        """
        self._source = values.reshape(-1)
        for k, step in enumerate(self._global_steps):
            target = self._buffers[k % 2]
            fill = partial(_fill, tuple(step), self._source, target)
            shared(_pieces(step, self._num_endogenous), fill, tick, threads)
            self._source = target

    def of_exogenous(self, function: Floats) -> Floats:
        """E[f(x') | x] of a function of x alone, in double precision; both have shape (X,)."""
        source = function
        for step in (*self._global_steps, *self._local_steps):
            exact = step._replace(probabilities=step.probabilities.astype(np.float64, copy=False))
            target = np.empty(step.output_size)
            for piece in _pieces(step, 1):
                _apply(tuple(exact), piece, source, target)
            source = target
        return source

    def units(self) -> list[tuple[int, int]]:
        """Where each chunk begins and ends, in units of the elimination."""
        total, step = self.elimination.num_units, self.elimination.chunk_units
        return [(first, min(first + step, total)) for first in range(0, total, step)]

    def chunk(self, thread: int, units: tuple[int, int]) -> tuple[int, Floats]:
        """W of some units: the first x, and the rows of this and the following x, shape (., N).

        The rows are valid until the thread asks for its next chunk.
        """
        first, last = units
        num_units = self.elimination.num_units
        buffers = self._chunk_buffers[thread]
        source, shift = self._source, 0
        for k, step in enumerate(self._local_steps):
            target = buffers[k % 2]
            size = self._num_endogenous
            output = step.output_size // num_units  # elements of a unit
            rows = output // step.inner
            if k:  # the first one reads the tensor of all x, the others that of the chunk
                shift = first * (step.input_size // num_units) * size
            where = shift, first * output * size
            piece = (first * rows, last * rows, 0, step.inner * size, *where, size)
            _apply(tuple(step), piece, source, target)
            source = target
        low, high = first * self._unit, last * self._unit
        if not self._local_steps:
            source = source[low * self._num_endogenous : high * self._num_endogenous]
            if not self._global_steps:  # V itself, which the caller will overwrite
                buffers[0][: len(source)] = source
                source = buffers[0]
        size = (high - low) * self._num_endogenous
        return low, source[:size].reshape(high - low, self._num_endogenous)


def _fill(step: Any, source: Floats, target: Floats, _: int, piece: _Piece) -> None:
    """Work out a piece of a step's result, in any thread."""
    _apply(step, piece, source, target)


def _pieces(step: _Step, size: int) -> Iterator[_Piece]:
    """Split a step, of elements of that many numbers, so that the clock can be looked at."""
    rows, inner = step.output_size // step.inner, step.inner * size
    entries = max(1, len(step.offsets) // max(1, len(step.starts) - 1))
    width = min(inner, max(BLOCK_ELEMENTS, PIECE_MULTIPLICATIONS // (step.middle * entries)))
    height = max(1, PIECE_MULTIPLICATIONS // (width * entries))
    for start in range(0, inner, width):
        for first in range(0, rows, height):
            last, end = min(first + height, rows), min(start + width, inner)
            yield first, last, start, end, 0, 0, size


def _make_step(
    elimination: Elimination, factors: Sequence[Factor], dtype: Any, step: Step
) -> _Step:
    sizes = elimination.sizes
    after = [axis for axis in step.after if axis[0] in step.span]
    inner = elimination.size(a for a in step.after if a[0] >= step.span.stop)
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
    return _Step(
        input_size=elimination.size(step.before),
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
    """Fill a piece of the result.

    The step comes as a plain tuple: Numba recognises that in a fraction of the time, and a step of
    a small model takes microseconds.
    """
    first, last, start, end, source_shift, target_shift, size = piece
    _, _, middle, inner, stride, bases, rows, starts, offsets, probabilities = step
    for outer in range(first // middle, (last + middle - 1) // middle):
        low = max(first - outer * middle, 0)
        high = min(last - outer * middle, middle)
        for k in range(start, end, BLOCK_ELEMENTS):
            width = min(BLOCK_ELEMENTS, end - k)
            for j in range(low, high):
                place = (outer * middle + j) * inner * size + k - target_shift
                out = target[place : place + width]
                base = (outer * stride + bases[j]) * size + k - source_shift
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
