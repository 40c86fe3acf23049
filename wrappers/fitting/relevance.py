"""Which variables matter, by tests that state their level.

Theorem 1 asks of a mask that it has (1) all that pays and (2) all that moves n, and (3) that it
evolves by itself: that no variable outside helps to predict those inside. Of condition (3) only
this direction is needed, so the mask is closed under *parents*, one generation after another:

    I(x^j ; x'^i | parents of i so far)

is tested for each variable i of the mask and all candidates j at once
(:class:`planners.dependence.parents.ParentSearch`), at a level that is divided by the number of
candidates and of variables: under the null the probability to add anything at all is below
``level``. A variable that merely copies the past of the mask tells nothing that the mask does not.

Variables that act only together (XOR) tell nothing one by one; they are found by changing one
variable at a time from states that occur (:mod:`planners.dependence.interventions`) and tested as
a group. What is seen to act so, and has no place in a table of ``max_parents``, belongs to the mask
all the same: closing a mask takes causes, not tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from exo_envs.core.arguments import check_flag
from planners.core.policy import Mask
from planners.dependence.parents import Evidence
from planners.findings import LEFT_OUT, PARENTS
from wrappers.fitting.history import Role
from wrappers.fitting.study import Study

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
        score: what it pays (the variance of its terms over its own values, on average over all n,
            a and the values of those that it pays together with), the share of pairs (n, a) that it
            moves, or the information in nats, corrected for bias; of what has no place in the
            target's table, the share of states in which it changes it.
        p_value: of the test, over all candidates; 0 where the model was asked itself.
        has_place: whether the target's table looks at it.
        partners: the variables that it pays together with.
    """

    name: str
    role: Role
    target: str | None
    score: float
    p_value: float
    has_place: bool = True
    partners: Mask = ()

    @property
    def reason(self) -> str:
        """The finding, for people."""
        if self.role == "predicts":
            if not self.has_place:
                return f"acts on {self.target}, whose table has no place for it"
            return f"predicts {self.target}"
        if self.role == "moves":
            return "moves the agent"
        return f"pays together with {', '.join(self.partners)}" if self.partners else "pays"


@dataclass(frozen=True)
class Relevance:
    """The variables that matter, as far as they were found.

    Attributes:
        findings: by name, in the order in which they were found.
        parents: for each of them the variables that predict it, itself included, with evidence.
        doubles: variables that pay or move n and say the same as one of them, with this one. They
            are not needed beside it.
    """

    findings: dict[str, Finding] = field(default_factory=dict)
    parents: dict[str, dict[str, Evidence]] = field(default_factory=dict, repr=False)
    doubles: dict[str, str] = field(default_factory=dict)

    @property
    def direct(self) -> Mask:
        """The variables that pay or move n."""
        return tuple(f.name for f in self.findings.values() if f.role != "predicts")

    @property
    def is_complete(self) -> bool:
        """Whether it is known of all that matters what predicts it."""
        return self.findings.keys() <= self.parents.keys()

    def search(
        self,
        study: Study,
        report: Report = lambda *_, **__: None,
        *,
        remembered: bool = False,
    ) -> Iterator[Finding]:
        """Find all variables that matter, one after another; they are kept here.

        Args:
            study: of the model; its level is that of the tests.
            report: is told what goes on: a text, and how many variables were looked at (``done``)
                of those known to matter (``total``).
            remembered: look only at what the study found out before, and ask and count nothing.
        """
        total = len(study.mdp.exogenous_names)
        if remembered and study.memory.survey is None:
            return
        report("asking what moves and pays", total=total)
        for finding in _direct(study):
            # By the paper's rule what is left out pays nothing: then both have to be there.
            is_needless = finding.role == "moves" or study.ignored_rewards == "average"
            same = study.same_as(finding.name) if is_needless else ()
            kept = next((name for name in same if name in self.findings), None)
            if kept is None:
                self.findings[finding.name] = finding
            else:
                self.doubles[finding.name] = kept
        yield from list(self.findings.values())
        waiting = list(self.findings)
        while waiting:
            # A few at a time: so one sees that something goes on, and may stop it.
            asked, waiting = waiting[:TOGETHER], waiting[TOGETHER:]
            if remembered:
                asked = [name for name in asked if name in study.memory.entries(PARENTS)]
            looked_at, found_so_far = len(self.parents), len(self.findings)
            report("testing what predicts the mask", done=looked_at, total=found_so_far)
            for name, evidence in study.parents(asked).items():
                self.parents[name] = evidence
                for finding in _predicting(study, name, evidence):
                    if finding.name not in self.findings:
                        self.findings[finding.name] = finding
                        waiting.append(finding.name)
                        yield finding


def find_relevance(study: Study, *, remembered: bool = False) -> Relevance:
    """All variables that matter; under the null, more with probability ``study.level``.

    If ``remembered``, only as far as the study found out before: nothing is asked.
    """
    relevance = Relevance()
    for _ in relevance.search(study, remembered=check_flag("remembered", remembered)):
        pass
    return relevance


def _predicting(study: Study, name: str, evidence: dict[str, Evidence]) -> list[Finding]:
    """The variables that predict one by a test, and those known to act on it all the same."""
    tests = len(study.mdp.exogenous_names) ** 2
    tested = [
        Finding(
            parent, "predicts", name, found.information, min(1.0, tests * math.exp(found.log_p))
        )
        for parent, found in evidence.items()
    ]
    known = study.memory.entries(LEFT_OUT)[name].items()
    return tested + [
        Finding(cause, "predicts", name, share, 0.0, has_place=False) for cause, share in known
    ]


def _direct(study: Study) -> list[Finding]:
    survey = study.survey()
    pays = [survey.names.index(name) for name in survey.paying]
    paying = []
    for j in pays:
        terms = survey.terms_of(j)
        score = sum(float(table.var(axis=0).mean()) for _, table in terms)
        others = sorted({i for scope, _ in terms for i in scope})
        partners = tuple(survey.names[i] for i in others)
        paying.append(Finding(survey.names[j], "pays", None, score, 0.0, partners=partners))
    share = survey.relevant.mean(axis=0)
    moving = [
        Finding(survey.names[j], "moves", None, float(share[j]), 0.0)
        for j in np.flatnonzero(share).tolist()
        if j not in pays
    ]
    return paying + moving
