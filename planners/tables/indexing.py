"""How states are numbered, how many there are, and what the scopes of reward terms look at.

The state (x, n) has the index ``x * N + n``, with the joint values of x and of n in C order: the
order of ``Plan.values`` and of a tabular policy's actions, both of shape (X, N).

A *scope* is what a reward term looks at: the positions of one or more exogenous variables,
increasing. In the paper each term has a scope of one variable. The table of a term has a row for
each joint value of its scope, in C order: its shape is (joint values, N, A).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from exo_envs.core.errors import ExoError
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray
from planners.core.arrays import Ints, joint_index

Scope: TypeAlias = tuple[int, ...]

#: Joint values that the scope of a term may have.
MAX_JOINT_VALUES = 2**16
#: Numbers in the table of a term of several variables: joint values times pairs (n, a).
MAX_CELLS = 2**27


class TooLargeError(ExoError, MemoryError):
    """A model has more states than a memory budget allows; its message says how many more."""


def num_exogenous_states(mdp: ExoMDP) -> int:
    """X: the number of joint values of the exogenous variables, exactly."""
    return math.prod(variable.size for variable in mdp.exogenous_variables)


def num_endogenous_states(mdp: ExoMDP) -> int:
    """N: the number of joint values of the endogenous variables, exactly."""
    return math.prod(variable.size for variable in mdp.endogenous_variables)


@dataclass
class Affordable:
    """Variables that are chosen as long as there is room for their joint values.

    >>> part = Affordable([2, 2, 2, 2], room=8)
    >>> part.add({0: 0.0}), part.add({1: 0.5}), part.add({2: 0.1, 3: 0.2})
    ([0], [1], [3])
    """

    sizes: Sequence[int]  # of all variables
    room: float  # joint values that there may still be
    chosen: list[int] = field(default_factory=list)

    def add(self, told: Mapping[int, float]) -> list[int]:
        """Choose those of some variables that fit, first those that tell most; returns them."""
        added = []
        for i in sorted(told.keys() - set(self.chosen), key=lambda i: (-told[i], i)):
            if self.sizes[i] <= self.room:
                self.room /= self.sizes[i]
                added.append(i)
        self.chosen += added
        return added


def format_count(number: int) -> str:
    """A large number for an error message: exact while it is readable.

    >>> format_count(123456), format_count(10**80)
    ('123,456', '10^80.0')
    """
    return f"{number:,}" if number < 10**12 else f"10^{math.log10(number):.1f}"


def in_order(scoped_terms: Mapping[Scope, FloatArray]) -> dict[Scope, FloatArray]:
    """Terms by their scopes, in the order of the last variable that they look at."""
    scopes = sorted(scoped_terms, key=lambda scope: (scope[-1], scope))
    return {scope: scoped_terms[scope] for scope in scopes}


def variables_of(scopes: Iterable[Scope]) -> list[int]:
    """The variables that are in some scope, increasing."""
    return sorted({i for scope in scopes for i in scope})


def scope_shape(scope: Sequence[int], sizes: IntArray) -> list[int]:
    """How many values each variable of a scope has."""
    return [int(sizes[i]) for i in scope]


def scope_rows(scope: Scope, exogenous: IntArray, sizes: IntArray) -> Ints:
    """The row of a term's table that each x, shape (..., m), is paid by: shape (...)."""
    if len(scope) == 1:
        return np.asarray(exogenous[..., scope[0]], dtype=np.int64)
    return joint_index(exogenous[..., list(scope)], scope_shape(scope, sizes))


def along(table: FloatArray, scope: Scope, sizes: IntArray, variable: int) -> FloatArray:
    """A table by the values of one variable and those of the others: (size, others, N, A)."""
    shape = scope_shape(scope, sizes)
    split = table.reshape(*shape, *table.shape[1:])
    moved = np.moveaxis(split, scope.index(variable), 0)
    return moved.reshape(len(moved), -1, *table.shape[1:])


def refuse_large_scope(scope: Scope, names: Sequence[str], sizes: IntArray, num_pairs: int) -> None:
    """Refuse a term whose table would be too large, and say what can be done about it.

    Raises:
        TooLargeError: it has too many joint values, or too many for this many pairs (n, a).
    """
    shape = scope_shape(scope, sizes)
    number = math.prod(shape)
    if len(scope) == 1 or (number <= MAX_JOINT_VALUES and number * num_pairs <= MAX_CELLS):
        return
    values = ", ".join(f"{names[i]!r} ({size})" for i, size in zip(scope, shape, strict=True))
    raise TooLargeError(
        f"a reward term looks at {values}: {format_count(number)} joint values for "
        f"{format_count(num_pairs)} pairs (n, a). At most {MAX_JOINT_VALUES:,} joint values and "
        f"{MAX_CELLS:,} numbers fit into the table of a term; see these variables in coarser "
        "bins, or split the term into several of fewer variables each"
    )
