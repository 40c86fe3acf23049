"""Which numbers of an observation actions move, and which move by themselves.

Two episodes are alike up to some step, and then take different actions once. What differs
afterwards, in that step or in one of the next, was moved by the action. Under the same random
numbers that shows at once, unless an action changes how many of them are used: then numbers differ
that have nothing to do with the action. So where that may have happened, the same two episodes go
on under many different random numbers, and distributions are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from exo_envs.adapter.episodes import NUM_SEEDS, flat
from exo_envs.adapter.exchange import shift_evidence
from exo_envs.adapter.foreign import Env
from exo_envs.adapter.generators import noise_of, reseed
from exo_envs.adapter.readings import columns_of
from exo_envs.env import ExoEnv
from exo_envs.inputs import as_generator, check_whole
from exo_envs.mdp import ExoMDP, FloatArray

#: The numbers that describe where an environment is, given what it just showed.
Read = Callable[[Env, Any], FloatArray]
#: States from which two actions are compared.
NUM_STATES = 60
#: Steps after which a difference is still looked for.
NUM_AFTER = 6
#: Steps before the two actions, at most.
MAX_BEFORE = 20
#: Random continuations of each, where distributions are compared.
NUM_DRAWS = 12
#: The probability that something that moves by itself is said to be moved.
ERROR_PROBABILITY = 1e-6


class Finding(NamedTuple):
    """What the audit says about one variable, and why."""

    variable: str
    is_moved: bool
    reason: str


@dataclass(frozen=True)
class Audit:
    """Which variables actions move; ``findings`` also has those that never changed."""

    endogenous: tuple[str, ...]
    exogenous: tuple[str, ...]
    findings: tuple[Finding, ...]


def audit(
    mdp_or_env: Any,
    *,
    rng: np.random.Generator | int = 0,
    num_states: int = NUM_STATES,
    read: Read | None = None,
    names: Sequence[str] | None = None,
) -> Audit:
    """Find out by experiments which variables of an environment actions move.

    A variable that is moved only through another one is found as well, if that takes no more than
    a few steps. What was never seen to be moved is called exogenous: more ``num_states`` see more.

    Args:
        mdp_or_env: a Gymnasium environment, or a model.
        rng: draws states and actions.
        num_states: from how many states two actions are compared.
        read: the numbers that describe where an environment is; by default its observation's.
        names: of these numbers; by default they follow from the observation space.

    Returns:
        The names of what actions move and of what moves by itself. Numbers that never changed
        are in neither.
    """
    rng = as_generator("rng", rng)
    env = _as_env(mdp_or_env)
    if read is None:
        read, names = _flat, _names_of(env)
    elif names is None:
        raise TypeError("with read, names says what the numbers that it returns are called")
    trials = _Trials(env, read, rng, check_whole("num_states", num_states, 1))
    findings = trials.findings(list(names))
    changing = {f.variable for f in findings if f.reason != CONSTANT}
    return Audit(
        tuple(f.variable for f in findings if f.is_moved),
        tuple(f.variable for f in findings if not f.is_moved and f.variable in changing),
        tuple(findings),
    )


CONSTANT = "never changed"


def _as_env(given: Any) -> Env:
    own = getattr(getattr(given, "env", None), "unwrapped", None)
    if isinstance(given, ExoMDP):
        # An adapted model is audited where its claims come from.
        return given.env if isinstance(own, gym.Env) else ExoEnv(given)  # type: ignore[attr-defined]
    if isinstance(given, gym.Env):
        return given
    raise TypeError(f"needed: a gymnasium.Env or an ExoMDP, not {given!r}")


def _names_of(env: Env) -> list[str]:
    mdp = getattr(env.unwrapped, "mdp", None)
    if isinstance(mdp, ExoMDP) and isinstance(env.unwrapped, ExoEnv):
        return [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    return [column.name for column in columns_of(env.observation_space)]


def _flat(_env: Env, observation: Any) -> FloatArray:
    return flat(observation)


class _Trial(NamedTuple):
    """A beginning that two episodes share, and how they go on."""

    seed: int
    before: list[Any]
    actions: tuple[Any, Any]
    after: list[Any]


class _Run(NamedTuple):
    shown: FloatArray  # (1 + NUM_AFTER, columns), NaN once the episode has ended
    noise: list[Any]  # of the generators, after each of these steps


class _Trials:
    """Pairs of episodes."""

    def __init__(self, env: Env, read: Read, rng: np.random.Generator, count: int) -> None:
        self.env, self.read, self.rng = env, read, rng
        space = env.action_space
        space.seed(int(rng.integers(NUM_SEEDS)))
        self.trials = []
        for _ in range(count):
            before = [space.sample() for _ in range(int(rng.integers(MAX_BEFORE + 1)))]
            # Half of them act alike for a while: random walks hardly leave where they started.
            if before and rng.random() < 0.5:
                before = [before[0]] * len(before)
            pair = _two_different(space)
            after = [space.sample() for _ in range(NUM_AFTER)]
            self.trials.append(_Trial(int(rng.integers(NUM_SEEDS)), before, pair, after))

    def run(self, trial: _Trial, arm: int, noise: int) -> _Run:
        """One episode; from the action on, its random numbers follow from ``noise``."""
        observation, _ = self.env.reset(seed=trial.seed)
        ended = False
        for action in trial.before:
            observation, _, terminated, truncated, _ = self.env.step(action)
            if terminated or truncated:  # begin where it began
                observation, _ = self.env.reset(seed=trial.seed)
                break
        width = len(self.read(self.env, observation))
        shown, states = np.full((1 + NUM_AFTER, width), np.nan), []
        for step, action in enumerate([trial.actions[arm], *trial.after]):
            if ended:
                break
            reseed(self.env, noise + step)
            observation, _, terminated, truncated, _ = self.env.step(action)
            ended = bool(terminated or truncated)
            shown[step] = self.read(self.env, observation)
            states.append(noise_of(self.env))
        return _Run(shown, states)

    def findings(self, names: list[str]) -> list[Finding]:
        seeds = self.rng.integers(NUM_SEEDS // 2, size=len(self.trials)).tolist()
        queries = list(zip(self.trials, seeds, strict=True))
        one, two = ([self.run(trial, arm, seed) for trial, seed in queries] for arm in (0, 1))
        again = [self.run(trial, 0, seed) for trial, seed in queries]
        shown = np.array([run.shown for run in one])
        if shown.shape[2] != len(names):
            raise ValueError(f"there are {shown.shape[2]} numbers but {len(names)} names")
        repeats = all(_same(a.shown, b.shown).all() for a, b in zip(one, again, strict=True))
        both = np.concatenate([shown, np.array([run.shown for run in two])])
        constant = np.nanmax(both, axis=(0, 1)) == np.nanmin(both, axis=(0, 1))
        differs = np.array([~_same(a.shown, b.shown) for a, b in zip(one, two, strict=True)])
        in_step = np.array([_used_alike(a, b) for a, b in zip(one, two, strict=True)])
        surely = (differs & in_step[:, :, None]).any(axis=(0, 1)) & repeats
        maybe = ~surely & ~constant & (differs.any(axis=(0, 1)) | (not repeats))
        found: dict[int, str] = {}
        if maybe.any():
            found = self._compare(np.flatnonzero(maybe), differs.any(axis=1) | (not repeats))
        findings = []
        for i, name in enumerate(names):
            if constant[i]:
                findings.append(Finding(name, False, CONSTANT))
            elif surely[i]:
                share = differs[:, :, i].any(axis=1).mean()
                reason = f"another action changes it, in {share:.0%} of the states"
                findings.append(Finding(name, True, reason))
            elif i in found:
                findings.append(Finding(name, True, found[i]))
            elif maybe[i]:
                reason = "no action changes its distribution (its random numbers change)"
                findings.append(Finding(name, False, reason))
            else:
                findings.append(Finding(name, False, "no action changes it"))
        return findings

    def _compare(self, columns: Any, where: Any) -> dict[int, str]:
        """Columns whose distribution another action changes, and how that showed.

        Args:
            columns: which to look at.
            where: in which trials a column differed, shape (trials, columns).
        """
        lanes = np.flatnonzero(where[:, columns].any(axis=1))
        draws = np.empty((len(lanes), 2, NUM_DRAWS, 1 + NUM_AFTER, len(columns)))
        for i, lane in enumerate(lanes):
            for arm, draw in np.ndindex(2, NUM_DRAWS):
                noise = int(self.rng.integers(NUM_SEEDS // 2))
                draws[i, arm, draw] = self.run(self.trials[lane], arm, noise).shown[:, columns]
        found = {}
        limit = math.log(len(columns) * (1 + NUM_AFTER) / ERROR_PROBABILITY)
        for j, column in enumerate(columns.tolist()):
            for step in range(1 + NUM_AFTER):
                one, two = draws[:, 0, :, step, j], draws[:, 1, :, step, j]  # (lanes, NUM_DRAWS)
                whole = ~np.isnan(one).any(axis=1) & ~np.isnan(two).any(axis=1)
                one, two = one[whole], two[whole]
                if not len(one):
                    continue
                certain = (np.ptp(one, axis=1) == 0) & (np.ptp(two, axis=1) == 0)
                if (certain & (one[:, 0] != two[:, 0])).any():
                    found[column] = "another action changes it, whatever the random numbers"
                    break
                # Some draws say which of the two is larger, the others whether that is so.
                few = NUM_DRAWS // 3
                direction = np.sign(one[:, :few].mean(axis=1) - two[:, :few].mean(axis=1))
                won = shift_evidence(one[:, few:], two[:, few:], direction, self.rng)
                if won > limit:
                    found[column] = "another action changes its distribution"
                    break
        return found


def _two_different(space: gym.Space[Any]) -> tuple[Any, Any]:
    """Two actions; if there is only one, it twice."""
    one = other = space.sample()
    for _ in range(100):
        if not np.array_equal(one, other):
            break
        other = space.sample()
    return one, other


def _same(one: FloatArray, two: FloatArray) -> Any:
    """Which numbers are equal; after the end of an episode, those of both are."""
    return np.isclose(one, two, rtol=1e-9, atol=1e-12) | np.isnan(one) | np.isnan(two)


def _used_alike(one: _Run, two: _Run) -> list[bool]:
    """Of each step, whether both episodes used equally many random numbers in it, and so far."""
    alike, so_far = [], True
    for step in range(1 + NUM_AFTER):
        if step < min(len(one.noise), len(two.noise)):
            so_far = so_far and _equal(one.noise[step], two.noise[step])
        alike.append(so_far)
    return alike


def _equal(one: Any, two: Any) -> bool:
    return repr(one) == repr(two)
