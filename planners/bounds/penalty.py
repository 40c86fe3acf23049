"""The price of knowing the future: penalties made of approximate values.

Whoever knows x' before acting is charged for it. The charge for reaching n' is

    V̂(n', x') - mean of V̂(n', x'') over fresh draws x'' from P(. | x),

which is zero on average for every policy that does not know x'. So the relaxed problem still bounds
all policies, whatever V̂ is; the closer V̂ is to the best values, the tighter the bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.core.arguments import check_horizon
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.core.arrays import Floats, Ints, chunks, joint_index
from planners.core.evaluation import ActionRule
from planners.core.memory import Memory
from planners.core.policy import Policy
from planners.dependence.interventions import actors_of
from planners.dependence.parents import ParentSearch
from planners.discretization.coarse import Binning, bins_of, coarsened
from planners.reduced.reduced_mdp import ReducedMDP, TabulatedReducedMDP
from planners.reduced.rewards import EndDependsOnExogenousError
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import (
    Affordable,
    TooLargeError,
    format_count,
    num_endogenous_states,
)
from planners.value_iteration.sweeps import backward_induction

#: States up to which exact values are worked out.
MAX_EXACT_STATES = 10_000_000
#: States up to which a model of all variables is estimated.
SMALL_MODEL_STATES = 100_000

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
        mdp: whose x is given, with the variables of ``model`` and others; by default ``model``.
    """

    def __init__(self, model: FactoredMDP, mdp: ExoMDP | None = None) -> None:
        if not isinstance(model, FactoredMDP):
            raise ArgumentTypeError(
                f"exact values need an MDP as tables (FactoredMDP), not {type(model).__name__}"
            )
        if model.num_states > MAX_EXACT_STATES:
            raise TooLargeError(
                f"{model!r} has {format_count(model.num_states)} states; exact values are worked "
                f"out for at most {format_count(MAX_EXACT_STATES)}. Give a model of fewer variables"
            )
        self.model, mdp = model, model if mdp is None else mdp
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
        self.columns = mdp.exogenous_indices(model.exogenous_names)

    def backwards(self, horizon: int) -> Iterator[ValuesAt]:
        horizon = check_horizon("horizon", horizon)
        sizes, names = self.model.exogenous_sizes, self.model.exogenous_names
        binning = Binning(names, bins_of(self.model))
        # In single precision: rounding does not harm the bound.
        for values in backward_induction(self.model, horizon - 1, np.float32):

            def values_at(x: Ints, table: Floats = values) -> Floats:
                return table[joint_index(binning.put(x[:, self.columns]), sizes)]

            yield values_at


def penalties(
    mdp: ExoMDP,
    values_at: ValuesAt,
    exogenous: Ints,
    following: Ints,
    num_fresh: int,
    rng: np.random.Generator,
) -> FloatArray:
    """What reaching each n' costs, shape (B, N).

    Args:
        mdp: the full model, from which x'' is drawn.
        values_at: the approximate values, for the steps that are left at x'.
        exogenous: x, shape (B, m).
        following: the x' that followed on the trajectory, shape (B, m).
        num_fresh: draws of x'' for each x.
        rng: for these draws.
    """
    count, num_states = len(exogenous), num_endogenous_states(mdp)
    out = np.empty((count, num_states))
    for part in chunks(count, num_fresh * max(exogenous.shape[1], num_states)):
        repeated = np.repeat(exogenous[part], num_fresh, axis=0)
        fresh = mdp.sample_exogenous(repeated, rng).astype(mdp.dtype_of("exogenous"), copy=False)
        expected = _asked(values_at, fresh, num_states).reshape(-1, num_fresh, num_states)
        met = _asked(values_at, following[part], num_states)
        np.subtract(met, expected.mean(axis=1, dtype=np.float64), out=out[part])
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


def default_model(
    mdp: ExoMDP,
    policy: ActionRule,
    max_states: float,
    rng: np.random.Generator,
    memory: Memory | None = None,
) -> FactoredMDP | None:
    """A model that can be enumerated and knows what matters most, or None.

    That is the model itself if it is small. Else it has the variables that pay or move n and, as
    long as there is room, what predicts those: if a variable that it lacks foretells one that it
    has, the penalty does not charge for knowing the latter. If those that pay or move n are
    already too many, it has the policy's mask, if that is small enough. The rollouts and the survey
    are those of the memory, if it has them. If the end of an episode depends on x, there is no such
    model, since it has to be told from n.
    """
    tables = unchecked(mdp)
    if isinstance(tables, FactoredMDP) and mdp.num_states <= max_states:
        return tables
    memory = Memory() if memory is None else memory
    data = memory.data or ExogenousData.collect(mdp, None, rng)
    try:
        survey = memory.survey or EndogenousSurvey.collect(mdp, data, rng)
    except EndDependsOnExogenousError:
        return None
    memory.bind(data=data, survey=survey)
    mdp = coarsened(mdp, data.bins)
    sizes, room = mdp.exogenous_sizes, max_states / num_endogenous_states(mdp)

    def fits(columns: Sequence[int]) -> bool:
        return math.prod(sizes[list(columns)].tolist()) <= room

    names = {*survey.paying, *survey.moving}
    columns = [j for j, name in enumerate(data.names) if name in names]
    if mdp.num_states <= min(SMALL_MODEL_STATES, max_states):
        columns = list(range(len(data.names)))
    elif fits(columns):
        search = ParentSearch(data, memory=memory)
        part = Affordable(sizes.tolist(), room)
        newest = part.add(dict.fromkeys(columns, 0.0))
        while newest:
            told: Counter[int] = Counter()
            acting = actors_of(mdp, data, newest, memory=memory)
            for i, suspects in zip(newest, acting, strict=True):
                found = search.parents(i, range(len(data.names)), suspects)
                evidence = search.explain(i, found, suspects)
                told.update({j: evidence[j].information for j in found})
            newest = part.add(told)
        columns = sorted(part.chosen)
    else:
        own = set(policy.mask) if isinstance(policy, Policy) else set()
        columns = [j for j, name in enumerate(data.names) if name in own]
        if len(columns) < len(own) or not fits(columns):
            return None
    if not columns:
        return None
    mask = [data.names[j] for j in columns]
    model = ReducedMDP.estimate(mdp, mask, rng=rng, memory=memory)
    return model if isinstance(model, TabulatedReducedMDP) else None
