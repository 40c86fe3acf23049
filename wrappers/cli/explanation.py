"""A learner's history in words: what it kept, what it dropped, and why.

Variables are told by family: what their names have in common before the first digit. So the 64
``occupancy_0_0`` ... are one line, ``occupancy_*``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from planners.core.evaluation import Estimate
from wrappers.cli.console import table, wrap
from wrappers.fitting.history import Record
from wrappers.reports.explanation import ExplainedVariable, Explanation

MOST_LINES = 20
EFFECT = "effect: the variance of what it pays, the share of moves it changes, or what it foretells"
WORTH = "worth: what the agent earns more with those that the last column names, alone or together"
DROPPED = "dropped: "
#: A decision in more words than its own, with the variables that are acted on.
LONGER = {
    "too little to see": "acts on {}, but tells too little to be seen",
    "no place in a table": "tells about {}, whose table has no place for it",
    "predicts what was dropped": "predicts {}, dropped as well",
    "never tried": "matters, but was never tried",
}
OUT_OF_TIME = "ran out of time"  # in the reason of a step whose plan was cut short


def family(name: str) -> str:
    """``porter_0_cell`` is of the family ``porter_*``; a name without a digit is its own."""
    prefix = re.split(r"\d", name, maxsplit=1)[0]
    return name if prefix in ("", name) else f"{prefix}*"


def summary(names: Sequence[str]) -> str:
    """``41 occupancy_*, 12 object_*``; a variable that is alone goes by its name."""
    families = sorted(_by_family(names).items(), key=lambda item: -len(item[1]))
    parts = [found[0] if len(found) == 1 else f"{len(found)} {kind}" for kind, found in families]
    return ", ".join([*parts[:3], "..."] if len(parts) > 3 else parts) or "nothing"


def patterns(mask: Sequence[str], names: Sequence[str]) -> str:
    """A mask as names and patterns, separated by commas, that stand for it and nothing else."""
    told: list[str] = []
    for kind, found in _by_family(mask).items():
        matched = {name for name in names if fnmatchcase(name, kind)}
        told += [kind] if len(found) > 1 and matched == set(found) else found
    return ", ".join(told)


class Storyteller:
    """Puts the steps of a learner into words.

    Args:
        cost_weight: λ, what each variable costs.
    """

    def __init__(self, cost_weight: float) -> None:
        self.cost_weight = cost_weight

    def step(self, record: Record) -> str:
        """A line for a step that estimated J."""
        if record.action not in ("add", "drop") or record.gain is None:
            if record.mean_return is None:
                return ""
            return f"with {summary(record.mask)}: earns {record.mean_return:.1f}"
        verdicts = {
            ("add", True): "added",
            ("add", False): "not added",
            ("drop", True): "dropped",
            ("drop", False): "kept",
        }
        verdict = verdicts[record.action, record.accepted]
        if OUT_OF_TIME in record.reason:
            verdict += ", a plan was cut short"
        elif record.gain > 0 and not record.accepted:
            verdict += ", in doubt"  # J rose, but not so that it could not be chance
        return f"{summary(record.candidate)}: {self._worth_and_cost(record)}: {verdict}"

    def _worth_and_cost(self, record: Record) -> str:
        told = f"worth {record.worth(self.cost_weight)} in return"
        return told + self._cost(len(record.candidate))

    def _cost(self, count: int) -> str:
        return f", cost (λ) {self.cost_weight * count:g}" if self.cost_weight else ""

    def explain(self, explanation: Explanation, *, every: bool = False) -> Iterator[str]:
        """Lines about what was kept and why, and what was dropped.

        Args:
            explanation: of a learner.
            every: say it of each variable by itself, and not by families.
        """
        cost = f", at λ = {self.cost_weight:g} each" if self.cost_weight else ""
        yield f"Kept {len(explanation.kept)} of {len(explanation)} variables{cost}"
        yield from _each(explanation.kept) if every else self._kept(explanation)
        if explanation.dropped:
            yield ""
            yield f"Dropped {len(explanation.dropped)}"
            yield from _each(explanation.dropped) if every else self._dropped(explanation)

    def _kept(self, explanation: Explanation) -> Iterator[str]:
        members = _by_family(row.variable for row in explanation)
        rows = [
            (
                _title(kind, found),
                f"{len(found)} of {len(members[kind])}",
                _reasons(found, [row.variable for row in explanation]),
                _effect(found),
                *_tried(found),
            )
            for kind, found in _rows_by_family(explanation.kept).items()
        ]
        if rows:
            header = ("variables", "kept", "why", "effect", "worth", "tried")
            yield from table(header, _shortened(rows), "<><<><")
            yield from wrap(EFFECT, indent=2)
            if any(row[4] for row in rows):
                yield from wrap(WORTH, indent=2)

    def _dropped(self, explanation: Explanation) -> Iterator[str]:
        members = _by_family(row.variable for row in explanation)
        rows = []
        for kind, left in _rows_by_family(explanation.dropped).items():
            alike: dict[tuple[str, frozenset[str]], list[ExplainedVariable]] = defaultdict(list)
            for row in left:
                group = frozenset((row.variable, *row.tried_with) if row.tried_with else ())
                alike[row.decision, group].append(row)
            for found in alike.values():
                count = f"{len(found)} of {len(members[kind])}"
                rows.append((_title(kind, found), count, self._objection(found, explanation)))
        yield from table(("variables", "dropped", "why"), _shortened(rows), "<><")

    def _objection(self, rows: list[ExplainedVariable], explanation: Explanation) -> str:
        """Why variables of one family were dropped that were tried together, or each alone."""
        first, word = rows[0], rows[0].decision.removeprefix(DROPPED)
        if word == "not decided":
            word += ", a plan was cut short"
        if first.decision == "dropped: no sign":
            return _silence(rows, explanation)
        if first.needed is not None:
            needed = max(row.needed or 0 for row in rows)
            return f"{word}; about {needed:,} transitions would do"
        worths = [row.worth for row in rows if row.worth is not None]
        if not worths:
            names = [row.variable for row in explanation]
            return LONGER.get(word, word).format(_families(rows, names))
        together = (first.variable, *first.tried_with)
        if first.tried_with:
            who = summary(sorted(together))
            told = f"worth {worths[0]} in return{self._cost(len(together))}"
            return f"{who}: {told}: {word}"
        if len(worths) == 1:
            return f"worth {worths[0]} in return{self._cost(1)}: {word}"
        return f"worth {_span(worths)} in return, each alone{self._cost(1)}: {word}"


def _each(rows: Sequence[ExplainedVariable]) -> Iterator[str]:
    """A sentence for each variable."""
    for row in rows:
        yield from wrap(row.sentence, indent=2, hanging=2)


def _silence(rows: Sequence[ExplainedVariable], explanation: Explanation) -> str:
    """What is said of variables that nothing speaks for."""
    told = f"tests at level {explanation.level:g}"
    weakest = max(rows, key=lambda row: row.detectable or 0.0)
    if weakest.detectable:
        told += f" find {weakest.in_words(weakest.detectable)}"
    return f"no sign that it matters ({told})"


def _span(worths: Sequence[Estimate]) -> str:
    means = [worth.mean for worth in worths]
    return f"{min(means):.1f} to {max(means):.1f}"


def _rows_by_family(
    rows: Iterable[ExplainedVariable],
) -> dict[str, list[ExplainedVariable]]:
    families = defaultdict(list)
    for row in rows:
        families[family(row.variable)].append(row)
    return dict(families)


def _title(kind: str, rows: Sequence[ExplainedVariable]) -> str:
    """The family, or the only variable of it that is meant."""
    return rows[0].variable if len(rows) == 1 else kind


def _by_family(names: Iterable[str]) -> dict[str, list[str]]:
    families = defaultdict(list)
    for name in names:
        families[family(name)].append(name)
    return dict(families)


def _reasons(rows: Sequence[ExplainedVariable], names: Sequence[str]) -> str:
    """All reasons; what is predicted or moved is told by family."""
    told = ["pays"] if any(row.role == "pays" for row in rows) else []
    moving = [row for row in rows if row.role == "moves"]
    if moving:
        known = {*names, "reward"}
        told.append(f"moves {_first_two(n for r in moving for n in r.acts_on if n not in known)}")
    predicting = [row for row in rows if row.role == "predicts"]
    if predicting:
        told.append(f"predicts {_families(predicting, names)}")
    return "; ".join(told)


def _families(rows: Iterable[ExplainedVariable], names: Sequence[str]) -> str:
    """The exogenous variables that some act on, by family."""
    known = set(names)
    return _first_two(family(name) for row in rows for name in row.acts_on if name in known)


def _first_two(names: Iterable[str]) -> str:
    """``a, b``, or two of more."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:2]) + (" ..." if len(distinct) > 2 else "")


