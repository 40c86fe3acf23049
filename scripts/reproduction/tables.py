"""The results as tables: means and 95 % intervals over trials, the paper's figures beside."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from reproduction.results import read_results
from reproduction.settings import CROWD, FACTORY, METHODS, PAPER

Records = Sequence[dict[str, Any]]

#: What is averaged over trials.
QUANTITIES: dict[str, Callable[[dict[str, Any]], float]] = {
    "J": lambda record: record["value"],
    "returns": lambda record: record["mean_return"],
    "seconds": lambda record: record["measured"]["seconds"],
    "variables": lambda record: len(record["mask"]),
}
#: What the paper's table says about each domain: every one earns less than the next.
ORDERINGS = {
    FACTORY: (("greedy", "first phase"), ("first phase", "ours"), ("paper", "ours")),
    CROWD: (("greedy + heuristics", "first phase"), ("first phase", "ours"), ("paper", "ours")),
}


class Interval(NamedTuple):
    """A mean and half of its 95 % interval (Student's t, over trials); nan for a single trial."""

    mean: float
    half_width: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Interval:
        """The mean of some values."""
        sample = np.array(list(values), dtype=float)
        count = len(sample)
        if count < 2:
            return cls(float(sample.mean()) if count else math.nan, math.nan, count)
        error = float(sample.std(ddof=1)) / math.sqrt(count)
        return cls(float(sample.mean()), float(stats.t.ppf(0.975, count - 1)) * error, count)

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half_width

    def __str__(self) -> str:
        digits = 2 if abs(self.mean) < 10 else 1
        mean = f"{self.mean:.{digits}f}"
        return mean if math.isnan(self.half_width) else f"{mean} ± {self.half_width:.{digits}f}"


Cell = str | float | int | Interval | None


@dataclass(frozen=True)
class Table:
    """A table; cells are kept as numbers, so that whoever shows it can sort it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def to_markdown(self) -> str:
        """The same for people."""
        lines = [f"### {self.title}", "", *([self.note, ""] if self.note else [])]
        lines.append(_row(self.columns))
        lines.append("|" + "---|" * len(self.columns))
        lines.extend(_row(tuple(show(cell) for cell in row)) for row in self.rows)
        return "\n".join(lines) + "\n"


def show(cell: Cell) -> str:
    """A cell for people."""
    if cell is None:
        return "–"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def select(records: Records, **key: Any) -> list[dict[str, Any]]:
    """The records whose key has these values."""
    return [r for r in records if all(r["key"][name] == value for name, value in key.items())]


def average(records: Records, quantity: str) -> Interval:
    """One of :data:`QUANTITIES` over trials."""
    return Interval.of(map(QUANTITIES[quantity], records))


def methods_of(records: Records) -> list[str]:
    """The methods that there are results of, in the order of :data:`METHODS`."""
    there = {record["key"]["method"] for record in records}
    return [method for method in METHODS if method in there]


def cost_weights_of(records: Records) -> list[float]:
    """The lambdas that there are results of."""
    return sorted({record["key"]["cost_weight"] for record in records})


# --- section 6.1 --------------------------------------------------------------------------


def small_tables(records: Records) -> list[Table]:
    """J, time and mask size against lambda; and where the best mask grows."""
    small = select(records, experiment="small")
    if not small:
        return []
    methods = methods_of(small)
    titles = {
        "J": "ExoGrid: J of the learned mask, on fresh trajectories",
        "seconds": "ExoGrid: seconds for a run",
        "variables": "ExoGrid: variables in the mask",
    }
    tables = [
        Table(
            title,
            ("λ", *(METHODS[method] for method in methods)),
            tuple(
                (
                    weight,
                    *(
                        average(select(small, method=method, cost_weight=weight), quantity)
                        for method in methods
                    ),
                )
                for weight in cost_weights_of(small)
            ),
        )
        for quantity, title in titles.items()
    ]
    growth = growth_table(small)
    return tables if growth is None else [*tables, growth]


def growth_table(records: Records) -> Table | None:
    """The lambdas at which the best mask grows, by brute force.

    In each trial J of every mask is a line in lambda, R(mask) - lambda |mask|, so the lambda below
    which the best mask has k variables or more is known exactly.
    """
    brute = select(records, experiment="small", method="brute force")
    trials = {record["key"]["trial"]: record["best_of_each_size"] for record in brute}
    if not trials:
        return None
    limits = [growth(best) for best in trials.values()]
    rows: list[tuple[Cell, ...]] = []
    for size in range(1, len(limits[0]) + 1):
        masks = Counter(tuple(best[size]["mask"]) for best in trials.values())
        mask, count = masks.most_common(1)[0]
        limit = Interval.of(each[size - 1] for each in limits)
        if limit.high > 0 or limit.mean > 0:
            rows.append((size, limit, ", ".join(mask), f"{count} of {len(trials)}"))
    return Table(
        "ExoGrid: the λ at which the best mask grows",
        ("variables, or more", "for λ below", "most frequent best mask of this size", "trials"),
        tuple(rows),
    )


def growth(best_of_each_size: Sequence[dict[str, Any]]) -> list[float]:
    """For k = 1, 2, ...: the lambda below which the best mask has k variables or more; 0 if none.

    A mask of k or more variables beats all smaller ones for lambda below
    max over j >= k of (min over i < k of (R_j - R_i) / (j - i)).
    """
    returns = [best["mean_return"] for best in best_of_each_size]
    return [
        max(
            0.0,
            *(
                min((returns[j] - returns[i]) / (j - i) for i in range(k))
                for j in range(k, len(returns))
            ),
        )
        for k in range(1, len(returns))
    ]


# --- section 6.2 --------------------------------------------------------------------------


def large_tables(records: Records) -> list[Table]:
    """The paper's table, and whether its orderings hold."""
    large = [r for r in select(records, experiment="large") if r["key"]["method"] != "curve"]
    if not large:
        return []
    rows: list[tuple[Cell, ...]] = []
    for domain in (FACTORY, CROWD):
        there = select(large, domain=domain)
        for method in methods_of(there):
            found = select(there, method=method)
            published = PAPER.get((domain, method))
            rows.append(
                (
                    METHODS[method],
                    domain,
                    average(found, "returns"),
                    None if published is None else published.mean_return,
                    average(found, "seconds"),
                    None if published is None else published.seconds,
                    average(found, "variables"),
                    average(found, "J"),
                    found[0]["key"]["cost_weight"],
                    len(found),
                )
            )
    columns = (
        *("algorithm", "domain", "average true returns", "the paper's returns"),
        *("seconds for a run", "the paper's seconds", "variables", "J", "λ", "trials"),
    )
    tables = [Table("Large domains", columns, tuple(rows)), *curve_tables(records)]
    orderings = orderings_table(large)
    return tables if orderings is None else [tables[0], orderings, *tables[1:]]


def orderings_table(records: Records) -> Table | None:
    """Whether the paper's orderings hold."""
    rows: list[tuple[Cell, ...]] = []
    for domain, pairs in ORDERINGS.items():
        for low, high in pairs:
            less, more = (select(records, domain=domain, method=m) for m in (low, high))
            if not less or not more:
                continue
            first, second = average(less, "returns"), average(more, "returns")
            ratio = second.mean / first.mean if first.mean > 0 else None
            rows.append(
                (
                    domain,
                    f"{METHODS[low]} < {METHODS[high]}",
                    difference(more, less, "returns"),
                    difference(more, less, "J"),
                    difference(more, less, "seconds"),
                    "yes" if first.high < second.low else "no",
                    None if ratio is None else round(ratio, 2),
                )
            )
    columns = (
        *("domain", "ordering", "difference of returns", "of J", "of seconds"),
        *("disjoint intervals of returns", "ratio of returns"),
    )
    note = "Differences are paired by trial, because methods share seeds; intervals are not."
    return Table("Orderings", columns, tuple(rows), note) if rows else None


def difference(more: Records, less: Records, quantity: str) -> Interval:
    """One method less another, trial by trial."""
    value = QUANTITIES[quantity]
    base = {record["key"]["trial"]: value(record) for record in less}
    return Interval.of(
        value(record) - base[record["key"]["trial"]]
        for record in more
        if record["key"]["trial"] in base
    )


def curve_of(records: Records) -> dict[str, Any] | None:
    """The Crowd run with growing masks; its points are in "history"."""
    return next(iter(select(records, experiment="large", method="curve")), None)


def curve_tables(records: Records) -> list[Table]:
    """The points of the curve of one Crowd run."""
    curve = curve_of(records)
    if curve is None:
        return []
    rows = tuple(
        (
            point["num_variables"],
            point["added"],
            *(round(point[name], 1) for name in ("value", "mean_return", "standard_error")),
        )
        for point in curve["history"]
    )
    columns = ("variables", "the last one added", "J", "mean return", "standard error")
    return [Table("ExoCrowd: growing masks", columns, rows, describe_turn(curve))]


def turning_point(points: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two masks, one variable apart: the larger one earns more, and J is lower; None if nowhere.

    Of several such steps the first one from the top of J on.
    """
    top = max(range(len(points)), key=lambda k: points[k]["value"], default=0)
    for before, after in zip(points[top:], points[top + 1 :], strict=False):
        if (
            after["num_variables"] == before["num_variables"] + 1
            and after["value"] < before["value"]
            and after["mean_return"] > before["mean_return"]
        ):
            return before, after
    return None


def describe_turn(curve: dict[str, Any]) -> str:
    """Where one more variable lowers J although returns rise, in a sentence."""
    turn = turning_point(curve["history"])
    if turn is None:
        return "In this run no single variable beyond the top of J raises returns."
    before, after = turn
    return (
        f"Variable number {after['num_variables']} ({after['added']}) lowers J from "
        f"{before['value']:.1f} to {after['value']:.1f} although returns rise from "
        f"{before['mean_return']:.1f} to {after['mean_return']:.1f}."
    )


# --- section 6.3 --------------------------------------------------------------------------


def goal_tables(records: Records) -> list[Table]:
    """What the robot looks at for either goal, and where that differs."""
    goals = select(records, experiment="goals")
    by_goal = {goal: select(goals, goal=goal) for goal in ("fixed", "movable")}
    if not all(by_goal.values()):
        return []
    kinds = sorted({name.split("_")[0] for r in goals for name in r["mask"]})
    summary = tuple(
        (
            goal,
            average(found, "returns"),
            average(found, "variables"),
            *(Interval.of(_count(record, kind) for record in found) for kind in kinds),
            len(found),
        )
        for goal, found in by_goal.items()
    )
    columns = ("goal", "average true returns", "variables", *kinds, "trials")
    shares = {goal: _shares(found) for goal, found in by_goal.items()}
    names = sorted({*shares["fixed"], *shares["movable"]}, key=_natural)
    rows = tuple(
        (name, shares["fixed"].get(name, 0.0), shares["movable"].get(name, 0.0))
        for name in names
        if (shares["fixed"].get(name, 0.0) > 0.5) != (shares["movable"].get(name, 0.0) > 0.5)
    )
    return [
        Table("ExoCrowd: two goals", columns, summary),
        Table(
            "ExoCrowd: variables that differ",
            ("variable", 'share of masks, goal="fixed"', 'share of masks, goal="movable"'),
            rows,
            "In most masks for one goal, and not in most for the other.",
        ),
    ]


def differing_variables(fixed: Sequence[str], movable: Sequence[str]) -> dict[str, list[str]]:
    """The variables that only one of two masks has."""
    return {
        "fixed": [name for name in fixed if name not in movable],
        "movable": [name for name in movable if name not in fixed],
    }


def _count(record: dict[str, Any], kind: str) -> int:
    return sum(name.split("_")[0] == kind for name in record["mask"])


def _shares(records: Records) -> dict[str, float]:
    counts = Counter(name for record in records for name in record["mask"])
    return {name: round(count / len(records), 3) for name, count in counts.items()}


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Numbers in a name count as numbers: object_2 comes before object_10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in name.split("_"))


# --- all of it ----------------------------------------------------------------------------


def all_tables(records: Records) -> list[Table]:
    """Every table that there are results for."""
    return [*small_tables(records), *large_tables(records), *goal_tables(records)]


def to_markdown(records: Records) -> str:
    """Every table, as Markdown."""
    return "\n".join(table.to_markdown() for table in all_tables(records))


def write_tables(folder: Path) -> list[Path]:
    """Write tables.md and the plots into a results folder."""
    from reproduction.plots import all_plots

    records = read_results(folder)
    markdown = folder / "tables.md"
    markdown.write_text(to_markdown(records), encoding="utf-8")
    written = [markdown]
    for name, image in all_plots(records, "svg").items():
        written.append(folder / f"{name}.svg")
        written[-1].write_bytes(image)
    return written
