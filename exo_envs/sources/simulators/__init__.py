"""Environments that somebody else wrote, as an :class:`ExoMDP` to sample from.

A Gymnasium environment knows only where it is now. One that can be put into a given state is a
generative model all the same: put it there, seed it, take one step, read what came of it
(:mod:`exo_envs.sources.simulators.stepped`). :class:`AdaptedMDP` is made of such steps, and
:meth:`AdaptedMDP.from_env` finds out how it is put into a state
(:mod:`exo_envs.sources.simulators.discovery`) and what actions move (:mod:`exo_envs.audit`).

What the environment cannot say is whether what was split in two is all of its state, whether its
exogenous variables really move by themselves and whether its reward really is a sum of terms
(section 3.1 of the paper). :meth:`AdaptedMDP.check_claims` compares these claims with episodes of
the environment itself (:mod:`exo_envs.sources.simulators.played`), and
:func:`exo_envs.testing.check_mdp` with :meth:`AdaptedMDP.observed_step`.
"""
