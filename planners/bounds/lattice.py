"""Bounds for models whose real variables of n have few values: those of a lattice.

A bound enumerates n. A battery that is charged by one unit at a time has a real charge, and 11
values of it. On such a *lattice* (:class:`~planners.discretization.bins.Grid`) nothing is rounded,
so what bounds
the model there bounds the model itself. As soon as an n' is between two points, there is no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP, IntArray, State
from planners.core.evaluation import ActionRule, Scenarios, walk
from planners.core.memory import Memory
from planners.discretization.bins import Grid, fit_grids
from planners.discretization.coarse import CoarseMDP, put_on_grid

#: Walks of an agent that acts at random, and their steps at most: they show which n occur.
WALKS, STEPS = 64, 64
#: An n' is on the lattice if it is this near to a point, as a share of the values there are.
TOLERANCE = 1e-6


class OffLatticeError(ArgumentError):
    """An n' lies between the points of a lattice."""


class LatticeMDP(CoarseMDP):
    """A model whose real variables of n are numbers of points; x is as it is."""

    def on_grid(self, endogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """The numbers of the points; anything between them is refused."""
        found = put_on_grid(endogenous, self._endogenous_names, self.grids)
        off = np.abs(self.at_points(found) - endogenous)
        scale = np.array([np.ptp(own.points) or 1.0 for own in self.grids])
        places = [self._endogenous_names.index(own.name) for own in self.grids]
        if (off[..., places] > TOLERANCE * scale).any():
            raise OffLatticeError("an n' lies between the points of a lattice")
        return found


def on_lattice(
    mdp: ExoMDP, policy: ActionRule, memory: Memory | None, rng: np.random.Generator
) -> tuple[LatticeMDP, ActionRule, Callable[[Scenarios], Scenarios]]:
    """The model, a policy and trajectories, with points of a lattice in place of real n.

    Args:
        mdp: the model.
        policy: for states of the model.
        memory: if it has rollouts, their grids are the lattice.
        rng: for walks that show which n occur, without such rollouts.
    """
    known = () if memory is None or memory.data is None else memory.data.bins
    grids: Any = [own for own in known if isinstance(own, Grid)]
    grids = grids or fit_grids(mdp, walk(mdp, WALKS, min(mdp.horizon, STEPS), rng))
    seen = LatticeMDP(mdp, grids)

    def on_values(state: State) -> Any:
        return policy(State(seen.at_points(state.endogenous), state.exogenous))

    def as_points(scenarios: Scenarios) -> Scenarios:
        n = seen.on_grid(scenarios.endogenous, rng)
        return Scenarios(n, scenarios.exogenous, scenarios.seed)

    return seen, on_values, as_points
