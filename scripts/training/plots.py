"""Learning curves as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from planners.core.files import replacing
from shared.plotting import COLOURS, bytes_of, new_figure
from training.curves import Curve, average, by_label


def plot_curves(
    curves: Sequence[Curve],
    levels: dict[str, float],
    targets: dict[str, float],
    title: str,
    file: Path,
) -> None:
    """Means over seeds with 95 % bands, each run as a thin line, and what others earn."""
    with new_figure() as figure:
        axes = figure.add_subplot(title=title, xlabel="steps of training")
        axes.set_ylabel("return in the full environment")
        axes.xaxis.set_major_formatter(EngFormatter())
        for style, (name, level) in zip(("--", ":", "-."), levels.items(), strict=False):
            axes.axhline(level, color="#333333", linestyle=style, linewidth=1, label=name)
        for name, level in targets.items():
            axes.axhline(level, color="#999999", linewidth=0.8)
            place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "top"}
            axes.text(1, level, name, fontsize=7, clip_on=True, **place)
        for colour, (label, group) in zip(
            cycle(COLOURS.values()), by_label(curves).items(), strict=False
        ):
            _plot_group(axes, group, f"{label} ({_runs(len(group))})", colour)
        axes.set_ylim(bottom=_floor(curves, levels))
        axes.legend(loc="best")
        picture = bytes_of(figure, "svg" if file.suffix == ".svg" else "png")
    with replacing(file) as part:
        part.write_bytes(picture)


def _plot_group(axes: Axes, group: Sequence[Curve], label: str, colour: str) -> None:
    for curve in group if len(group) > 1 else ():
        steps, means = zip(*((p.steps, p.mean) for p in curve.points), strict=True)
        axes.plot(steps, means, color=colour, linewidth=0.5, alpha=0.35)
    mean_curve = average(group)
    steps = [s for s, _ in mean_curve]
    means = np.array([interval.mean for _, interval in mean_curve])
    halves = np.array([interval.half_width for _, interval in mean_curve])
    axes.plot(steps, means, color=colour, linewidth=1.8, label=label)
    if all(map(math.isfinite, halves)):
        axes.fill_between(steps, means - halves, means + halves, color=colour, alpha=0.18, lw=0)


def _floor(curves: Sequence[Curve], levels: dict[str, float]) -> float | None:
    """Where the picture ends: untrained agents may earn so little that the rest would be flat."""
    trained = [point.mean for curve in curves for point in curve.points[1:]]
    values = [*trained, *levels.values()]
    return min(values) - 0.05 * (max(values) - min(values)) if trained else None


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"
