"""Pictures of ExoCrowd: in 3-D, as a floor plan, or in letters.

Coordinates are those of a floor plan: x to the right, y downwards, a cell is one unit wide. A
table takes the upper half of its cell, so that there is room for those who stand at it.
"""

from __future__ import annotations

from typing import NamedTuple

from exo_envs.core.mdp import State
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.rendering import flat, solid
from exo_envs.rendering.flat import Canvas, Point
from exo_envs.rendering.palette import (
    CAP,
    FADED,
    GOAL,
    OBJECT,
    PAPER,
    PORTER,
    SKIN,
    TABLE,
    WANDERER,
    mix,
)
from exo_envs.rendering.scene import Scene
from exo_envs.rendering.viewer import SceneViewer, side_by_side

TABLE_TOP = (0.84, 0.42)  # the width and depth of a table
TABLE_CENTRE = (0.5, 0.27)  # in its cell
HAND = (0.18, 0.10)  # where somebody holds an object, from where they stand
TABLE_HEIGHT = 0.26
HAND_HEIGHT = 0.26

_LEG = solid.box(0.06, 0.06, TABLE_HEIGHT - 0.05)
DESK = solid.merge(
    solid.box(*TABLE_TOP, 0.05).at(0.0, 0.0, TABLE_HEIGHT - 0.05),
    *(
        _LEG.at(side * (TABLE_TOP[0] / 2 - 0.05), end * (TABLE_TOP[1] / 2 - 0.05), 0.0)
        for side in (-1, 1)
        for end in (-1, 1)
    ),
)
PARCEL = solid.box(0.16, 0.16, 0.16)
GOAL_PARCEL = solid.box(0.21, 0.21, 0.21)


class Figure(NamedTuple):
    """An agent of the crowd."""

    name: str
    spot: Point
    cell: int
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
    """Where everything is; what shares a cell or a table is side by side."""

    robot: Point | None  # None when the episode is over
    tables: list[Point]  # the centres of their tops
    figures: list[Figure]
    items: list[Item]
    kept_cells: list[tuple[Point, bool]]  # whose occupancy the mask keeps, and what it says


