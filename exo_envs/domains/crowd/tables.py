"""Where the tables of ExoCrowd stand, and the ways that lead to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from exo_envs.domains.floor import Floor


def place_tables(floor: Floor, num_tables: int) -> NDArray[np.int64]:
    """The cells of the tables, shape (num_tables,): spread out, none in the lower left quarter.

    The first stands in the upper right corner, each further one as far as possible from those
    before it (in steps; of several such cells it takes the one with the lowest number).

    >>> place_tables(Floor(8, 8), 6)
    array([ 7, 24, 61,  2, 20, 38])
    """
    cells = cells_for_tables(floor)
    positions = np.stack(np.divmod(cells, floor.columns), axis=-1)
    distance = np.full(len(cells), np.inf)  # to the nearest table
    chosen = [floor.columns - 1]  # in the top row every cell may have a table
    while len(chosen) < num_tables:
        steps = np.abs(positions - positions[chosen[-1]]).sum(axis=-1)
        distance = np.minimum(distance, steps)
        chosen.append(int(distance.argmax()))
    return cells[chosen]


def cells_for_tables(floor: Floor) -> NDArray[np.int64]:
    """The cells in which a table may stand: those outside the lower left quarter."""
    rows, columns = np.divmod(np.arange(floor.num_cells), floor.columns)
    lower_left = (rows >= floor.rows - floor.rows // 2) & (columns < floor.columns // 2)
    return np.flatnonzero(~lower_left).astype(np.int64)


def ways_to_tables(floor: Floor, table_positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The next cells on shortest paths from a cell to a table, (num_cells, num_tables, 3).

    The cell itself, for an agent that makes no step; then the cell above or below and the one to
    the left or right, or twice the same where only one of them is nearer to the table.
    """
    cells = np.arange(floor.num_cells)[:, None]
    positions = np.concatenate(np.divmod(cells, floor.columns), axis=-1)
    direction = np.sign(table_positions - positions[:, None])  # (num_cells, num_tables, 2)
    down = cells + floor.columns * direction[..., 0]
    right = cells + direction[..., 1]
    down, right = (
        np.where(direction[..., 0] == 0, right, down),
        np.where(direction[..., 1] == 0, down, right),
    )
    return np.stack(np.broadcast_arrays(cells, down, right), axis=-1)
