"""Moved to :mod:`exo_envs.core.arguments` and :mod:`exo_envs.core.batches`; gone soon."""

from exo_envs.core.arguments import *  # noqa: F403
from exo_envs.core.batches import *  # noqa: F403
from exo_envs.core.masks import as_mask as as_mask  # noqa: PLC0414
