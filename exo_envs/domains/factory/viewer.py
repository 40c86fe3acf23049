"""Pictures of ExoFactory: in 3-D, as a floor plan, or in letters.

A machine takes the upper half of its station's cell; the belt runs along the lower edge of the
floor, with the live order at its left end.
"""

from __future__ import annotations

import math

from exo_envs.core.mdp import State
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.domains.factory.parameters import UP as IS_UP
from exo_envs.rendering import flat
from exo_envs.rendering.flat import Canvas
from exo_envs.rendering.palette import (
    DOWN,
    GOAL,
    GROUT,
    HELMET,
    INK,
    LIT,
    PAPER,
    TECHNICIAN,
    UP,
    WALL,
    Colour,
    mix,
)
from exo_envs.rendering.things import MACHINE_HEIGHT, Point, Thing, side_by_side
from exo_envs.rendering.viewer import SceneViewer

BELT = 0.70  # how far its middle is below the floor
STATION_COLOURS: tuple[Colour, ...] = (
    (70, 150, 230),
    (240, 140, 50),
    (20, 140, 140),
    (150, 100, 60),
    (50, 62, 120),
)
ON_BELT = mix(WALL, PAPER, 0.45)  # the arrows that say which way it moves


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
        rows = floor.plan([cell + who for cell, who in zip(cells, people, strict=True)])
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

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The floor with the noise above it, and the belt below."""
        return -0.1, -0.4, self._belt_end + 0.1, self.mdp.floor.rows + BELT + 0.4

    def draw_ground(self, canvas: Canvas, state: State) -> None:
        mdp, floor, emphasis = self.mdp, self.mdp.floor, self.emphasis
        flat.tiles(canvas, floor.rows, floor.columns)
        noise = state.exogenous[mdp.noise_slice]
        for i, name in enumerate(mdp.exogenous_names[mdp.noise_slice]):
            lamp = canvas.at((1.0 + (i + 0.5) * (floor.columns - 2) / len(noise), -0.25))
            if emphasis.marks(name):
                flat.square(lamp.at((0.0, 0.0), 0.32))
            colour = emphasis.paint(LIT if noise[i] else WALL, name)
            lamp.disc((0.0, 0.0), 0.08, fill=colour, outline=mix(colour, INK, 0.4), width=0.02)
        for number, name in enumerate(mdp.exogenous_names[mdp.machine_slice]):
            station = canvas.at(self._station(number, 0.5))
            if emphasis.marks(name):
                flat.square(station)
            station.text((-0.34, 0.26), str(number), size=0.3)
        self._draw_clock(canvas.at((0.5, floor.rows + BELT)), int(state.exogenous[mdp.clock_index]))
        self._draw_belt(canvas, state)

    def _draw_clock(self, canvas: Canvas, time: int) -> None:
        variable, emphasis = self.mdp.exogenous_variables[self.mdp.clock_index], self.emphasis
        name, dial = variable.name, emphasis.paint(INK, variable.name)
        if emphasis.marks(name):
            flat.square(canvas.at((0.0, 0.0), 0.68))
        canvas.disc((0.0, 0.0), 0.28, fill=dial, outline=GROUT, width=0.02)
        for light, (right, down) in enumerate(_dial(variable.size)):
            colour = emphasis.paint(LIT if light <= time else WALL, name)
            canvas.disc((0.19 * right, 0.19 * down), 0.055, fill=colour)

    def _draw_belt(self, canvas: Canvas, state: State) -> None:
        end, pitch, middle = self._belt_end, self._pitch, self.mdp.floor.rows + BELT
        canvas.box((1.0, middle - 0.28), (end, middle + 0.28), fill=WALL, radius=0.1)
        for place, name in enumerate(self.mdp.exogenous_names[self.mdp.order_slice]):
            spot = canvas.at((1.0 + (place + 0.5) * pitch, middle))
            arrow = 0.5 * pitch
            if 1.0 + (place + 1.0) * pitch < end - 0.2:
                for side in (-0.14, 0.14):
                    spot.line((arrow - 0.05, 0.0), (arrow + 0.05, side), fill=ON_BELT, width=0.04)
            self._draw_order(spot, name, int(state.exogenous[place]), is_live=place == 0)
            if place == 0 and state.endogenous[1]:
                _draw_tick(spot.at((0.0, 0.0), 0.5))

    def _draw_order(self, canvas: Canvas, name: str, order: int, *, is_live: bool) -> None:
        emphasis = self.emphasis
        if emphasis.marks(name):
            flat.square(canvas.at((0.0, 0.0), 0.62))
        if is_live:
            frame = emphasis.paint(GOAL, name)
            canvas.box((-0.27, -0.27), (0.27, 0.27), outline=frame, width=0.05, radius=0.06)
        if order == 0:
            canvas.line((-0.08, 0.0), (0.08, 0.0), fill=mix(WALL, PAPER, 0.5), width=0.04)
            return
        colour, corners = STATION_COLOURS[order - 1], ((-0.2, -0.2), (0.2, 0.2))
        colour = emphasis.paint(colour, name)
        canvas.box(*corners, fill=colour, outline=PAPER, width=0.02, radius=0.04)
        canvas.text((0.0, 0.0), str(order - 1), size=0.3, fill=PAPER)

    def lay_out(self, state: State) -> list[Thing]:
        mdp, x, names = self.mdp, state.exogenous, self.mdp.exogenous_names
        things = []
        for number, name in enumerate(names[mdp.machine_slice]):
            lamp = UP if x[mdp.machine_slice][number] == IS_UP else DOWN
            spot, colour = self._station(number, 0.26), STATION_COLOURS[number]
            things.append(Thing("machine", name, spot, colour, lamp, (name,)))

        def at_cell(cell: int) -> tuple[Point, float, float]:
            row, column = mdp.floor.position(cell)
            if cell in mdp.station_cells:  # in front of the machine, and not of its number
                return (column + 0.64, row + 0.74), 0.72, 0.30
            return (column + 0.5, row + 0.52), 0.9, 0.66

        technicians = names[mdp.technician_slice]
        cells = mdp.station_cells[x[mdp.technician_slice]].tolist()
        members = [(int(state.endogenous[0]), "robot"), *zip(cells, technicians, strict=True)]
        spots = side_by_side(members, at_cell)
        things.append(Thing("robot", "robot", spots["robot"]))
        things += [
            Thing("person", name, spots[name], TECHNICIAN, HELMET, (name,)) for name in technicians
        ]
        if x[0] and not state.endogenous[1]:
            spot, live = self._station(int(x[0]) - 1, 0.24), names[0]
            things.append(Thing("goal", "goal", spot, GOAL, None, (live,), MACHINE_HEIGHT))
        return things

    def key(self, state: State) -> flat.Key:
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
    def _pitch(self) -> float:
        """How far it is from one order on the belt to the next."""
        return max(0.7, min(1.0, (self.mdp.floor.columns - 1.0) / self.mdp.clock_index))

    @property
    def _belt_end(self) -> float:
        """How far to the right the belt reaches: as far as the floor, or as its orders need."""
        return max(float(self.mdp.floor.columns), 1.0 + self.mdp.clock_index * self._pitch)

    def _station(self, number: int, below: float) -> Point:
        """A point in the middle of a station's cell, so far below its upper edge."""
        row, column = self.mdp.floor.position(self.mdp.station_cells[number])
        return column + 0.5, row + below


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
