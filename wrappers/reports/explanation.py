"""Why a learner kept or dropped each variable: one row for each, as a table, a text or a plot.

What a variable is worth was found by comparing two masks. A comparison is about all variables that
it adds or drops at once, and the worth of a group says little about any of its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from exo_envs.core.arguments import check_flag
from exo_envs.core.errors import unknown_name
from planners.core.evaluation import Estimate, paired_difference
from planners.core.policy import Mask
from wrappers.fitting.history import OUT_OF_TIME, SWITCHED, Role
from wrappers.fitting.relevance import find_relevance
from wrappers.fitting.session import FittedLearner
from wrappers.reports.doubts import NOTABLE_NATS
from wrappers.reports.signs import AGENT, SILENT, UNITS, Sign, SignKind, Unit, find_signs
from wrappers.reports.tables import ReportTable, Tabular, listed, number

#: Names that a cell of a table, or a sentence, lists at most.
NAMES_IN_A_CELL, NAMES_IN_A_SENTENCE = 4, 3
#: How an amount is written, by its unit.
WORDS: dict[Unit, str] = {
    "variance of its payment": "variance {}",
    "share of (n, a)": "share {}",
    "share of states": "share {}",
    "nats": "{} nats",
}
#: Colours of the plot: of what was kept and of what was dropped, for the colour-blind, too.
COLOURS = {True: "#0072B2", False: "#D55E00"}

#: The decision about a variable that was never tried, by the kind of its sign.
UNTRIED: dict[SignKind, str] = {
    "no place": "dropped: no place in a table",
    "weak": "dropped: too little to see",
    "silent": "dropped: no sign",
    "nothing left": "dropped: no sign",
    "constant": "dropped: never varied",
    "unknown": "dropped: not tested",
    "double": "dropped: says the same as another",
    "found": "dropped: never tried",
    "cannot tell": "dropped: cannot tell with this data",
}
#: What speaks for a variable that no test of the learner found, in a sentence about it.
SIGNS: dict[SignKind, str] = {
    "no place": "tells {effect} nats about {target}, whose table has no place for it: more "
    "transitions, or a larger max_parents, would make room",
    "weak": "changes {targets} if it is changed itself, but tells too little to be seen ({seen} "
    "nats about {target} would have been found)",
    "silent": "shows no sign that it matters: it neither pays nor moves the agent, and {seen} nats "
    "about {target} would have been found (p = {p:.2g})",
    "nothing left": "shows no sign that it matters: nothing that matters is left to be predicted",
    "cannot tell": "shows no sign that it matters, but this data cannot tell: {notable} nats about "
    "{target} would be overlooked; about {needed:,} transitions would do",
    "constant": "never varied in {transitions:,} transitions, so nothing can be said about it",
    "double": "says the same as {target}: in all rollouts each value of one came with one value "
    "of the other, so one of them will do",
}


@dataclass(frozen=True)
class ExplainedVariable:
    """Why one variable was kept or dropped.

    Attributes:
        variable: its name.
        kept: whether the mask has it.
        role: "pays", "moves" (the agent) or "predicts" (a variable that matters); None if there is
            no sign of either. Of several it is the first.
        acts_on: "reward", the endogenous variables that it moves ("the agent" where they were not
            told apart), and the names of the variables that matter which it predicts or acts on.
        evidence: the p-value of the test over all candidates; 0 where the model was asked itself;
            None if it was not looked at.
        effect: how large the effect is, in ``unit``; None if it was not looked at.
        unit: "variance of its payment", "share of (n, a)" that it moves, or "nats" that it tells.
            Of what acts on a variable whose table has no place for it, "share of states".
        detectable: the effect that would have been found with power 0.9, in the same unit: 0 if the
            model was asked for all values, None if that is not known.
        needed: about as many transitions as it takes to find what a notable variable tells (one
            that moves a probability from 50 to 70 %), if this data has too few for that.
        worth: what the policy earns more with ``variable`` and ``tried_with`` than without, on the
            same trajectories and before their price. If ``tried_with`` is not empty, it is what
            they are worth together, and nobody's own. None if it was never tried.
        tried_with: the variables that it was tried together with; () if it was tried alone, and if
            it was never tried.
        price: λ, what each variable has to earn.
        decision: "kept", "kept: in doubt" if it was not worth its price when it was tried alone, or
            "dropped: ..." with the reason in few words.
        sentence: the same in one sentence.
    """

    variable: str
    kept: bool
    role: Role | None
    acts_on: Mask
    evidence: float | None
    effect: float | None
    unit: Unit
    detectable: float | None
    needed: int | None
    worth: Estimate | None
    tried_with: Mask
    price: float
    decision: str
    sentence: str

    def in_words(self, amount: float | None) -> str:
        """An amount in the unit of this row; nothing if it is not known.

        ``row.in_words(row.effect)`` is what it does, ``row.in_words(row.detectable)`` the least
        that would have been found.
        """
        return "" if amount is None else WORDS[self.unit].format(number(amount))

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Explanation(Tabular):
    """Why a learner kept or dropped each variable: one row for every one, in the model's order.

    ``explanation["name"]`` is the row of one variable; iterating gives all of them. For pandas
    ``worth`` is the mean, and ``worth_low`` and ``worth_high`` are the ends of its 95 % interval.

    Attributes:
        rows: one for each exogenous variable.
        cost_weight: λ.
        level: of the tests, over all variables and candidates.
        transitions: of x, that the tests counted; 0 if there was no time for any.
        status: of the learner.
    """

    noun = "explanation"

    rows: tuple[ExplainedVariable, ...]
    cost_weight: float
    level: float
    transitions: int
    status: str

    def __iter__(self) -> Iterator[ExplainedVariable]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> ExplainedVariable:
        for row in self.rows:
            if row.variable == name:
                return row
        raise unknown_name("variable", name, [row.variable for row in self.rows])

    @property
    def kept(self) -> tuple[ExplainedVariable, ...]:
        """The rows of the variables in the mask."""
        return tuple(row for row in self.rows if row.kept)

    @property
    def dropped(self) -> tuple[ExplainedVariable, ...]:
        """The rows of the other variables."""
        return tuple(row for row in self.rows if not row.kept)

    def __str__(self) -> str:
        price = f" at λ = {self.cost_weight:g} each" if self.cost_weight else ""
        head = f"kept {len(self.kept)} of {len(self)} variables{price} ({self.status})"
        return "\n".join([head, *(f"{'+' if row.kept else '-'} {row}" for row in self.rows)])

    def _values(self) -> ReportTable:
        names = [field.name for field in fields(ExplainedVariable)]
        place = names.index("worth")
        rows = []
        for row in self.rows:
            own = [getattr(row, name) for name in names]
            ends = [None] * 3 if row.worth is None else [row.worth.mean, *row.worth.interval()]
            rows.append([*own[:place], *ends, *own[place + 1 :]])
        header = [*names[:place], "worth", "worth_low", "worth_high", *names[place + 1 :]]
        return ReportTable(header, rows)

    def _table(self) -> ReportTable:
        header = ["variable", "decision", "acts on", "effect", "detectable", "p"]
        header += ["worth in return", "tried with"]
        rows = []
        for row in self.rows:
            worth, tried = "", ""
            if row.worth is not None:
                together = f", {1 + len(row.tried_with)} together" if row.tried_with else ""
                worth, tried = (
                    f"{row.worth}{together}",
                    listed(row.tried_with, NAMES_IN_A_CELL) or "alone",
                )
            seen = "any" if row.detectable == 0.0 else row.in_words(row.detectable)
            evidence = "" if row.evidence is None else f"{row.evidence:.2g}"
            acts_on, effect = listed(row.acts_on, NAMES_IN_A_CELL), row.in_words(row.effect)
            rows.append([row.variable, row.decision, acts_on, effect, seen, evidence, worth, tried])
        return ReportTable(header, rows)

    def to_markdown(self, *, sentences: bool = False) -> str:
        """A table in Markdown, with one row for each variable.

        Args:
            sentences: whether there is a column with the sentences.
        """
        table = self._table()
        if check_flag("sentences", sentences):
            told = [[*cells, row.sentence] for cells, row in zip(table.rows, self, strict=True)]
            table = ReportTable([*table.header, "sentence"], told)
        return table.to_markdown()

    def plot(self, ax: Any = None) -> Any:
        """Draw what variables are worth, with 95 % intervals and prices (needs matplotlib).

        A group that was tried together has one line, and so have all variables that were never
        tried and have the same decision.

        Args:
            ax: the axes to draw on; by default new ones.

        Returns:
            The axes.
        """
        lines = _lines(self.rows)
        ax = self._axes(ax, 7.5, 1.0 + 0.27 * len(lines))
        for y, (_, rows) in enumerate(lines):
            first = rows[0]
            price = first.price * (1 + len(first.tried_with))
            if first.worth is None:
                told = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
                ax.annotate(first.decision, (0.0, y), **told, fontsize=8, color="0.4")
                continue
            low, high = first.worth.interval()
            colour = COLOURS[first.kept]
            marker = "D" if first.tried_with else "o"
            ax.plot([low, high], [y, y], color=colour, linewidth=1.5)
            ax.plot(first.worth.mean, y, marker, color=colour, markersize=5)
            ax.plot(price, y, "|", color="black", markersize=10)
        ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        ax.set_yticks(range(len(lines)), [label for label, _ in lines], fontsize=8)
        ax.set_ylim(len(lines) - 0.5, -0.5)
        largest = max((abs(row.worth.mean) for row in self.rows if row.worth), default=0.0)
        ax.set_xscale("symlog", linthresh=max(1.0, 0.02 * largest))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("worth in return, 95 %")
        marks = {"kept": ("o-", COLOURS[True]), "dropped": ("o-", COLOURS[False])}
        marks |= {"several together": ("D", "0.4"), "price": ("|", "black")}
        for word, (mark, colour) in marks.items():
            ax.plot([], [], mark, color=colour, label=word)
        ax.legend(loc="best", fontsize=8)
        return ax


def _lines(rows: Sequence[ExplainedVariable]) -> list[tuple[str, list[ExplainedVariable]]]:
    """Labels, and the variables of one line of the plot: alone, in a group, or never tried."""
    found: dict[Any, list[ExplainedVariable]] = {}
    for row in rows:
        group = frozenset((row.variable, *row.tried_with))
        found.setdefault((row.kept, group if row.worth else row.decision), []).append(row)

    def place(members: list[ExplainedVariable]) -> tuple[bool, bool, float]:
        first = members[0]
        return not first.kept, first.worth is None, -first.worth.mean if first.worth else 0.0

    lines = []
    for members in sorted(found.values(), key=place):
        together = len(members[0].tried_with)
        label = listed([row.variable for row in members], 2)
        lines.append((label + (f" ({1 + together} tried together)" if together else ""), members))
    return lines


# --- how it is made -------------------------------------------------------------------------------


def explain(learner: FittedLearner, *, try_alone: bool = False) -> Explanation:
    """Why a fitted learner kept or dropped each variable; see :meth:`MaskLearner.explain`."""
    study, mask = learner.study_, set(learner.mask_)
    relevance = find_relevance(study, remembered=_is_stopped(learner))
    complete = study.memory.survey is not None and relevance.is_complete
    if try_alone:
        for name in learner.feature_names_in_:
            if name in mask or name in relevance.findings:
                study.evaluator.compare(mask ^ {name}, learner.mask_)
    signs = find_signs(study, relevance, complete=complete)
    if not complete:
        recorded = _recorded(learner)
        signs |= {name: sign for name, sign in recorded.items() if signs[name].kind == "unknown"}
    trials = closest_trials(learner)
    data = study.memory.data
    transitions = 0 if data is None else len(data.fitted) * data.num_steps
    rows = [_Row(learner, signs[name], trials.get(name), transitions).explained() for name in signs]
    return Explanation(tuple(rows), learner.cost_weight, study.level, transitions, learner.status_)


def _is_stopped(learner: FittedLearner) -> bool:
    return learner.status_ in ("time limit", "interrupted")


def _recorded(learner: FittedLearner) -> dict[str, Sign]:
    """What the learner's own steps found before it was stopped."""
    found = {}
    for record in learner.history_:
        if record.action == "find" and record.role is not None:
            acts_on = {"pays": "reward", "moves": AGENT}.get(record.role, record.target)
            (name,) = record.candidate
            found[name] = Sign(
                name,
                "found",
                record.role,
                () if acts_on is None else (acts_on,),
                record.p_value,
                record.score,
                UNITS[record.role],
                target=record.target,
            )
    return found