def _effect(rows: Sequence[ExplainedVariable]) -> str:
    """The largest effect of those that have the role of the first."""
    alike = [row for row in rows if row.unit == rows[0].unit and row.effect is not None]
    best = max(alike, key=lambda row: row.effect or 0.0, default=None)
    return "" if best is None else best.in_words(best.effect)


def _tried(rows: Sequence[ExplainedVariable]) -> tuple[str, str]:
    """What variables of one family are worth, and of which ones that is said."""
    alone = [row for row in rows if row.worth is not None and not row.tried_with]
    if alone:
        worths = [row.worth for row in alone if row.worth is not None]
        if len(rows) == 1:
            return str(worths[0]), "alone"
        if len(alone) == 1:
            return str(worths[0]), f"{alone[0].variable} alone"
        each = "each" if len(alone) == len(rows) else f"{len(alone)} of them"
        return _span(worths), f"{each} alone"
    grouped = [row for row in rows if row.worth is not None]
    best = min(grouped, key=lambda row: len(row.tried_with), default=None)
    if best is None:
        return "", ""
    group = {best.variable, *best.tried_with}
    inside = sum(row.variable in group for row in rows)
    who = "" if inside == len(rows) else f"{inside} of them"
    if len(group) > inside:
        who = f"{who}, {len(group)}" if who else f"{len(group)}"
    return str(best.worth), f"{who} together".strip()


def _shortened(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if len(rows) <= MOST_LINES:
        return list(rows)
    more = (f"... {len(rows) - MOST_LINES} more", *[""] * (len(rows[0]) - 1))
    return [*rows[:MOST_LINES], more]
