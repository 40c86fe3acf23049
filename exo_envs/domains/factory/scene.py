"""ExoFactory in 3-D."""

from __future__ import annotations

from exo_envs.domains.factory.layout import (
    BELT,
    MACHINE,
    STATION_COLOURS,
    Layout,
    Order,
    belt_end,
    chevrons,
    dial,
)
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.rendering import bodies, meshes
from exo_envs.rendering.meshes import Mesh, Point3, merge
from exo_envs.rendering.palette import (
    DOWN,
    GOAL,
    HELMET,
    INK,
    KEPT,
    LIT,
    PAPER,
    TECHNICIAN,
    UP,
    WALL,
    Emphasis,
    mix,
)
from exo_envs.rendering.scene import Scene

HEIGHT = 0.5  # of a machine
BELT_HEIGHT = 0.16
PARCEL_SIDE = 0.42

# The bars of a seven-segment digit: their middles and whether they lie; a digit is 1 x 2.
_BARS = {
    "a": (0.0, 1.0, True),
    "b": (0.5, 0.5, False),
    "c": (0.5, -0.5, False),
    "d": (0.0, -1.0, True),
    "e": (-0.5, -0.5, False),
    "f": (-0.5, 0.5, False),
    "g": (0.0, 0.0, True),
}
_SEGMENTS = (
    "abcdef",
    "bc",
    "abged",
    "abgcd",
    "fgbc",
    "afgcd",
    "afgedc",
    "abc",
    "abcdefg",
    "abcfgd",
)


def digit(number: int, size: float) -> Mesh:
    """The last digit of a number, flat on z = 0 and as high as ``size``, to be seen from above."""
    bars = []
    unit, thick = size / 2.4, 0.16 * size
    for segment in _SEGMENTS[number % 10]:
        x, y, lies = _BARS[segment]
        width, depth = (unit, 0.0) if lies else (0.0, unit)
        bars.append(meshes.box(width + thick, depth + thick, 0.01).at(x * unit, y * unit, 0.0))
    return merge(*bars)


CABINET = meshes.box(MACHINE[0], MACHINE[1], HEIGHT)
LAMP = merge(
    meshes.lathe([(0.05, HEIGHT), (0.05, HEIGHT + 0.06)], sides=8),
    meshes.ball(0.13).at(0.0, 0.0, HEIGHT + 0.17),
)
PARCEL = meshes.box(PARCEL_SIDE, PARCEL_SIDE, 0.34)
PLATE = meshes.box(0.54, 0.54, 0.02)
KEPT_PLATE = meshes.box(0.66, 0.62, 0.01)
LIGHT = meshes.ball(0.055, sides=8)
NOISE_LAMP = merge(
    meshes.lathe([(0.02, 0.0), (0.02, 0.2)], sides=6), meshes.ball(0.075, sides=8).at(0, 0, 0.26)
)
CHEVRON = merge(
    meshes.prism([(-0.08, 0.0), (0.0, 0.0), (0.1, 0.14), (0.02, 0.14)], 0.0, 0.01),
    meshes.prism([(-0.08, 0.0), (0.02, -0.14), (0.1, -0.14), (0.0, 0.0)], 0.0, 0.01),
)
TICK = meshes.glowing(
    meshes.raised(
        merge(
            meshes.prism([(-0.26, 0.02), (-0.06, -0.20), (0.0, -0.10), (-0.18, 0.10)], 0.0, 0.04),
            meshes.prism([(-0.06, -0.20), (0.30, 0.24), (0.22, 0.32), (-0.10, -0.06)], 0.0, 0.04),
        ),
        40.0,
    )
).at(0.0, 0.0, 0.7)


def corners(mdp: FactoryMDP) -> list[Point3]:
    """Points that a picture has to contain."""
    floor = mdp.floor
    front = floor.rows + BELT[1] + 0.05
    return [(x, -y, z) for x in (-0.1, belt_end(mdp) + 0.1) for y, z in ((0.0, 1.8), (front, 0.0))]


