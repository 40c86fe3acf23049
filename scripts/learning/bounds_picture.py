"""The picture of a learner's masks between two lines, as SVG text: it needs no plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

Kind = Literal["kept", "not kept", "learned mask"]
Place = tuple[float, float]

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 120, 50, 60  # margins, in pixels
INK, FAINT, BAND = "#1f2328", "#59636e", "#009E73"
#: Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS: dict[Kind, str] = {"kept": "#0072B2", "not kept": "#ffffff", "learned mask": "#D55E00"}
LEGEND: dict[Kind, str] = {
    "kept": "tried and kept at that time",
    "not kept": "tried and not kept",
    "learned mask": "the learned mask, on fresh trajectories",
}
FONT = "font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""


class Point(NamedTuple):
    """A mask: how many variables it has, and what its policy earns."""

    size: int
    mean: float
    interval: tuple[float, float]
    kind: Kind


class Band(NamedTuple):
    """A line across the picture, with its interval; its label is beside it, a bit up or down."""

    label: str
    mean: float
    interval: tuple[float, float]
    below: bool = False


def draw_bounds(points: Sequence[Point], bands: Sequence[Band]) -> str:
    """Returns against the number of variables, between the bands."""
    ends = [end for thing in (*points, *bands) for end in thing.interval if math.isfinite(end)]
    ends += [thing.mean for thing in (*points, *bands)]
    y = _Scale.over(min(ends), max(ends), HEIGHT - BOTTOM, TOP, count=6)
    x = _Scale.over(0, max(1, *(point.size for point in points)), LEFT, WIDTH - RIGHT, count=8)
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="#ffffff"/>',
        *_grid(x, y),
        *(part for band in bands for part in _band(band, y)),
        *(part for point in points for part in _point(point, x, y)),
        *_legend(list(dict.fromkeys(point.kind for point in points))),
    ]
    title = "What each mask earns, with 95 % intervals"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">\n<title>{escape(title)}</title>'
    )
    return "\n".join([head, *parts, "</svg>\n"])


class _Scale(NamedTuple):
    """From numbers to pixels."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, low: float, high: float, start: float, end: float, *, count: int) -> _Scale:
        """With about ``count`` round numbers to write beside it; whole ones for whole ends."""
        room = 0.04 * (high - low) or 1.0
        step = (high - low) / count or 1.0
        size = 10.0 ** math.floor(math.log10(step))
        step = min(times * size for times in (1, 2, 5, 10) if times * size >= 0.999 * step)
        if isinstance(low, int) and isinstance(high, int):
            step = max(1.0, step)
        first = math.ceil(low / step)
        ticks = tuple(k * step for k in range(first, math.floor(high / step) + 1))
        return cls(low - room, high + room, start, end, ticks)

    def at(self, number: float) -> float:
        share = (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def _grid(x: _Scale, y: _Scale) -> list[str]:
    right, floor, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
    lines = [_line((LEFT, y.at(tick)), (right, y.at(tick)), "#e4e7eb") for tick in y.ticks]
    numbers = [_text(f"{tick:g}", LEFT - 8, y.at(tick) + 4, anchor="end") for tick in y.ticks]
    sizes = [_text(f"{tick:g}", x.at(tick), floor + 18) for tick in x.ticks]
    across = _text("variables in the mask", (LEFT + right) / 2, floor + 40)
    upright = f'<g transform="rotate(-90 18 {middle:g})">{_text("mean return", 18, middle)}</g>'
    bottom = _line((LEFT, floor), (right, floor), FAINT)
    return [*lines, *numbers, *sizes, bottom, across, upright]


def _band(band: Band, y: _Scale) -> list[str]:
    level, right = y.at(band.mean), WIDTH - RIGHT
    low, high = (y.at(end) if math.isfinite(end) else level for end in band.interval)
    area = (
        f'<rect x="{LEFT}" y="{high}" width="{right - LEFT}" height="{low - high:.1f}" '
        f'fill="{BAND}" opacity="0.18"/>'
    )
    told = band.label, f"{band.mean:.1f} ± {(band.interval[1] - band.interval[0]) / 2:.1f}"
    first = min(level - 2, HEIGHT - BOTTOM - 20) + (12 if band.below else -8)
    labels = [_text(text, right + 8, first + 15 * k, anchor="start") for k, text in enumerate(told)]
    return [area, _line((LEFT, level), (right, level), BAND, width=1.6), *labels]


def _point(point: Point, x: _Scale, y: _Scale) -> list[str]:
    across, level = x.at(point.size), y.at(point.mean)
    low, high = (y.at(end) if math.isfinite(end) else level for end in point.interval)
    learned = point.kind == "learned mask"
    bar = _line((across, low), (across, high), _edge(point.kind), width=2.2 if learned else 1)
    return [bar, _circle(across, level, point.kind, radius=6 if learned else 4)]


def _legend(kinds: Sequence[Kind]) -> list[str]:
    parts, across = [], float(LEFT)
    for kind in kinds:
        parts.append(_circle(across + 5, 24, kind, radius=5))
        parts.append(_text(LEGEND[kind], across + 16, 28, anchor="start"))
        across += 32 + 6.0 * len(LEGEND[kind])
    return parts


def _edge(kind: Kind) -> str:
    return COLOURS["learned mask" if kind == "learned mask" else "kept"]


def _circle(x: float, y: float, kind: Kind, radius: int) -> str:
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" fill="{COLOURS[kind]}" '
        f'stroke="{_edge(kind)}" stroke-width="1.4"/>'
    )


def _line(start: Place, end: Place, colour: str, width: float = 1) -> str:
    return (
        f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" '
        f'stroke="{colour}" stroke-width="{width:g}"/>'
    )


def _text(content: str, x: float, y: float, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {FONT} font-size="12" '
        f'fill="{INK}">{escape(content)}</text>'
    )
