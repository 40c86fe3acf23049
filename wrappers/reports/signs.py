"""What speaks for a variable, and which effect would have been found.

Whether a variable pays or moves n was asked of the model itself. Whether it predicts one of the
variables that matter is a matter of tests (:mod:`wrappers.fitting.relevance`). Of a
variable that no test found, the test that came nearest to an alarm is looked at here: what it tells
about one of those that matter, beside what predicts that one already. Its p-value, its effect and
the effect that it could have found belong together.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.core.statistics import POWER, GTest, detectable_information, needed_samples
from planners.core.policy import Mask
from planners.dependence.parents import Null, ParentSearch
from planners.findings import ACTORS, CLEAR_SHARE, LEFT_OUT
from planners.reduced.survey import EndogenousSurvey
from wrappers.fitting.history import Role
from wrappers.fitting.relevance import Relevance, RelevantVariable, over_all_tests
from wrappers.fitting.study import Study
from wrappers.reports.doubts import NOTABLE_NATS
from wrappers.reports.tables import rounded_up

#: Tests of a silent variable that are compared with rollouts in which there is nothing to find.
NEAREST_TESTS = 3
#: Tests times samples that are counted on all transitions; if there are more, on some of them.
AFFORDABLE_COUNTS = 2e10
#: Pairs (n, a) that are looked at to see which parts of n a variable moves.
MOST_PAIRS = 64
#: A change of a probability that counts as one, where n' was sampled.
VISIBLE_CHANGE = 0.05
#: What is said to be moved where the parts of n were not told apart.
AGENT = "the agent"

Unit = Literal["variance of its payment", "share of (n, a)", "nats", "share of states"]
#: The unit of what a test or the model says, by the role that was found.
UNITS: dict[Role, Unit] = {
    "pays": "variance of its payment",
    "moves": "share of (n, a)",
    "predicts": "nats",
}
#: "found": a test, or the model, says that it matters. "no place": it tells about one that does,
#: whose table has no place for it, because others tell more or it is not worth the room. "weak": it
#: acts on one if it is changed, and tells too little to be seen. "silent": nothing speaks for it.
#: "cannot tell": nothing does, but with this data nothing would. "nothing left": there was nothing
#: to test, as all that matters is predicted. "constant": it never varied. "unknown": learning was
#: stopped before it was tested. "double": it says the same as one that was found, its ``target``.
SignKind = Literal[
    "found",
    "no place",
    "weak",
    "silent",
    "cannot tell",
    "nothing left",
    "constant",
    "unknown",
    "double",
]
#: Where nothing speaks for a variable itself.
SILENT: tuple[SignKind, ...] = ("silent", "cannot tell", "nothing left", "constant", "double")


class Sign(NamedTuple):
    """What speaks for one variable.

    Fields without a comment are those of :class:`~wrappers.reports.explanation.ExplainedVariable`.
    """

    variable: str
    kind: SignKind
    role: Role | None = None
    acts_on: Mask = ()
    evidence: float | None = None
    effect: float | None = None
    unit: Unit = "nats"
    detectable: float | None = None
    needed: int | None = None
    target: str | None = None  # of the test; None if it is not about prediction
    predicts: Mask = ()  # by a test, or acts on clearly; others only change with it
    partners: Mask = ()  # it pays together with them


def find_signs(study: Study, relevance: Relevance, *, complete: bool) -> dict[str, Sign]:
    """What speaks for each exogenous variable of a model, in its order.

    If not all that matter were looked for (``complete``), nothing is said of the others.
    """
    names = study.mdp.exogenous_names
    if study.memory.survey is None:
        return {name: Sign(name, "unknown") for name in names}
    return _Signs(study, relevance).find(complete)


class _Test(NamedTuple):
    """What a variable tells about another one, beside what predicts that one already."""

    target: str
    found: GTest
    null: Null
    log_p: float


class _Signs:
    def __init__(self, study: Study, relevance: Relevance) -> None:
        self.study, self.relevance = study, relevance
        self.names, self.survey = study.mdp.exogenous_names, study.survey()
        self.place = {name: j for j, name in enumerate(self.names)}
        self.tests = max(1, len(self.names)) ** 2
        self.search = ParentSearch(
            study.data(),
            level=study.level / max(1, len(self.names)),
            max_parents=study.max_parents,
            memory=study.memory,
        )
        samples = len(relevance.parents) * len(self.names) * self.search.all.count
        self.counts = self.search.all if samples <= AFFORDABLE_COUNTS else self.search.few

    def find(self, complete: bool) -> dict[str, Sign]:
        study, findings = self.study, self.relevance.findings
        rest = [name for name in self.names if name not in findings]
        nearest = self._nearest(rest) if complete else {}
        signs = {}
        for name in self.names:
            predicts, acts_on = self._acts_on(name)
            if name in findings:
                found = self._found(findings[name])
                signs[name] = found._replace(acts_on=acts_on, predicts=predicts)
            elif not complete:
                signs[name] = Sign(name, "unknown", acts_on=acts_on)
            elif twins := [own for own in study.same_as(name) if own in findings]:
                role: Role | None = "predicts" if acts_on else None
                role = "moves" if name in self.survey.moving else role
                role = "pays" if name in self.survey.paying else role
                signs[name] = Sign(name, "double", role, acts_on, target=twins[0])
            else:
                signs[name] = self._silent(name, nearest.get(name), acts_on)
        return signs

    def _acts_on(self, name: str) -> tuple[Mask, Mask]:
        """What a variable predicts or acts on clearly; and all it acts on that matters."""
        memory, j = self.study.memory, self.place[name]
        known, actors = (self.relevance.parents, memory.entries(LEFT_OUT)), memory.entries(ACTORS)
        others = [own for own in self.names if own in self.relevance.parents and own != name]
        predicts = [own for own in others if any(name in told.get(own, ()) for told in known)]
        changes = [own for own in others if actors.get(own, {}).get(j, 0.0) > 0.0]
        parts = tuple(variable.name for variable in self.study.mdp.endogenous_variables)
        return tuple(predicts), (
            *(("reward",) if name in self.survey.paying else ()),
            *_moved_parts(self.survey, parts, j),
            *(own for own in others if own in predicts or own in changes),
        )

    def _found(self, finding: RelevantVariable) -> Sign:
        survey, unit = self.survey, UNITS[finding.role]
        detectable: float | None = None
        if finding.role == "pays":
            detectable = 0.0 if self.study.reward == "terms" and survey.is_complete else None
        elif finding.role == "moves":
            pairs = len(survey.relevant)
            detectable = 1.0 / pairs if survey.is_complete else 1.0 - (1.0 - POWER) ** (1.0 / pairs)
        elif not finding.has_place:
            unit, detectable = "share of states", CLEAR_SHARE
        elif finding.target is not None:
            evidence = self.relevance.parents.get(finding.target, {}).get(finding.name)
            if evidence is not None and evidence.freedom > 0:
                settings = (evidence.freedom, self.tests, self.study.level)
                detectable = detectable_information(self.search.all.count, *settings)
        return Sign(
            finding.name,
            "found",
            finding.role,
            evidence=finding.p_value,
            effect=finding.score,
            unit=unit,
            detectable=detectable,
            target=finding.target,
            partners=finding.partners,
        )

    def _nearest(self, names: list[str]) -> dict[str, _Test]:
        """For each of some variables, the test that comes nearest to an alarm."""
        counts, best = self.counts, {}
        given = {
            target: [self.place[parent] for parent in evidence]
            for target, evidence in self.relevance.parents.items()
        }
        targets = [t for t, known in given.items() if not counts.is_certain(self.place[t], known)]
        if not names or not targets:
            return {}
        rest = np.array([self.place[name] for name in names])
        tables = [counts.screen(self.place[t], given[t], rest) for t in targets]
        statistic, freedom = (np.stack([table[k] for table in tables]) for k in (0, 1))
        order = np.argsort(-_deviation(statistic, freedom), axis=0, kind="stable")[:NEAREST_TESTS]
        for column, name in enumerate(names):
            tried = [
                self._test(
                    name,
                    targets[k],
                    given[targets[k]],
                    GTest(float(statistic[k, column]), float(freedom[k, column])),
                )
                for k in order[:, column].tolist()
                if freedom[k, column] > 0
            ]
            if tried:
                best[name] = min(tried, key=lambda test: test.log_p)
        return best

    def _test(self, name: str, target: str, given: list[int], found: GTest) -> _Test:
        """Compared with rollouts where there is nothing to find.

        Even if it is known to act: where a table is sparse, G says more than there is.
        """
        i, j, null, log_p = self.place[target], self.place[name], Null(1.0, None), found.log_p
        # On few transitions first. What is still unusual then is compared on all of them.
        for counts, level in ((self.search.few, 1.0), (self.counts, self.study.level)):
            if log_p + math.log(self.tests) < math.log(level):
                null = counts.null(i, given, j)
                log_p = null.log_p(found)
        return _Test(target, found, null, log_p)

    def _silent(self, name: str, nearest: _Test | None, acts_on: Mask) -> Sign:
        if nearest is None:
            values = self.study.data().values[:, :, self.place[name]]
            varies = bool(values.size) and values.min() != values.max()
            return Sign(name, "nothing left" if varies else "constant", None, acts_on, 1.0, 0.0)
        found, null, level = nearest.found, nearest.null, self.study.level
        freedom = found.freedom if null.freedom is None else min(null.freedom, found.freedom)
        # G is as large as its degrees of freedom times this factor where there is nothing to find.
        scale = null.mean * found.freedom / freedom
        settings = (freedom, self.tests, level)
        detectable = detectable_information(self.counts.count / scale, *settings)
        p_value = over_all_tests(self.study, nearest.log_p)
        is_clear = p_value < level
        kind: SignKind = "no place" if is_clear else "weak" if acts_on else "silent"
        needed = None
        if kind == "silent" and detectable > NOTABLE_NATS:
            kind = "cannot tell"
            needed = rounded_up(math.ceil(scale * needed_samples(NOTABLE_NATS, *settings)))
        if is_clear and nearest.target not in acts_on:
            known = {*acts_on, nearest.target}
            acts_on = tuple(own for own in self.names if own in known)
        excess = max(0.0, found.statistic / null.mean - found.freedom)
        return Sign(
            name,
            kind,
            "predicts" if acts_on else None,
            acts_on,
            p_value,
            excess / (2.0 * self.counts.count),
            "nats",
            detectable,
            needed,
            nearest.target,
        )


def _deviation(statistic: FloatArray, freedom: FloatArray) -> FloatArray:
    """How unusual each G is, in standard deviations (Wilson and Hilferty)."""
    part = 2.0 / (9.0 * np.maximum(freedom, 1e-9))
    unusual = (np.cbrt(statistic / np.maximum(freedom, 1e-9)) - (1.0 - part)) / np.sqrt(part)
    return np.where(freedom > 0, unusual, -np.inf)


def _moved_parts(survey: EndogenousSurvey, parts: Mask, j: int) -> Mask:
    """The endogenous variables whose next values depend on exogenous variable ``j``."""
    pairs = np.flatnonzero(survey.relevant[:, j])
    if not len(pairs):
        return ()
    if len(parts) == 1:
        return parts
    if not survey.lists:
        return (AGENT,)
    some = pairs[np.linspace(0, len(pairs) - 1, min(MOST_PAIRS, len(pairs))).astype(int)]
    moved = np.any([_moved_at(survey, pair, j) for pair in some.tolist()], axis=0)
    return tuple(part for part, is_moved in zip(parts, moved, strict=True) if is_moved) or (AGENT,)


def _moved_at(survey: EndogenousSurvey, pair: int, j: int) -> BoolArray:
    """Which parts of n' depend on variable j at one pair (n, a), shape (k,)."""
    rules, sizes = survey.lists[pair], survey.backgrounds.data.sizes
    targets = np.unique(np.concatenate([rule.targets for rule in rules]))
    default = rules[-1].to_matrix(targets)
    moved = np.zeros(survey.endogenous.shape[1], dtype=bool)
    for rule in rules:
        if j not in rule.variables:
            continue
        # What a row passes on is taken to be decided by the last rule, which always decides.
        passed_on = np.maximum(0.0, 1.0 - rule.decided)[:, None]
        chances = rule.to_matrix(targets) + passed_on * default
        cube = chances.reshape(*(int(sizes[i]) for i in rule.variables), len(targets))
        spread = np.moveaxis(cube, rule.variables.index(j), 0)
        for k in range(len(moved)):
            values = survey.endogenous[targets, k]
            same = (values[:, None] == np.unique(values)).astype(float)
            moved[k] |= bool(np.ptp(spread @ same, axis=0).max(initial=0.0) > VISIBLE_CHANGE)
    return moved
