"""What the data cannot decide, in words that say what would help."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from exo_envs.mdp import REAL_SIZE
from planners import MAX_OPEN, Bins, Mask, hidden_in_bins
from wrappers.learners.study import Study

#: Nats that a variable tells if it moves a probability from 50 to 70 %.
NOTABLE = 0.0823
#: How often the tests should find such a variable.
POWER = 0.9
#: A share of what a variable does that happens within its bins: from here on bins do not show it.
HIDDEN = 0.25
#: Names that are listed at most.
LISTED = 12


class UndecidedWarning(UserWarning):
    """The data, or the tables made of it, cannot decide something that matters to a mask."""


def doubts_about(study: Study, mask: Mask) -> Iterator[str]:
    """What the samples of a study leave open about a mask, one sentence or two for each."""
    if study.memory.data is not None:
        yield from _few_samples(study)
        yield from _values_in_bins(study, mask)
    yield from _causes_left_out(study, mask)
    yield from _no_interventions(study)
    if study.memory.survey is not None:
        yield from _rules_left_open(study)


def _few_samples(study: Study) -> Iterator[str]:
    """Too few transitions to find what is worth finding."""
    data = study.data()
    tests = max(1, len(data.names)) ** 2
    normal = NormalDist()
    bound = normal.inv_cdf(1 - study.level / (2 * tests)) + normal.inv_cdf(POWER)
    needed, counted = bound**2 / (2 * NOTABLE), len(data.fitted) * data.num_steps
    if len(data.names) > 1 and counted < needed and study.mdp.is_recorded:
        yield (
            f"the record has {counted:,} transitions to count, too few for tests of "
            f"{len(data.names)} variables: one that moves a probability from 50 to 70 % is mostly "
            f"overlooked; {int(np.ceil(needed)):,} would do. Give a longer record, or fewer columns"
        )
    elif len(data.names) > 1 and counted < needed:
        more = int(np.ceil(needed / counted * data.num_rollouts))
        yield (
            f"n_data_rollouts={data.num_rollouts} gives {counted:,} transitions to count, too few "
            f"for tests of {len(data.names)} variables: one that moves a probability from 50 to "
            f"70 % is mostly overlooked; give n_data_rollouts={more} or more"
        )


def _values_in_bins(study: Study, mask: Mask) -> Iterator[str]:
    """Variables of very many values whose bins do not show what they do."""
    bins = _bins(study)
    for name in mask:
        if name not in bins:
            continue
        known = study.memory.hidden_shares
        if name not in known:
            n = study.survey().endogenous
            known[name] = hidden_in_bins(study.counted, study.data(), name, mask, n)
        if known[name] >= HIDDEN:
            yield (
                f"{_many(bins[name])}, and what it does differs within a bin, which neither tests "
                f"nor plans can see. {_advice(bins[name])}"
            )


def _causes_left_out(study: Study, mask: Mask) -> Iterator[str]:
    """Variables that act on others whose tables have no place for them."""
    bins = _bins(study) if study.memory.left_out else {}
    for target in mask:
        causes, parents = (
            tuple(known.get(target, ())) for known in (study.memory.left_out, study.memory.parents)
        )
        rest = [name for name in causes if name not in bins]
        for own in (bins[name] for name in causes if name in bins):
            if study.memory.hidden_shares.get(own.name, 0.0) >= HIDDEN:
                continue  # was said already
            yield f"{_many(own)}, and these do not show how it acts on {target!r}. {_advice(own)}"
        if rest:
            number = len(parents) + len(causes)
            limit, help_ = f"max_parents is {study.max_parents}", f"give max_parents={number}"
            if number <= study.max_parents:
                limit = "its table would be too large for the samples"
                help_ = "give more n_data_rollouts, or variables of fewer values"
            yield (
                f"plans predict {target!r} without {_listed(rest, target)}, known to act on it as "
                f"well: {limit}; {help_}"
            )


def _no_interventions(study: Study) -> Iterator[str]:
    """What a record cannot say."""
    if study.mdp.is_recorded and len(study.mdp.exogenous_names) > 1:
        yield (
            "x was recorded: variables that act only together cannot be looked for by "
            "interventions. What predicts a variable was found by observation, one at a time"
        )


def _rules_left_open(study: Study) -> Iterator[str]:
    """Pairs (n, a) that more variables move than a rule can look at."""
    survey = study.survey()
    left: set[int] = set()
    for pair in survey.undecided:
        seen = {j for rule in survey.lists[pair] for j in rule.variables}
        unseen = [j for j in np.flatnonzero(survey.relevant[pair]).tolist() if j not in seen]
        left |= set(unseen) if len(unseen) > MAX_OPEN else set()
    if left:
        names = [survey.names[j] for j in sorted(left)]
        yield (
            f"where the agent goes depends on {_listed(names)} together; plans look at "
            f"{MAX_OPEN} of them at a time. Variables that act as one should be one variable"
        )


def _advice(own: Bins) -> str:
    if own.size == REAL_SIZE:
        return "Give it as a whole variable, with a value for all that acts alike"
    return "Join values that act alike: up to 256 values are seen one by one"


def _bins(study: Study) -> dict[str, Bins]:
    """The exogenous variables that are seen in bins."""
    return {own.name: own for own in study.data().bins if isinstance(own, Bins)}


def _many(own: Bins) -> str:
    values = "is real" if own.size == REAL_SIZE else f"has {own.size:,} values"
    return f"{own.name!r} {values}, seen in {len(own)} bins"


def _listed(names: list[str], itself: str | None = None) -> str:
    words = ("its own past" if name == itself else repr(name) for name in names[:LISTED])
    shown = ", ".join(words)
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
