"""What it is that an environment remembers: actions, time, or something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from exo_envs.audit.meetings import differing, outcomes_of
from exo_envs.audit.partition import step_from
from exo_envs.audit.pasts import SetStates, outcome
from exo_envs.audit.results import HIDDEN, NON_STATIONARY, REMEMBERS
from exo_envs.audit.subject import Subject
from exo_envs.audit.trials import NUM_STEPS, Trials, sample_action
from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.sources.simulators.episodes import NUM_SEEDS

#: Steps after an action in which it is looked for what is remembered of it.
MAX_LAG = 4
#: Episodes in which two pasts are looked for that take equally long and lead to the same state.
NUM_EPISODES = 200
#: Steps of each of them.
EPISODE = 20
#: Pairs of such pasts that are compared, at most; and that have to agree, at least.
MAX_PAIRS, MIN_PAIRS = 80, 5
#: Rounds in which episodes follow different episodes.
NUM_ROUNDS = 6


def remembered_actions(
    subject: Subject, trials: Trials, column: int, apart: SetStates
) -> int | None:
    """After how many steps an action shows in a column, past all variables that show it.

    Two episodes differ in one action. What differs between them later, but not if an episode begins
    in the one or the other of their states, did not come through these states.
    """
    if not trials.repeats or not trials.is_even:
        return None
    for step in range(1, MAX_LAG):
        outcomes = outcomes_of(trials, step)
        later = differing(outcomes[:, 0], outcomes[:, 1])[:, column] & trials.in_step[:, step]
        for trial in np.flatnonzero(later).tolist():
            rows = trials.rows[trial, :, step]
            taken = [step_from(subject, trials, trial, step, row) for row in rows]
            if taken[0] is None or taken[1] is None:
                continue
            one, two = outcome(taken[0]), outcome(taken[1])
            if not apart.apart(one, two)[column]:
                return 1 + step
    return None


def kind_of_hidden(subject: Subject, states: SetStates, column: int) -> tuple[str, str]:
    """The kind of hidden state that a column depends on, and how that shows, for people."""
    if states.depends_on_reset[column]:
        return HIDDEN, "it depends on something that a reset draws and the state does not show"
    same, other = _compare_pasts(subject, states, column)
    if other.disagreeing and not same.disagreeing and same.informative >= MIN_PAIRS:
        return REMEMBERS, (
            f"it depends on the action before: of pasts that took equally long and led to the same "
            f"state, {other.disagreeing} pairs with different last actions disagree, and none of "
            f"{same.compared} with the same"
        )
    if same.disagreeing or other.disagreeing:
        return HIDDEN, (
            f"{same.disagreeing + other.disagreeing} pairs of pasts that took equally long and led "
            "to the same state disagree"
        )
    informative = same.informative + other.informative
    if informative >= MIN_PAIRS:
        return NON_STATIONARY, (
            f"it changes with the number of steps: {informative} pairs of different pasts that "
            "took equally long agree"
        )
    return HIDDEN, "it depends on the past in a way that no variable shows, or on time"


class _Visit(NamedTuple):
    """A state in an episode, and how it was reached."""

    seed: int
    actions: list[Any]
    noise: list[int]


@dataclass
class _Tally:
    """Pairs of pasts that took equally long and led to the same state, with their futures."""

    compared: int = 0
    disagreeing: int = 0
    informative: int = 0  # those whose future is not that of the same state when it is set


def _compare_pasts(subject: Subject, states: SetStates, column: int) -> tuple[_Tally, _Tally]:
    """Pairs of pasts whose last actions are the same, and those whose last actions differ."""
    rng, tallies = states.rng, (_Tally(), _Tally())
    for one, two, row in _pairs(subject, rng):
        tally = tallies[not data_equivalence(one.actions[-1], two.actions[-1])]
        if tally.compared >= MAX_PAIRS:
            continue
        action, noise = sample_action(subject.space, rng), int(rng.integers(NUM_SEEDS // 2))
        first, second = (_after(subject, visit, action, noise) for visit in (one, two))
        if not subject.try_put(row, int(rng.integers(NUM_SEEDS))):
            continue
        at_once = outcome(subject.step(action, noise))
        tally.compared += 1
        tally.disagreeing += bool(states.apart(first, second)[column])
        tally.informative += bool(states.apart(first, at_once)[column])
    return tallies


def _pairs(subject: Subject, rng: np.random.Generator) -> list[tuple[_Visit, _Visit, FloatArray]]:
    """Different pasts that take equally long and lead to what looks like the same state."""
    first: dict[tuple[int, bytes], _Visit] = {}
    found = []
    space = subject.space
    for _ in range(NUM_EPISODES):
        seed, actions, noise = int(rng.integers(NUM_SEEDS)), [], []
        subject.reset(seed)
        for step in range(EPISODE):
            actions.append(sample_action(space, rng))
            noise.append(int(rng.integers(NUM_SEEDS // 2)))
            taken = subject.step(actions[-1], noise[-1])
            if taken.is_last:
                break
            visit = _Visit(seed, list(actions), list(noise))
            other = first.setdefault((step, taken.row.tobytes()), visit)
            if other is not visit:
                found.append((other, visit, taken.row))
    order = rng.permutation(len(found))[: 4 * MAX_PAIRS].tolist()
    return [found[i] for i in order]


def _after(subject: Subject, visit: _Visit, action: Any, noise: int) -> FloatArray:
    """What a step leads to in the state of a visit."""
    subject.reset(visit.seed)
    for own, seed in zip(visit.actions, visit.noise, strict=True):
        subject.step(own, seed)
    return outcome(subject.step(action, noise))


# --- from one episode to the next ---------------------------------------------------------------


def kind_of_carried(subject: Subject, rng: np.random.Generator) -> dict[int, tuple[str, str]]:
    """Columns that depend on earlier episodes, what kind of problem that is, and why, for people.

    Every episode is played by a new copy, which plays another one before. Two of these differ in
    one thing: actions, random numbers, or length.
    """
    kinds = {
        "actions": (REMEMBERS, "it depends on the actions of the episode before"),
        "noise": (HIDDEN, "it depends on what happened in the episode before"),
        "length": (NON_STATIONARY, "it depends on how many steps the episodes before had"),
    }
    seen: dict[str, BoolArray] = {}
    space = subject.space
    for _ in range(NUM_ROUNDS):
        seeds = rng.integers(NUM_SEEDS // 2, size=(3, NUM_STEPS)).tolist()
        first, second, after = (
            [sample_action(space, rng) for _ in range(NUM_STEPS)] for _ in range(3)
        )
        base = [(first, seeds[0])]
        pasts = {
            "actions": [(second, seeds[0])],
            "noise": [(first, seeds[1])],
            "length": base * int(rng.integers(2, 8)),
        }
        expected = _next_episode(subject, base, after, seeds[2])
        for cause, past in pasts.items():
            found = _next_episode(subject, past, after, seeds[2])
            apart = differing(expected, found)
            # What differs later may only follow from it.
            apart = apart[int(apart.any(axis=1).argmax())]
            seen[cause] = seen.get(cause, apart) | apart
    return {
        int(column): kinds[cause]
        for cause in reversed(kinds)
        for column in np.flatnonzero(seen[cause])
    }


def _next_episode(
    subject: Subject,
    before: list[tuple[list[Any], list[int]]],
    actions: list[Any],
    noise: list[int],
) -> FloatArray:
    """What an episode shows after others, shape (NUM_STEPS, columns + 2)."""
    outcomes = np.full((NUM_STEPS, len(subject.names) + 2), np.nan)
    subject.reset(noise[0])  # of a new copy
    for own, seeds in [*before, (actions, noise)]:
        subject.reset(seeds[0], renew=False)
        for step, (action, seed) in enumerate(zip(own, seeds, strict=True)):
            taken = subject.step(action, seed)
            if own is actions:
                outcomes[step] = outcome(taken)
            if taken.is_last:
                break
    return outcomes