# --- worth ----------------------------------------------------------------------------------------


class Tried(NamedTuple):
    """Variables that were added to a mask, or dropped from it, together."""

    names: Mask
    worth: Estimate  # the return with them less the return without, before their price
    kept: bool  # whether it speaks for keeping them
    reason: str = ""  # why they were kept or not, for people
    is_cut_short: bool = False  # whether a plan ran out of time, so that it decides nothing


def closest_trials(learner: FittedLearner) -> dict[str, Tried]:
    """For each variable that was tried, the comparison that is most about it.

    That is the one of the fewest variables. Of a variable that was kept, only comparisons count
    that speak for it; of one that was dropped, those that do not.
    """
    mask, found = set(learner.mask_), dict[str, Tried]()
    for tried in (*_against_the_mask(learner), *_steps(learner)):
        for name in tried.names:
            if (name in mask) != tried.kept:
                continue
            best = found.get(name)
            if best is None or len(tried.names) < len(best.names):
                found[name] = tried
            elif not best.reason and set(tried.names) == set(best.names):
                cut_short = best.is_cut_short or tried.is_cut_short
                found[name] = best._replace(reason=tried.reason, is_cut_short=cut_short)
    return found


def _steps(learner: FittedLearner) -> Iterator[Tried]:
    """The steps that compared two masks, the last one first."""
    if learner.cost != "size" and learner.cost_weight > 0:
        return  # records do not say what a mask cost
    for record in reversed(learner.history_):
        if record.action in ("add", "drop") and record.gain is not None:
            yield Tried(
                record.candidate,
                record.worth(learner.cost_weight),
                (record.action == "add") == record.accepted,
                record.reason,
                OUT_OF_TIME in record.reason,
            )