def build(mdp: FactoryMDP, layout: Layout, scene: Scene) -> None:
    """Make the bodies."""
    floor = mdp.floor
    bodies.add_floor(scene, floor.rows, floor.columns)
    middle = layout.clock[1]
    depth = BELT[1] - BELT[0]
    scene.add(
        "belt",
        meshes.box(layout.belt_end - 1.0, depth, BELT_HEIGHT).at(
            (layout.belt_end + 1) / 2, -middle, 0.0
        ),
        WALL,
    )
    arrows = [CHEVRON.at(x, -middle, BELT_HEIGHT) for x in chevrons(layout)]
    scene.add("arrows", merge(*arrows), mix(WALL, PAPER, 0.45))
    digits = [digit(number, 0.28) for number in range(len(layout.stations))]
    for station in layout.stations:
        name = f"machine {station.number}"
        scene.add(name, CABINET, STATION_COLOURS[station.number])
        scene.add(f"{name} lamp", LAMP, UP)
        scene.add(f"{name} digit", meshes.raised(digit(station.number, 0.34), 90.0), PAPER)
        scene.add(f"{name} kept", bodies.SQUARE, bodies.KEPT_FLOOR)
        bodies.add_beacon(scene, f"{name} beacon")
    for order in layout.orders:
        scene.add(order.variable, PARCEL, WALL)
        scene.add(f"{order.variable} kept", KEPT_PLATE, KEPT)
        for number, mesh in enumerate(digits):
            scene.add(f"{order.variable} digit {number}", mesh, PAPER)
    scene.add("live", PLATE, GOAL)
    scene.add("fulfilled", TICK, UP)
    scene.add("clock", meshes.lathe([(0.30, 0.0), (0.30, 0.16), (0.0, 0.16)], sides=24), INK)
    scene.add("clock kept", KEPT_PLATE, KEPT)
    for light in range(layout.clock_size):
        scene.add(f"clock light {light}", LIGHT, LIT)
    for technician in layout.technicians:
        bodies.add_person(scene, technician.name, cap=True)
    for lamp in layout.lamps:
        scene.add(lamp.variable, NOISE_LAMP, WALL)
        scene.add(f"{lamp.variable} kept", meshes.disc(0.16, height=0.01), KEPT)
    bodies.add_robot(scene)


def pose(layout: Layout, emphasis: Emphasis, scene: Scene) -> None:
    """Show the bodies as a state has them."""
    bodies.show_floor(scene)
    bodies.show_robot(scene, *layout.robot)
    for technician in layout.technicians:
        bodies.show_person(
            scene,
            technician.name,
            *technician.spot,
            TECHNICIAN,
            cap=HELMET,
            emphasis=emphasis,
            variables=(technician.name,),
        )
    _pose_stations(layout, emphasis, scene)
    scene.show("belt")
    scene.show("arrows")
    for index, order in enumerate(layout.orders):
        _pose_order(order, emphasis, scene, is_live=index == 0)
    if layout.is_fulfilled:
        x, y = layout.orders[0].spot
        scene.show("fulfilled", (x, -y, BELT_HEIGHT))
    _pose_clock(layout, emphasis, scene)
    for lamp in layout.lamps:
        x, y = lamp.spot
        colour = emphasis.paint(LIT if lamp.is_lit else WALL, lamp.variable)
        scene.show(lamp.variable, (x, -y, 0.0), colour)
        if emphasis.marks(lamp.variable):
            scene.show(f"{lamp.variable} kept", (x, -y, 0.0))


def _pose_stations(layout: Layout, emphasis: Emphasis, scene: Scene) -> None:
    for station in layout.stations:
        name, (x, y) = f"machine {station.number}", station.machine
        place = (x, -y, 0.0)
        scene.show(name, place, emphasis.paint(STATION_COLOURS[station.number], station.variable))
        scene.show(f"{name} digit", (x - 0.22, -y - MACHINE[1] / 2, HEIGHT / 2))
        lamp = UP if station.is_up else DOWN
        scene.show(f"{name} lamp", (x + 0.15, -y, 0.0), emphasis.paint(lamp, station.variable))
        if emphasis.marks(station.variable):
            scene.show(f"{name} kept", (station.centre[0], -station.centre[1], 0.0))
    live = layout.orders[0]
    if live.station is not None and not layout.is_fulfilled:
        x, y = layout.stations[live.station].machine
        colour = emphasis.paint(GOAL, live.variable)
        scene.show(f"machine {live.station} beacon", (x - 0.22, -y, HEIGHT), colour)


def _pose_order(order: Order, emphasis: Emphasis, scene: Scene, *, is_live: bool) -> None:
    x, y = order.spot
    if is_live:
        scene.show("live", (x, -y, BELT_HEIGHT), emphasis.paint(GOAL, order.variable))
    if emphasis.marks(order.variable):
        scene.show(f"{order.variable} kept", (x, -y, BELT_HEIGHT))
    if order.station is not None:
        colour = emphasis.paint(STATION_COLOURS[order.station], order.variable)
        scene.show(order.variable, (x, -y, BELT_HEIGHT), colour)
        scene.show(f"{order.variable} digit {order.station}", (x, -y, BELT_HEIGHT + 0.34))


def _pose_clock(layout: Layout, emphasis: Emphasis, scene: Scene) -> None:
    x, y = layout.clock
    scene.show("clock", (x, -y, 0.0), emphasis.paint(INK, layout.clock_variable))
    if emphasis.marks(layout.clock_variable):
        scene.show("clock kept", (x, -y, 0.0))
    for light, (right, down) in enumerate(dial(layout.clock_size)):
        colour = emphasis.paint(LIT if light < layout.steps_left else WALL, layout.clock_variable)
        scene.show(f"clock light {light}", (x + 0.2 * right, -y - 0.2 * down, 0.16), colour)
