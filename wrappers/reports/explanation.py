"""Why a learner kept or dropped each variable: one row for each, as a table, a text or a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from exo_envs.core.arguments import check_flag
from exo_envs.core.errors import unknown_name
from planners.core.evaluation import Estimate
from planners.core.policy import Mask
from wrappers.fitting.history import Role
from wrappers.reports.signs import Unit
from wrappers.reports.tables import ReportTable, Tabular, listed, number

#: Names that a cell of a table lists at most.
MOST_NAMES = 4
#: How an amount is written, by its unit.
WORDS: dict[Unit, str] = {
    "variance of its payment": "variance {}",
    "share of (n, a)": "share {}",
    "share of states": "share {}",
    "nats": "{} nats",
}
#: The axis of a plot is linear up to this part of the largest worth, and logarithmic then.
LINEAR_SHARE = 0.02
#: Colours of the plot: of what was kept and of what was dropped, for the colour-blind, too.
COLOURS = {True: "#0072B2", False: "#D55E00"}


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
        return tuple(row for row in self.rows if row.kept)

    @property
    def dropped(self) -> tuple[ExplainedVariable, ...]:
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
                    listed(row.tried_with, MOST_NAMES) or "alone",
                )
            seen = "any" if row.detectable == 0.0 else row.in_words(row.detectable)
            evidence = "" if row.evidence is None else f"{row.evidence:.2g}"
            acts_on, effect = listed(row.acts_on, MOST_NAMES), row.in_words(row.effect)
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
        ax.set_xscale("symlog", linthresh=max(1.0, LINEAR_SHARE * largest))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlabel("worth in return, 95 %")
        marks = {"kept": ("o-", COLOURS[True]), "dropped": ("o-", COLOURS[False])}
        marks |= {"several together": ("D", "0.4"), "price": ("|", "black")}
        for word, (mark, colour) in marks.items():
            ax.plot([], [], mark, color=colour, label=word)
        ax.legend(loc="best", fontsize=8)
        return ax


def _lines(
    rows: Sequence[ExplainedVariable],
) -> list[tuple[str, list[ExplainedVariable]]]:
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
