"""A learner's history in words: what it kept, what it dropped, and why.

Variables are told by family: what their names have in common before the first digit. So the 64
``occupancy_0_0`` ... are one line, ``occupancy_*``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from planners import Estimate
from wrappers.command_line.console import table, wrap
from wrappers.learners import MaskLearner, Record

MOST_LINES = 20
OUT_OF_TIME = "ran out of time"  # in the reason of a step whose plan was cut short
SCORE = "score: the variance of what it pays, the share of moves it changes, or what it foretells"
WORTH = "worth: in return, of so many variables together, by episodes with and without them"
#: What the score of a variable is, by its role.
UNITS = {"pays": "variance {}", "moves": "share {}", "predicts": "{} nats"}
#: What is said of a variable that nothing speaks for, by the rule of the learner.
SILENCE = {
    "calibrated": "no sign that it matters (tests at level {level:g})",
    "paper": "other variables had higher scores when the search ended",
}


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


def worth(record: Record, cost_weight: float) -> Estimate:
    """What the variables of a step bring in return, before λ is taken off for each of them.

    Records have the change of J; of what is dropped the worth is the loss.
    """
    gain, error = record.gain or 0.0, record.gain_error or 0.0
    cost = cost_weight * len(record.candidate)
    return Estimate(gain + cost if record.action == "add" else cost - gain, error)


class Storyteller:
    """Puts the steps of a learner into words.

    Args:
        cost_weight: λ, what each variable costs.
        silence: why a variable is dropped that nothing speaks for.
    """

    def __init__(self, cost_weight: float, silence: str) -> None:
        self.cost_weight = cost_weight
        self.silence = silence

    def step(self, record: Record) -> str:
        """A line for a step that estimated J."""
        if record.action not in ("add", "drop") or record.gain is None:
            if record.mean_return is None:
                return ""
            return f"{summary(record.mask)} earn {record.mean_return:.1f}"
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
        told = f"worth {worth(record, self.cost_weight)} in return"
        cost = f", cost (λ) {self._cost(record)}" if self.cost_weight else ""
        return told + cost

    def _cost(self, record: Record) -> str:
        return f"{self.cost_weight * len(record.candidate):g}"

    def _no_gain(self, record: Record) -> str:
        if OUT_OF_TIME in record.reason:
            return "a plan was cut short"
        brought = worth(record, self.cost_weight)
        if brought.interval()[1] < 0:
            return "the agent earns less with it"
        return "not worth it" if record.action == "drop" else "no clear gain"

    def explain(self, learner: MaskLearner) -> Iterator[str]:
        """Lines about what was kept and why, and what was dropped."""
        names = learner.feature_names_in_
        members = _by_family(names)
        kept = _by_family(learner.mask_)
        cost = f", at λ = {self.cost_weight:g} each" if self.cost_weight else ""
        yield f"Kept {len(learner.mask_)} of {len(names)} variables{cost}"
        if kept:
            rows = [
                (
                    _title(kind, members),
                    f"{len(found)} of {len(members[kind])}",
                    *self._reason(learner, found),
                )
                for kind, found in kept.items()
            ]
            header = ("variables", "kept", "why", "score", "worth", "cost (λ)", "together")
            yield from table(header, _shortened(rows), "<><<>>>")
            yield from wrap(SCORE, indent=2)
            if any(row[4] for row in rows):
                yield from wrap(WORTH, indent=2)
        rest = _by_family(name for name in names if name not in set(learner.mask_))
        if rest:
            yield ""
            yield f"Dropped {sum(map(len, rest.values()))}"
            objections = [
                (
                    _title(kind, members),
                    f"{len(left)} of {len(members[kind])}",
                    self._objection(learner, left),
                )
                for kind, left in rest.items()
            ]
            yield from table(("variables", "dropped", "why"), _shortened(objections), "<><")

    def _reason(self, learner: MaskLearner, names: list[str]) -> tuple[str, ...]:
        """Why variables of one family were kept: reason, score, worth, cost, tried with what."""
        found = [r for r in learner.history_ if r.score is not None and _is_evidence(r, names)]
        best = max(found, key=lambda r: r.score or 0.0, default=None)
        score = _score(best) if best is not None else ""
        return (_reasons(found), score, *self._measured(learner, names))

    def _measured(self, learner: MaskLearner, names: list[str]) -> tuple[str, ...]:
        record = _closest_test(learner.history_, names, kept=True)
        if record is None:
            return ("", "", "")
        cost = self._cost(record) if self.cost_weight else ""
        return str(worth(record, self.cost_weight)), cost, str(len(record.candidate))

    def _objection(self, learner: MaskLearner, names: list[str]) -> str:
        """Why variables of one family were dropped."""
        record = _closest_test(learner.history_, names, kept=False)
        if record is not None:
            told = f"{self._worth_and_cost(record)}: {self._no_gain(record)}"
            return told if len(record.candidate) == 1 else f"{summary(record.candidate)}: {told}"
        if any(_is_evidence(r, names) for r in learner.history_):
            return "matters, but was not tried"
        if learner.status_ != "finished" and all(r.action == "find" for r in learner.history_):
            return "learning was stopped before all had been looked at"
        return self.silence


def _title(kind: str, members: dict[str, list[str]]) -> str:
    """The family, or the only variable that it has."""
    return members[kind][0] if len(members[kind]) == 1 else kind


def _by_family(names: Iterable[str]) -> dict[str, list[str]]:
    families = defaultdict(list)
    for name in names:
        families[family(name)].append(name)
    return dict(families)


def _is_evidence(record: Record, names: list[str]) -> bool:
    """Whether a score spoke for one of the variables by itself."""
    return len(record.candidate) == 1 and record.candidate[0] in names and record.accepted


def _closest_test(history: Sequence[Record], names: list[str], *, kept: bool) -> Record | None:
    """Of the steps that kept (or did not keep) the variables, the one that is most about them."""
    wanted = set(names)
    tests = [
        record
        for record in history
        if record.gain is not None
        and (record.action, record.accepted) in (("add", kept), ("drop", not kept))
        and wanted.intersection(record.candidate)
    ]
    return min(tests, key=lambda record: len(wanted ^ set(record.candidate)), default=None)


def _reasons(records: Iterable[Record]) -> str:
    """All reasons; ``predicts a_0`` and ``predicts b`` become ``predicts a, b``, or two of more."""
    targets: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.target is None:
            targets[record.reason] = []
        elif (kind := family(record.target)) not in targets["predicts"]:
            targets["predicts"].append(kind)
    return "; ".join(
        f"{reason} {', '.join(kinds[:2])}".strip() + (" ..." if len(kinds) > 2 else "")
        for reason, kinds in targets.items()
    )


def _score(record: Record) -> str:
    unit = "{}" if record.role is None else UNITS[record.role]
    score = record.score or 0.0
    return unit.format(f"{score:,.0f}" if score >= 100 else f"{score:.3g}")


def _shortened(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if len(rows) <= MOST_LINES:
        return list(rows)
    more = (f"... {len(rows) - MOST_LINES} more", *[""] * (len(rows[0]) - 1))
    return [*rows[:MOST_LINES], more]
