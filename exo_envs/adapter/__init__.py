"""Environments that somebody else wrote, as an :class:`ExoMDP` to sample from.

A Gymnasium environment knows only where it is now. One that can be put into a given state is a
generative model all the same: put it there, seed it, take one step, read what came of it
(:mod:`exo_envs.adapter.foreign`). :class:`AdaptedMDP` is made of such steps, and
:meth:`AdaptedMDP.from_env` finds out how it is put into a state
(:mod:`exo_envs.adapter.discovery`) and what actions move (:mod:`exo_envs.auditing`).

What the environment cannot say is whether what was split in two is all of its state, whether its
exogenous variables really move by themselves and whether its reward really is a sum of terms
(section 3.1 of the paper). Those are claims of whoever splits its state. :func:`check_played`
compares them with episodes of the environment itself, :func:`exo_envs.testing.check_mdp` with
:meth:`AdaptedMDP.observed_step`, and :func:`compare_with_play` compares the returns.
"""

from exo_envs.adapter.claims import Agreement, compare_with_play
from exo_envs.adapter.conversion import as_mdp
from exo_envs.adapter.ignored import IgnoredWrapperWarning, warn_of_ignored_wrappers
from exo_envs.adapter.mdp import AdaptedMDP
from exo_envs.adapter.played import (
    PlayedDifferentlyError,
    PlayedDifferentlyWarning,
    check_played,
)
from exo_envs.adapter.workers import WorkerError
from exo_envs.ends import DONE

__all__ = [
    "DONE",
    "AdaptedMDP",
    "Agreement",
    "IgnoredWrapperWarning",
    "PlayedDifferentlyError",
    "PlayedDifferentlyWarning",
    "WorkerError",
    "as_mdp",
    "check_played",
    "compare_with_play",
    "warn_of_ignored_wrappers",
]
