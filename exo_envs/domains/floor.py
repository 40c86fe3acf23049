"""A floor of square cells to walk on, and the models of robots on it that kernels move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import as_lanes, exogenous_lanes
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State, Successors

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


#: Rows down and columns to the right, by the number of the move.
OFFSETS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))


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
        return row * self.columns + column

    def position(self, cell: int) -> tuple[int, int]:
        return divmod(int(cell), self.columns)

    def plan(self, signs: Sequence[str]) -> list[str]:
        """The rows of a floor plan in letters, with a sign for each cell."""
        starts = range(0, self.num_cells, self.columns)
        return [" ".join(signs[start : start + self.columns]).rstrip() for start in starts]

    @cached_property
    def moves(self) -> NDArray[np.int64]:
        """The cell that a move leads to, shape (num_cells, 5); walls and edges stop it."""
        moves = np.empty((self.num_cells, len(Move)), dtype=np.int64)
        for cell in range(self.num_cells):
            row, column = self.position(cell)
            for move, (down, right) in enumerate(OFFSETS):
                target = (row + down, column + right)
                inside = 0 <= target[0] < self.rows and 0 <= target[1] < self.columns
                free = inside and target not in self.walls
                moves[cell, move] = self.cell(*target) if free else cell
        return moves


class FloorMDP(ExoMDP):
    """A robot on a floor, whom the kernels of its domain move and pay.

    ``exogenous_step`` writes the x' of some lanes. ``endogenous_step`` writes n', what the step
    pays and, unless it is handed an array without rows, its reward terms. They know the model by
    its ``_world``, a plain tuple: Numba takes ten times as long to read a named one.
    """

    #: The module of the kernels.
    kernels: ClassVar[Any]
    #: How many uniform numbers n' and x' take in each lane.
    noise: tuple[int, int]
    parameters: Any
    _world: tuple[Any, ...]

    def _set_up(self, world: type[Any], **derived: Any) -> None:
        """Make the kernels' record of what follows from the parameters, and of these by name."""
        p = self.parameters
        self.discount, self.horizon = p.discount, p.horizon
        given = {name: getattr(p, name) for name in world._fields if name not in derived}
        self._world = tuple(world(**given, **derived))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        shape, x = exogenous_lanes(self, exogenous)
        uniforms, following = rng.random((len(x), self.noise[1])), np.empty_like(x)
        self.kernels.exogenous_step(0, len(x), x, uniforms, self._world, following)
        return following.reshape(shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        return self._move(state, action, rng)[0]

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors:
        return Successors.certain(self._move(state, action)[0])

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        return self._move(state, action, with_terms=True)[1]

    def _move(
        self,
        state: State,
        action: IntArray,
        noise: np.random.Generator | float = 0.0,
        *,
        with_terms: bool = False,
    ) -> tuple[IntArray, FloatArray]:
        """N' and the reward terms, if they are wanted; the noise may be one number for all."""
        shape, (n, x, actions) = as_lanes(self, state, action, check_exogenous=False)
        size = (len(n), self.noise[0])
        uniforms = np.full(size, noise) if isinstance(noise, float) else noise.random(size)
        following, rewards = np.empty_like(n), np.empty(len(n))
        terms = np.zeros((len(x) if with_terms else 0, x.shape[1]))
        self.kernels.endogenous_step(
            0, len(n), n, x, actions, uniforms, following, rewards, terms, self._world
        )
        following = following.reshape(*shape, n.shape[1])
        return following, terms.reshape(*shape, x.shape[1]) if with_terms else terms
