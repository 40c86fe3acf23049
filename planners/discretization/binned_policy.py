"""Policies that were planned in bins and on grids, for observations of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentTypeError, unknown_name
from exo_envs.core.mdp import REAL_SIZE, ExoMDP, IntArray
from planners.core.files import Saved
from planners.core.planner import Plan
from planners.core.policy import Policy
from planners.discretization.bins import Bins, Grid
from planners.discretization.coarse import bins_of, put_in_bins, put_on_grid


class _RecordsOfAll:
    """The records of all policies that can be saved, whichever of them is inside."""

    def __get__(self, instance: object, owner: type) -> tuple[type, ...]:
        found = (record for kind in _kinds().values() for record in kind.records)
        return (Bins, Grid, *dict.fromkeys(found))


class BinnedPolicy(Policy, Saved):
    """A policy that looks at bins of some variables, asked about their values.

    Args:
        policy: the policy; from a file, the name of its class and what that was given.
        bins: of the variables of its mask that have very many values or real ones, and grids of
            the real variables of n (:mod:`planners.discretization.coarse`).
        endogenous_names: of the variables of n, in their order, if there are grids.
    """

    records: ClassVar[Any] = _RecordsOfAll()

    def __init__(
        self,
        policy: Policy | Mapping[str, Mapping[str, Any]],
        bins: Sequence[Bins | Grid],
        endogenous_names: Sequence[str] = (),
    ) -> None:
        inner = _made(policy) if isinstance(policy, Mapping) else policy
        super().__init__(inner.mask, inner.full, inner.endogenous_size)
        self.endogenous_names = tuple(endogenous_names)
        for own in bins:
            kind, names = "variable of the mask", self.mask
            if isinstance(own, Grid):
                kind, names = "endogenous variable", self.endogenous_names
            if own.name not in names:
                raise unknown_name(kind, own.name, names)
        self.policy = inner
        self.bins = tuple(bins)
        self.real_parts = frozenset(
            "endogenous" if isinstance(own, Grid) else "exogenous"
            for own in bins
            if own.size == REAL_SIZE
        )

    def arguments(self) -> dict[str, Any]:
        """What a file holds.

        Raises:
            TypeError: the policy inside cannot be saved, such as one of tree search.
        """
        kind = type(self.policy).__name__
        if not isinstance(self.policy, Saved):
            raise ArgumentTypeError(f"a {kind} cannot be saved")
        given = {"bins": self.bins, "endogenous_names": self.endogenous_names}
        return {"policy": {kind: self.policy.arguments()}, **given}

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The actions for a batch: (B, k) and the masked (B, len(mask)) give (B,)."""
        x: Any = put_in_bins(exogenous, self.mask, self.bins)
        n: Any = put_on_grid(endogenous, self.endogenous_names, self.bins)
        return self.policy.act(n, x)


def _made(content: Mapping[str, Mapping[str, Any]]) -> Policy:
    """The policy that a file holds."""
    [(kind, given)] = content.items()
    if kind not in _kinds():
        raise unknown_name("kind of policy", kind, _kinds())
    policy: Policy = _kinds()[kind](**given)
    return policy


def _kinds() -> dict[str, Any]:
    """The policies that can be saved, by name."""
    kinds: list[type[Any]] = Policy.__subclasses__()
    return {
        kind.__name__: kind
        for kind in kinds
        if issubclass(kind, Saved) and not issubclass(kind, BinnedPolicy)
    }


def with_values(plan: Plan, model: ExoMDP) -> Plan:
    """The same plan for observations of values, if the model it was made in has bins."""
    mask = plan.policy.mask
    bins = [own for own in bins_of(model) if isinstance(own, Grid) or own.name in mask]
    names = [variable.name for variable in model.endogenous_variables]
    return replace(plan, policy=BinnedPolicy(plan.policy, bins, names)) if bins else plan
