"""Pictures of ExoCrowd: in 3-D, as a floor plan, or in letters.

A table takes the upper half of its cell, so that there is room for those who stand at it.
"""

from __future__ import annotations

from typing import NamedTuple

from exo_envs.core.mdp import State
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.rendering import flat
from exo_envs.rendering.palette import CAP, FADED, GOAL, OBJECT, PORTER, TABLE, WANDERER, mix
from exo_envs.rendering.things import TABLE_HEIGHT, TABLE_TOP, Point, Thing, side_by_side
from exo_envs.rendering.viewer import SceneViewer

HAND = (0.18, 0.10)  # where somebody holds an object, from where they stand
HAND_HEIGHT = 0.26


class Agent(NamedTuple):
    name: str
    cell: int
    variables: tuple[str, ...]


class Item(NamedTuple):
    name: str
    table: int | None  # on which it lies
    holder: int | None  # the agent who has it; neither of the two is possible only on paper
    is_goal: bool


class CrowdViewer(SceneViewer):
    """Draws the floor with its tables, the robot, the crowd and the objects.

    The robot is gold and purple, porters are blue and wear a cap, wanderers do not. Objects lie
    on tables or are in their porters' hands; the star is on the goal. With a mask, red squares
    are on the cells whose occupancy it keeps and green discs on those of them that are occupied
    now; the agents that it keeps stand in a ring, and all that it ignores is grey.
    """

    draws = CrowdMDP
    mdp: CrowdMDP

    def text(self, state: State) -> str:
        """The floor plan in letters, two for each cell, and where the goal is."""
        mdp, floor, state = self.mdp, self.mdp.floor, self.check(state)
        agents, items = self._agents(state), self._items(state)
        places = ["."] * floor.num_cells
        people = [" "] * floor.num_cells
        for cell in mdp.table_cells:
            places[cell] = "T"
        holders = {item.holder for item in items}
        crowds = [0] * floor.num_cells
        for number, agent in enumerate(agents):
            crowds[agent.cell] += 1
            count = crowds[agent.cell]
            porter = "P" if number in holders else "p"
            sign = porter if number < mdp.num_porters else "w"
            people[agent.cell] = sign if count == 1 else str(count) if count < 10 else "+"
        goals = []
        for item in items:
            if not item.is_goal:
                continue
            where = "in nobody's hand"
            if item.table is not None:
                cell = int(mdp.table_cells[item.table])
                where = f"on the table in cell {floor.position(cell)}"
                places[cell] = "*"
            elif item.holder is not None:
                holder = agents[item.holder]
                where = f"with {holder.name} in cell {floor.position(holder.cell)}"
                places[holder.cell] = "*"
            goals.append(f"{item.name} {where}")
        robot = int(state.endogenous[0])
        if robot != mdp.done:
            people[robot] = "R" if people[robot] == " " else "!"
        rows = floor.plan([place + who for place, who in zip(places, people, strict=True)])
        where = "done" if robot == mdp.done else f"in cell {floor.position(robot)}"
        legend = (
            "R robot  * goal  T table  p porter  P porter with its object  w wanderer  "
            "2-9 agents, + more  ! robot and others"
        )
        return "\n".join([*rows, f"robot {where}; goal: {', '.join(goals) or 'none'}", legend])

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The floor, and on its left room for what is in nobody's hand."""
        return -0.45, -0.1, self.mdp.floor.columns + 0.1, self.mdp.floor.rows + 0.1

    def draw_ground(self, canvas: flat.Canvas, state: State) -> None:
        floor = self.mdp.floor
        flat.tiles(canvas, floor.rows, floor.columns)
        for cell, name in enumerate(self.mdp.exogenous_names[self.mdp.occupancy_slice]):
            if self.emphasis.marks(name):
                row, column = floor.position(cell)
                middle = canvas.at((column + 0.5, row + 0.5))
                flat.square(middle)
                if state.exogenous[cell]:
                    flat.occupied_disc(middle)

    def lay_out(self, state: State) -> list[Thing]:
        agents, items = self._agents(state), self._items(state)
        wood = TABLE if self.mask is None else mix(TABLE, FADED, 0.5)
        tables = [self._place(cell, 0.27) for cell in self.mdp.table_cells]
        things = [Thing("table", f"table {i}", spot, wood) for i, spot in enumerate(tables)]

        def at_cell(cell: int) -> tuple[Point, float, float]:
            below, depth = (0.74, 0.30) if cell in self.mdp.table_cells else (0.52, 0.66)
            return self._place(cell, below), 0.86, depth

        robot = int(state.endogenous[0])
        present = [] if robot == self.mdp.done else [(robot, "robot")]
        spots = side_by_side([*present, *((agent.cell, agent.name) for agent in agents)], at_cell)
        if present:
            things.append(Thing("robot", "robot", spots["robot"]))
        for number, agent in enumerate(agents):
            colour, cap = (PORTER, CAP) if number < self.mdp.num_porters else (WANDERER, None)
            spot = spots[agent.name]
            things.append(Thing("person", agent.name, spot, colour, cap, agent.variables))

        width, depth = 0.92 * TABLE_TOP[0], 0.8 * TABLE_TOP[1]
        lying = [(item.table, item.name) for item in items if item.table is not None]
        spots |= side_by_side(lying, lambda table: (tables[table], width, depth))
        lost = 0
        for item in items:
            height = TABLE_HEIGHT if item.table is not None else 0.0
            if item.holder is not None:
                x, y = spots[agents[item.holder].name]
                spots[item.name], height = (x + HAND[0], y + HAND[1]), HAND_HEIGHT
            elif item.table is None:  # in nobody's hand: beside the floor
                spots[item.name] = (-0.3, 0.4 + 0.4 * lost)
                lost += 1
            x, y = spots[item.name]
            colour, own = GOAL if item.is_goal else OBJECT, (item.name,)
            things.append(Thing("parcel", item.name, (x, y), colour, None, own, height))
            if item.is_goal:
                spot = (x, y) if item.holder is None else (x + 0.14, y - 0.10)  # not on their face
                things.append(Thing("goal", f"{item.name} goal", spot, GOAL, None, own, height))
        return things

    def key(self, state: State) -> flat.Key:
        if state.endogenous[0] == self.mdp.done:
            return [(flat.robot, "goal reached")]
        entries = [(flat.robot, "robot"), (flat.goal_sign, "goal")]
        if self.mask is not None:
            return [
                *entries,
                (flat.square, "kept cell"),
                (flat.occupied_disc, "occupied"),
                (flat.ring, "kept agent"),
                (flat.ignored_sign, "ignored"),
            ]
        return [
            *entries,
            (flat.person_sign(PORTER, CAP), "porter"),
            (flat.person_sign(WANDERER), "wanderer"),
            (flat.parcel_sign, "object"),
        ]

    def _place(self, cell: int, below: float) -> Point:
        """A point in the middle of a cell, so far below its upper edge."""
        row, column = self.mdp.floor.position(cell)
        return column + 0.5, row + below

    def _agents(self, state: State) -> list[Agent]:
        names = self.mdp.exogenous_names[self.mdp.agent_slice]
        cells = state.exogenous[self.mdp.agent_slice][::3].tolist()
        return [
            Agent(names[3 * i].removesuffix("_cell"), cell, names[3 * i : 3 * i + 3])
            for i, cell in enumerate(cells)
        ]

    def _items(self, state: State) -> list[Item]:
        mdp = self.mdp
        places, goals = mdp.decode_object(state.exogenous[mdp.object_slice])
        in_hand = places == len(mdp.table_cells)
        return [
            Item(
                name,
                None if in_hand[i] else int(places[i]),
                i if in_hand[i] and i < mdp.num_porters else None,
                bool(goals[i]),
            )
            for i, name in enumerate(mdp.exogenous_names[mdp.object_slice])
        ]
