"""Environments that somebody else wrote, as an :class:`ExoMDP` to sample from.

A Gymnasium environment knows only where it is now. One that can be put into a given state is a
generative model all the same: put it there, seed it, take one step, read what came of it
(:mod:`exo_envs.adapter.foreign`). :class:`AdaptedMDP` is made of such steps. What the environment
cannot say is whether its exogenous variables really move by themselves and whether its reward
really is a sum over them (section 3.1 of the paper): those are claims of whoever splits its state
in two, and :func:`exo_envs.testing.check_mdp` compares them with
:meth:`AdaptedMDP.observed_step`.
"""

from exo_envs.adapter.conversion import as_mdp
from exo_envs.adapter.mdp import AdaptedMDP

__all__ = ["AdaptedMDP", "as_mdp"]
