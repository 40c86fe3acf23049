"""The paper's plots, as the bytes of a picture."""

from __future__ import annotations

import numpy as np

from reproduction.settings import METHODS
from reproduction.tables import (
    Records,
    average,
    cost_weights_of,
    curve_of,
    methods_of,
    select,
    turning_point,
)
from shared.intervals import Interval
from shared.plotting import COLOURS, Format, bytes_of, new_figure

#: The colour and the marker of each method.
STYLES = {
    "brute force": (COLOURS["black"], "s"),
    "greedy": (COLOURS["orange"], "v"),
    "paper": (COLOURS["sky"], "^"),
    "ours": (COLOURS["vermilion"], "o"),
}


def plot_objective(records: Records, image_format: Format = "svg") -> bytes:
    """J against lambda on the small domain (section 6.1)."""
    return _plot_against_weight(records, "J", "J of the learned mask", image_format)


def plot_time(records: Records, image_format: Format = "svg") -> bytes:
    """Time against lambda on the small domain (section 6.1)."""
    return _plot_against_weight(records, "seconds", "seconds for a run", image_format)


def _plot_against_weight(
    records: Records, quantity: str, label: str, image_format: Format
) -> bytes:
    small = select(records, experiment="small")
    weights = cost_weights_of(small)
    with new_figure() as figure:
        axes = figure.add_subplot(xlabel="λ", ylabel=label)
        for method in methods_of(small):
            intervals = [
                average(select(small, method=method, cost_weight=weight), quantity)
                for weight in weights
            ]
            colour, marker = STYLES[method]
            axes.plot(
                weights,
                [interval.mean for interval in intervals],
                color=colour,
                marker=marker,
                markersize=4,
                label=METHODS[method],
            )
            axes.fill_between(weights, *_band(intervals), color=colour, alpha=0.2, linewidth=0)
        if quantity == "seconds":
            axes.set_ylim(bottom=0)
        axes.legend()
        return bytes_of(figure, image_format)


def _band(intervals: list[Interval]) -> tuple[np.ndarray, np.ndarray]:
    half = np.nan_to_num([interval.half_width for interval in intervals])
    means = np.array([interval.mean for interval in intervals])
    return means - half, means + half


def plot_curve(records: Records, image_format: Format = "svg") -> bytes:
    """J and returns against the number of variables, of one Crowd run (section 6.2)."""
    curve = curve_of(records)
    if curve is None:
        raise ValueError("there is no Crowd run with growing masks among the records")
    points = curve["history"]
    sizes = [point["num_variables"] for point in points]
    with new_figure() as figure:
        axes = figure.add_subplot(xlabel="variables in the mask")
        for name, label, colour, marker in (
            ("mean_return", "average returns", "#0072B2", "s"),
            ("value", f"J, with λ = {curve['key']['cost_weight']:g}", "#D55E00", "o"),
        ):
            values = np.array([point[name] for point in points])
            half = 1.96 * np.array([point["standard_error"] for point in points])
            axes.plot(sizes, values, color=colour, marker=marker, markersize=3, label=label)
            axes.fill_between(
                sizes, values - half, values + half, color=colour, alpha=0.15, linewidth=0
            )
        turn = turning_point(points)
        if turn is not None:
            place = turn[1]["num_variables"]
            axes.axvline(place, color="0.4", linestyle=":", linewidth=1)
            axes.annotate(
                f"variable {place}: J falls, returns rise",
                (place, axes.get_ylim()[0]),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=8,
            )
        axes.legend()
        return bytes_of(figure, image_format)


def all_plots(records: Records, image_format: Format = "svg") -> dict[str, bytes]:
    """Every plot that there are results for, by name."""
    plots = {}
    if select(records, experiment="small"):
        plots["small_objective"] = plot_objective(records, image_format)
        plots["small_time"] = plot_time(records, image_format)
    if curve_of(records) is not None:
        plots["crowd_curve"] = plot_curve(records, image_format)
    return plots
