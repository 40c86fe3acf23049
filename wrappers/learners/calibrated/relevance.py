"""Which variables matter, by tests that state their level.

Theorem 1 asks of a mask that it has (1) all that pays and (2) all that moves n, and (3) that it
evolves by itself: that no variable outside helps to predict those inside. Of condition (3) only
this direction is needed, so the mask is closed under *parents*, one generation after another:

    I(x^j ; x'^i | parents of i so far)

is tested for each variable i of the mask and all candidates j at once
(:class:`planners.information.parents.ParentSearch`), at a level that is divided by the number of
candidates and of variables: under the null the probability to add anything at all is below
``level``. A variable that merely copies the past of the mask tells nothing that the mask does not.

Variables that act only together (XOR) tell nothing one by one; they are found by changing one
variable at a time from states that occur (:mod:`planners.information.interventions`) and tested as
a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from planners import Evidence, Mask
from wrappers.learners.history import Role
from wrappers.learners.study import Study

Report = Callable[..., object]

#: Variables that are looked at between two reports.
TOGETHER = 16


@dataclass(frozen=True)
class Finding:
    """Why a variable matters.

    Attributes:
        name: the variable.
        role: "pays" (condition 1), "moves" n (condition 2) or "predicts" another one (3).
        target: what it predicts; None for other roles.
        score: what it pays (the variance of its term over all n, a and its own values), the
            share of pairs (n, a) that it moves, or the information in nats, corrected for bias.
        p_value: of the test, over all candidates; 0 where the model was asked itself.
    """

    name: str
    role: Role
    target: str | None
    score: float
    p_value: float

    @property
    def reason(self) -> str:
        """The same for people."""
        if self.role == "predicts":
            return f"predicts {self.target}"
        return "pays" if self.role == "pays" else "moves the agent"


@dataclass(frozen=True)
class Relevance:
    """The variables that matter, as far as they were found.

    Attributes:
        findings: by name, in the order in which they were found.
        parents: for each of them the variables that predict it, itself included, with evidence.
    """

    findings: dict[str, Finding] = field(default_factory=dict)
    parents: dict[str, dict[str, Evidence]] = field(default_factory=dict, repr=False)

    @property
    def direct(self) -> Mask:
        """The variables that pay or move n."""
        return tuple(f.name for f in self.findings.values() if f.role != "predicts")

    def search(self, study: Study, report: Report = lambda *_, **__: None) -> Iterator[Finding]:
        """Find all variables that matter, one after another; they are kept here.

        Args:
            study: of the model; its level is that of the tests.
            report: is told what goes on: a text, and how many variables were looked at (``done``)
                of those known to matter (``total``).
        """
        total = len(study.mdp.exogenous_names)
        report("asking what moves and pays", total=total)
        self.findings.update({finding.name: finding for finding in _direct(study)})
        yield from list(self.findings.values())
        waiting = list(self.findings)
        while waiting:
            # A few at a time: so one sees that something goes on, and may stop it.
            asked, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
            looked_at, found_so_far = len(self.parents), len(self.findings)
            report("testing what predicts the mask", done=looked_at, total=found_so_far)
            for name, evidence in study.parents(asked).items():
                self.parents[name] = evidence
                for parent, found in evidence.items():
                    if parent not in self.findings:
                        p_value = min(1.0, total**2 * math.exp(found.log_p))
                        finding = Finding(parent, "predicts", name, found.information, p_value)
                        self.findings[parent] = finding
                        waiting.append(parent)
                        yield finding


def find_relevance(study: Study) -> Relevance:
    """All variables that matter; under the null, more with probability ``study.level``."""
    relevance = Relevance()
    for _ in relevance.search(study):
        pass
    return relevance


def _direct(study: Study) -> list[Finding]:
    survey = study.survey()
    paying = [
        Finding(survey.names[j], "pays", None, float(table.var(axis=0).mean()), 0.0)
        for j, table in survey.terms.items()
    ]
    share = survey.relevant.mean(axis=0)
    moving = [
        Finding(survey.names[j], "moves", None, float(share[j]), 0.0)
        for j in np.flatnonzero(share).tolist()
        if j not in survey.terms
    ]
    return paying + moving
