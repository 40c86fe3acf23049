"""Variables that say the same: each value of one comes with one value of the other.

A test finds one of them and nothing in the other, and a planner needs one of them only. Which one
is kept is a matter of taste, so whoever reads a mask should know that there was a choice.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import as_positions, check_kind
from exo_envs.core.mdp import IntArray
from planners.dependence.contingency import Rows
from planners.samples.rollouts import ExogenousData

#: How often a variable has to change, within rollouts and from one to the next, before two that
#: always changed together are the same.
MIN_CHANGES = 20
#: States in which variables are compared before they are in all.
NUM_STATES = 64


class Duplicates:
    """Which variables of some rollouts say the same.

    >>> values = np.random.default_rng(0).integers(2, size=(10, 20, 3))
    >>> values[:, :, 2] = 1 - values[:, :, 0]
    >>> names, sizes = ("sun", "noise", "rain"), np.array([2, 2, 2])
    >>> data = ExogenousData(names, sizes, values, np.zeros((10, 1), int), 0)
    >>> Duplicates(data).of(0), Duplicates(data).of(1)
    ((2,), ())
    """

    def __init__(self, data: ExogenousData) -> None:
        check_kind("data", data, ExogenousData)
        self.data = data
        self._states = data.values.reshape(-1, data.values.shape[2])

    def of(self, variable: int) -> tuple[int, ...]:
        """The other variables that are a one-to-one function of this one in all states.

        There are none if it hardly changes: then all that hardly change look the same.

        Args:
            variable: its position in the data.
        """
        (j,) = as_positions("variable", [variable], len(self.data.names)).tolist()
        alike = np.flatnonzero((self._kinds == self._kinds[:, [j]]).all(axis=0))
        if len(alike) < 2:
            return ()
        own = self._states[:, j]
        changed = np.flatnonzero(own[1:] != own[:-1])
        if len(changed) < MIN_CHANGES:
            return ()
        # Where it changes, before and after: others that are the same change there, too.
        chosen = changed[np.linspace(0, len(changed) - 1, NUM_STATES // 2).astype(np.int64)]
        kinds = _first_of_kind(self._states[np.concatenate([chosen, chosen + 1])][:, alike])
        alike = alike[(kinds == kinds[:, alike == j]).all(axis=0)]
        return tuple(k for k in alike.tolist() if k != j and self._is_one_to_one(j, k))

    @cached_property
    def _kinds(self) -> NDArray[np.intp]:
        """Which values of each variable are the same in a few states, shape (states, m)."""
        rng = np.random.default_rng([self.data.seed, len(self._states)])
        chosen = rng.integers(len(self._states), size=NUM_STATES)
        return _first_of_kind(self._states[chosen])

    def _is_one_to_one(self, *variables: int) -> bool:
        """Whether two variables have as many joint values as each of them has values."""
        columns = [np.ascontiguousarray(self._states[:, j]) for j in variables]
        sizes = [int(self.data.sizes[j]) for j in variables]
        alone = [
            Rows.of(len(self._states)).split(*each) for each in zip(columns, sizes, strict=True)
        ]
        both = alone[0].split(columns[1], sizes[1])
        return alone[0].count == both.count == alone[1].count


def _first_of_kind(values: IntArray) -> NDArray[np.intp]:
    """For each entry of a column the first row with the same value, shape (rows, columns)."""
    return np.stack([(values == row).argmax(axis=0) for row in values])
