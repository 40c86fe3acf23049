"""What an audit says: which variables actions move, and what is wrong with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: The reason of a finding about a variable that had one value all the time.
CONSTANT = "never changed"

# How actions move a variable.
DIRECTLY = "directly"  # in the step in which they are taken
THROUGH_OTHERS = "through others"  # later, through variables that are shown
OUT_OF_SIGHT = "out of sight"  # later, although nothing that is shown differs in between

# What may be wrong.
MOVED = "moved"
LEAK = "leaks through n"
HIDDEN = "hidden state"
UNSEEDED = "ignores the seed"
#: Every kind of problem, see :class:`Problem`.
KINDS = (MOVED, LEAK, HIDDEN, UNSEEDED)


class Finding(NamedTuple):
    """What the audit says about one variable, and why.

    Attributes:
        variable: its name.
        is_moved: whether actions move it.
        reason: what was seen, for people.
        way: "directly" if it differs in the step in which another action is taken; "through others"
            if it differs later; "out of sight" if it differs later although nothing that is shown
            differs in between; empty if it is not moved.
        through: the variables through which it is moved, if it is not moved directly.
        steps: how many steps it took at least, 1 being the step of the action; 0 if never.
        share: of the states, in which another action changed it.
        p_value: how probable such evidence is if no action moves it, corrected for the number of
            tests. It is 0 if chance was excluded: both actions met the same random numbers.
        num_states: the states in which two actions were compared.
    """

    variable: str
    is_moved: bool
    reason: str
    way: str = ""
    through: tuple[str, ...] = ()
    steps: int = 0
    share: float = 0.0
    p_value: float = 1.0
    num_states: int = 0


class Problem(NamedTuple):
    """Something that a model of this kind must not do.

    Attributes:
        kind: one of these:

            * "moved": a variable that is said to be exogenous is moved by actions;
            * "leaks through n": the same, because it looks at variables that actions move;
            * "hidden state": the same state and action give another future after another past:
              something that the state does not show matters;
            * "ignores the seed": a model's answers depend on chance that is not in its generator.
        variable: what it was seen in: a name, "the reward" or "the end of the episode".
        message: what was seen, for people.
        steps: how many steps after an action it shows, 1 being the step of the action; 0 if that is
            not known.
        share: of the states that were looked at, in which it was seen.
        p_value: as that of a :class:`Finding`.
    """

    kind: str
    variable: str
    message: str
    steps: int = 0
    share: float = 0.0
    p_value: float = 0.0

    @property
    def is_hidden(self) -> bool:
        """Whether that takes something that the state does not show."""
        return self.kind in (HIDDEN, UNSEEDED)


@dataclass(frozen=True)
class Audit:
    """Which variables actions move, and what is wrong.

    Attributes:
        endogenous: the names of what actions move, directly or through others.
        exogenous: the names of what moves by itself. What had one value all the time is in neither.
        findings: the evidence, one for each variable.
        problems: what breaks the rules; nothing in a good model.
        remarks: what could not be looked at, for people.
    """

    endogenous: tuple[str, ...]
    exogenous: tuple[str, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def constant(self) -> tuple[str, ...]:
        """The names of what had one value all the time."""
        known = {*self.endogenous, *self.exogenous}
        return tuple(f.variable for f in self.findings if f.variable not in known)

    @property
    def hidden(self) -> tuple[str, ...]:
        """What depends on something that the state does not show: names, without repetition."""
        names = (p.variable for p in self.problems if p.is_hidden)
        return tuple(dict.fromkeys(names))

    def __str__(self) -> str:
        lines = [
            f"actions move: {', '.join(self.endogenous) or 'nothing'}",
            f"moves by itself: {', '.join(self.exogenous) or 'nothing'}",
        ]
        if self.constant:
            lines.append(f"never changed: {', '.join(self.constant)}")
        lines += [f"  {f.variable}: {f.reason}" for f in self.findings if f.reason != CONSTANT]
        lines += [f"problem ({p.kind}): {p.message}" for p in self.problems]
        if not self.problems:
            lines.append("no problem was found")
        lines += [f"remark: {remark}" for remark in self.remarks]
        return "\n".join(lines)
