"""Which variables matter, by tests that state their level, and a guess how much.

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
from functools import cache, partial

import numpy as np

from exo_envs.core.mdp import FloatArray, IntArray
from planners.core.policy import Mask
from planners.dependence.parents import ParentEvidence
from planners.findings import LEFT_OUT, PARENTS
from planners.samples.rollouts import ExogenousData
from wrappers.fitting.history import Role
from wrappers.fitting.study import Study


@dataclass(frozen=True)
class RelevantVariable:
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
    """

    findings: dict[str, RelevantVariable] = field(default_factory=dict)
    parents: dict[str, dict[str, ParentEvidence]] = field(default_factory=dict, repr=False)

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
        report: Callable[..., object] = lambda *_, **__: None,
        *,
        remembered: bool = False,
    ) -> Iterator[RelevantVariable]:
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
            # What says the same as one that was found is not needed beside it. But by the paper's
            # rule what is left out pays nothing: then both have to be there.
            is_needless = finding.role == "moves" or study.ignored_rewards == "average"
            same = study.same_as(finding.name) if is_needless else ()
            if not any(name in self.findings for name in same):
                self.findings[finding.name] = finding
        yield from list(self.findings.values())
        waiting = list(self.findings)
        while waiting:
            # A few at a time: so one sees that something goes on, and may stop it.
            asked, waiting = waiting[:16], waiting[16:]
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
    for _ in relevance.search(study, remembered=remembered):
        pass
    return relevance


def over_all_tests(study: Study, log_p: float) -> float:
    """The p-value of one test of whether a variable predicts another one, over all such tests."""
    return min(1.0, len(study.mdp.exogenous_names) ** 2 * math.exp(log_p))


def _predicting(
    study: Study, name: str, evidence: dict[str, ParentEvidence]
) -> list[RelevantVariable]:
    """The variables that predict one by a test, and those known to act on it all the same."""
    known = study.memory.entries(LEFT_OUT)[name].items()
    return [
        RelevantVariable(
            parent, "predicts", name, own.information, over_all_tests(study, own.log_p)
        )
        for parent, own in evidence.items()
    ] + [
        RelevantVariable(own, "predicts", name, share, 0.0, has_place=False) for own, share in known
    ]


def _direct(study: Study) -> list[RelevantVariable]:
    survey = study.survey()
    pays = [survey.names.index(name) for name in survey.paying]
    paying = []
    for j in pays:
        terms = survey.terms_of(j)
        score = sum(float(table.var(axis=0).mean()) for _, table in terms)
        others = sorted({i for scope, _ in terms for i in scope})
        partners = tuple(survey.names[i] for i in others)
        paying.append(
            RelevantVariable(survey.names[j], "pays", None, score, 0.0, partners=partners)
        )
    share = survey.relevant.mean(axis=0)
    moving = [
        RelevantVariable(survey.names[j], "moves", None, float(share[j]), 0.0)
        for j in np.flatnonzero(share).tolist()
        if j not in pays
    ]
    return paying + moving


def importance(study: Study, relevance: Relevance, visits: FloatArray) -> dict[str, float]:
    """A cheap guess of what each relevant variable is worth to an agent with these visits.

    It only orders the search for a mask: what stays in it is decided by J.

    * what pays: the standard deviation of its term, over the values it has in the rollouts, at the
      pairs (n, a) that the agent meets, as often as it meets them, times how long the variable
      keeps a value (who does not see it makes the same mistake again for that long); of a term of
      several variables, what is left of the deviation if the others are known;
    * what moves n but does not pay: the largest such deviation of any variable, where the agent
      meets pairs that it moves;
    * what predicts a variable i: the worth of i, discounted by a step, times the share of the
      uncertainty about x'_i that it takes away.

    Args:
        study: of the model.
        relevance: the variables that matter.
        visits: how often an agent meets each surveyed pair (n, a), shape (pairs,); if it is empty,
            all are taken to be met as often.
    """
    survey, data = study.survey(), study.data()
    if not len(visits):
        visits = np.full(len(survey.relevant), 1.0 / len(survey.relevant))
    joint_frequencies = cache(partial(_joint_frequencies, data))

    def frequencies(j: int) -> FloatArray:
        return joint_frequencies((j,))

    worth = dict.fromkeys(relevance.findings, 0.0)
    unit = 0.0
    pays = [survey.names.index(name) for name in survey.paying]
    for j in pays:
        deviation = np.sum(
            [
                _deviation(frequencies(j), joint_frequencies(others), table)
                for others, table in survey.terms_of(j)
            ],
            axis=0,
        )
        worth[survey.names[j]] = float(visits @ deviation) * _duration(
            data.values[:, :, j], frequencies(j), study.mdp.discount
        )
        unit = max(unit, float(deviation[visits > 0].max(initial=0.0)))
    moved = visits @ survey.relevant
    for j in np.flatnonzero(moved).tolist():
        if j not in pays:
            worth[survey.names[j]] = unit * float(moved[j])
    changed = True
    while changed:  # ends: a share of a worth is never more than the worth
        changed = False
        for target, evidence in relevance.parents.items():
            (i,) = data.positions([target])
            inherited = (
                study.mdp.discount * worth[target] / max(_entropy(frequencies(int(i))), 1e-12)
            )
            for name, found in evidence.items():
                share = min(inherited * found.information, worth[target])
                if share > worth[name] * (1 + 1e-9):
                    worth[name] = share
                    changed = True
    return worth


def _joint_frequencies(data: ExogenousData, variables: tuple[int, ...]) -> FloatArray:
    """The frequencies of the joint values of some variables in the rollouts."""
    sizes = [int(data.sizes[j]) for j in variables]
    values = np.zeros(data.values.shape[:2], dtype=np.int64)
    for j, size in zip(variables, sizes, strict=True):
        values = values * size + data.values[:, :, j]
    return np.asarray(np.bincount(values.reshape(-1), minlength=math.prod(sizes)) / values.size)


def _deviation(frequencies: FloatArray, of_others: FloatArray, table: FloatArray) -> FloatArray:
    """The standard deviation of a term over a variable's values, for each pair (n, a).

    What a value pays whatever n and a are is no matter of decisions, and is left out.

    Args:
        frequencies: of the values, (size,).
        of_others: of the joint values of the other variables of the term.
        table: what is paid, (size, others, S, A).
    """
    paid = table.reshape(*table.shape[:2], -1)
    flat = (paid - paid.mean(axis=2, keepdims=True)).reshape(len(paid), -1)
    centred = flat - frequencies @ flat
    variances = (frequencies @ centred**2).reshape(paid.shape[1:])  # (others, pairs)
    return np.sqrt(of_others @ variances)


def _duration(values: IntArray, frequencies: FloatArray, discount: float) -> float:
    """For how many steps, discounted, the present value says more than the usual frequencies."""
    chance = float(frequencies @ frequencies)
    if chance == 1.0:
        return 1.0
    same = float((values[:, 1:] == values[:, :-1]).mean())
    return 1.0 / (1.0 - discount * max(0.0, (same - chance) / (1.0 - chance)))


def _entropy(frequencies: FloatArray) -> float:
    return -sum(q * math.log(q) for q in frequencies.tolist() if q > 0)
