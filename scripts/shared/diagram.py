"""Diagrams of boxes and arrows as SVG text, readable on light and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

INK, FAINT, PAPER = "#1f2328", "#59636e", "#ffffff"
FONT = "font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""
MONO = "font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\""
#: Pixels from one line of text to the next.
LINE = 19


@dataclass(frozen=True)
class Box:
    """A title, some lines below it, and perhaps the file to open, in a frame."""

    x: float
    y: float
    height: float
    title: str
    lines: tuple[str, ...] = ()
    file: str = ""
    width: float = 220
    fill: str = "#f6f8fa"
    stroke: str = "#8c959f"

    def at(self, right: float, down: float) -> Point:
        """A point of the frame: (0, 0) is its upper left corner and (1, 1) its lower right."""
        return self.x + right * self.width, self.y + down * self.height

    def to_svg(self) -> str:
        middle = self.x + self.width / 2
        texts = [
            (self.title, f'{FONT} font-size="15" font-weight="600" fill="{INK}"'),
            *((line, f'{FONT} font-size="13" fill="{INK}"') for line in self.lines),
            *([(self.file, f'{MONO} font-size="11" fill="{FAINT}"')] if self.file else []),
        ]
        first = self.y + self.height / 2 - LINE * (len(texts) - 1) / 2 + 5
        frame = (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" '
            f'height="{self.height:g}" rx="8" fill="{self.fill}" stroke="{self.stroke}"/>'
        )
        heights = (first + k * LINE for k in range(len(texts)))
        lines = (
            text(line, (middle, y), how) for (line, how), y in zip(texts, heights, strict=True)
        )
        return "\n".join([frame, *lines])


@dataclass(frozen=True)
class Arrow:
    """A line with a head through some points, and perhaps a word above its first part."""

    points: tuple[Point, ...]
    label: str = ""
    dashed: bool = False

    def to_svg(self) -> str:
        path = " ".join(f"{x:g},{y:g}" for x, y in self.points)
        dashes = ' stroke-dasharray="5 4"' if self.dashed else ""
        line = (
            f'<polyline points="{path}" fill="none" stroke="{FAINT}" stroke-width="1.6"{dashes} '
            'marker-end="url(#head)"/>'
        )
        if not self.label:
            return line
        (x, y), (to_x, to_y) = self.points[:2]
        middle = (x + to_x) / 2, (y + to_y) / 2 - 6
        return line + "\n" + text(self.label, middle, f'{FONT} font-size="12" fill="{FAINT}"')


def elbow(start: Point, end: Point) -> Arrow:
    """An arrow to the right that changes its height half-way."""
    middle = (start[0] + end[0]) / 2
    return Arrow((start, (middle, start[1]), (middle, end[1]), end))


def text(content: str, centre: Point, style: str) -> str:
    """One line of text, centred."""
    x, y = centre
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" {style}>{escape(content)}</text>'


def to_svg(width: int, height: int, title: str, parts: Sequence[Box | Arrow]) -> str:
    """The diagram on a sheet of paper of its own, whatever the page behind it."""
    sheet = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">\n<title>{escape(title)}</title>'
    )
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{FAINT}"/>'
        "</marker></defs>"
    )
    paper = f'<rect width="{width}" height="{height}" rx="12" fill="{PAPER}"/>'
    return "\n".join([sheet, head, paper, *(part.to_svg() for part in parts), "</svg>\n"])
