"""Where to draw everything in a state of ExoCrowd, in any of its pictures.

Coordinates are those of a floor plan: x to the right, y downwards, a cell is one unit wide. A
table takes the upper half of its cell, so that there is room for those who stand at it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from exo_envs.core.mdp import State
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.rendering.canvas import Point
from exo_envs.rendering.slots import slots

TABLE_TOP = (0.84, 0.42)  # the width and depth of a table
TABLE_CENTRE = (0.5, 0.27)  # in its cell
HAND = (0.18, 0.10)  # where somebody holds an object, from where they stand


class Figure(NamedTuple):
    """An agent of the crowd."""

    name: str
    spot: Point
    cell: int
    destination: int  # a table
    is_porter: bool
    variables: tuple[str, ...]


class Item(NamedTuple):
    """An object."""

    name: str
    spot: Point
    table: int | None  # on which it lies
    holder: int | None  # the agent who has it; neither of the two is possible only on paper
    is_goal: bool


class Layout(NamedTuple):
    """All that a picture shows."""

    robot: Point | None  # None when the episode is over
    tables: list[Point]  # the centres of their tops
    figures: list[Figure]
    items: list[Item]
    occupied: list[bool]  # by cell, what the occupancy variables say


def lay_out(mdp: CrowdMDP, state: State) -> Layout:
    """Find a spot for everything; what shares a cell or a table is put side by side."""
    x = state.exogenous
    corners = [_corner(mdp, int(cell)) for cell in mdp.table_cells]
    tables = [(left + TABLE_CENTRE[0], top + TABLE_CENTRE[1]) for left, top in corners]
    robot, figures = _place_figures(mdp, state)
    return Layout(
        robot,
        tables,
        figures,
        _place_items(mdp, state, tables, figures),
        [bool(value) for value in x[mdp.occupancy_slice]],
    )


def _corner(mdp: CrowdMDP, cell: int) -> Point:
    row, column = mdp.floor.position(cell)
    return float(column), float(row)


def _place_figures(mdp: CrowdMDP, state: State) -> tuple[Point | None, list[Figure]]:
    agents = state.exogenous[mdp.agent_slice].reshape(-1, 3)
    robot = int(state.endogenous[0])
    groups: dict[int, list[int]] = defaultdict(list)  # who is in a cell; -1 is the robot
    if robot != mdp.done:
        groups[robot].append(-1)
    for agent, cell in enumerate(agents[:, 0]):
        groups[int(cell)].append(agent)
    at_table = {int(cell) for cell in mdp.table_cells}
    spots: dict[int, Point] = {}
    for cell, group in groups.items():
        left, top = _corner(mdp, cell)
        middle, (width, depth) = (0.74, (0.86, 0.30)) if cell in at_table else (0.52, (0.86, 0.66))
        for member, (right, down) in zip(group, slots(len(group), width, depth), strict=True):
            spots[member] = (left + 0.5 + right, top + middle + down)
    names = mdp.exogenous_names[mdp.agent_slice]
    figures = [
        Figure(
            names[3 * agent].removesuffix("_cell"),
            spots[agent],
            int(cell),
            int(destination),
            agent < mdp.num_porters,
            names[3 * agent : 3 * agent + 3],
        )
        for agent, (cell, destination, _) in enumerate(agents)
    ]
    return spots.get(-1), figures


def _place_items(
    mdp: CrowdMDP, state: State, tables: list[Point], figures: list[Figure]
) -> list[Item]:
    places, goals = mdp.decode_object(state.exogenous[mdp.object_slice])
    on_table: dict[int, list[int]] = defaultdict(list)
    spots: dict[int, Point] = {}
    lost = 0
    for item, place in enumerate(places):
        if place < len(tables):
            on_table[int(place)].append(item)
        elif item < mdp.num_porters:
            x, y = figures[item].spot
            spots[item] = (x + HAND[0], y + HAND[1])
        else:  # in nobody's hand: beside the floor
            spots[item] = (-0.3, 0.4 + 0.4 * lost)
            lost += 1
    width, depth = TABLE_TOP
    for table, group in on_table.items():
        for item, (right, down) in zip(
            group, slots(len(group), 0.92 * width, 0.8 * depth), strict=True
        ):
            spots[item] = (tables[table][0] + right, tables[table][1] + down)
    names = mdp.exogenous_names[mdp.object_slice]
    return [
        Item(
            names[item],
            spots[item],
            int(place) if place < len(tables) else None,
            item if place >= len(tables) and item < mdp.num_porters else None,
            bool(goals[item]),
        )
        for item, place in enumerate(places)
    ]
