"""Policies that are tables: what exact planners return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import as_array, check_names, whole_numbers
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP, IntArray, Variable
from planners.core.files import Saved
from planners.core.observer import as_names
from planners.core.policy import Policy

#: Actions are smaller than this, so that any type for them will do.
MOST_ACTIONS = 2**31 - 1


class TabularPolicy(Policy, Saved):
    """One action for every joint value of the mask's variables and of n.

    A value outside a variable's range (an observation that the planned model does not know) is
    clipped to the nearest value inside: every observation has an action.

    Args:
        actions: the actions, shape (X, N): joint values of x and of n, both in C order.
        exogenous_sizes: the sizes of the variables of the mask, whose product is X.
        endogenous_sizes: the sizes of the endogenous variables, whose product is N.
        mask: the names of the exogenous variables it looks at.
        full: the names of all exogenous variables of the environment; by default the mask.
        endogenous_names: the names of the endogenous variables; by default ``endogenous_0`` ...
    """

    def __init__(
        self,
        actions: IntArray,
        *,
        exogenous_sizes: Sequence[int] | IntArray,
        endogenous_sizes: Sequence[int] | IntArray,
        mask: tuple[str, ...],
        full: tuple[str, ...] | None = None,
        endogenous_names: tuple[str, ...] | None = None,
    ) -> None:
        self.exogenous_sizes = whole_numbers("exogenous_sizes", exogenous_sizes, 1)  # (m,)
        self.endogenous_sizes = whole_numbers("endogenous_sizes", endogenous_sizes, 1)  # (k,)
        count = len(self.endogenous_sizes)
        self.endogenous_names = as_names(endogenous_names, count)
        mask = check_names("mask", mask)
        if len(self.exogenous_sizes) != len(mask):
            raise ArgumentError(
                f"the mask has {len(mask)} variables, but there are "
                f"{len(self.exogenous_sizes)} exogenous sizes"
            )
        variables = [
            *map(Variable, self.endogenous_names, self.endogenous_sizes.tolist()),
            *map(Variable, mask, self.exogenous_sizes.tolist()),
        ]
        super().__init__(mask, mask if full is None else full, count, variables=variables)
        shape = tuple(
            math.prod(sizes.tolist()) for sizes in (self.exogenous_sizes, self.endogenous_sizes)
        )
        actions = as_array("the table of actions", actions)
        actions = actions.astype(actions.dtype.newbyteorder("="), copy=False)  # as kernels read it
        if actions.shape != shape or not np.issubdtype(actions.dtype, np.integer):
            raise ArgumentError(
                f"the actions are whole numbers in the shape {shape}, "
                f"not {actions.dtype} in the shape {actions.shape}"
            )
        if actions.min() < 0 or actions.max() > MOST_ACTIONS:
            wrong = actions.min() if actions.min() < 0 else actions.max()
            raise ArgumentError(f"an action cannot be {wrong}")
        self.actions: IntArray = np.ascontiguousarray(actions)  # (X, N)

    @classmethod
    def planned_in(cls, mdp: ExoMDP, actions: IntArray) -> TabularPolicy:
        """The policy with these actions in the states of ``mdp``."""
        mask, full, _ = cls.names_of(mdp)
        return cls(
            actions,
            exogenous_sizes=mdp.exogenous_sizes,
            endogenous_sizes=mdp.endogenous_sizes,
            mask=mask,
            full=full,
            endogenous_names=tuple(variable.name for variable in mdp.endogenous_variables),
        )

    def widened(self, mask: tuple[str, ...], full: tuple[str, ...]) -> TabularPolicy:
        """The same policy for observations of more variables, which it ignores."""
        known = dict(zip(self.mask, self.exogenous_sizes.tolist(), strict=True))
        return TabularPolicy(
            self.actions,
            exogenous_sizes=[known.get(name, 1) for name in mask],  # any value counts as 0
            endogenous_sizes=self.endogenous_sizes,
            mask=mask,
            full=full,
            endogenous_names=self.endogenous_names,
        )

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The actions for a batch: (B, k) and the masked (B, len(mask)) give (B,)."""
        n, x = self.as_batch(endogenous, exogenous)
        return _look_up(self.actions, x, self.exogenous_sizes, n, self.endogenous_sizes)


@njit(cache=True)
def _look_up(actions: Any, x: Any, x_sizes: Any, n: Any, n_sizes: Any) -> Any:
    """The actions at the nearest values that variables of these sizes can have."""
    flat = actions.reshape(-1)
    out = np.empty(len(n), np.int64)
    for lane in range(len(n)):
        index = 0
        for i in range(len(x_sizes)):
            index = index * x_sizes[i] + min(max(x[lane, i], 0), x_sizes[i] - 1)
        for i in range(len(n_sizes)):
            index = index * n_sizes[i] + min(max(n[lane, i], 0), n_sizes[i] - 1)
        out[lane] = flat[index]
    return out
