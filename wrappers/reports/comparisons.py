"""What variables were found to be worth in return: comparisons that a learner made.

A comparison is about all variables that it adds or drops at once. What a group is worth says little
about any of its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from planners.core.evaluation import Estimate, paired_difference
from planners.core.policy import Mask
from wrappers.fitting.session import FittedLearner
from wrappers.fitting.study import Study

#: A part of the reason of a step whose plan was cut short.
OUT_OF_TIME = "ran out of time"


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
    for tried in (*_with_the_mask(learner.study_, learner.mask_), *_steps(learner)):
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


def _with_the_mask(study: Study, mask: Mask) -> Iterator[Tried]:
    """The mask against those of the others that have more variables, or fewer."""
    trials = study.evaluator.trials
    own = trials.get(mask)
    if own is None or not own.returns:
        return
    kept = set(mask)
    for other, trial in trials.items():
        wanted = set(other)
        is_more, parts = kept < wanted, min(len(own.returns), len(trial.returns))
        if not parts or not (is_more or wanted < kept):
            continue
        names = tuple(n for n in study.mdp.exogenous_names if (n in kept) != (n in wanted))
        more, fewer = (trial, own) if is_more else (own, trial)
        played = [np.concatenate(one.returns[:parts]) for one in (more, fewer)]
        worth = paired_difference(*played)
        behind = more if worth.mean < 0 else fewer
        yield Tried(names, worth, not is_more, is_cut_short=behind.plan.out_of_time)
