"""Makes an explanation: what speaks for a variable, what it is worth, and so what was decided."""

from __future__ import annotations

from planners.core.policy import Mask
from wrappers.fitting.history import SWITCHED
from wrappers.fitting.relevance import find_relevance
from wrappers.fitting.session import FittedLearner
from wrappers.reports.comparisons import Tried, closest_trials
from wrappers.reports.explanation import ExplainedVariable, Explanation
from wrappers.reports.power import NOTABLE, rounded
from wrappers.reports.rendering import listed, number
from wrappers.reports.signs import AGENT, Sign, Unit, find_signs

#: Names that a sentence lists at most.
LISTED = 3

NO_SIGN = "dropped: no sign"
CANNOT_TELL = "dropped: cannot tell with this data"
NOT_WORTH = "dropped: not worth its price"
#: What was decided about a variable that was never tried, by what speaks for it.
SILENT = {
    "no place": "dropped: no place in a table",
    "weak": "dropped: too little to see",
    "silent": NO_SIGN,
    "constant": "dropped: never varied",
    "unknown": "dropped: not tested",
    "double": "dropped: says the same as another",
    "found": "dropped: never tried",
}


def explain(learner: FittedLearner, *, try_alone: bool = False) -> Explanation:
    """Why a fitted learner kept or dropped each variable; see :meth:`MaskLearner.explain`."""
    study, stopped = learner.study_, is_stopped(learner)
    relevance = find_relevance(study, remembered=stopped)
    complete = study.memory.survey is not None and relevance.is_complete
    if try_alone:
        _try_each(learner, tuple(relevance.findings))
    signs = find_signs(study, relevance, complete=complete)
    recorded = {} if complete else _recorded(learner)
    signs |= {name: sign for name, sign in recorded.items() if signs[name].kind == "unknown"}
    trials = closest_trials(learner)
    rows = [_Row(learner, signs[name], trials.get(name)).explained() for name in signs]
    data = study.memory.data
    transitions = 0 if data is None else len(data.fitted) * data.num_steps
    return Explanation(tuple(rows), learner.cost_weight, study.level, transitions, learner.status_)


def _recorded(learner: FittedLearner) -> dict[str, Sign]:
    """What the learner's own steps found before it was stopped."""
    units: dict[str, Unit] = {
        "pays": "variance of its payment",
        "moves": "share of (n, a)",
        "predicts": "nats",
    }
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
                units[record.role],
                target=record.target,
            )
    return found


def is_stopped(learner: FittedLearner) -> bool:
    """Whether learning ended before it was finished."""
    return learner.status_ in ("time limit", "interrupted")


def _try_each(learner: FittedLearner, relevant: Mask) -> None:
    """Compare the mask with itself less each variable, and with each of the others added."""
    mask, evaluator = set(learner.mask_), learner.study_.evaluator
    for name in learner.feature_names_in_:
        if name in mask or name in relevant:
            other = tuple(n for n in learner.feature_names_in_ if n in mask ^ {name})
            evaluator.compare(other, learner.mask_)


