"""A floor of square cells to walk on, shared by the domains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

#: How the domains on a floor are drawn, and by what: PyBullet in 3-D, Pillow as a floor plan.
PICTURES = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 4}
RENDER_BACKENDS = ("bullet", "flat")


class Move(IntEnum):
    """The actions of a robot on a floor."""

    STAY = 0
    UP = 1
    DOWN = 2
    LEFT = 3
    RIGHT = 4


OFFSETS = {
    Move.STAY: (0, 0),
    Move.UP: (-1, 0),
    Move.DOWN: (1, 0),
    Move.LEFT: (0, -1),
    Move.RIGHT: (0, 1),
}


@dataclass(frozen=True)
class Floor:
    """``rows`` x ``columns`` cells, numbered row by row from the upper left.

    >>> floor = Floor(3, 4, walls=((1, 1),))
    >>> floor.cell(2, 3), floor.position(11)
    (11, (2, 3))
    >>> bool(floor.moves[floor.cell(0, 1), Move.DOWN] == floor.cell(0, 1))  # a wall
    True
    """

    rows: int
    columns: int
    walls: tuple[tuple[int, int], ...] = ()

    @property
    def num_cells(self) -> int:
        """The number of cells, walls included."""
        return self.rows * self.columns

    def cell(self, row: int, column: int) -> int:
        """The number of a cell."""
        return row * self.columns + column

    def position(self, cell: int) -> tuple[int, int]:
        """The row and column of a cell."""
        return divmod(int(cell), self.columns)

    @cached_property
    def moves(self) -> NDArray[np.int64]:
        """The cell that a move leads to, shape (num_cells, 5); walls and edges stop it."""
        moves = np.empty((self.num_cells, len(Move)), dtype=np.int64)
        for cell in range(self.num_cells):
            row, column = self.position(cell)
            for move, (down, right) in OFFSETS.items():
                target = (row + down, column + right)
                inside = 0 <= target[0] < self.rows and 0 <= target[1] < self.columns
                free = inside and target not in self.walls
                moves[cell, move] = self.cell(*target) if free else cell
        return moves
