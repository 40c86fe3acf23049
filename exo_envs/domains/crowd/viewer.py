"""Pictures of ExoCrowd: in 3-D, as a floor plan, or in letters."""

from __future__ import annotations

from exo_envs.core.mdp import State
from exo_envs.domains.crowd import scene as crowd_scene
from exo_envs.domains.crowd.floor_plan import draw_floor_plan, key
from exo_envs.domains.crowd.layout import Item, Layout, lay_out
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.rendering import figures
from exo_envs.rendering.canvas import Canvas
from exo_envs.rendering.meshes import Point3
from exo_envs.rendering.palette import Emphasis
from exo_envs.rendering.scene import Scene
from exo_envs.rendering.scene_viewer import SceneViewer


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
        floor = self.mdp.floor
        state = self.check(state)
        layout = lay_out(self.mdp, state)
        places = ["."] * floor.num_cells
        people = [" "] * floor.num_cells
        for cell in self.mdp.table_cells:
            places[cell] = "T"
        holders = {item.holder for item in layout.items}
        crowds = [0] * floor.num_cells
        for agent, figure in enumerate(layout.figures):
            crowds[figure.cell] += 1
            sign = ("P" if agent in holders else "p") if figure.is_porter else "w"
            people[figure.cell] = sign if crowds[figure.cell] == 1 else _digit(crowds[figure.cell])
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
            " ".join(cells[floor.cell(row, 0) : floor.cell(row, 0) + floor.columns])
            for row in range(floor.rows)
        ]
        goals = [self._whereabouts(layout, item) for item in layout.items if item.is_goal]
        where = "done" if robot == self.mdp.done else f"in cell {floor.position(robot)}"
        legend = (
            "R robot  * goal  T table  p porter  P porter with its object  w wanderer  "
            "2-9 agents, + more  ! robot and others"
        )
        return "\n".join(
            [
                *(row.rstrip() for row in rows),
                f"robot {where}; goal: {', '.join(goals) or 'none'}",
                legend,
            ]
        )

    def _whereabouts(self, layout: Layout, item: Item) -> str:
        if item.table is not None:
            cell = self.mdp.floor.position(int(self.mdp.table_cells[item.table]))
            return f"{item.name} on the table in cell {cell}"
        if item.holder is not None:
            figure = layout.figures[item.holder]
            cell = self.mdp.floor.position(figure.cell)
            return f"{item.name} with {figure.name} in cell {cell}"
        return f"{item.name} in nobody's hand"

    def draw_flat(self, canvas: Canvas, state: State) -> None:
        """Draw the floor plan."""
        draw_floor_plan(canvas, self.mdp, lay_out(self.mdp, state), Emphasis(self.mask))

    def corners(self) -> list[Point3]:
        """Points that the 3-D picture has to contain."""
        return crowd_scene.corners(self.mdp)

    def build(self, scene: Scene, state: State) -> None:
        """Make the bodies of the 3-D scene."""
        crowd_scene.build(self.mdp, lay_out(self.mdp, state), scene)

    def pose(self, scene: Scene, state: State) -> None:
        """Show the bodies as the state has them."""
        crowd_scene.pose(self.mdp, lay_out(self.mdp, state), Emphasis(self.mask), scene)

    def key(self, state: State) -> figures.Key:
        """What the signs mean, or that the episode is over."""
        if state.endogenous[0] == self.mdp.done:
            return [(figures.robot, "goal reached: the episode is over")]
        return key(masked=self.mask is not None)


def _digit(count: int) -> str:
    return str(count) if count < 10 else "+"
