"""What model and kernels of ExoFactory agree on."""

from __future__ import annotations

from exo_envs.domains.floor import Move

NUM_STATIONS = 5  # one in each corner of the floor and one near the middle
WORK = len(Move)  # the action after those of Move
DOWN, UP = 0, 1  # the values of a machine
