"""Which model makes the penalty, if the caller gives none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.core.mdp import ExoMDP
from planners.core.evaluation import ActionRule
from planners.core.memory import Memory
from planners.core.policy import Policy
from planners.dependence.closure import close_under_parents
from planners.dependence.interventions import actors_of
from planners.dependence.parents import ParentSearch
from planners.discretization.coarse import coarsened
from planners.reduced.reduced_mdp import ReducedMDP, TabulatedReducedMDP
from planners.reduced.rewards import EndDependsOnExogenousError
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import num_endogenous_states

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
    if mdp.num_states <= min(SMALL, max_states):
        return _estimated(mdp, mdp.exogenous_names, rng, memory)
    mask = _in_order(mdp, {*survey.paying, *survey.moving})
    if _fits(mdp, mask, max_states):
        mask = _with_ancestors(mdp, mask, max_states, data, memory)
    else:
        mask = _small_mask(mdp, policy, max_states)
    return _estimated(mdp, mask, rng, memory) if mask else None


def _small_mask(mdp: ExoMDP, policy: ActionRule, max_states: float) -> tuple[str, ...]:
    """The policy's mask, if it has one and that is small enough; else an empty one."""
    if not isinstance(policy, Policy) or not set(policy.mask) <= set(mdp.exogenous_names):
        return ()
    mask = _in_order(mdp, set(policy.mask))
    return mask if _fits(mdp, mask, max_states) else ()


def _estimated(
    mdp: ExoMDP, mask: Sequence[str], rng: np.random.Generator, memory: Memory
) -> FactoredMDP | None:
    model = ReducedMDP.estimate(mdp, mask, rng=rng, memory=memory)
    return model if isinstance(model, TabulatedReducedMDP) else None


def _with_ancestors(
    mdp: ExoMDP, mask: Sequence[str], max_states: float, data: ExogenousData, memory: Memory
) -> tuple[str, ...]:
    """Add parents, generation by generation, as long as they fit."""
    search, everything = ParentSearch(data, memory=memory), range(len(data.names))

    def parents(variables: Sequence[int]) -> Counter[int]:
        told: Counter[int] = Counter()
        acting = actors_of(mdp, data, list(variables), memory=memory)
        for i, suspects in zip(variables, acting, strict=True):
            found = search.parents(i, everything, suspects)
            evidence = search.explain(i, found, suspects)
            told.update({j: evidence[j].information for j in found})
        return told

    room = max_states / num_endogenous_states(mdp)
    start = data.positions(mask).tolist()
    chosen = close_under_parents(start, parents, mdp.exogenous_sizes.tolist(), room)
    return tuple(data.names[j] for j in chosen)


def _fits(mdp: ExoMDP, names: Sequence[str], max_states: float) -> bool:
    sizes = mdp.exogenous_sizes[mdp.exogenous_indices(names)]
    return num_endogenous_states(mdp) * math.prod(sizes.tolist()) <= max_states


def _in_order(mdp: ExoMDP, names: set[str]) -> tuple[str, ...]:
    return tuple(name for name in mdp.exogenous_names if name in names)
