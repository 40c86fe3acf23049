"""Which variables actions move: the evidence of trials, and the way that it takes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.audit.results import CONSTANT, DIRECTLY, OUT_OF_SIGHT, THROUGH_OTHERS, Finding
from exo_envs.audit.subject import PlayedStep, Subject
from exo_envs.audit.trials import NUM_DRAWS, Effect, Trials, are_same
from exo_envs.core.mdp import FloatArray
from exo_envs.sources.access.episodes import NUM_SEEDS, sample_action

#: States of trials that are set, at most.
MAX_SET = 300
#: Actions that are tried in each of them, at most.
MAX_ACTIONS = 8
#: Trials in which it is looked for what a variable is moved through.
NUM_TRACED = 12
#: Variables that are put into a state one at a time, at most.
MAX_CAUSES = 24


def find_partition(subject: Subject, trials: Trials, error_probability: float) -> list[Finding]:
    moved = _at_once(subject, trials)
    for column, shown in trials.effects(error_probability).items():
        # What was seen at once need not have been in the trials, which are fewer.
        if column not in moved or (moved[column].share < shown.share and shown.steps == 1):
            moved[column] = shown
    constant, count = trials.constant, len(trials.pairs)
    findings = []
    for i, name in enumerate(subject.names):
        if constant[i]:
            findings.append(Finding(name, False, CONSTANT, num_states=count))
        elif i in moved:
            findings.append(_moved(subject, trials, i, moved[i]))
        else:
            findings.append(Finding(name, False, _unmoved(trials, i), num_states=count))
    return findings


def _at_once(subject: Subject, trials: Trials) -> dict[int, Effect]:
    """Columns that another action changes in the same step, in states of the trials that are set.

    There are more of these than trials, and all actions are tried. Nothing is said if some action
    uses more random numbers than another.
    """
    if not subject.puts or not trials.repeats or not trials.is_even:
        return {}
    rng, space = trials.rng, subject.space
    if isinstance(space, gym.spaces.Discrete) and space.n <= MAX_ACTIONS:
        actions: list[Any] = [space.start + k for k in range(int(space.n))]
    else:
        actions = [sample_action(space, rng) for _ in range(MAX_ACTIONS)]
    places = np.argwhere(trials.known)
    places = places[rng.permutation(len(places))[:MAX_SET]]
    rows = np.unique(trials.rows[tuple(places.T)], axis=0)
    seen = np.zeros(rows.shape, dtype=np.bool_)
    for lane, row in enumerate(rows):
        seed, noise = rng.integers(NUM_SEEDS // 2, size=2).tolist()
        steps = [subject.step(a, noise) for a in actions if subject.try_put(row, seed)]
        taken = [step for step in steps if not step.terminated]
        for step in taken[1:]:
            if step.noise != taken[0].noise:
                return {}
            seen[lane] |= ~are_same(step.row, taken[0].row)
    shares = seen.mean(axis=0)
    what = "another action changes it"
    return {
        int(i): Effect(1, float(shares[i]), 0.0, what) for i in np.flatnonzero(seen.any(axis=0))
    }


def _unmoved(trials: Trials, column: int) -> str:
    count = int(trials.both.any(axis=1).sum())
    # If it were moved in this share of the states, none of them would show it in 5 of 100 cases.
    most = 1.0 - 0.05 ** (1.0 / max(1, count))
    where = f"in {count} states (95 %: it is moved in fewer than {most:.1%} of them)"
    if trials.repeats and not trials.differs[:, :, column].any():
        return f"no action changes it {where}"
    return (
        f"no action changes its distribution {where}, by {NUM_DRAWS} draws each: other actions "
        "use other random numbers, so a small effect may have been missed"
    )


def _moved(subject: Subject, trials: Trials, column: int, shown: Effect) -> Finding:
    name, way = subject.names[column], DIRECTLY
    through: tuple[str, ...] = ()
    if shown.steps > 1:
        way, through = _trace(subject, trials, column)
    how = f"through {', '.join(through)}" if through else ""
    if way == OUT_OF_SIGHT:
        how = "although nothing that is shown differs in between"
    parts = (
        shown.seen,
        f"in {shown.share:.0%} of the states" if shown.share else "",
        "in the same step" if way == DIRECTLY else f"after {shown.steps} steps",
        how,
        f"p = {shown.p_value:.1g}" if shown.p_value > 0 else "",
    )
    reason = ", ".join(filter(None, parts))
    evidence = (shown.steps, shown.share, shown.p_value)
    return Finding(name, True, reason, way, through, *evidence, len(trials.pairs))


def _trace(subject: Subject, trials: Trials, column: int) -> tuple[str, tuple[str, ...]]:
    """How a variable is moved that is not moved directly, and through which others."""
    if not trials.repeats:
        return THROUGH_OTHERS, ()  # nobody knows which
    differs = trials.differs & trials.in_step[:, :, None]
    first = differs[:, :, column].argmax(axis=1)  # the step in which it differs; else 0
    before = {
        (trial, step): np.flatnonzero(differs[trial, step - 1]).tolist()
        for trial, step in enumerate(first.tolist())
        if step
    }
    places = [place for place, causes in before.items() if causes]
    if not places:
        return OUT_OF_SIGHT, ()
    if subject.puts:
        counted = Counter(i for causes in before.values() for i in causes)
        candidates = [i for i, _ in counted.most_common(MAX_CAUSES)]
        found = _causes(subject, trials, places[:NUM_TRACED], column, candidates)
        if found is not None:
            names = tuple(subject.names[i] for i in sorted(found))
            return (THROUGH_OTHERS if names else OUT_OF_SIGHT), names
    return THROUGH_OTHERS, (subject.names[_herald(trials, column)],)


def _herald(trials: Trials, column: int) -> int:
    """The column after which another one differs most reliably: F1 of foretelling that it will."""
    differs, both = trials.differs & trials.in_step[:, :, None], trials.both
    already = np.logical_or.accumulate(differs[:, :, column], axis=1)
    asked = both[:, 1:] & both[:, :-1] & ~already[:, :-1]  # it has not differed so far
    begins = asked & differs[:, 1:, column]
    said = differs[:, :-1] & asked[:, :, None]
    right = (said & begins[:, :, None]).sum(axis=(0, 1))
    score = 2.0 * right / np.maximum(1, said.sum(axis=(0, 1)) + begins.sum())
    score[column] = -1.0
    return int(score.argmax())


def _causes(
    subject: Subject,
    trials: Trials,
    places: list[tuple[int, int]],
    column: int,
    candidates: list[int],
) -> set[int] | None:
    """Variables that change another one if they alone are changed in a state that was set.

    None if nothing can be said; an empty set if not even all of them together do.
    """
    found: set[int] = set()
    together: set[int] = set()
    is_known = False
    for trial, step in places:
        one, two = trials.rows[trial, 0, step], trials.rows[trial, 1, step]
        base = _step_from(subject, trials, trial, step, one)
        other = _step_from(subject, trials, trial, step, two)
        if base is None or other is None:
            continue
        is_known = True
        if are_same(base.row[column], other.row[column]):
            continue
        differing = [i for i in candidates if not are_same(one[i], two[i])]
        together.update(differing)
        for i in differing:
            mixed = one.copy()
            mixed[i] = two[i]
            alone = _step_from(subject, trials, trial, step, mixed)
            if alone is not None and not are_same(base.row[column], alone.row[column]):
                found.add(i)
    return (found or together) if is_known else None


def _step_from(
    subject: Subject, trials: Trials, trial: int, step: int, row: FloatArray
) -> PlayedStep | None:
    """The step of a trial from a state that is set; None if it cannot be, or ends the episode."""
    own = trials.pairs[trial]
    if not subject.try_put(row, own.seed):
        return None
    taken = subject.step(own.action(0, step), own.noise[step])
    return None if taken.terminated else taken