def _against_the_mask(learner: FittedLearner) -> Iterator[Tried]:
    """The mask against those of the others that have more variables, or fewer."""
    trials = learner.study_.evaluator.trials
    own, kept = trials.get(learner.mask_), set(learner.mask_)
    if own is None or not own.returns:
        return
    for other, trial in trials.items():
        wanted = set(other)
        is_more, parts = kept < wanted, min(len(own.returns), len(trial.returns))
        if not parts or not (is_more or wanted < kept):
            continue
        names = tuple(name for name in learner.feature_names_in_ if name in kept ^ wanted)
        more, fewer = (trial, own) if is_more else (own, trial)
        played = [np.concatenate(one.returns[:parts]) for one in (more, fewer)]
        worth = paired_difference(*played)
        behind = more if worth.mean < 0 else fewer
        yield Tried(names, worth, not is_more, is_cut_short=behind.plan.out_of_time)


# --- rows -----------------------------------------------------------------------------------------


class _Row:
    """One variable: what speaks for it, and how it was tried."""

    def __init__(
        self, learner: FittedLearner, sign: Sign, tried: Tried | None, transitions: int
    ) -> None:
        self.learner, self.sign, self.tried = learner, sign, tried
        self.transitions = transitions
        self.kept = sign.variable in learner.mask_
        order = learner.feature_names_in_
        together = () if tried is None else tried.names
        self.others = tuple(n for n in order if n in together and n != sign.variable)
        self.price = learner.cost_weight * (1 + len(self.others))  # of all that was tried together
        self.targets = tuple(name for name in sign.acts_on if name in order)
        self.kept_targets = tuple(name for name in self.targets if name in learner.mask_)
        self.is_lost = sign.role == "predicts" and bool(self.targets) and not self.kept_targets

    def explained(self) -> ExplainedVariable:
        sign, tried = self.sign, self.tried
        return ExplainedVariable(
            variable=sign.variable,
            kept=self.kept,
            role=sign.role,
            acts_on=sign.acts_on,
            evidence=sign.evidence,
            effect=sign.effect,
            unit=sign.unit,
            detectable=sign.detectable,
            needed=sign.needed,
            worth=None if tried is None else tried.worth,
            tried_with=self.others,
            price=self.learner.cost_weight,
            decision=self._decision(),
            sentence=self._sentence(),
        )

    def _decision(self) -> str:
        sign, tried = self.sign, self.tried
        alone = None if tried is None or self.others else tried.worth
        if self.kept:
            return "kept" if alone is None or alone.mean > self.price else "kept: in doubt"
        if self.is_lost and alone is None and sign.kind == "found":
            return "dropped: predicts what was dropped"
        if tried is None or (sign.kind in SILENT and tried.worth.mean <= self.price):
            return UNTRIED[sign.kind]
        if tried.is_cut_short:
            verdict = "not decided"
        elif tried.worth.interval()[1] < 0:
            verdict = "earns less with it"
        elif tried.worth.mean > self.price:
            verdict = "gain in doubt"
        else:
            verdict = "not worth its price" if self.learner.cost_weight > 0 else "no clear gain"
        return f"dropped: {verdict}"

    # --- the sentence ------------------------------------------------------------------------

    def _sentence(self) -> str:
        name, sign = self.sign.variable, self.sign
        stopped = f"learning was stopped ({self.learner.status_}) before"
        is_known = sign.kind != "unknown"
        parts = [f"{name} {self._sign()}" if is_known else f"{stopped} {name} was tested"]
        if self.tried is not None:
            parts.append(self._worth(self.tried))
        elif self.kept or sign.kind == "found":
            untried = "the learner never tried it"
            if _is_stopped(self.learner):
                untried = f"{stopped} it was tried"
            elif self.kept and self.learner.cost_weight == 0:
                untried = "with λ = 0 all that matters is kept"
            elif self.kept:
                untried = "the mask was never tried without it"
            parts.append(untried)
        return "; ".join(parts) + "."

    def _sign(self) -> str:
        sign = self.sign
        effect = "" if sign.effect is None else number(sign.effect)
        if sign.kind == "found":
            return self._role(effect)
        return SIGNS[sign.kind].format(
            target=sign.target,
            targets=listed(self.targets, NAMES_IN_A_SENTENCE),
            effect=effect,
            seen="" if sign.detectable is None else number(sign.detectable),
            p=sign.evidence or 0.0,
            notable=number(NOTABLE_NATS),
            needed=sign.needed,
            transitions=self.transitions,
        )

    def _role(self, effect: str) -> str:
        sign = self.sign
        moved = listed(
            [n for n in sign.acts_on if n != "reward" and n not in self.targets],
            NAMES_IN_A_SENTENCE,
        )
        if sign.role == "pays":
            partners = listed(sign.partners, NAMES_IN_A_SENTENCE)
            told = f"pays{f' together with {partners}' * bool(partners)} (variance {effect})"
            return f"{told} and moves {moved}" if moved else told
        if sign.role == "moves":
            return f"moves {moved} (in {sign.effect or 0.0:.0%} of all (n, a))"
        verb, unit = "predicts", "nats"
        if sign.unit == "share of states":
            verb, unit = "acts on", "of the states"
        told = f"{verb} {sign.target} ({effect} {unit})"
        more = [name for name in sign.predicts if name != sign.target]
        if more:
            told += f"{' and' if len(more) == 1 else ','} {listed(more, 1)}"
        also = [name for name in self.targets if name not in sign.predicts]
        if also:
            told += f", changes {listed(also, 1)} if it is changed itself"
        if self.is_lost:
            return told + (", all of which were dropped" if more or also else ", which was dropped")
        if sign.target not in self.learner.mask_:
            return f"{told} ({sign.target} was dropped, {listed(self.kept_targets, 2)} kept)"
        return told

    def _worth(self, tried: Tried) -> str:
        has_price = self.learner.cost_weight > 0
        told = f"it is worth {tried.worth} in return"
        if self.others:
            told = f"together with {listed(self.others, NAMES_IN_A_SENTENCE)} {told}"
        if has_price:
            told += f", against a price of {number(self.price)}"
        if self.others:
            told += f"{' in all' if has_price else ''}, and it was not tried alone"
        if tried.is_cut_short:
            return f"{told}; a plan {OUT_OF_TIME}, so this decides nothing"
        if SWITCHED in tried.reason:
            return f"{told}; {SWITCHED}"
        if not self.kept and tried.worth.mean > self.price:
            clear = tried.worth.interval()[0] > self.price
            return told + (", which would pay for it" if clear else ", which may be chance")
        if self.kept and not self.others and tried.worth.mean <= self.price:
            return f"{told}, and no step of the search dropped it alone"
        return told
