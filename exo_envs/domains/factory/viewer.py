"""Pictures of ExoFactory: in 3-D, as a floor plan, or in letters.

Coordinates are those of a floor plan: x to the right, y downwards, a cell is one unit wide. A
machine takes the upper half of its station's cell; the belt runs along the lower edge of the
floor, with the live order at its left end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from exo_envs.core.mdp import State
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.domains.factory.parameters import UP as IS_UP
from exo_envs.rendering import flat, solid
from exo_envs.rendering.flat import Canvas, Point
from exo_envs.rendering.palette import (
    DOWN,
    GOAL,
    GROUT,
    HELMET,
    INK,
    LIT,
    PAPER,
    SKIN,
    TECHNICIAN,
    UP,
    WALL,
    Colour,
    mix,
)
from exo_envs.rendering.scene import Scene
from exo_envs.rendering.viewer import SceneViewer, side_by_side

MACHINE = (0.78, 0.40)  # its width and depth
HEIGHT = 0.5  # of a machine
BELT = (0.40, 1.0)  # from where to where it runs, below the floor
STATION_COLOURS: tuple[Colour, ...] = (
    (70, 150, 230),
    (240, 140, 50),
    (20, 140, 140),
    (150, 100, 60),
    (50, 62, 120),
)
ON_BELT = mix(WALL, PAPER, 0.45)  # the arrows that say which way it moves

CABINET = solid.box(*MACHINE, HEIGHT)
LAMP = solid.merge(
    solid.lathe([(0.05, HEIGHT), (0.05, HEIGHT + 0.06)], sides=8),
    solid.ball(0.13).at(0.0, 0.0, HEIGHT + 0.17),
)


class Station(NamedTuple):
    """A station and its machine."""

    number: int
    centre: Point  # of its cell
    machine: Point  # the centre of its machine
    is_up: bool
    variable: str


class Order(NamedTuple):
    """A place on the belt and the order that is there."""

    variable: str
    spot: Point
    station: int | None


class Layout(NamedTuple):
    """Where everything is; those who share a cell are side by side."""

    robot: Point
    is_fulfilled: bool
    goal: Point | None  # the machine of the live order, unless that is fulfilled
    stations: list[Station]
    technicians: list[tuple[str, Point]]
    orders: list[Order]
    arrows: tuple[float, ...]  # on the belt: their x, right of each order
    belt_end: float  # its x; the belt begins at 1
    clock: Point
    lights: list[tuple[Point, bool]]  # around the clock, clockwise from the top; which are on
    lamps: list[tuple[str, Point, bool]]  # the variables that never matter, and which are 1


class FactoryViewer(SceneViewer):
    """Draws the floor with its stations, the robot, the technicians and the belt.

    The robot is gold and purple. Each station has a number, a colour and a machine whose lamp is
    green when it is up and red when it is down; technicians wear helmets. The belt shows the live
    order, framed and at its left end, and those to come, in the colours of their stations; the
    dial beside it has as many lights on as steps are left before the belt moves. The star is on
    the live order's station until that order is fulfilled; then a tick is on the order. The small
    lamps behind the floor are the variables that never matter. With a mask, red squares are under
    what it keeps, rings under the technicians it keeps, and all that it ignores is grey.
    """

    draws = FactoryMDP
    mdp: FactoryMDP

    # --- in letters -------------------------------------------------------------------------

    def text(self, state: State) -> str:
        """The floor plan in letters, three for each cell, and the belt."""
        mdp, floor, state = self.mdp, self.mdp.floor, self.check(state)
        x = state.exogenous
        cells = [". "] * floor.num_cells
        people = [" "] * floor.num_cells
        for number, value in enumerate(x[mdp.machine_slice]):
            cells[mdp.station_cells[number]] = f"{number}{'-+'[value]}"
        for station in x[mdp.technician_slice]:
            cell = mdp.station_cells[station]
            people[cell] = "t" if people[cell] == " " else "m"
        robot = int(state.endogenous[0])
        people[robot] = "R" if people[robot] == " " else "&"
        rows = [
            " ".join(
                cells[cell] + people[cell]
                for cell in range(floor.cell(row, 0), floor.cell(row, 0) + floor.columns)
            ).rstrip()
            for row in range(floor.rows)
        ]
        queue = [str(order - 1) if order else "-" for order in x[mdp.order_slice].tolist()]
        noise = "".join(map(str, x[mdp.noise_slice]))
        belt = (
            f"belt {' '.join([f'[{queue[0]}]', *queue[1:]])}, "
            f"{'' if state.endogenous[1] else 'not '}fulfilled, moves in {x[mdp.clock_index] + 1}; "
            f"noise {noise or 'none'}"
        )
        legend = (
            "R robot  0-4 station  + up  - down  t technician  m technicians  "
            "& robot and technicians"
        )
        return "\n".join([*rows, belt, legend])

    # --- flat -------------------------------------------------------------------------------

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The floor with the noise above it, and the belt below."""
        return -0.1, -0.4, self._belt_end + 0.1, self.mdp.floor.rows + BELT[1] + 0.1

    def draw_ground(self, canvas: Canvas, layout: Layout) -> None:
        """Draw the floor, the lights of the noise, the numbers of the stations and the belt."""
        emphasis = self.emphasis
        flat.tiles(canvas, self.mdp.floor.rows, self.mdp.floor.columns)
        for name, spot, is_lit in layout.lamps:
            if emphasis.marks(name):
                flat.square(canvas.at(spot, 0.32))
            colour = emphasis.paint(LIT if is_lit else WALL, name)
            canvas.disc(spot, 0.08, fill=colour, outline=mix(colour, INK, 0.4), width=0.02)
        for station in layout.stations:
            x, y = station.centre
            if emphasis.marks(station.variable):
                flat.square(canvas.at(station.centre))
            canvas.text((x - 0.34, y + 0.26), str(station.number), size=0.3)
        self._draw_belt(canvas, layout)

    # --- flat -------------------------------------------------------------------------------

    def draw_figures(self, canvas: Canvas, layout: Layout) -> None:
        """Draw the machines, the technicians, the robot and the star of the live order."""
        emphasis = self.emphasis
        for station in layout.stations:
            machine, name = canvas.at(station.machine), station.variable
            flat.table(machine, *MACHINE, emphasis.paint(STATION_COLOURS[station.number], name))
            lamp = emphasis.paint(UP if station.is_up else DOWN, name)
            machine.disc((0.27, 0.0), 0.10, fill=lamp, outline=PAPER, width=0.03)
        for name, (x, y) in sorted(layout.technicians, key=lambda technician: technician[1][1]):
            if emphasis.marks(name):
                flat.ring(canvas.at((x, y), 0.62))
            body, head, cap = (emphasis.paint(c, name) for c in (TECHNICIAN, SKIN, HELMET))
            flat.person(canvas.at((x, y - 0.05), 0.62), body, head=head, cap=cap)
        flat.robot(canvas.at((layout.robot[0], layout.robot[1] - 0.08), 0.85))
        if layout.goal is not None:
            x, y = layout.goal
            colour = emphasis.paint(GOAL, layout.orders[0].variable)
            flat.goal_star(canvas.at((x, y - 0.02), 0.85), colour)

    def _draw_belt(self, canvas: Canvas, layout: Layout) -> None:
        y = layout.orders[0].spot[1]
        above, below = y - 0.28, y + 0.28
        canvas.box((1.0, above), (layout.belt_end, below), fill=WALL, radius=0.1)
        for x in layout.arrows:
            for end in (above + 0.14, below - 0.14):
                canvas.line((x - 0.05, y), (x + 0.05, end), fill=ON_BELT, width=0.04)
        for order in layout.orders:
            self._draw_order(canvas.at(order.spot), order, is_live=order is layout.orders[0])
        if layout.is_fulfilled:
            _draw_tick(canvas.at(layout.orders[0].spot, 0.5))
        name, clock, emphasis = self._clock_name, canvas.at(layout.clock), self.emphasis
        if emphasis.marks(name):
            flat.square(clock.at((0.0, 0.0), 0.68))
        clock.disc((0.0, 0.0), 0.28, fill=emphasis.paint(INK, name), outline=GROUT, width=0.02)
        for (right, down), is_on in layout.lights:
            colour = emphasis.paint(LIT if is_on else WALL, name)
            clock.disc((0.19 * right, 0.19 * down), 0.055, fill=colour)

    def _draw_order(self, canvas: Canvas, order: Order, *, is_live: bool) -> None:
        emphasis = self.emphasis
        if emphasis.marks(order.variable):
            flat.square(canvas.at((0.0, 0.0), 0.62))
        if is_live:
            frame = emphasis.paint(GOAL, order.variable)
            canvas.box((-0.27, -0.27), (0.27, 0.27), outline=frame, width=0.05, radius=0.06)
        if order.station is None:
            canvas.line((-0.08, 0.0), (0.08, 0.0), fill=mix(WALL, PAPER, 0.5), width=0.04)
            return
        colour, corners = STATION_COLOURS[order.station], ((-0.2, -0.2), (0.2, 0.2))
        colour = emphasis.paint(colour, order.variable)
        canvas.box(*corners, fill=colour, outline=PAPER, width=0.02, radius=0.04)
        canvas.text((0.0, 0.0), str(order.station), size=0.3, fill=PAPER)

    # --- in 3-D -----------------------------------------------------------------------------

    def pose(self, scene: Scene, layout: Layout) -> None:
        """Show the machines, the technicians, the robot and the star of the live order."""
        emphasis = self.emphasis
        solid.robot(scene, *layout.robot)
        for name, spot in layout.technicians:
            solid.person(scene, name, spot, TECHNICIAN, HELMET, emphasis, (name,))
        for station in layout.stations:
            name, (x, y) = station.variable, station.machine
            cabinet = emphasis.paint(STATION_COLOURS[station.number], name)
            scene.show(name, CABINET, cabinet, (x, -y, 0.0))
            lamp = emphasis.paint(UP if station.is_up else DOWN, name)
            scene.show(f"{name} lamp", LAMP, lamp, (x + 0.15, -y, 0.0))
        if layout.goal is not None:
            x, y = layout.goal
            colour = emphasis.paint(GOAL, layout.orders[0].variable)
            scene.show("beacon", solid.BEACON, colour, (x - 0.22, -y, HEIGHT))

    # --- of both pictures -------------------------------------------------------------------

    def key(self, state: State) -> flat.Key:
        """What the signs mean."""
        del state
        entries = [(flat.robot, "robot"), (flat.goal_sign, "live order")]
        if self.mask is not None:
            return [
                *entries,
                (flat.square, "kept"),
                (flat.ring, "kept person"),
                (flat.ignored_sign, "ignored"),
            ]
        return [
            *entries,
            (lambda canvas: canvas.disc((0.0, 0.0), 0.4, fill=UP), "machine up"),
            (lambda canvas: canvas.disc((0.0, 0.0), 0.4, fill=DOWN), "down"),
            (flat.person_sign(TECHNICIAN, HELMET), "technician"),
            (_clock_sign, "clock"),
        ]

    @property
    def _clock_name(self) -> str:
        return self.mdp.exogenous_names[self.mdp.clock_index]

    @property
    def _pitch(self) -> float:
        """How far it is from one order on the belt to the next."""
        return max(0.7, min(1.0, (self.mdp.floor.columns - 1.0) / self.mdp.clock_index))

    @property
    def _belt_end(self) -> float:
        """How far to the right the belt reaches: as far as the floor, or as its orders need."""
        return max(float(self.mdp.floor.columns), 1.0 + self.mdp.clock_index * self._pitch)

    def lay_out(self, state: State) -> Layout:
        """Where everything is."""
        mdp, floor, x = self.mdp, self.mdp.floor, state.exogenous
        names, pitch, end = mdp.exogenous_names, self._pitch, self._belt_end
        stations = [
            Station(
                number,
                (column + 0.5, row + 0.5),
                (column + 0.5, row + 0.26),
                bool(x[mdp.machine_slice][number] == IS_UP),
                names[mdp.machine_slice][number],
            )
            for number, (row, column) in enumerate(map(floor.position, mdp.station_cells))
        ]
        robot, technicians = self._place_figures(state)
        middle = floor.rows + (BELT[0] + BELT[1]) / 2
        places = [1.0 + (index + 0.5) * pitch for index in range(mdp.clock_index)]
        orders = [
            Order(names[index], (place, middle), int(x[index]) - 1 if x[index] else None)
            for index, place in enumerate(places)
        ]
        step = places[1] - places[0] if len(places) > 1 else 1.0
        noise = list(zip(names[mdp.noise_slice], x[mdp.noise_slice], strict=True))
        live, is_fulfilled = orders[0].station, bool(state.endogenous[1])
        return Layout(
            robot,
            is_fulfilled,
            None if live is None or is_fulfilled else stations[live].machine,
            stations,
            technicians,
            orders,
            tuple(place + step / 2 for place in places if place + step / 2 < end - 0.2),
            end,
            (0.5, middle),
            [
                (spot, light <= x[mdp.clock_index])
                for light, spot in enumerate(_dial(mdp.exogenous_variables[mdp.clock_index].size))
            ],
            [
                (name, (1.0 + (i + 0.5) * (floor.columns - 2) / len(noise), -0.25), bool(value))
                for i, (name, value) in enumerate(noise)
            ],
        )

    def _place_figures(self, state: State) -> tuple[Point, list[tuple[str, Point]]]:
        mdp = self.mdp

        def room(cell: int) -> tuple[Point, float, float]:
            row, column = mdp.floor.position(cell)
            if cell in mdp.station_cells:  # in front of the machine, and not of its number
                return (column + 0.64, row + 0.74), 0.72, 0.30
            return (column + 0.5, row + 0.52), 0.9, 0.66

        names = mdp.exogenous_names[mdp.technician_slice]
        cells = mdp.station_cells[state.exogenous[mdp.technician_slice]].tolist()
        members = [(int(state.endogenous[0]), "robot"), *zip(cells, names, strict=True)]
        spots = side_by_side(members, room)
        return spots["robot"], [(name, spots[name]) for name in names]


def _dial(lights: int) -> list[Point]:
    """Points around a circle, clockwise from the top."""
    angles = [2 * math.pi * light / lights for light in range(lights)]
    return [(math.sin(angle), -math.cos(angle)) for angle in angles]


def _draw_tick(canvas: Canvas) -> None:
    left, foot, right = (-0.3, 0.0), (-0.05, 0.25), (0.4, -0.35)
    for colour, width in ((PAPER, 0.26), (UP, 0.16)):
        canvas.line(left, foot, fill=colour, width=width)
        canvas.line(foot, right, fill=colour, width=width)


def _clock_sign(canvas: Canvas) -> None:
    canvas.disc((0.0, 0.0), 0.42, fill=INK)
    for right, down in _dial(5):
        canvas.disc((0.26 * right, 0.26 * down), 0.09, fill=LIT)
