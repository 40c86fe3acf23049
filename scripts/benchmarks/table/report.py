"""The table as Markdown: before, now, and what was to be reached."""

from __future__ import annotations

from typing import Any

from benchmarks.table.rows import Row, Target

COLUMNS = (
    *("work", "before", "now", "times as fast", "against a peer or a limit"),
    *("to reach", "reached", "remarks"),
)
#: What one side of a row found, as ``benchmarks.table.runner.best`` gives it, or its error.
Side = dict[str, Any]


def table(rows: list[tuple[Row, dict[str, Any]]]) -> str:
    """All rows with their results."""
    lines = [" | ".join(COLUMNS), "|".join(["---"] * len(COLUMNS))]
    lines += [" | ".join(cells(row, result)) for row, result in rows]
    return "\n".join(f"|{line}|" if "---" in line else f"| {line} |" for line in lines)


def cells(row: Row, result: dict[str, Any]) -> list[str]:
    """The cells of one row."""
    before, now = result["before"], result["now"]
    ratio = faster(row, now["ours"], before["ours"]) if is_there(before, now) else None
    return [
        row.work,
        show(row, before),
        show(row, now),
        "–" if ratio is None else f"{ratio:.3g} x",
        against(row, before, now) or "–",
        to_reach(row),
        verdict(row, result),
        remarks(before, now),
    ]


def is_there(*sides: Side) -> bool:
    """Whether all were measured."""
    return all("ours" in side for side in sides)


def faster(row: Row, one: float, other: float) -> float:
    """How many times as fast one figure is as the other."""
    return other / one if row.unit == "s" else one / other


def show(row: Row, side: Side) -> str:
    """A figure, with memory where it was measured; or why there is none."""
    if not is_there(side):
        return side["error"].replace("|", "/")
    memory = "" if side["memory"] is None else f", {side['memory']:,.0f} MB"
    return figure(row, side["ours"]) + memory


def figure(row: Row, value: float) -> str:
    """A figure in its unit."""
    if row.unit == "s":
        return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter} steps/s"
    return f"{value:.3g} steps/s"


def against(row: Row, before: Side, now: Side) -> str:
    """How many times as fast as each peer, before and now, each beside its own run of the peer."""
    names = now["peers"] if is_there(now) else before["peers"] if is_there(before) else {}
    told = []
    for name in names:
        ratios = [
            f"{faster(row, side['ours'], side['peers'][name]):.3g}"
            for side in (before, now)
            if is_there(side)
        ]
        told.append(f"{' → '.join(ratios)} x {name}")
    return "; ".join(told)


def to_reach(row: Row) -> str:
    """The target, and how many times as fast as before it was meant to be."""
    if row.target is None:
        return "–"
    times = known_times(row, row.target)
    return row.target.text + ("" if times is None else f" ({times:.2g} x before)")


def known_times(row: Row, target: Target) -> float | None:
    """How many times the figure of before the target is, on the machine on which it was set."""
    if target.figure is None or target.known is None:
        return None
    return faster(row, target.figure, target.known)


def verdict(row: Row, result: dict[str, Any]) -> str:
    """Whether the target is reached; a faster machine alone does not reach it."""
    answer = reached(row, result)
    if answer and result["now"].get("ours") and not as_much_faster(row, result):
        return "the figure, not the ratio"
    return {True: "yes", False: "no", None: "–"}[answer]


def as_much_faster(row: Row, result: dict[str, Any]) -> bool:
    """Whether the figure of before was multiplied as it was meant to be, if that was measured."""
    before, now = result["before"], result["now"]
    times = None if row.target is None else known_times(row, row.target)
    return (
        times is None
        or not is_there(before, now)
        or faster(row, now["ours"], before["ours"]) >= times
    )


def missed(row: Row, result: dict[str, Any]) -> bool:
    """Whether it was measured, and does not reach its target as a figure and as a ratio."""
    return is_there(result["now"]) and verdict(row, result) not in ("yes", "–")


def reached(row: Row, result: dict[str, Any]) -> bool | None:
    """Whether the figure asked for is reached; None if none is, or if it was not measured."""
    before, now, target = result["before"], result["now"], row.target
    if target is None or "skipped" in now:
        return None
    if not is_there(now):
        return False
    if target.than == "before" and not is_there(before):
        return None
    return now["holds"] and fast_enough(row, target, before, now) and small_enough(target, now)


def fast_enough(row: Row, target: Target, before: Side, now: Side) -> bool:
    """Whether the figures alone are good enough."""
    if target.times is not None:
        rival = before["ours"] if target.than == "before" else now["peers"][target.than]
        return faster(row, now["ours"], rival) >= target.times
    if target.figure is None:
        return True
    return now["ours"] <= target.figure if row.unit == "s" else now["ours"] >= target.figure


def small_enough(target: Target, now: Side) -> bool:
    """Whether the memory of the whole process is within its limit."""
    return target.memory is None or (now["peak"] is not None and now["peak"] <= target.memory)


def remarks(before: Side, now: Side) -> str:
    """What each side says of its figures, once if it is the same."""
    told = [side["note"] for side in (before, now) if is_there(side) and side["note"]]
    if len(told) == 2 and told[0] != told[1]:
        told = [f"before: {told[0]}", f"now: {told[1]}"]
    if is_there(before, now) and now["answer"]:
        same = before["answer"] == now["answer"]
        told = [*dict.fromkeys(told), "the same mask" if same else "another mask than before"]
    return "; ".join(dict.fromkeys(told)).replace("|", "/")


def profiles(rows: list[tuple[Row, dict[str, Any]]]) -> str:
    """The profiles that were taken, each below the name of its row."""
    told = []
    for row, result in rows:
        if result.get("profile"):
            lines = "\n".join(result["profile"])
            told.append(f"{row.work} (`{row.name}`), own time:\n\n```text\n{lines}\n```")
    return "\n\n".join(told)
