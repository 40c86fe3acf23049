"""The report of a folder of results: one HTML page that needs nothing else, and its tables.

``write_report(folder)`` reads ``settings.json`` and ``results.jsonl`` and writes ``report.html``,
with styles, scripts and pictures inside, and ``report.md``, which has the same tables.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from planners.core.files import replacing
from reproduction import replay
from reproduction.figures import GOALS, Picture, draw_goals
from reproduction.glossary import GLOSSARY
from reproduction.plots import all_plots
from reproduction.results import read_results, read_settings
from reproduction.settings import CROWD, METHODS, describe_quick
from reproduction.tables import (
    Cell,
    Records,
    Table,
    differing_variables,
    goal_tables,
    large_tables,
    reading_tables,
    select,
    show,
    small_tables,
)
from shared.intervals import Interval

Mask = tuple[str, ...]

ASSETS = Path(__file__).with_name("page")
TITLE = "Learning compact models for planning with exogenous processes: the experiments"
LEAD = (
    "The experiments of Chitnis & Lozano-Pérez (CoRL 2019), section 6, run again on the "
    "environments of exo-envs."
)
EXPERIMENTS = {
    "small": ("A small domain, where the best mask is known (6.1)", small_tables),
    "large": ("Large domains (6.2)", large_tables),
    "goals": ("The masks of two goals (6.3)", goal_tables),
    "readings": ("Readings of the paper's rule (5.3)", reading_tables),
}
#: The plots of each experiment, with what they show.
PLOTS = {
    "small": {
        "small_objective": "ExoGrid: J of the learned masks against λ, with 95 % intervals.",
        "small_time": "ExoGrid: the time of a run against λ, with 95 % intervals.",
    },
    "large": {
        "crowd_curve": "One run of the paper's rule on ExoCrowd: J and average returns against the "
        "size of the mask, beyond where it stops."
    },
}
#: Longer tables are folded.
LONG = 16
#: The methods whose masks are replayed.
REPLAYED = ("ours", "paper", "first phase")
#: How many episodes the one that is replayed is the median of.
EPISODES = 15


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    heading: str
    html: str


def write_report(folder: Path) -> Path:
    """Write ``report.html`` and ``report.md`` into a folder of results.

    Args:
        folder: has ``settings.json`` and ``results.jsonl``.

    Returns:
        The path of the page.
    """
    settings, records = read_settings(folder), read_results(folder)
    parameters = settings["parameters"]
    seed = int(parameters.get("seed", 0))
    tables = {name: make(records) for name, (_, make) in EXPERIMENTS.items()}
    banner = describe_quick(parameters)
    sections = [
        Section("settings", "Settings", _settings_html(settings)),
        Section("words", "Words", _glossary_html()),
        *_experiments(records, tables, seed),
        *_replay(records, seed, parameters.get("n_data_rollouts")),
    ]
    page = folder / "report.html"
    files = {page: _page(sections, banner), folder / "report.md": _markdown(settings, tables)}
    for file, content in files.items():
        with replacing(file) as part:
            part.write_text(content, encoding="utf-8")
    return page


# --- the parts of the page ----------------------------------------------------------------


def _experiments(records: Records, tables: dict[str, list[Table]], seed: int) -> Iterator[Section]:
    plots = all_plots(records, "svg")
    for name, (heading, _) in EXPERIMENTS.items():
        captions = PLOTS.get(name, {})
        shown = [
            Picture(plots[plot], "image/svg+xml", caption, caption)
            for plot, caption in captions.items()
            if plot in plots
        ]
        parts = [_gallery(shown, "plots")] if shown else []
        if name == "goals":
            parts += _goals_html(records, seed)
        parts += [table_html(table) for table in tables[name]]
        if parts:
            yield Section(name, heading, "\n".join(parts))


def typical_mask(records: Records, method: str, goal: str) -> Mask | None:
    """Of the masks that a method found on ExoCrowd, the one that differs least from the others."""
    found = select(records, domain=CROWD, method=method, goal=goal)
    masks = [frozenset(record["mask"]) for record in found]
    distances = [sum(len(mask ^ other) for other in masks) for mask in masks]
    return tuple(found[distances.index(min(distances))]["mask"]) if found else None


def _goals_html(records: Records, seed: int) -> Iterator[str]:
    """The masks in the scene, and the variables that differ."""
    goals = select(records, experiment="goals")
    masks = {goal: typical_mask(goals, "ours", goal) for goal in GOALS}
    found = {goal: mask for goal, mask in masks.items() if mask is not None}
    if not found:
        return
    yield "<p>Of each goal's trials, the mask that differs least from those of the others:</p>"
    yield _gallery(draw_goals(found, seed), "scenes")
    if len(found) < len(GOALS):
        return
    for goal, names in differing_variables(**found).items():
        items = "".join(f"<li><code>{escape(name)}</code></li>" for name in names)
        yield (
            f"<details{' open' if names else ''}><summary>Only in the mask for {GOALS[goal]}: "
            f'{len(names)} variables</summary><ul class="names">{items}</ul></details>'
        )


def _replay(records: Records, seed: int, num_rollouts: int | None) -> Iterator[Section]:
    episodes = list(_episodes(records, seed, num_rollouts))
    if episodes:
        data = json.dumps(episodes, separators=(",", ":")).replace("</", "<\\/")
        html = Template(_asset("replay.html")).substitute(data=data, episodes=EPISODES)
        yield Section("replay", "Replay: the mask at work", html)


def _episodes(records: Records, seed: int, num_rollouts: int | None) -> Iterator[replay.Episode]:
    """An episode for each goal and mask; the masks of a goal meet the same crowd."""
    for goal, label in reversed(GOALS.items()):
        masks: dict[Mask, str] = {}
        for method in REPLAYED:
            mask = typical_mask(records, method, goal)
            if mask is not None:
                masks.setdefault(mask, METHODS[method])
        if not masks:
            continue
        mdp = CrowdMDP(CrowdParameters(goal=goal))
        plan = replay.planning_in(mdp, seed=seed, num_rollouts=num_rollouts)
        policies = {mask: plan(mask) for mask in masks}
        first = next(iter(policies.values()))
        typical = replay.typical_seed(first, range(seed, seed + EPISODES), goal=goal)
        for mask, policy in policies.items():
            title = f"{label}: {masks[mask]} ({len(mask)} variables)"
            yield replay.play(policy, seed=typical, title=title, goal=goal)


def _glossary_html() -> str:
    rows = "\n".join(
        f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in GLOSSARY.items()
    )
    return f'<dl class="words">{rows}</dl>'


def _settings_html(settings: dict[str, Any]) -> str:
    rows = "\n".join(
        f"<dt>{escape(name)}</dt><dd>"
        + " ".join(f"<span>{escape(key)} <code>{escape(text)}</code></span>" for key, text in parts)
        + "</dd>"
        for name, parts in _settings(settings)
    )
    return f'<dl class="settings">{rows}</dl>'


def _settings(settings: dict[str, Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Names with their values as text; what has parts of its own comes last, with their names."""
    for name, value in sorted(settings.items(), key=lambda item: isinstance(item[1], dict)):
        values = value if isinstance(value, list) else [value]
        parts = value.items() if isinstance(value, dict) else [("", part) for part in values]
        yield name, [(key, _plain(part)) for key, part in parts]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def table_html(table: Table) -> str:
    """A table that sorts by the column whose header is clicked; a long one is folded."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    numeric = [any(_number(cell) is not None for cell in column) for column in columns]
    head = "".join(
        f'<th scope="col"{_kind(is_number)}><button type="button">{escape(name)}</button></th>'
        for name, is_number in zip(table.columns, numeric, strict=True)
    )
    body = "\n".join(f"<tr>{''.join(map(_cell_html, row, numeric))}</tr>" for row in table.rows)
    note = f'<span class="note">{escape(table.note)}</span>' if table.note else ""
    html = (
        f'<div class="scroll"><table class="sortable"><caption>{escape(table.title)}{note}'
        f"</caption><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )
    if len(table.rows) > LONG:
        return f"<details><summary>Table: {escape(table.title)}</summary>{html}</details>"
    return html


def _cell_html(cell: Cell, is_number: bool) -> str:
    """A cell; in a column of numbers, with the number to sort it by."""
    if not is_number:
        return f"<td>{escape(show(cell))}</td>"
    value = _number(cell)
    key = "" if value is None else f"{value:.10g}"
    return f'<td{_kind(is_number)} data-value="{key}">{escape(show(cell))}</td>'


def _kind(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _number(cell: Cell) -> float | None:
    value = cell.mean if isinstance(cell, Interval) else cell
    return None if value is None or isinstance(value, str) or math.isnan(value) else float(value)


def _gallery(pictures: Iterable[Picture], kind: str) -> str:
    figures = "\n".join(
        f'<figure><img src="{picture.data_uri()}" alt="{escape(picture.alt)}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
        for picture in pictures
    )
    return f'<div class="gallery {kind}">{figures}</div>'


def _page(sections: Sequence[Section], banner: str) -> str:
    return Template(_asset("page.html")).substitute(
        banner=f'<p class="banner" role="note">{escape(banner)}</p>' if banner else "",
        title=escape(TITLE),
        lead=escape(LEAD),
        css=_asset("page.css"),
        js=_asset("tables.js") + _asset("replay.js"),
        contents="\n".join(
            f'<li><a href="#{s.name}">{escape(s.heading)}</a></li>' for s in sections
        ),
        sections="\n".join(
            f'<section id="{s.name}"><h2>{escape(s.heading)}</h2>\n{s.html}\n</section>'
            for s in sections
        ),
    )


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


# --- the same in Markdown -----------------------------------------------------------------


def _markdown(settings: dict[str, Any], tables: dict[str, list[Table]]) -> str:
    banner = describe_quick(settings["parameters"])
    parts = [f"# {TITLE}", LEAD, *([f"**{banner}**"] if banner else []), "## Settings"]
    items = [
        f"- {name}: " + ", ".join(f"{key} `{text}`".strip() for key, text in values)
        for name, values in _settings(settings)
    ]
    parts.append("\n".join(items))
    parts += ["## Words", "\n".join(f"- **{word}**: {text}" for word, text in GLOSSARY.items())]
    for name, (heading, _) in EXPERIMENTS.items():
        if tables[name]:
            parts += [f"## {heading}", *(table.to_markdown().strip() for table in tables[name])]
    return "\n\n".join(parts) + "\n"
