"""Moved to :mod:`exo_envs.core.arguments` and :mod:`exo_envs.core.batches`; gone soon."""

from exo_envs.compiled.ranges import ROUNDING as ROUNDING  # noqa: PLC0414
from exo_envs.compiled.ranges import wrong_row as wrong_row  # noqa: PLC0414
from exo_envs.core.arguments import *  # noqa: F403
