"""Where to draw everything in a state of ExoFactory, in any of its pictures.

Coordinates are those of a floor plan: x to the right, y downwards, a cell is one unit wide. A
machine takes the upper half of its station's cell; the belt runs along the lower edge of the
floor, with the live order at its left end.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from exo_envs.core.mdp import State
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.domains.factory.parameters import UP
from exo_envs.rendering.canvas import Point
from exo_envs.rendering.palette import Colour
from exo_envs.rendering.slots import slots

MACHINE = (0.78, 0.40)  # its width and depth
BELT = (0.40, 1.0)  # from where to where it runs, below the floor
STATION_COLOURS: tuple[Colour, ...] = (
    (70, 150, 230),
    (240, 140, 50),
    (20, 140, 140),
    (150, 100, 60),
    (50, 62, 120),
)


class Station(NamedTuple):
    """A station and its machine."""

    number: int
    centre: Point  # of its cell
    machine: Point  # the centre of its machine
    is_up: bool
    variable: str


class Figure(NamedTuple):
    """A technician."""

    name: str
    spot: Point
    station: int


class Order(NamedTuple):
    """A place on the belt and the order that is there."""

    variable: str
    spot: Point
    station: int | None


class Lamp(NamedTuple):
    """A variable that never matters."""

    variable: str
    spot: Point
    is_lit: bool


class Layout(NamedTuple):
    """All that a picture shows."""

    robot: Point
    is_fulfilled: bool
    stations: list[Station]
    technicians: list[Figure]
    orders: list[Order]
    belt_end: float  # its x; the belt begins at 1
    clock: Point
    clock_variable: str
    clock_size: int
    steps_left: int  # until the belt moves, this one included
    lamps: list[Lamp]


def lay_out(mdp: FactoryMDP, state: State) -> Layout:
    """Find a spot for everything; those who share a cell are put side by side."""
    x, names, floor = state.exogenous, mdp.exogenous_names, mdp.floor
    cells = [int(cell) for cell in mdp.station_cells]
    corners = [(float(column), float(row)) for row, column in map(floor.position, cells)]
    stations = [
        Station(
            number,
            (left + 0.5, top + 0.5),
            (left + 0.5, top + 0.26),
            bool(value == UP),
            names[mdp.machine_slice][number],
        )
        for number, ((left, top), value) in enumerate(
            zip(corners, x[mdp.machine_slice], strict=True)
        )
    ]
    robot, technicians = _place_figures(mdp, state, cells)
    queue = [int(value) for value in x[mdp.order_slice]]
    middle = floor.rows + (BELT[0] + BELT[1]) / 2
    pitch = _pitch(mdp)
    orders = [
        Order(
            names[mdp.order_slice][index],
            (1.0 + (index + 0.5) * pitch, middle),
            value - 1 if value else None,
        )
        for index, value in enumerate(queue)
    ]
    noise = x[mdp.noise_slice]
    lamps = [
        Lamp(name, (1.0 + (index + 0.5) * (floor.columns - 2) / len(noise), -0.25), bool(value))
        for index, (name, value) in enumerate(zip(names[mdp.noise_slice], noise, strict=True))
    ]
    return Layout(
        robot,
        bool(state.endogenous[1]),
        stations,
        technicians,
        orders,
        belt_end(mdp),
        (0.5, middle),
        names[mdp.clock_index],
        mdp.exogenous_variables[mdp.clock_index].size,
        int(x[mdp.clock_index]) + 1,
        lamps,
    )


def _pitch(mdp: FactoryMDP) -> float:
    """How far it is from one order on the belt to the next."""
    queue_length = mdp.order_slice.stop - mdp.order_slice.start
    return max(0.7, min(1.0, (mdp.floor.columns - 1.0) / queue_length))


def belt_end(mdp: FactoryMDP) -> float:
    """How far to the right the belt reaches: as far as the floor, or as its orders need."""
    queue_length = mdp.order_slice.stop - mdp.order_slice.start
    return max(float(mdp.floor.columns), 1.0 + queue_length * _pitch(mdp))


def chevrons(layout: Layout) -> list[float]:
    """Where arrows on the belt say which way it moves: their x, right of each order."""
    places = [order.spot[0] for order in layout.orders]
    pitch = places[1] - places[0] if len(places) > 1 else 1.0
    return [x + pitch / 2 for x in places if x + pitch / 2 < layout.belt_end - 0.2]


def dial(lights: int) -> list[Point]:
    """Points around a circle, clockwise from the top."""
    angles = [2 * math.pi * light / lights for light in range(lights)]
    return [(math.sin(angle), -math.cos(angle)) for angle in angles]


def _place_figures(mdp: FactoryMDP, state: State, cells: list[int]) -> tuple[Point, list[Figure]]:
    robot = int(state.endogenous[0])
    groups: dict[int, list[int]] = defaultdict(list)  # who is in a cell; -1 is the robot
    groups[robot].append(-1)
    posts = [int(station) for station in state.exogenous[mdp.technician_slice]]
    for technician, station in enumerate(posts):
        groups[cells[station]].append(technician)
    spots: dict[int, Point] = {}
    for cell, group in groups.items():
        row, column = mdp.floor.position(cell)
        if cell in cells:  # in front of the machine, and not of its number
            centre, size = (0.64, 0.74), (0.72, 0.30)
        else:
            centre, size = (0.5, 0.52), (0.9, 0.66)
        for member, (right, down) in zip(group, slots(len(group), *size), strict=True):
            spots[member] = (column + centre[0] + right, row + centre[1] + down)
    names = mdp.exogenous_names[mdp.technician_slice]
    figures = [
        Figure(name, spots[technician], station)
        for technician, (name, station) in enumerate(zip(names, posts, strict=True))
    ]
    return spots[-1], figures
