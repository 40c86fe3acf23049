"""Pictures of ExoFactory: in 3-D, as a floor plan, or in letters."""

from __future__ import annotations

from exo_envs.core.mdp import State
from exo_envs.domains.factory import scene as factory_scene
from exo_envs.domains.factory.floor_plan import draw_floor_plan, key
from exo_envs.domains.factory.layout import lay_out
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.rendering import figures
from exo_envs.rendering.canvas import Canvas
from exo_envs.rendering.meshes import Point3
from exo_envs.rendering.palette import Emphasis
from exo_envs.rendering.scene import Scene
from exo_envs.rendering.scene_viewer import SceneViewer


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
        floor = self.mdp.floor
        state = self.check(state)
        layout = lay_out(self.mdp, state)
        cells = [". "] * floor.num_cells
        people = [" "] * floor.num_cells
        station_cells = [int(cell) for cell in self.mdp.station_cells]
        for station in layout.stations:
            cells[station_cells[station.number]] = f"{station.number}{'-+'[station.is_up]}"
        for technician in layout.technicians:
            cell = station_cells[technician.station]
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
        queue = ["-" if order.station is None else str(order.station) for order in layout.orders]
        noise = "".join(str(int(lamp.is_lit)) for lamp in layout.lamps)
        belt = (
            f"belt {' '.join([f'[{queue[0]}]', *queue[1:]])}, "
            f"{'' if layout.is_fulfilled else 'not '}fulfilled, moves in {layout.steps_left}; "
            f"noise {noise or 'none'}"
        )
        legend = (
            "R robot  0-4 station  + up  - down  t technician  m technicians  "
            "& robot and technicians"
        )
        return "\n".join([*rows, belt, legend])

    def draw_flat(self, canvas: Canvas, state: State) -> None:
        """Draw the floor plan."""
        draw_floor_plan(canvas, self.mdp, lay_out(self.mdp, state), Emphasis(self.mask))

    def corners(self) -> list[Point3]:
        """Points that the 3-D picture has to contain."""
        return factory_scene.corners(self.mdp)

    def build(self, scene: Scene, state: State) -> None:
        """Make the bodies of the 3-D scene."""
        factory_scene.build(self.mdp, lay_out(self.mdp, state), scene)

    def pose(self, scene: Scene, state: State) -> None:
        """Show the bodies as the state has them."""
        factory_scene.pose(lay_out(self.mdp, state), Emphasis(self.mask), scene)

    def key(self, state: State) -> figures.Key:
        """What the signs mean."""
        del state
        return key(masked=self.mask is not None)
