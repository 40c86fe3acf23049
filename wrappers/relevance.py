"""Which variables matter, by tests that state their level.

Theorem 1 asks of a mask that it has (1) all that pays and (2) all that moves n, and (3) that it
evolves by itself: that no variable outside helps to predict those inside. Of condition (3) only
this direction is needed, so the mask is closed under *parents*, one generation after another:

    I(x^j ; x'^i | parents of i so far)

is tested for each variable i of the mask and all candidates j at once
(:class:`planners.structure.ParentSearch`), at a level that is divided by the number of candidates
and of variables: under the null the probability to add anything at all is below ``level``. A
variable that merely copies the past of the mask tells nothing that the mask does not.

Variables that act only together (XOR) tell nothing one by one; they are found by changing one
variable at a time from states that occur (:mod:`planners.interventions`) and tested as a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from planners.interventions import actors_of
from planners.structure import Evidence, ParentSearch
from wrappers.history import Mask
from wrappers.study import Study

Role = Literal["pays", "moves", "predicts"]
Report = Callable[[str, int, int], object]


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


def find_relevance(study: Study, level: float, report: Report | None = None) -> Relevance:
    """Find all variables that matter.

    Args:
        study: of the model.
        level: the probability, over all tests, to add a variable that does not matter.
        report: is told what goes on: a text, how many variables were looked at, and how many are
            known to matter.
    """
    key = ("relevance", level)
    if key not in study.memo:
        study.memo[key] = _find(study, level, report or (lambda *_: None))
    relevance: Relevance = study.memo[key]
    return relevance


def _find(study: Study, level: float, report: Report) -> Relevance:
    names = study.mdp.exogenous_names
    report("rolling out", 0, len(names))
    data = study.data
    report("asking what moves and pays", 0, len(names))
    findings = {finding.name: finding for finding in _direct(study)}
    search = ParentSearch.of(data, level=level / len(names))
    everything = list(range(len(names)))
    parents: dict[str, dict[str, Evidence]] = {}
    waiting = list(findings)
    while waiting:
        targets = data.positions(waiting).tolist()
        following: list[str] = []
        for i, actors in zip(targets, actors_of(study.mdp, data, targets), strict=True):
            report("testing what predicts the mask", len(parents), len(findings))
            found = search.parents(i, everything, actors)
            evidence = search.explain(i, found, actors)
            parents[names[i]] = {names[j]: evidence[j] for j in found}
            for j in found:
                if names[j] not in findings:
                    p_value = min(1.0, len(names) ** 2 * math.exp(evidence[j].log_p))
                    findings[names[j]] = Finding(
                        names[j], "predicts", names[i], evidence[j].information, p_value
                    )
                    following.append(names[j])
        waiting = following
    return Relevance(findings, parents)


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