class CrowdViewer(SceneViewer):
    """Draws the floor with its tables, the robot, the crowd and the objects.

    The robot is gold and purple, porters are blue and wear a cap, wanderers do not. Objects lie
    on tables or are in their porters' hands; the star is on the goal. With a mask, red squares
    are on the cells whose occupancy it keeps and green discs on those of them that are occupied
    now; the agents that it keeps stand in a ring, and all that it ignores is grey.
    """

    draws = CrowdMDP
    mdp: CrowdMDP

    # --- in letters -------------------------------------------------------------------------

    def text(self, state: State) -> str:
        """The floor plan in letters, two for each cell, and where the goal is."""
        floor = self.mdp.floor
        state = self.check(state)
        layout = self.lay_out(state)
        places = ["."] * floor.num_cells
        people = [" "] * floor.num_cells
        for cell in self.mdp.table_cells:
            places[cell] = "T"
        holders = {item.holder for item in layout.items}
        crowds = [0] * floor.num_cells
        for agent, figure in enumerate(layout.figures):
            crowds[figure.cell] += 1
            count = crowds[figure.cell]
            sign = ("P" if agent in holders else "p") if figure.is_porter else "w"
            people[figure.cell] = sign if count == 1 else str(count) if count < 10 else "+"
        for item in layout.items:
            if item.is_goal and item.table is not None:
                places[self.mdp.table_cells[item.table]] = "*"
            elif item.is_goal and item.holder is not None:
                places[layout.figures[item.holder].cell] = "*"
        robot = int(state.endogenous[0])
        if robot != self.mdp.done:
            people[robot] = "R" if people[robot] == " " else "!"
        cells = [place + who for place, who in zip(places, people, strict=True)]
        rows = [
            " ".join(cells[floor.cell(row, 0) : floor.cell(row, 0) + floor.columns]).rstrip()
            for row in range(floor.rows)
        ]
        goals = [self._whereabouts(layout, item) for item in layout.items if item.is_goal]
        where = "done" if robot == self.mdp.done else f"in cell {floor.position(robot)}"
        legend = (
            "R robot  * goal  T table  p porter  P porter with its object  w wanderer  "
            "2-9 agents, + more  ! robot and others"
        )
        return "\n".join([*rows, f"robot {where}; goal: {', '.join(goals) or 'none'}", legend])

    def _whereabouts(self, layout: Layout, item: Item) -> str:
        if item.table is not None:
            cell = self.mdp.floor.position(int(self.mdp.table_cells[item.table]))
            return f"{item.name} on the table in cell {cell}"
        if item.holder is not None:
            figure = layout.figures[item.holder]
            cell = self.mdp.floor.position(figure.cell)
            return f"{item.name} with {figure.name} in cell {cell}"
        return f"{item.name} in nobody's hand"

    # --- flat -------------------------------------------------------------------------------

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The floor, and on its left room for what is in nobody's hand."""
        floor = self.mdp.floor
        return -0.45, -0.1, floor.columns + 0.1, floor.rows + 0.1

    def draw_ground(self, canvas: Canvas, layout: Layout) -> None:
        """Draw the floor, and the cells whose occupancy the mask keeps."""
        flat.tiles(canvas, self.mdp.floor.rows, self.mdp.floor.columns)
        for spot, is_occupied in layout.kept_cells:
            flat.square(canvas.at(spot))
            if is_occupied:
                flat.occupied_disc(canvas.at(spot))

    # --- flat -------------------------------------------------------------------------------

    def draw_figures(self, canvas: Canvas, layout: Layout) -> None:
        """Draw tables, agents, objects and the robot, the nearer ones over those behind."""
        for centre in layout.tables:
            flat.table(canvas.at(centre), *TABLE_TOP, self._wood)
        held = {item.holder: item for item in layout.items if not item.is_goal}
        for item in layout.items:
            if item.holder is None and not item.is_goal:
                self._draw_item(canvas, item)
        people: list[tuple[float, int]] = [
            (figure.spot[1], agent) for agent, figure in enumerate(layout.figures)
        ]
        if layout.robot is not None:
            people.append((layout.robot[1], len(people)))  # over agents at its height
        for _, agent in sorted(people):
            if agent == len(layout.figures) and layout.robot is not None:
                flat.robot(canvas.at((layout.robot[0], layout.robot[1] - 0.1), 0.85))
                continue
            self._draw_figure(canvas, layout.figures[agent])
            if agent in held:
                self._draw_item(canvas, held[agent])
        for item in layout.items:
            if item.is_goal:  # nothing may hide it
                self._draw_item(canvas, item)

    def _draw_figure(self, canvas: Canvas, figure: Figure) -> None:
        (x, y), emphasis = figure.spot, self.emphasis
        if emphasis.marks(*figure.variables):
            flat.ring(canvas.at((x, y), 0.6))
        flat.person(
            canvas.at((x, y - 0.05), 0.6),
            emphasis.paint(PORTER if figure.is_porter else WANDERER, *figure.variables),
            head=emphasis.paint(SKIN, *figure.variables),
            cap=emphasis.paint(CAP, *figure.variables) if figure.is_porter else None,
        )

    def _draw_item(self, canvas: Canvas, item: Item) -> None:
        x, y = item.spot
        if not item.is_goal:
            flat.parcel(canvas.at((x, y), 0.17), self.emphasis.paint(OBJECT, item.name))
            return
        colour = self.emphasis.paint(GOAL, item.name)
        centre = (x + 0.14, y - 0.10) if item.holder is not None else (x, y)  # not on their face
        canvas.disc(centre, 0.32, fill=(*colour, 60), outline=PAPER, width=0.03)
        flat.goal_star(canvas.at(centre, 0.95), colour)

    # --- in 3-D -----------------------------------------------------------------------------

    def pose(self, scene: Scene, layout: Layout) -> None:
        """Show the tables, the robot, the crowd and the objects."""
        emphasis = self.emphasis
        for table, (x, y) in enumerate(layout.tables):
            scene.show(f"table {table}", DESK, self._wood, (x, -y, 0.0))
        if layout.robot is not None:
            solid.robot(scene, *layout.robot)
        for figure in layout.figures:
            colour, cap = (PORTER, CAP) if figure.is_porter else (WANDERER, None)
            solid.person(scene, figure.name, figure.spot, colour, cap, emphasis, figure.variables)
        for item in layout.items:
            height = 0.0
            if item.table is not None:
                height = TABLE_HEIGHT
            elif item.holder is not None:
                height = HAND_HEIGHT
            place = (item.spot[0], -item.spot[1], height)
            if item.is_goal:
                colour = emphasis.paint(GOAL, item.name)
                scene.show(f"{item.name} as goal", GOAL_PARCEL, colour, place)
                scene.show(f"{item.name} beacon", solid.BEACON, colour, place)
            else:
                scene.show(item.name, PARCEL, emphasis.paint(OBJECT, item.name), place)

    # --- of both pictures -------------------------------------------------------------------

    def key(self, state: State) -> flat.Key:
        """What the signs mean, or that the episode is over."""
        if state.endogenous[0] == self.mdp.done:
            return [(flat.robot, "goal reached")]
        if self.emphasis.active:
            return [
                (flat.robot, "robot"),
                (flat.goal_sign, "goal"),
                (flat.square, "kept cell"),
                (flat.occupied_disc, "occupied"),
                (flat.ring, "kept agent"),
                (flat.ignored_sign, "ignored"),
            ]
        return [
            (flat.robot, "robot"),
            (flat.goal_sign, "goal"),
            (flat.person_sign(PORTER, CAP), "porter"),
            (flat.person_sign(WANDERER), "wanderer"),
            (flat.parcel_sign, "object"),
        ]

    @property
    def _wood(self) -> tuple[int, int, int]:
        return mix(TABLE, FADED, 0.5) if self.mask is not None else TABLE

    def _kept_cells(self, state: State) -> list[tuple[Point, bool]]:
        names, emphasis = self.mdp.exogenous_names[self.mdp.occupancy_slice], self.emphasis
        return [
            ((column + 0.5, row + 0.5), bool(state.exogenous[cell]))
            for cell, name in enumerate(names)
            if emphasis.marks(name)
            for row, column in [self.mdp.floor.position(cell)]
        ]

    def lay_out(self, state: State) -> Layout:
        """Where everything is."""
        corners = [self._corner(int(cell)) for cell in self.mdp.table_cells]
        tables = [(left + TABLE_CENTRE[0], top + TABLE_CENTRE[1]) for left, top in corners]
        robot, figures = self._place_figures(state)
        items = self._place_items(state, tables, figures)
        return Layout(robot, tables, figures, items, self._kept_cells(state))

    def _corner(self, cell: int) -> Point:
        row, column = self.mdp.floor.position(cell)
        return float(column), float(row)

    def _place_figures(self, state: State) -> tuple[Point | None, list[Figure]]:
        mdp, robot = self.mdp, int(state.endogenous[0])
        cells = [int(cell) for cell in state.exogenous[mdp.agent_slice][::3]]

        def room(cell: int) -> tuple[Point, float, float]:
            left, top = self._corner(cell)
            middle, depth = (0.74, 0.30) if cell in mdp.table_cells else (0.52, 0.66)
            return (left + 0.5, top + middle), 0.86, depth

        present = [] if robot == mdp.done else [(robot, "robot")]
        names = [name.removesuffix("_cell") for name in mdp.exogenous_names[mdp.agent_slice][::3]]
        spots = side_by_side([*present, *zip(cells, names, strict=True)], room)
        figures = [
            Figure(
                name,
                spots[name],
                cell,
                agent < mdp.num_porters,
                mdp.exogenous_names[mdp.agent_slice][3 * agent : 3 * agent + 3],
            )
            for agent, (name, cell) in enumerate(zip(names, cells, strict=True))
        ]
        return spots.get("robot"), figures

    def _place_items(self, state: State, tables: list[Point], figures: list[Figure]) -> list[Item]:
        mdp = self.mdp
        places, goals = mdp.decode_object(state.exogenous[mdp.object_slice])
        width, depth = 0.92 * TABLE_TOP[0], 0.8 * TABLE_TOP[1]
        lying = [(int(place), item) for item, place in enumerate(places) if place < len(tables)]
        spots = side_by_side(lying, lambda table: (tables[table], width, depth))
        lost = 0
        for item in range(len(places)):
            if item not in spots and item < mdp.num_porters:
                x, y = figures[item].spot
                spots[item] = (x + HAND[0], y + HAND[1])
            elif item not in spots:  # in nobody's hand: beside the floor
                spots[item] = (-0.3, 0.4 + 0.4 * lost)
                lost += 1
        return [
            Item(
                name,
                spots[item],
                int(places[item]) if places[item] < len(tables) else None,
                item if places[item] >= len(tables) and item < mdp.num_porters else None,
                bool(goals[item]),
            )
            for item, name in enumerate(mdp.exogenous_names[mdp.object_slice])
        ]
