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

from exo_envs.audit.subject import Subject
from exo_envs.audit.uneven import confirm_moved
from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.sources.simulators.episodes import NUM_SEEDS
from exo_envs.sources.simulators.exchange import shift_evidence

#: Steps in which a difference is looked for, that of the action included.
NUM_STEPS = 12
#: Steps before the two actions, at most.
MAX_BEFORE = 20
#: Random continuations of each episode, where distributions are compared.
NUM_DRAWS = 12
#: Trials in which distributions are compared, at most.
MAX_LANES = 40
#: Trials that are played again, to see whether they are the same.
NUM_AGAIN = 30


class Trial(NamedTuple):
    """A beginning that two episodes share, and how they go on."""

    seed: int
    before: list[Any]
    actions: tuple[Any, Any]
    after: list[Any]  # NUM_STEPS - 1 actions
    noise: list[int]  # NUM_STEPS seeds of random numbers, from the action on

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


class Evidence(NamedTuple):
    """What shows that an action moves a column."""

    steps: int  # how many it took at least, 1 being that of the action
    share: float  # of the trials in which it differed
    p_value: float
    seen: str  # for people


class Trials:
    """Pairs of episodes, played.

    Attributes:
        trials: the pairs.
        rows: shape (N, 2, 1 + NUM_STEPS, columns).
        counts: which of these, but for the first, are states, shape (N, 2, NUM_STEPS).
        both: which are in both episodes, shape (N, NUM_STEPS).
        differs: which columns differ, shape (N, NUM_STEPS, columns).
        alike: whether both episodes used the same random numbers in a step, shape (N, NUM_STEPS).
        in_step: the same for a step and all before.
        is_even: whether that was so in all steps. If not, it may be so by chance: Poisson and
            normal numbers use as many random numbers as they like.
        repeats: whether an episode that is played again is the same again.
        is_carried: whether it is so only if every episode is played by a new copy: something is
            carried over from one episode to the next.
        restless: the outcomes of steps in which that shows first, shape (columns + 2,): the numbers
            of a state, the reward, and the end.
    """

    def __init__(self, subject: Subject, rng: np.random.Generator, count: int) -> None:
        self.subject, self.rng = subject, rng
        self.trials = [self._draw() for _ in range(count)]
        self.is_carried = False
        self.restless = self._play()
        self.repeats = not self.restless.any()
        if not self.repeats and subject.play_copies():
            self.repeats = self.is_carried = not self._play().any()
            if not self.repeats:
                subject.play_one()

    def _draw(self) -> Trial:
        space, rng = self.subject.space, self.rng
        before = sample_actions(space, int(rng.integers(MAX_BEFORE + 1)), rng)
        after = sample_actions(space, NUM_STEPS - 1, rng)
        seed, pair = int(rng.integers(NUM_SEEDS)), _two_different(space, rng)
        return Trial(seed, before, pair, after, self._seeds())

    def _seeds(self) -> list[int]:
        return self.rng.integers(NUM_SEEDS // 2, size=NUM_STEPS).tolist()

    def _play(self) -> BoolArray:
        """Play all pairs, and some again; the outcomes that differ then, shape (columns + 2,)."""
        runs = [[self.run(trial, arm) for arm in (0, 1)] for trial in self.trials]
        again = [self.run(trial, 0) for trial in self.trials[:NUM_AGAIN]]
        pairs = list(zip((pair[0] for pair in runs[:NUM_AGAIN]), again, strict=True))
        self.rows = np.array([[run.rows for run in pair] for pair in runs])
        self.rewards = np.array([[run.rewards for run in pair] for pair in runs])
        self.ended = np.array([[run.ended for run in pair] for pair in runs])
        self.taken = np.array([[run.taken for run in pair] for pair in runs])
        self.counts = self.taken & ~self.ended
        self._ends_count = not self.counts.all(axis=1).any()  # one of two actions always ends it
        if self._ends_count:
            self.counts = self.taken
        self.both = self.counts.all(axis=1)
        same = are_same(self.rows[:, 0, 1:], self.rows[:, 1, 1:])
        self.differs = ~same & self.both[:, :, None]
        self.alike = np.array([_used_alike(*pair) for pair in runs])
        self.in_step = np.logical_and.accumulate(self.alike, axis=1)
        self.is_even = bool(self.alike[self.taken.all(axis=1)].all())
        return np.asarray(np.any([_first_apart(*pair) for pair in pairs], axis=0))

    def run(
        self,
        trial: Trial,
        arm: int,
        noise: Sequence[int] | None = None,
        start: FloatArray | None = None,
    ) -> Run:
        """One episode; from the action on, its random numbers follow from ``noise``.

        With ``start``, that state is set, and the steps before are left out.
        """
        if start is None:
            row = self.begin(trial)
        else:
            row = start
            if not self.subject.try_put(start, int(self.rng.integers(NUM_SEEDS))):
                row = self.begin(trial)
        rows = np.zeros((1 + NUM_STEPS, len(row)))
        rows[0] = row
        rewards, flags = np.zeros(NUM_STEPS), np.zeros((2, NUM_STEPS), dtype=np.bool_)
        states: list[str] = []
        for step, seed in enumerate(trial.noise if noise is None else noise):
            taken = self.subject.step(trial.action(arm, step), seed)
            rows[step + 1], rewards[step] = taken.row, taken.reward
            flags[:, step] = taken.terminated, True
            states.append(self.subject.noise())
            if taken.is_last:
                break
        return Run(rows, rewards, flags[0], flags[1], states)

    def counted(self, run: Run) -> BoolArray:
        """Which steps of an episode led to a state that is compared, shape (NUM_STEPS,)."""
        return run.taken if self._ends_count else run.counts

    def begin(self, trial: Trial) -> FloatArray:
        """Play what both episodes share; the state in which the action is taken."""
        row = self.subject.reset(trial.seed)
        for action in trial.before:
            taken = self.subject.step(action)
            if taken.is_last:  # begin where it began
                return self.subject.reset(trial.seed)
            row = taken.row
        return row

    @property
    def constant(self) -> BoolArray:
        """Columns that had one value all the time, shape (columns,)."""
        known = np.concatenate([np.ones_like(self.counts[:, :, :1]), self.counts], axis=2)
        rows = self.rows[known]
        return np.asarray((rows == rows[:1]).all(axis=0))

    def evidence(self, error_probability: float) -> dict[int, Evidence]:
        """Columns that actions move.

        One that they do not move is among them with at most ``error_probability`` in all.
        """
        found = {}
        certain = self.differs & self.in_step[:, :, None]
        surely = certain.any(axis=(0, 1)) & (self.repeats and self.is_even)
        steps = {
            int(i): (1 + int(np.flatnonzero(certain[:, :, i].any(axis=0))[0]), 0.0)
            for i in np.flatnonzero(surely)
        }
        if self.repeats and not self.is_even:
            confirmed = confirm_moved(self, error_probability / 2)
            steps = {i: (c.steps, c.p_value) for i, c in confirmed.items()}
        for i, (first, p_value) in steps.items():
            share = float(certain[:, :, i].any(axis=1).mean())
            found[i] = Evidence(first, share, p_value, "another action changes it")
        maybe = ~self.constant & (self.differs.any(axis=(0, 1)) | (not self.repeats))
        maybe[list(found)] = False
        if maybe.any():
            found |= self._compare(np.flatnonzero(maybe), error_probability / 2)
        return found

    def _compare(self, columns: NDArray[np.intp], error_probability: float) -> dict[int, Evidence]:
        """Columns whose distribution another action changes, and how that showed."""
        where = self.differs.any(axis=1) | (not self.repeats)  # (trials, columns)
        lanes = self._lanes(columns, where)
        draws, counts = self._draws(lanes, columns)
        found, tests = {}, 2 * len(columns) * NUM_STEPS
        limit = math.log(tests / error_probability)
        for j, column in enumerate(columns.tolist()):
            own = where[lanes, column]
            for step in range(NUM_STEPS):
                whole = own & counts[:, :, :, step].all(axis=(1, 2))
                one, two = draws[whole, 0, :, step, j], draws[whole, 1, :, step, j]
                if not len(one):
                    continue
                won = self._won(one, two)
                if won > limit:
                    p_value = min(1.0, tests * math.exp(-won))
                    seen = "another action changes its distribution"
                    found[column] = Evidence(step + 1, 0.0, p_value, seen)
                    break
                certain = (np.ptp(one, axis=1) == 0) & (np.ptp(two, axis=1) == 0)
                apart = lanes[whole][certain & (one[:, 0] != two[:, 0])]
                if len(apart) and self._is_certain(apart[0], column, step):
                    share = len(apart) / len(self.trials)
                    seen = "another action changes it, whatever the random numbers"
                    chance = 2.0 * 0.25 ** (2 * NUM_DRAWS) * tests * len(self.trials)
                    found[column] = Evidence(step + 1, share, chance, seen)
                    break
        return found

    def _lanes(self, columns: NDArray[np.intp], where: BoolArray) -> NDArray[np.intp]:
        """Trials in which distributions are compared: those in which most was seen come first."""
        certain = (self.differs & self.in_step[:, :, None]).any(axis=1)[:, columns]
        seen = where[:, columns].sum(axis=1) + len(columns) * certain.sum(axis=1)
        order = self.rng.permutation(len(seen))
        order = order[np.argsort(-seen[order], kind="stable")]
        return np.sort(order[seen[order] > 0][:MAX_LANES])

    def _won(self, one: FloatArray, two: FloatArray) -> float:
        """The logarithm of what bets won that two samples (N, NUM_DRAWS) differ.

        Some draws say which of the two is larger, or which values are more frequent in the first.
        The others say whether that is so.
        """
        few = NUM_DRAWS // 3
        direction = np.sign(one[:, :few].mean(axis=1) - two[:, :few].mean(axis=1))
        by_size = shift_evidence(one[:, few:], two[:, few:], direction, self.rng)
        often = [(v[:, None, :] == one[:, :few, None]).sum(axis=1) for v in (one, two)]
        seldom = [(v[:, None, :] == two[:, :few, None]).sum(axis=1) for v in (one, two)]
        more = [np.sign(a - b)[:, few:].astype(float) for a, b in zip(often, seldom, strict=True)]
        by_value = shift_evidence(more[0], more[1], np.ones(len(one)), self.rng)
        return max(by_size, by_value)

    def _draws(
        self, lanes: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> tuple[FloatArray, BoolArray]:
        """Continuations of some trials, and which steps of them count.

        They are played in any order: something may change in the meantime.
        """
        shape = (len(lanes), 2, NUM_DRAWS, NUM_STEPS)
        rows, counts = np.zeros((*shape, len(columns))), np.zeros(shape, dtype=np.bool_)
        jobs = list(np.ndindex(*shape[:3]))
        is_set = self.subject.way.puts and not self.repeats  # else it would begin anywhere
        for k in self.rng.permutation(len(jobs)).tolist():
            i, arm, draw = jobs[k]
            start = self.rows[lanes[i], 0, 0] if is_set else None
            run = self.run(self.trials[lanes[i]], arm, self._seeds(), start)
            rows[i, arm, draw] = run.rows[1:, columns]
            counts[i, arm, draw] = self.counted(run)
        return rows, counts

    def _is_certain(self, lane: int, column: int, step: int) -> bool:
        """Whether two actions give different values whatever the random numbers, once more."""
        rows, counts = self._draws(np.array([lane]), np.array([column]))
        one, two = rows[0, :, :, step, 0]
        settled = bool(counts[0, :, :, step].all()) and np.ptp(one) == 0 == np.ptp(two)
        return bool(settled and one[0] != two[0])


def are_same(one: Any, two: Any) -> BoolArray:
    """Which numbers are equal, but for rounding."""
    return np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)


def sample_actions(space: gym.Space[Any], count: int, rng: np.random.Generator) -> list[Any]:
    """Some actions, one after another.

    Half of the time they are alike: random walks hardly leave where they started.
    """
    if count and rng.random() < 0.5:
        return [sample_action(space, rng)] * count
    return [sample_action(space, rng) for _ in range(count)]


def sample_action(space: gym.Space[Any], rng: np.random.Generator) -> Any:
    """Any action; of real numbers, often the least or the largest."""
    action = space.sample()
    if not isinstance(space, gym.spaces.Box) or rng.random() < 0.5:
        return action
    ends = [np.where(np.isfinite(end), end, action) for end in (space.low, space.high)]
    high = np.asarray(rng.random(space.shape) < 0.5 if rng.random() < 0.5 else False)
    return np.where(high, ends[1], ends[0]).astype(action.dtype)


def _two_different(space: gym.Space[Any], rng: np.random.Generator) -> tuple[Any, Any]:
    """Two actions; if there is only one, it twice."""
    one = other = sample_action(space, rng)
    for _ in range(100):
        if not data_equivalence(one, other, exact=True):
            break
        other = sample_action(space, rng)
    return one, other


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
