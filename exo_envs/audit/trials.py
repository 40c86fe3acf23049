"""Pairs of episodes that are alike up to some step, and then take different actions once.

What differs afterwards, in that step or in one of the next, was moved by the action. Under the same
random numbers that shows at once, unless an action changes how many of them are used: then numbers
differ that have nothing to do with the action. So where that may have happened, the same two
episodes go on under many different random numbers, and distributions are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from numpy.typing import NDArray

from exo_envs.audit.subject import FreshCopies, Subject
from exo_envs.core.errors import UNCOPIABLE
from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.core.statistics import fair_coins_log_tail
from exo_envs.sources.access.episodes import NUM_SEEDS, sample_action
from exo_envs.sources.access.state_access import REFUSALS

#: Steps in which a difference is looked for, that of the action included.
NUM_STEPS = 12
#: Steps before the two actions, at most.
MAX_BEFORE = 20
#: Random continuations of each episode, where distributions are compared, and how many of them say
#: in which direction to look.
NUM_DRAWS, FEW_DRAWS = 24, 6
#: Trials in which distributions are compared, at most.
MAX_LANES = 20
#: Trials that are played again, to see whether they are the same.
NUM_AGAIN = 30


class EpisodePair(NamedTuple):
    """A beginning that two episodes share, and how they go on."""

    seed: int
    before: list[Any]
    actions: tuple[Any, Any]
    after: list[Any]  # NUM_STEPS - 1 actions
    noise: list[int]  # NUM_STEPS seeds of random numbers, from the action on

    @classmethod
    def draw(cls, space: gym.Space[Any], rng: np.random.Generator) -> EpisodePair:
        before = _sample_actions(space, int(rng.integers(MAX_BEFORE + 1)), rng)
        after = _sample_actions(space, NUM_STEPS - 1, rng)
        seed = int(rng.integers(NUM_SEEDS))
        one = other = sample_action(space, rng)
        for _ in range(100):  # there may be only one action
            if not data_equivalence(one, other, exact=True):
                break
            other = sample_action(space, rng)
        return cls(seed, before, (one, other), after, _draw_noise(rng))

    def action(self, arm: int, step: int) -> Any:
        """What one of the two episodes does, the step of the action being 0."""
        return self.actions[arm] if step == 0 else self.after[step - 1]


class Run(NamedTuple):
    """One episode, from the state in which the action is taken."""

    rows: FloatArray  # (1 + NUM_STEPS, columns)
    rewards: FloatArray  # (NUM_STEPS,)
    ended: BoolArray  # (NUM_STEPS,) whether the step ended the episode, not by running out of time
    taken: BoolArray  # (NUM_STEPS,) whether the step was taken
    noise: list[str]  # what the next random numbers were after each step that was taken

    @property
    def counts(self) -> BoolArray:
        """Which steps led to a state: what is shown after the end does not matter."""
        return self.taken & ~self.ended


def play_episode(
    subject: Subject,
    rng: np.random.Generator,
    pair: EpisodePair,
    arm: int,
    noise: Sequence[int] | None = None,
    start: FloatArray | None = None,
) -> Run:
    """One episode; from the action on, its random numbers follow from ``noise``.

    With ``start``, that state is set, and the steps before are left out.
    """
    row = start
    if row is None or not subject.try_put(row, int(rng.integers(NUM_SEEDS))):
        row = _begin(subject, pair)
    rows = np.zeros((1 + NUM_STEPS, len(row)))
    rows[0] = row
    rewards, flags = np.zeros(NUM_STEPS), np.zeros((2, NUM_STEPS), dtype=np.bool_)
    states: list[str] = []
    for step, seed in enumerate(pair.noise if noise is None else noise):
        taken = subject.step(pair.action(arm, step), seed)
        rows[step + 1], rewards[step] = taken.row, taken.reward
        flags[:, step] = taken.terminated, True
        states.append(taken.noise)
        if taken.is_last:
            break
    return Run(rows, rewards, flags[0], flags[1], states)


def _begin(subject: Subject, pair: EpisodePair) -> FloatArray:
    """Play what both episodes share; the state in which the action is taken."""
    row = subject.reset(pair.seed)
    for action in pair.before:
        taken = subject.step(action)
        if taken.is_last:  # begin where it began
            return subject.reset(pair.seed)
        row = taken.row
    return row


class Effect(NamedTuple):
    """What shows that an action moves a column."""

    steps: int  # how many it took at least, 1 being that of the action
    share: float  # of the trials in which it differed
    p_value: float
    seen: str  # for people


class Trials:
    """Pairs of episodes, played.

    Attributes:
        pairs: what is played.
        rows: shape (N, 2, 1 + NUM_STEPS, columns).
        both: which steps led to a state in both episodes, shape (N, NUM_STEPS).
        differs: which columns differ, shape (N, NUM_STEPS, columns).
        in_step: whether both episodes used the same random numbers in a step and all before, shape
            (N, NUM_STEPS).
        is_even: whether that was so in all steps. If not, it may be so by chance: Poisson and
            normal numbers use as many random numbers as they like.
        restless: the outcomes of steps in which it shows first that an episode that is played again
            is not the same, shape (columns + 2,): the numbers of a state, the reward, and the end.
        is_carried: whether it is the same if every episode is played by a new copy: something is
            carried over from one episode to the next.
    """

    def __init__(
        self, subject: Subject, rng: np.random.Generator, pairs: list[EpisodePair]
    ) -> None:
        self.subject, self.rng, self.pairs = subject, rng, pairs
        runs = [[play_episode(subject, rng, pair, arm) for arm in (0, 1)] for pair in pairs]
        again = [play_episode(subject, rng, pair, 0) for pair in pairs[:NUM_AGAIN]]
        first = zip((pair[0] for pair in runs[:NUM_AGAIN]), again, strict=True)
        self.restless = np.asarray(np.any([_first_apart(*both) for both in first], axis=0))
        self.is_carried = False
        self.rows = np.array([[run.rows for run in pair] for pair in runs])
        taken = np.array([[run.taken for run in pair] for pair in runs])
        self._counts = np.array([[run.counts for run in pair] for pair in runs])
        self._ends_count = not self._counts.all(axis=1).any()  # one of two actions always ends it
        if self._ends_count:
            self._counts = taken
        self.both = np.asarray(self._counts.all(axis=1))
        apart = ~are_same(self.rows[:, 0, 1:], self.rows[:, 1, 1:])
        self.differs = apart & self.both[:, :, None]
        alike = np.array([_used_alike(*pair) for pair in runs])
        self.in_step = np.logical_and.accumulate(alike, axis=1)
        self.is_even = bool(alike[taken.all(axis=1)].all())

    @classmethod
    def play(cls, subject: Subject, rng: np.random.Generator, count: int) -> Trials:
        """So many pairs of episodes; by new copies each, if only then they are the same again."""
        pairs = [EpisodePair.draw(subject.space, rng) for _ in range(count)]
        trials, own = cls(subject, rng, pairs), subject.env
        if trials.repeats:
            return trials
        try:
            subject.env = FreshCopies(own)
        except (*REFUSALS, *UNCOPIABLE):
            return trials
        by_copies = cls(subject, rng, pairs)
        if by_copies.repeats:
            by_copies.is_carried, by_copies.restless = True, trials.restless
            return by_copies
        subject.env = own
        return trials

    @property
    def repeats(self) -> bool:
        """Whether an episode that is played again is the same again."""
        return self.is_carried or not self.restless.any()

    @property
    def known(self) -> BoolArray:
        """Which of ``rows`` are states, shape (N, 2, 1 + NUM_STEPS)."""
        return np.concatenate([np.ones_like(self._counts[:, :, :1]), self._counts], axis=2)

    @property
    def constant(self) -> BoolArray:
        """Columns that had one value all the time, shape (columns,)."""
        rows = self.rows[self.known]
        return np.asarray((rows == rows[:1]).all(axis=0))

    def effects(self, error_probability: float) -> dict[int, Effect]:
        """Columns that actions move.

        One that they do not move is among them with at most ``error_probability`` in all.
        """
        found = {}
        maybe = ~self.constant
        if self.repeats:
            certain = self.differs & self.in_step[:, :, None] & self.is_even
            for i in np.flatnonzero(certain.any(axis=(0, 1))).tolist():
                first = int(np.flatnonzero(certain[:, :, i].any(axis=0))[0])
                share = float(certain[:, :, i].any(axis=1).mean())
                found[i] = Effect(first + 1, share, 0.0, "another action changes it")
            maybe &= self.differs.any(axis=(0, 1))
        maybe[list(found)] = False
        if maybe.any():
            found |= self._compare(np.flatnonzero(maybe), error_probability)
        return found

    def _compare(self, columns: NDArray[np.intp], error_probability: float) -> dict[int, Effect]:
        """Columns whose distribution another action changes, and how that showed."""
        where = np.asarray(self.differs.any(axis=1) | (not self.repeats))  # (trials, columns)
        lanes = self._lanes(columns, where)
        draws, counts = self._draws(lanes, columns)
        found, tests = {}, 2 * len(columns) * NUM_STEPS
        for j, column in enumerate(columns.tolist()):
            own = where[lanes, column]
            for step in range(NUM_STEPS):
                whole = own & counts[:, :, :, step].all(axis=(1, 2))
                p_value = tests * _p_value(*draws[whole][:, :, :, step, j].swapaxes(0, 1))
                if p_value <= error_probability:
                    seen = "another action changes its distribution"
                    found[column] = Effect(step + 1, 0.0, p_value, seen)
                    break
        return found

    def _lanes(self, columns: NDArray[np.intp], where: BoolArray) -> NDArray[np.intp]:
        """Trials in which distributions are compared: those in which most was seen come first."""
        certain = np.any(self.differs & self.in_step[:, :, None], axis=1)[:, columns]
        seen = where[:, columns].sum(axis=1) + len(columns) * certain.sum(axis=1)
        order = self.rng.permutation(len(seen))
        order = order[np.argsort(-seen[order], kind="stable")]
        return np.sort(order[seen[order] > 0][:MAX_LANES])

    def _draws(
        self, lanes: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> tuple[FloatArray, BoolArray]:
        """Continuations of some trials, and which steps of them count.

        They are played in any order: something may change in the meantime.
        """
        shape = (len(lanes), 2, NUM_DRAWS, NUM_STEPS)
        rows, counts = np.zeros((*shape, len(columns))), np.zeros(shape, dtype=np.bool_)
        jobs = list(np.ndindex(*shape[:3]))
        is_set = self.subject.puts and not self.repeats  # else it would begin anywhere
        for k in self.rng.permutation(len(jobs)).tolist():
            i, arm, draw = jobs[k]
            start = self.rows[lanes[i], 0, 0] if is_set else None
            noise, pair = _draw_noise(self.rng), self.pairs[lanes[i]]
            run = play_episode(self.subject, self.rng, pair, arm, noise, start)
            rows[i, arm, draw] = run.rows[1:, columns]
            counts[i, arm, draw] = run.taken if self._ends_count else run.counts
        return rows, counts


def _p_value(one: FloatArray, two: FloatArray) -> float:
    """The p-value of two samples (N, NUM_DRAWS) of one distribution in each of N states.

    Some draws say which of the two is larger, or which values are more frequent in the first. In
    the others, each pair that differs in that is a fair coin if the distributions are equal.
    """
    few, rest = slice(FEW_DRAWS), slice(FEW_DRAWS, None)
    direction = np.sign(one[:, few].mean(axis=1) - two[:, few].mean(axis=1))[:, None]
    by_size = [direction * values[:, rest] for values in (one, two)]
    by_value = [
        np.sign(
            (values[:, rest, None] == one[:, None, few]).sum(axis=2)
            - (values[:, rest, None] == two[:, None, few]).sum(axis=2)
        )
        for values in (one, two)
    ]
    tails = [
        fair_coins_log_tail(int((a > b).sum()), int((a != b).sum())) for a, b in (by_size, by_value)
    ]
    return math.exp(min(tails))


def are_same(one: Any, two: Any) -> BoolArray:
    """Which numbers are equal, but for rounding."""
    return np.asarray(np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True))


def _sample_actions(space: gym.Space[Any], count: int, rng: np.random.Generator) -> list[Any]:
    """Some actions. Half of the time they are alike: random walks hardly leave where they began."""
    if count and rng.random() < 0.5:
        return [sample_action(space, rng)] * count
    return [sample_action(space, rng) for _ in range(count)]


def _draw_noise(rng: np.random.Generator) -> list[int]:
    """Seeds of the random numbers of each step."""
    return rng.integers(NUM_SEEDS // 2, size=NUM_STEPS).tolist()


def _first_apart(one: Run, two: Run) -> BoolArray:
    """What differs first between two episodes, shape (columns + 2,)."""
    known = np.append(True, one.counts & two.counts)
    both = np.append(True, one.taken & two.taken)
    flags = [
        np.column_stack([np.append(0.0, run.rewards), np.append(False, run.ended)])
        for run in (one, two)
    ]
    rows = ~are_same(one.rows, two.rows) & known[:, None]
    apart = np.concatenate([rows, ~are_same(*flags) & both[:, None]], axis=1)
    return np.asarray(apart[int(apart.any(axis=1).argmax())])


def _used_alike(one: Run, two: Run) -> BoolArray:
    """Of each step, whether both episodes used equally many random numbers in it."""
    alike = [first == second for first, second in zip(one.noise, two.noise, strict=False)]
    return np.array(alike + [False] * (NUM_STEPS - len(alike)))
