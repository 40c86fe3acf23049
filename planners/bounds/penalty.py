"""The price of knowing the future: penalties made of approximate values.

Whoever knows x' before acting is charged for it. The charge for reaching n' is

    V̂(n', x') - mean of V̂(n', x'') over fresh draws x'' from P(. | x),

which is zero on average for every policy that does not know x'. So the relaxed problem still bounds
all policies, whatever V̂ is; the closer V̂ is to the best values, the tighter the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from exo_envs.core.arguments import check_horizon, check_positive, whole_numbers
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.core.arrays import Floats, Ints, chunks, joint_index
from planners.discretization.coarse import bins_of, put_in_bins
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import (
    TooLargeError,
    format_count,
    num_endogenous_states,
    num_exogenous_states,
)
from planners.value_iteration.sweeps import backward_induction

#: States up to which exact values are worked out, unless told otherwise.
MAX_STATES = 10_000_000

#: Takes x of the full model, shape (B, m), to values (B, N), with n in the order of its flat index.
ValuesAt: TypeAlias = Callable[[Ints], Floats]


class ValueFunction(Protocol):
    """Approximate values that know how many steps are left."""

    def backwards(self, horizon: int) -> Iterator[ValuesAt]:
        """The values with 0, 1, ... ``horizon - 1`` steps left.

        Each is asked before the next one is made, so that no more than one need be kept.
        """
        ...


class ExactValues:
    """The best values in a model that can be enumerated, mostly a reduced one.

    Args:
        model: an MDP as tables.
        columns: where the exogenous variables of ``model`` are in the full x; by default those of
            the mask for a reduced model, and all for any other.
        max_states: larger models are refused.
        dtype: of the values; rounding does not harm the bound.
    """

    def __init__(
        self,
        model: FactoredMDP,
        columns: Sequence[int] | None = None,
        *,
        max_states: float = MAX_STATES,
        dtype: Any = np.float32,
    ) -> None:
        if not isinstance(model, FactoredMDP):
            raise ArgumentTypeError(
                f"exact values need an MDP as tables (FactoredMDP), not {type(model).__name__}"
            )
        max_states = check_positive("max_states", max_states)
        if model.num_states > max_states:
            raise TooLargeError(
                f"{model!r} has {format_count(model.num_states)} states; exact values are worked "
                f"out for at most {format_count(int(max_states))}. Give a model of fewer variables"
            )
        if columns is None:
            columns = getattr(model, "columns", range(len(model.exogenous_variables)))
        self.model = model
        self.columns = whole_numbers("columns", columns, 0, dtype=np.intp)
        self.dtype = np.dtype(dtype)

    @classmethod
    def of(cls, model: FactoredMDP, mdp: ExoMDP, **options: Any) -> ExactValues:
        """Those of a model whose variables are some of ``mdp``'s, by name."""
        for part in ("endogenous", "exogenous"):
            sizes = {v.name: v.size for v in getattr(mdp, f"{part}_variables")}
            sizes |= {b.name: len(b) for b in bins_of(model) if sizes.get(b.name) == b.size}
            for v in getattr(model, f"{part}_variables"):
                if sizes.get(v.name) != v.size:
                    raise ArgumentError(
                        f"{model!r} does not fit {mdp!r}: {part} variable {v.name!r} has "
                        f"{v.size} values there and {sizes.get(v.name, 'none')} here"
                    )
        if num_endogenous_states(model) != num_endogenous_states(mdp):
            raise ArgumentError(f"{model!r} does not have the endogenous variables of {mdp!r}")
        return cls(model, [int(i) for i in mdp.exogenous_indices(model.exogenous_names)], **options)

    def backwards(self, horizon: int) -> Iterator[ValuesAt]:
        """The values with 0, 1, ... ``horizon - 1`` steps left."""
        horizon = check_horizon("horizon", horizon)
        sizes, names = self.model.exogenous_sizes, self.model.exogenous_names
        bins = bins_of(self.model)
        for values in backward_induction(self.model, horizon - 1, self.dtype):

            def values_at(x: Ints, table: Floats = values) -> Floats:
                return table[joint_index(put_in_bins(x[:, self.columns], names, bins), sizes)]

            yield values_at

    def __repr__(self) -> str:
        """Name the model."""
        states = num_exogenous_states(self.model) * num_endogenous_states(self.model)
        return f"ExactValues({format_count(states)} states)"


def penalties(
    mdp: ExoMDP,
    values: Sequence[ValuesAt],
    exogenous: Ints,
    following: Ints,
    num_fresh: int,
    rng: np.random.Generator,
) -> FloatArray:
    """What reaching each n' costs, shape (B, N, functions).

    Args:
        mdp: the full model, from which x'' is drawn.
        values: the value functions, for the steps that are left at x'.
        exogenous: x, shape (B, m).
        following: the x' that followed on the trajectory, shape (B, m).
        num_fresh: draws of x'' for each x.
        rng: for these draws.
    """
    count, num_states = len(exogenous), num_endogenous_states(mdp)
    out = np.empty((count, num_states, len(values)))
    for part in chunks(count, num_fresh * max(exogenous.shape[1], num_states)):
        rows = part.stop - part.start
        repeated = np.repeat(exogenous[part], num_fresh, axis=0)
        fresh = mdp.sample_exogenous(repeated, rng).astype(mdp.dtype_of("exogenous"), copy=False)
        for f, function in enumerate(values):
            expected = _asked(function, fresh, num_states).reshape(rows, num_fresh, num_states)
            met = _asked(function, following[part], num_states)
            np.subtract(met, expected.mean(axis=1, dtype=np.float64), out=out[part, :, f])
    return out


def _asked(function: ValuesAt, exogenous: Ints, num_states: int) -> Floats:
    found = np.asarray(function(exogenous))
    if found.shape != (len(exogenous), num_states):
        raise ArgumentError(
            f"a value function gives an array of shape {found.shape}; for {len(exogenous)} x and "
            f"{num_states} n it should be {(len(exogenous), num_states)}"
        )
    if not np.isfinite(found).all():
        raise ArgumentError("a value function gives values that are not finite")
    return found
