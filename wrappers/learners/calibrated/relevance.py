"""Which variables matter, by tests that state their level.

Theorem 1 asks of a mask that it has (1) all that pays and (2) all that moves n, and (3) that it
evolves by itself: that no variable outside helps to predict those inside. Of condition (3) only
this direction is needed, so the mask is closed under *parents*, one generation after another:

    I(x^j ; x'^i | parents of i so far)

is tested for each variable i of the mask and all candidates j at once
(:class:`planners.information.parents.ParentSearch`), at a level that is divided by the number of candidates
and of variables: under the null the probability to add anything at all is below ``level``. A
variable that merely copies the past of the mask tells nothing that the mask does not.

Variables that act only together (XOR) tell nothing one by one; they are found by changing one
variable at a time from states that occur (:mod:`planners.information.interventions`) and tested as a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from planners.information.parents import Evidence
from wrappers.learners.history import Mask, Role
from wrappers.learners.study import Study

Report = Callable[[str, int, int], object]

#: How many variables are looked at between two reports.
TOGETHER = 16


@dataclass(frozen=True)
class Finding:
    """Why a variable matters.

    Attributes:
        name: the variable.
        role: "pays" (condition 1), "moves" n (condition 2) or "predicts" another one (3).
        target: what it predicts; empty for other roles.
        score: what it pays (the variance of its term over all n, a and its own values), the
            share of pairs (n, a) that it moves, or the information in nats, corrected for bias.
        p_value: of the test, over all candidates; 0 where the model was asked itself.
    """

    name: str
    role: Role
    target: str
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
    """All variables that matter.

    Attributes:
        findings: by name, in the order in which they were found.
        parents: for each of them the variables that predict it, itself included, with evidence.
    """

    findings: dict[str, Finding]
    parents: dict[str, dict[str, Evidence]] = field(repr=False)

    @property
    def direct(self) -> Mask:
        """The variables that pay or move n."""
        return tuple(f.name for f in self.findings.values() if f.role != "predicts")


def find_relevance(study: Study) -> Relevance:
    """All variables that matter; under the null, more with probability ``study.level``."""
    for _ in search_relevance(study):
        pass
    relevance: Relevance = study.memo["relevance"]
    return relevance


def search_relevance(study: Study, report: Report | None = None) -> Iterator[Finding]:
    """Find all variables that matter, one after another.

    Args:
        study: of the model; :func:`find_relevance` finds everything there afterwards.
        report: is told what goes on: a text, how many variables were looked at, and how many are
            known to matter.
    """
    report = report or (lambda *_: None)
    if "relevance" in study.memo:
        yield from study.memo["relevance"].findings.values()
        return
    total = len(study.mdp.exogenous_names)
    report("asking what moves and pays", 0, total)
    findings = {finding.name: finding for finding in _direct(study)}
    yield from findings.values()
    parents: dict[str, dict[str, Evidence]] = {}
    waiting = list(findings)
    while waiting:
        # A few at a time: so one sees that something goes on, and may stop it.
        asked, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
        report("testing what predicts the mask", len(parents), len(findings))
        for name, found in study.parents(asked).items():
            parents[name] = found
            for parent, told in found.items():
                if parent not in findings:
                    p_value = min(1.0, total**2 * math.exp(told.log_p))
                    finding = Finding(parent, "predicts", name, told.information, p_value)
                    findings[parent] = finding
                    waiting.append(parent)
                    yield finding
    study.memo["relevance"] = Relevance(findings, parents)


def _direct(study: Study) -> list[Finding]:
    survey = study.survey
    paying = [
        Finding(survey.names[j], "pays", "", float(table.var(axis=0).mean()), 0.0)
        for j, table in survey.terms.items()
    ]
    share = survey.relevant.mean(axis=0)
    moving = [
        Finding(survey.names[j], "moves", "", float(share[j]), 0.0)
        for j in np.flatnonzero(share).tolist()
        if j not in survey.terms
    ]
    return paying + moving
