"""What the data cannot decide, in words that say what would help."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from exo_envs.core.mdp import REAL_SIZE
from exo_envs.core.statistics import needed_samples
from planners.core.memory import Shelf
from planners.core.policy import Mask
from planners.dependence.interventions import hidden_in_bins
from planners.dependence.parents import ParentSearch
from planners.discretization.bins import Bins
from planners.findings import ACTORS, CLEAR_SHARE, LEFT_OUT, PARENTS
from planners.reduced.marginals import MAX_OPEN
from planners.samples.rollouts import HOLD_OUT
from planners.worth import Objective
from wrappers.fitting.study import Study
from wrappers.reports.tables import rounded_up

#: Nats that a variable tells if it moves a probability from 50 to 70 %.
NOTABLE_NATS = 0.0823
#: A share of what a variable does that happens within its bins: from here on bins do not show it.
HIDDEN_SHARE = 0.25
#: Samples with an unusual value from which on nobody can say that it was hardly seen.
ENOUGH_SAMPLES = 20
#: An event that never happened may be expected so often (the bound of a 97.5 % level).
EXPECTED_UNSEEN = 3.7
#: Tables that are looked at for the one that finds a variable with the fewest transitions.
SMALLEST_TABLES = 8
#: Names that are listed at most.
MOST_NAMES = 12

#: variable of very many values -> the share of what it does that happens within its bins.
HIDDEN_SHARES = Shelf[str, float]("hidden_shares")


class UndecidedWarning(UserWarning):
    """The data, or the tables made of it, cannot decide something that matters to a mask."""


def doubts_about(study: Study, mask: Mask, objective: Objective | None = None) -> Iterator[str]:
    """What the samples of a study leave open about a mask, one sentence or two for each."""
    if study.memory.data is not None:
        yield from _few_samples(study)
        yield from _values_in_bins(study, mask)
        yield from _said_twice(study, mask)
    yield from _causes_left_out(study, mask)
    if study.mdp.is_recorded and len(study.mdp.exogenous_names) > 1:
        yield (
            "x was recorded: variables that act only together cannot be looked for by "
            "interventions. What predicts a variable was found by observation, one at a time"
        )
    if study.memory.survey is not None:
        yield from _n_was_sampled(study)
        yield from _rules_left_open(study)
    if objective is not None and objective.caution is not None:
        yield objective.caution


def _few_samples(study: Study) -> Iterator[str]:
    data = study.data()
    number, counted = len(data.names), len(data.fitted) * data.num_steps
    needed = needed_samples(NOTABLE_NATS, 1, max(1, number) ** 2, study.level)
    if number < 2 or counted >= needed:
        return
    more = int(np.ceil(needed / counted * data.num_rollouts))
    whose, would_do = f"n_data_rollouts={data.num_rollouts} gives", ""
    help_ = f"give n_data_rollouts={more} or more"
    if study.mdp.is_recorded:
        whose, would_do = "the record has", f"; {needed:,} would do"
        help_ = "give a longer record, or fewer columns"
    yield (
        f"{whose} {counted:,} transitions to count, too few for tests of {number} variables: one "
        f"that moves a probability from 50 to 70 % is mostly overlooked{would_do}; {help_}"
    )


def cannot_tell(study: Study, found: Collection[str]) -> Iterator[str]:
    """Variables, beside those found to matter, that tests would overlook though they may tell."""
    if any(_few_samples(study)):
        return  # that is about all of them
    counted = len(study.data().fitted) * study.data().num_steps
    waiting = [name for name in study.data().names if name not in found]
    if waiting and (needed := _needed(study, waiting)):
        yield (
            f"whether {_listed(list(needed))} tell{'s' if len(needed) == 1 else ''} anything about "
            f"the mask cannot be told with this data, {counted:,} transitions: what moves a "
            f"probability from 50 to 70 % would be overlooked. {_more(study, max(needed.values()))}"
        )
    yield from _acting_unseen(study, found)


def _needed(study: Study, names: Sequence[str]) -> dict[str, int]:
    """What is not found even in the smallest tables, and the transitions that it would take."""
    data, tests = study.data(), len(study.data().names) ** 2
    counts = ParentSearch(data, max_parents=study.max_parents, memory=study.memory).all
    place = {name: j for j, name in enumerate(data.names)}
    tables = []  # rows times what a row decides between, the target, and what predicts it
    for target, known in study.memory.entries(PARENTS).items():
        given = [place[name] for name in known]
        if not counts.is_certain(place[target], given):
            values = max(1, int(data.sizes[place[target]]) - 1)
            tables.append((counts.num_rows(given) * values, place[target], given))
    tables = sorted(tables, key=lambda table: table[:2])[:SMALLEST_TABLES]
    if not tables:
        return {}

    def needed(freedom: float) -> int:
        return needed_samples(NOTABLE_NATS, freedom, tests, study.level)

    freedom = {name: max(1, int(data.sizes[place[name]]) - 1) * tables[0][0] for name in names}
    large = {name: more for name, own in freedom.items() if (more := needed(own)) > counts.count}
    if not large:
        return {}
    # Fewer values occur than there may be, so fewer transitions may do.
    columns = np.array([place[name] for name in large])
    occurs = np.stack([counts.screen(i, given, columns)[1] for _, i, given in tables])
    least = np.where(occurs > 0, occurs, np.inf).min(axis=0).tolist()
    return {
        name: more
        for (name, more), own in zip(large.items(), least, strict=True)
        if np.isfinite(own) and needed(own) > counts.count
    }


def _acting_unseen(study: Study, found: Collection[str]) -> Iterator[str]:
    """Variables that act on what matters if they are changed, and that hardly ever change."""
    data = study.data()
    for target, known in study.memory.entries(ACTORS).items():
        for j, strength in known.items():
            name = data.names[j]
            if strength < CLEAR_SHARE or name in found or target not in found:
                continue
            values = data.values[data.fitted, :-1, j]
            seen = values.size - int(np.bincount(values.reshape(-1)).max())
            if seen < ENOUGH_SAMPLES:
                needed = values.size * ENOUGH_SAMPLES / max(seen, EXPECTED_UNSEEN)
                yield (
                    f"{name!r} acts on {target!r} if it is changed, and had another value than its "
                    f"usual one in {seen} of {values.size:,} transitions: whether that ever "
                    f"matters cannot be told with this data. {_more(study, math.ceil(needed))}"
                )


def _more(study: Study, transitions: int) -> str:
    """How many transitions would do, in two digits, and how to get as many."""
    help_, most = "give a longer record", rounded_up(transitions)
    if not study.mdp.is_recorded:
        counted = -(-most // study.data().num_steps)  # rollouts that are not held out
        help_ = f"give n_data_rollouts={rounded_up(counted + -(-counted // (HOLD_OUT - 1)))}"
    return f"About {most:,} transitions would do: {help_}"


def _said_twice(study: Study, mask: Mask) -> Iterator[str]:
    told: set[str] = set()
    for name in mask:
        same = [other for other in study.same_as(name) if other not in told]
        told.update((name, *same))
        if not same:
            continue
        states = study.data().values[:, :, 0].size
        verb = "says" if len(same) == 1 else "say"
        also = [other for other in same if other in mask]
        rest = f"The mask has {name!r} and needs no other"
        if also:
            rest = f"The mask has {_listed([name, *also])}, of which one would do"
        yield (
            f"{_listed(same)} {verb} the same as {name!r}: in all {states:,} states each value of "
            f"one came with one value of the other. {rest}"
        )


def _values_in_bins(study: Study, mask: Mask) -> Iterator[str]:
    """Variables of very many values whose bins do not show what they do."""
    bins = _bins(study)
    for name in mask:
        if name not in bins:
            continue
        if (share := study.memory.find(HIDDEN_SHARES, name)) is None:
            n = study.survey().endogenous
            share = hidden_in_bins(study.counted, study.data(), name, mask, n)
            study.memory.keep(HIDDEN_SHARES, name, share)
        if share >= HIDDEN_SHARE:
            differs = "what it does differs within a bin, which neither tests nor plans can see"
            yield _in_bins(bins[name], differs)


def _causes_left_out(study: Study, mask: Mask) -> Iterator[str]:
    """Variables that act on others whose tables have no place for them."""
    kept = [study.memory.entries(shelf) for shelf in (LEFT_OUT, PARENTS)]
    shares = study.memory.entries(HIDDEN_SHARES)
    bins = _bins(study) if kept[0] else {}
    for target in mask:
        causes, parents = (tuple(known.get(target, ())) for known in kept)
        rest = [name for name in causes if name not in bins]
        for name in causes:
            if name in bins and shares.get(name, 0.0) < HIDDEN_SHARE:  # else it was said already
                yield _in_bins(bins[name], f"these do not show how it acts on {target!r}")
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


def _n_was_sampled(study: Study) -> Iterator[str]:
    survey, sizes = study.survey(), study.coarse.endogenous_sizes
    if survey.is_complete:
        return
    digits = np.log10(sizes).sum()
    everything = f"{sizes.prod():,}" if digits < 9 else f"about 10^{digits:.0f}"
    yield (
        f"n was sampled: {len(survey.endogenous):,} of its {everything} values were asked about, "
        f"with {study.mdp.num_actions:,} actions each. A variable that pays or moves n only "
        "elsewhere may be missing from the mask, and nothing bounds what the plan loses"
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


def _bins(study: Study) -> dict[str, Bins]:
    return {own.name: own for own in study.data().bins if isinstance(own, Bins)}


def _in_bins(own: Bins, problem: str) -> str:
    """What bins of a variable hide, and how to avoid them."""
    values, help_ = "is real", "Give it as a whole variable, with a value for all that acts alike"
    if own.size != REAL_SIZE:
        values = f"has {own.size:,} values"
        help_ = "Join values that act alike: up to 256 values are seen one by one"
    return f"{own.name!r} {values}, seen in {len(own)} bins, and {problem}. {help_}"


def _listed(names: Sequence[str], itself: str | None = None) -> str:
    shown = ", ".join("its own past" if n == itself else repr(n) for n in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
