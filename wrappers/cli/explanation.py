"""Steps and explanations of a learner in words.

Variables are told by family: what their names have in common before the first digit. So the 64
``occupancy_0_0`` ... are one line, ``occupancy_*``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from planners.core.evaluation import Estimate
from wrappers.cli.console import table_lines, wrap
from wrappers.fitting.history import OUT_OF_TIME, Record
from wrappers.reports.explanation import ExplainedVariable, Explanation

T = TypeVar("T")

#: Lines of a table at most.
MOST_LINES = 20
EFFECT = "effect: the variance of what it pays, the share of moves it changes, or what it foretells"
WORTH = "worth: what the agent earns more with those that the last column names, alone or together"
#: A decision in more words than its own, with the variables that are acted on.
LONGER = {
    "too little to see": "acts on {}, but tells too little to be seen",
    "no place in a table": "tells about {}, whose table has no place for it",
    "predicts what was dropped": "predicts {}, dropped as well",
    "never tried": "matters, but was never tried",
}
#: What became of the candidates of a step that was not accepted, and of one that was.
VERDICTS = {"add": ("not added", "added"), "drop": ("kept", "dropped")}


# --- families -------------------------------------------------------------------------------------


def family(name: str) -> str:
    """``porter_0_cell`` is of the family ``porter_*``; a name without a digit is its own."""
    prefix = re.split(r"\d", name, maxsplit=1)[0]
    return name if prefix in ("", name) else f"{prefix}*"


def summary(names: Iterable[str]) -> str:
    """``41 occupancy_*, 12 object_*``; a variable that is alone goes by its name."""
    families = sorted(_families(names, str).items(), key=lambda item: -len(item[1]))
    parts = [found[0] if len(found) == 1 else f"{len(found)} {kind}" for kind, found in families]
    return ", ".join([*parts[:3], "..."] if len(parts) > 3 else parts) or "nothing"


def patterns(mask: Sequence[str], names: Sequence[str]) -> str:
    """A mask as names and patterns, separated by commas, that stand for it and nothing else."""
    told: list[str] = []
    for kind, found in _families(mask, str).items():
        matched = {name for name in names if fnmatchcase(name, kind)}
        told += [kind] if len(found) > 1 and matched == set(found) else found
    return ", ".join(told)


def _families(items: Iterable[T], name_of: Callable[[T], str]) -> dict[str, list[T]]:
    families = defaultdict(list)
    for item in items:
        families[family(name_of(item))].append(item)
    return dict(families)


def _first_two(names: Iterable[str]) -> str:
    """``a, b``, or two of more."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:2]) + (" ..." if len(distinct) > 2 else "")


def _cost(cost_weight: float, count: int) -> str:
    return f", cost (λ) {cost_weight * count:g}" if cost_weight else ""


# --- steps ----------------------------------------------------------------------------------------


def step_in_words(record: Record, cost_weight: float) -> str:
    """A line for a step that estimated J; nothing for another one."""
    if record.action not in ("add", "drop") or record.gain is None:
        if record.mean_return is None:
            return ""
        return f"with {summary(record.mask)}: earns {record.mean_return:.1f}"
    verdict = VERDICTS[record.action][record.accepted]
    if OUT_OF_TIME in record.reason:
        verdict += ", a plan was cut short"
    elif record.gain > 0 and not record.accepted:
        verdict += ", in doubt"  # J rose, but not so that it could not be chance
    cost = _cost(cost_weight, len(record.candidate))
    worth = f"worth {record.worth(cost_weight)} in return{cost}"
    return f"{summary(record.candidate)}: {worth}: {verdict}"


# --- explanations ---------------------------------------------------------------------------------


def explanation_in_words(explanation: Explanation, *, every: bool = False) -> Iterator[str]:
    """Lines about what was kept and dropped, and why: by families, or of every variable."""
    weight = explanation.cost_weight
    cost = f", at λ = {weight:g} each" if weight else ""
    yield f"Kept {len(explanation.kept)} of {len(explanation)} variables{cost}"
    yield from _each(explanation.kept) if every else _kept(explanation)
    if explanation.dropped:
        yield ""
        yield f"Dropped {len(explanation.dropped)}"
        yield from _each(explanation.dropped) if every else _dropped(explanation)


def _each(rows: Sequence[ExplainedVariable]) -> Iterator[str]:
    for row in rows:
        yield from wrap(row.sentence, indent=2, hanging=2)


def _kept(explanation: Explanation) -> Iterator[str]:
    known = {row.variable for row in explanation}
    rows = [
        (*_counted(found, explanation), _reasons(found, known), _effect(found), *_worth(found))
        for found in _families(explanation.kept, lambda row: row.variable).values()
    ]
    if rows:
        header = ("variables", "kept", "why", "effect", "worth", "tried")
        yield from _shortened(header, rows, "<><<><")
        yield from wrap(EFFECT, indent=2)
        if any(row[4] for row in rows):
            yield from wrap(WORTH, indent=2)


