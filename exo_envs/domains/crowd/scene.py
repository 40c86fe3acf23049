"""ExoCrowd in 3-D."""

from __future__ import annotations

from exo_envs.domains.crowd.layout import TABLE_TOP, Layout
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.rendering import bodies, meshes
from exo_envs.rendering.meshes import Point3, merge
from exo_envs.rendering.palette import (
    CAP,
    FADED,
    GOAL,
    OBJECT,
    PORTER,
    TABLE,
    WANDERER,
    Emphasis,
    mix,
)
from exo_envs.rendering.scene import Scene

TABLE_HEIGHT = 0.26
HAND_HEIGHT = 0.26

DESK = merge(
    meshes.box(TABLE_TOP[0], TABLE_TOP[1], 0.05).at(0.0, 0.0, TABLE_HEIGHT - 0.05),
    *(
        meshes.box(0.06, 0.06, TABLE_HEIGHT - 0.05).at(
            side * (TABLE_TOP[0] / 2 - 0.05), end * (TABLE_TOP[1] / 2 - 0.05), 0.0
        )
        for side in (-1, 1)
        for end in (-1, 1)
    ),
)
PARCEL = meshes.box(0.16, 0.16, 0.16)
GOAL_PARCEL = meshes.box(0.21, 0.21, 0.21)


def corners(mdp: CrowdMDP) -> list[Point3]:
    """Points that a picture has to contain."""
    floor = mdp.floor
    return [
        (x, -y, z)
        for x in (-0.1, floor.columns + 0.1)
        for y, z in ((0.0, 1.5), (floor.rows + 0.1, -0.12))
    ]


def build(mdp: CrowdMDP, layout: Layout, scene: Scene) -> None:
    """Make the bodies."""
    bodies.add_floor(scene, mdp.floor.rows, mdp.floor.columns)
    bodies.add_cells(scene, range(mdp.floor.num_cells))
    for table in range(len(layout.tables)):
        scene.add(f"table {table}", DESK, TABLE)
    bodies.add_robot(scene)
    for figure in layout.figures:
        bodies.add_person(scene, figure.name, cap=figure.is_porter)
    for item in layout.items:
        scene.add(item.name, PARCEL, OBJECT)
        scene.add(f"{item.name} as goal", GOAL_PARCEL, GOAL)
        bodies.add_beacon(scene, f"{item.name} beacon")


def pose(mdp: CrowdMDP, layout: Layout, emphasis: Emphasis, scene: Scene) -> None:
    """Show the bodies as a state has them."""
    bodies.show_floor(scene)
    names = mdp.exogenous_names[mdp.occupancy_slice]
    for cell, name in enumerate(names):
        if emphasis.marks(name):
            row, column = mdp.floor.position(cell)
            bodies.show_cell(scene, cell, column + 0.5, row + 0.5, occupied=layout.occupied[cell])
    wood = mix(TABLE, FADED, 0.5) if emphasis.active else TABLE
    for table, (x, y) in enumerate(layout.tables):
        scene.show(f"table {table}", (x, -y, 0.0), wood)
    if layout.robot is not None:
        bodies.show_robot(scene, *layout.robot)
    for figure in layout.figures:
        bodies.show_person(
            scene,
            figure.name,
            *figure.spot,
            PORTER if figure.is_porter else WANDERER,
            cap=CAP if figure.is_porter else None,
            emphasis=emphasis,
            variables=figure.variables,
        )
    for item in layout.items:
        height = 0.0
        if item.table is not None:
            height = TABLE_HEIGHT
        elif item.holder is not None:
            height = HAND_HEIGHT
        place = (item.spot[0], -item.spot[1], height)
        if item.is_goal:
            colour = emphasis.paint(GOAL, item.name)
            scene.show(f"{item.name} as goal", place, colour)
            scene.show(f"{item.name} beacon", place, colour)
        else:
            scene.show(item.name, place, emphasis.paint(OBJECT, item.name))
