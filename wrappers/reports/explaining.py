"""Makes an explanation: what speaks for a variable, what it is worth, and so what was decided.

What a variable is worth was found by comparing two masks. A comparison is about all variables that
it adds or drops at once, and the worth of a group says little about any of its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from planners.core.evaluation import Estimate, paired_difference
from planners.core.policy import Mask
from wrappers.fitting.history import OUT_OF_TIME, SWITCHED
from wrappers.fitting.relevance import find_relevance
from wrappers.fitting.session import FittedLearner
from wrappers.reports.doubts import NOTABLE_NATS
from wrappers.reports.explanation import ExplainedVariable, Explanation
from wrappers.reports.signs import AGENT, SILENT, UNITS, Sign, SignKind, find_signs
from wrappers.reports.tables import listed, number

#: Names that a sentence lists at most.
MOST_NAMES = 3

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
            targets=listed(self.targets, MOST_NAMES),
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
            [n for n in sign.acts_on if n != "reward" and n not in self.targets], MOST_NAMES
        )
        if sign.role == "pays":
            partners = listed(sign.partners, MOST_NAMES)
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
        """How the variable was tried, and what came of it."""
        has_price = self.learner.cost_weight > 0
        told = f"it is worth {tried.worth} in return"
        if self.others:
            told = f"together with {listed(self.others, MOST_NAMES)} {told}"
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