def _dropped(explanation: Explanation) -> Iterator[str]:
    alike: dict[object, list[ExplainedVariable]] = defaultdict(list)
    for kind, left in _families(explanation.dropped, lambda row: row.variable).items():
        for row in left:
            group = frozenset((row.variable, *row.tried_with) if row.tried_with else ())
            alike[kind, row.decision, group].append(row)
    rows = [
        (*_counted(found, explanation), _objection(found, explanation)) for found in alike.values()
    ]
    yield from _shortened(("variables", "dropped", "why"), rows, "<><")


def _counted(rows: Sequence[ExplainedVariable], explanation: Explanation) -> tuple[str, str]:
    """The family, or its only variable that is meant; and how many of the family these are."""
    kind = family(rows[0].variable)
    members = sum(family(row.variable) == kind for row in explanation)
    title = rows[0].variable if len(rows) == 1 else kind
    return title, f"{len(rows)} of {members}"


def _reasons(rows: Sequence[ExplainedVariable], known: set[str]) -> str:
    """All reasons; what is predicted or moved is told by family."""
    told = ["pays"] if any(row.role == "pays" for row in rows) else []
    moved = [n for r in rows if r.role == "moves" for n in r.acts_on if n not in {*known, "reward"}]
    if any(row.role == "moves" for row in rows):
        told.append(f"moves {_first_two(moved)}")
    if predicting := [row for row in rows if row.role == "predicts"]:
        told.append(f"predicts {_acted_on(predicting, known)}")
    return "; ".join(told)


def _acted_on(rows: Iterable[ExplainedVariable], known: set[str]) -> str:
    """The exogenous variables that some act on, by family."""
    return _first_two(family(name) for row in rows for name in row.acts_on if name in known)


def _effect(rows: Sequence[ExplainedVariable]) -> str:
    """The largest effect of those that have the role of the first."""
    alike = [row for row in rows if row.unit == rows[0].unit and row.effect is not None]
    best = max(alike, key=lambda row: row.effect or 0.0, default=None)
    return "" if best is None else best.in_words(best.effect)


def _worth(rows: Sequence[ExplainedVariable]) -> tuple[str, str]:
    """What variables of one family are worth, and of which ones that is said."""
    alone = {row.variable: row.worth for row in rows if row.worth and not row.tried_with}
    if alone:
        count = len(alone)
        who = "each" if count == len(rows) else f"{count} of them"
        if count == 1:
            who = "" if len(rows) == 1 else next(iter(alone))
        return _span(list(alone.values())), f"{who} alone".strip()
    grouped = [row for row in rows if row.worth is not None]
    best = min(grouped, key=lambda row: len(row.tried_with), default=None)
    if best is None:
        return "", ""
    group = {best.variable, *best.tried_with}
    inside = sum(row.variable in group for row in rows)
    parts = [] if inside == len(rows) else [f"{inside} of them"]
    parts += [f"{len(group)}"] if len(group) > inside else []
    return str(best.worth), f"{', '.join(parts)} together".strip()


def _span(worths: Sequence[Estimate]) -> str:
    """One worth, or the least and the largest of several."""
    means = [worth.mean for worth in worths]
    return str(worths[0]) if len(worths) == 1 else f"{min(means):.1f} to {max(means):.1f}"


def _objection(rows: list[ExplainedVariable], explanation: Explanation) -> str:
    """Why variables of one family were dropped that were tried together, or each alone."""
    first, word = rows[0], rows[0].decision.removeprefix("dropped: ")
    if word == "no sign":
        told = f"tests at level {explanation.level:g}"
        weakest = max(rows, key=lambda row: row.detectable or 0.0)
        if weakest.detectable:
            told += f" find {weakest.in_words(weakest.detectable)}"
        return f"no sign that it matters ({told})"
    if word == "not decided":
        word += ", a plan was cut short"
    if first.needed is not None:
        needed = max(row.needed or 0 for row in rows)
        return f"{word}; about {needed:,} transitions would do"
    worths = [row.worth for row in rows if row.worth is not None]
    if not worths:
        return LONGER.get(word, word).format(_acted_on(rows, {row.variable for row in explanation}))
    cost = _cost(explanation.cost_weight, 1 + len(first.tried_with))
    if first.tried_with:
        who = summary(sorted((first.variable, *first.tried_with)))
        return f"{who}: worth {worths[0]} in return{cost}: {word}"
    each = ", each alone" if len(worths) > 1 else ""
    return f"worth {_span(worths)} in return{each}{cost}: {word}"


def _shortened(header: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> list[str]:
    if len(rows) > MOST_LINES:
        more = (f"... {len(rows) - MOST_LINES} more", *[""] * (len(header) - 1))
        rows = [*rows[:MOST_LINES], more]
    return table_lines(header, rows, align)
