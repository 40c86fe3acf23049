"""The probabilities of n', where a model's word on them can be taken."""

from __future__ import annotations

from exo_envs import ExoMDP, State, Successors
from exo_envs.mdp import IntArray


def given_successors(mdp: ExoMDP, state: State, action: IntArray) -> Successors | None:
    """What ``mdp.endogenous_distribution`` says, or None if n' has to be drawn.

    A class that changes how n' is drawn and inherits the probabilities speaks of another model:
    they count only if they were written together with ``sample_endogenous``, or later.
    """
    said, drawn = (_depth(mdp, name) for name in ("endogenous_distribution", "sample_endogenous"))
    return mdp.endogenous_distribution(state, action) if said <= drawn else None


def _depth(mdp: ExoMDP, method: str) -> int:
    """How far up a method is defined: 0 on the object itself, 1 in its class, and so on."""
    owners = [vars(mdp), *(vars(owner) for owner in type(mdp).__mro__)]
    return next(depth for depth, owner in enumerate(owners) if method in owner)