class _Row:
    """One variable: what speaks for it, and how it was tried."""

    def __init__(self, learner: FittedLearner, sign: Sign, tried: Tried | None) -> None:
        self.learner, self.sign, self.tried = learner, sign, tried
        self.name = sign.variable
        self.kept = self.name in learner.mask_
        order = learner.feature_names_in_
        together = () if tried is None else tried.names
        self.others = tuple(n for n in order if n in together and n != self.name)
        self.targets = tuple(n for n in sign.acts_on if n in order)
        self.is_lost = bool(
            sign.role == "predicts" and self.targets and not self._kept_targets(self.targets)
        )

    def explained(self) -> ExplainedVariable:
        """The row of the table."""
        sign, tried = self.sign, self.tried
        return ExplainedVariable(
            self.name,
            self.kept,
            sign.role,
            sign.acts_on,
            sign.evidence,
            sign.effect,
            sign.unit,
            sign.detectable,
            None if sign.needed is None else rounded(sign.needed),
            None if tried is None else tried.worth,
            self.others,
            self.learner.cost_weight,
            self._decision(),
            self._sentence(),
        )

    def _kept_targets(self, names: Mask) -> Mask:
        return tuple(name for name in names if name in self.learner.mask_)

    @property
    def _price(self) -> float:
        """Of all that was tried together."""
        return self.learner.cost_weight * (1 + len(self.others))

    def _decision(self) -> str:
        tried = self.tried
        if self.kept:
            is_clear = tried is None or self.others or tried.worth.mean > self._price
            return "kept" if is_clear else "kept: in doubt"
        if self.is_lost and (tried is None or self.others) and self.sign.kind == "found":
            return "dropped: predicts what was dropped"
        is_silent = self.sign.kind in ("silent", "constant", "double")
        if tried is None or (is_silent and tried.worth.mean <= self._price):
            return CANNOT_TELL if self.sign.needed is not None else SILENT[self.sign.kind]
        return self._objection(tried)

    def _objection(self, tried: Tried) -> str:
        """Why a variable was dropped that was tried."""
        if tried.is_cut_short:
            return "dropped: not decided"
        if tried.worth.interval()[1] < 0:
            return "dropped: earns less with it"
        if tried.worth.mean > self._price:
            return "dropped: gain in doubt"
        return NOT_WORTH if self.learner.cost_weight > 0 else "dropped: no clear gain"

    # --- the sentence ------------------------------------------------------------------------

    def _sentence(self) -> str:
        if self.sign.kind == "unknown":
            parts = [f"learning was stopped ({self.learner.status_}) before {self.name} was tested"]
        else:
            parts = [f"{self.name} {self._sign()}"]
        if self.tried is not None:
            parts.append(self._worth(self.tried))
        elif (self.kept or self.sign.kind == "found") and (told := self._untried()):
            parts.append(told)
        return "; ".join(parts) + "."

    def _sign(self) -> str:
        """What speaks for the variable."""
        sign, data = self.sign, self.learner.study_.memory.data
        effect = "" if sign.effect is None else number(sign.effect)
        found_from = "" if sign.detectable is None else number(sign.detectable)
        if sign.kind == "constant":
            count = 0 if data is None else len(data.fitted) * data.num_steps
            return f"never varied in {count:,} transitions, so nothing can be said about it"
        if sign.kind == "double":
            return (
                f"says the same as {sign.target}: in all rollouts each value of one came with one "
                "value of the other, so one of them will do"
            )
        if sign.kind == "no place":
            return (
                f"tells {effect} nats about {sign.target}, whose table has no place for it: more "
                "transitions, or a larger max_parents, would make room"
            )
        if sign.kind == "weak":
            return (
                f"changes {self._targets()} if it is changed itself, but tells too little to be "
                f"seen ({found_from} nats about {sign.target} would have been found)"
            )
        if sign.kind == "silent":
            return self._silence(found_from)
        return self._role(effect)

    def _silence(self, found_from: str) -> str:
        sign = self.sign
        if sign.target is None:
            return "shows no sign that it matters: nothing that matters is left to be predicted"
        if sign.needed is not None:
            return (
                f"shows no sign that it matters, but this data cannot tell: {number(NOTABLE)} nats "
                f"about {sign.target} would be overlooked; about {rounded(sign.needed):,} "
                "transitions would do"
            )
        return (
            f"shows no sign that it matters: it neither pays nor moves the agent, and "
            f"{found_from} nats about {sign.target} would have been found (p = "
            f"{sign.evidence or 0.0:.2g})"
        )

    def _role(self, effect: str) -> str:
        """What a variable does that was found to matter."""
        sign = self.sign
        partners = () if sign.finding is None else sign.finding.partners
        moved = listed([n for n in sign.acts_on if n != "reward" and n not in self.targets], 3)
        if sign.role == "pays":
            told = f"pays (variance {effect})"
            if partners:
                told = f"pays together with {listed(partners, LISTED)} (variance {effect})"
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
            kept = self._kept_targets(self.targets)
            return f"{told} ({sign.target} was dropped, {listed(kept, 2)} kept)"
        return told

    def _targets(self) -> str:
        return listed(self.targets, LISTED)

    def _worth(self, tried: Tried) -> str:
        """How the variable was tried, and what came of it."""
        price = f", against a price of {number(self._price)}" if self.learner.cost_weight else ""
        if self.others:
            told = (
                f"together with {listed(self.others, LISTED)} it is worth {tried.worth} in return"
                f"{price} in all, and it was not tried alone"
            )
        else:
            told = f"it is worth {tried.worth} in return{price}"
        if self.learner.cost_weight == 0:
            told = told.replace(" in all, and", ", and")
        if tried.is_cut_short:
            told += "; a plan ran out of time, so this decides nothing"
        elif SWITCHED in tried.reason:
            told += f"; {SWITCHED}"
        elif not self.kept and tried.worth.mean > self._price:
            clear = tried.worth.interval()[0] > self._price
            told += ", which would pay for it" if clear else ", which may be chance"
        elif self.kept and not self.others and tried.worth.mean <= self._price:
            told += ", and no step of the search dropped it alone"
        return told

    def _untried(self) -> str:
        """Why a variable that matters was not tried."""
        if is_stopped(self.learner):
            return f"learning was stopped ({self.learner.status_}) before it was tried"
        if self.kept and self.learner.cost_weight == 0:
            return "with λ = 0 all that matters is kept"
        if self.kept:
            return "the mask was never tried without it"
        return "the learner never tried it"
