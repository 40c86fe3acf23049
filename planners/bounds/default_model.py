"""Which model makes the penalty, if the caller gives none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from exo_envs import ExoMDP
from planners.counted import CountedMDP
from planners.evaluation import ActionRule
from planners.information import ExogenousData, ParentSearch, actors_of
from planners.memory import Memory
from planners.policy import Policy
from planners.reduction import EndogenousSurvey, ReducedMDP, TabulatedReducedMDP
from planners.tables import FactoredMDP, num_endogenous_states

#: States up to which a model of all variables is estimated.
SMALL = 100_000


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
    are those of the memory, if it has them.
    """
    tables = mdp.model if isinstance(mdp, CountedMDP) else mdp
    if isinstance(tables, FactoredMDP) and mdp.num_states <= max_states:
        return tables
    memory = Memory() if memory is None else memory
    data = memory.data or ExogenousData.collect(mdp, None, rng)
    survey = memory.survey or EndogenousSurvey.collect(mdp, data, rng)
    memory.bind(data=data, survey=survey)
    if mdp.num_states <= min(SMALL, max_states):
        return _estimated(mdp, mdp.exogenous_names, rng, memory)
    mask = _in_order(mdp, {*survey.paying, *survey.moving})
    if not _fits(mdp, mask, max_states):
        if not isinstance(policy, Policy) or not set(policy.mask) <= set(mdp.exogenous_names):
            return None
        mask = _in_order(mdp, set(policy.mask))
        if not _fits(mdp, mask, max_states):
            return None
    else:
        mask = _with_ancestors(mdp, mask, max_states, data, memory)
    if not mask:
        return None
    return _estimated(mdp, mask, rng, memory)


def _estimated(
    mdp: ExoMDP, mask: Sequence[str], rng: np.random.Generator, memory: Memory
) -> FactoredMDP | None:
    model = ReducedMDP.estimate(mdp, mask, rng=rng, memory=memory)
    return model if isinstance(model, TabulatedReducedMDP) else None


def _with_ancestors(
    mdp: ExoMDP, mask: Sequence[str], max_states: float, data: ExogenousData, memory: Memory
) -> tuple[str, ...]:
    """Add parents, generation by generation, the smallest first, as long as they fit."""
    search, everything = ParentSearch(data, memory=memory), range(len(data.names))
    size = {variable.name: variable.size for variable in mdp.exogenous_variables}
    known, newest = set(mask), list(mask)
    while newest:
        targets = data.positions(newest).tolist()
        acting = actors_of(mdp, data, targets, memory=memory)
        parents = {
            data.names[j]
            for i, suspects in zip(targets, acting, strict=True)
            for j in search.parents(i, everything, suspects)
        }
        newest = []
        for name in sorted(parents - known, key=lambda name: (size[name], name)):
            if _fits(mdp, [*known, name], max_states):
                known.add(name)
                newest.append(name)
    return _in_order(mdp, known)


def _fits(mdp: ExoMDP, names: Sequence[str], max_states: float) -> bool:
    sizes = mdp.exogenous_sizes[mdp.exogenous_indices(names)]
    return num_endogenous_states(mdp) * math.prod(sizes.tolist()) <= max_states


def _in_order(mdp: ExoMDP, names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in mdp.exogenous_names if name in names)
