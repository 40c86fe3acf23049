"""Moved to :mod:`exo_envs.core.arguments` and :mod:`exo_envs.core.batches`; gone soon."""

from exo_envs.core.arguments import *  # noqa: F403
