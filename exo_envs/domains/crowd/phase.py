"""What a porter of ExoCrowd does at the moment."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """What a porter is doing."""

    CARRYING = 0  # its object to a table
    STROLLING = 1  # to another table, its object left behind
    RETURNING = 2  # to its object
    WAITING = 3  # at its object's table, until it picks it up
