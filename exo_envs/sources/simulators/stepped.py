"""A Gymnasium environment, put into a state, stepped once and read: what its model says, in rows.

Here a state is one row of numbers, n followed by x: integers, or floats if a variable is real.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import FloatArray, IntArray
from exo_envs.sources.access.episodes import NUM_SEEDS, Episodes, visits
from exo_envs.sources.access.state_access import Env, Row, SplitState
from exo_envs.sources.rewards import Pay, Scope, SplitReward, find_scopes
from exo_envs.sources.simulators.workers import Rows, Steps, Workers

#: States that an environment is put into to see whether it obeys, met in so many steps.
NUM_PROBES, NUM_LOOKED_AT = 16, 64
#: States in which it is looked for variables that pay only together, at most and at least.
MAX_STATES, MIN_STATES = 256, 8
#: Rewards that are asked for to find them.
MAX_REWARDS = 4_000
#: Seeds under which they are looked for: what two variables pay together shows under few.
FEW_SEEDS = 4
#: Steps that one recorded episode has at most: the states near the start of one are all alike.
MAX_EPISODE = 100

#: Steps that are taken to find out, at most, in states that were met and in others.
MAX_CHANCE_STEPS = 2048
#: Seeds under which each state and action is asked about, at least and at most. (What happens
#: once in ten times is missed under 32 seeds with a probability of 3 %.)
MIN_SEEDS, MAX_SEEDS = 4, 32
#: Steps of episodes whose states are looked at.
NUM_MET = 128
#: The standard error of a mean reward that is wanted, and one that is too large, as shares of the
#: distance between the smallest and the largest reward.
WANTED_ERROR, LARGE_ERROR = 0.03, 0.1
#: Seeds over which a reward is averaged: at least, however many states there are, and at most,
#: unless somebody wants more.
FEWEST_SAMPLES, MOST_SAMPLES = 16, 100
#: Rewards that a planner may ask for in all.
MAX_PLANNED = 400_000
#: Values of a real variable of n and of x that planners look at, and pairs (n, a), at most.
REAL_POINTS, REAL_VALUES, MAX_PAIRS = 41, 20, 40_000
#: An action for a state, which may depend on chance.
Choose: TypeAlias = Callable[[Row, np.random.Generator], int]


class SteppedModel:
    """What :class:`exo_envs.AdaptedMDP` says, found by single steps of an environment.

    Whoever makes one sets ``reference``, ``reference_action`` and :meth:`average` before it asks
    for more than steps.

    Attributes:
        env: the environment.
        access: how its state is read and set.
        names: of the variables of n and x.
        k: the number of variables of n.
        num_actions: the number of actions.
        num_terms: how many reward terms the environment may tell.
        horizon: the length of an episode.
        tells_terms: whether each step gives ``info["reward_terms"]``, of that number.
        reference: the state from whose n x' is drawn, and at whose x recovered terms are 0.
        reference_action: the action with which x' is drawn.
        reward_samples: the number of seeds a reward is averaged over.
        split: the terms of the reward.
        workers: processes that step copies of the environment, if there are any.
    """

    reference: Row
    reference_action: int

    def __init__(self, env: Env, access: SplitState, num_terms: int, horizon: int) -> None:
        if not isinstance(env.action_space, spaces.Discrete) or env.action_space.start != 0:
            raise ArgumentTypeError(
                f"the action space must be Discrete(n) with actions from 0, not {env.action_space}"
            )
        self.env, self.access = env, access
        self.names, self.k = access.names, len(access.parts[0])
        self.num_actions, self.num_terms = int(env.action_space.n), num_terms
        self.horizon, self.tells_terms = horizon, False
        self.workers: Workers | None = None

    def average(self, reward_samples: int, scopes: Sequence[Scope] | None) -> None:
        """Average rewards over so many seeds; look for scopes if they are not given."""
        self.reward_samples = reward_samples
        self._seeds = np.random.default_rng(1).integers(NUM_SEEDS, size=reward_samples)
        singles = [frozenset({i}) for i in range(len(self.names) - self.k)]
        self.split = SplitReward(singles if scopes is None else scopes, self.reference[self.k :])
        if scopes is not None or self.tells_terms or len(singles) < 2:
            return
        seeds = min(FEW_SEEDS, reward_samples)
        affordable = MAX_REWARDS // ((len(singles) + 2) * seeds)
        wanted = max(MIN_STATES, min(MAX_STATES, affordable))
        met = self.record(2 * wanted)
        chosen = np.linspace(0, len(met) - 1, min(wanted, len(met))).astype(np.intp)
        found = self.joint_scopes(met.rows[chosen], np.array(met.actions)[chosen], seeds)
        self.split = SplitReward(found, self.reference[self.k :])

    # --- the environment ----------------------------------------------------------------------

    def initial(self, seed: int) -> Row:
        """The state after a reset, shape (k + m,)."""
        tick()
        return self.read(self.env.reset(seed=seed)[0])

    def read(self, observation: Any, env: Env | None = None) -> Row:
        """The state of an environment, by default this one, that just showed ``observation``."""
        return self.in_range(self.access.read(self.env if env is None else env, observation))

    def step(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """One seeded step from each row, an episode of its own."""
        if self.workers is not None and len(rows) >= 2 * self.workers.count:
            parts = self.workers.ask((rows, actions, seeds))
            steps = Steps(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        else:
            steps = self.step_all(rows, actions, seeds)
        self.in_range(steps.following[~steps.terminated])
        return steps

    def step_all(self, rows: Rows, actions: IntArray, seeds: IntArray) -> Steps:
        """The same in this process, whatever comes out."""
        following, reward = np.empty_like(rows), np.empty(len(rows))
        terminated = np.empty(len(rows), dtype=np.bool_)
        terms = np.zeros((len(rows), self.num_terms))
        queries = zip(rows, actions.tolist(), seeds.tolist(), strict=True)
        for i, (row, action, seed) in enumerate(queries):
            tick()
            self.access.put(self.env, row, seed)
            observation, reward[i], terminated[i], _, info = self.env.step(action)
            following[i] = self.access.read(self.env, observation)
            if self.tells_terms:
                terms[i] = self._terms_told(info)
        return Steps(following, reward, terminated, terms)

    def close(self) -> None:
        if self.workers is not None:
            self.workers.close()
        self.env.close()

    def in_range(self, rows: Rows, hint: str = "") -> Rows:
        """The rows (..., k + m), if each of their values is one of its variable's."""
        misfit = self.access.ranges.misfit(rows)
        if misfit is not None:
            raise ArgumentError(
                f"variable {misfit.variable.name!r} cannot be {misfit.value}; its values are "
                f"{misfit.variable.range}{hint}"
            )
        return rows

    def _terms_told(self, info: Mapping[str, Any]) -> FloatArray:
        terms = np.asarray(info.get("reward_terms"), dtype=np.float64)
        if terms.shape != (self.num_terms,):
            raise ArgumentError(
                f'info["reward_terms"] is {info.get("reward_terms")!r}; it used to hold '
                f"{self.num_terms} numbers, one for each term of the reward"
            )
        return terms

    def record(self, num_steps: int, seed: int = 0, choose: Choose | None = None) -> Episodes:
        """Steps of episodes of the environment itself, in which no state is set."""
        rng, limit = np.random.default_rng(seed), min(self.horizon, MAX_EPISODE)
        met = Episodes.record(
            self.env, self.access, rng, num_steps, max_episode=limit, choose=choose
        )
        self.in_range(met.rows)
        self.in_range(met.following[~met.terminated])
        return met

    # --- x' ---------------------------------------------------------------------------------

    def exogenous_after(self, x: Rows, seeds: IntArray) -> Rows:
        """The x' (B, m) after one step from (the reference's n, x) with its action."""
        rows = np.repeat(self.reference[None], len(x), axis=0)
        rows[:, self.k :] = x
        actions = np.full(len(rows), self.reference_action)
        following = self.step(rows, actions, seeds).following
        following[:, : self.k] = self.reference[: self.k]  # n' may mean nothing
        hint = "; the step ended the episode: give a reference (or its action) that never does"
        return self.access.split_row(self.in_range(following, hint))[1]

    # --- rewards ----------------------------------------------------------------------------

    def pay(
        self, rows: Rows, actions: IntArray, num_seeds: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """R(n, x, a) and what the environment says of its terms (0 if nothing), per row.

        With ``num_seeds`` it is averaged over so many seeds at most.

        Rows that occur more than once are asked for once. All rows are asked for under the same
        seeds. So what n, x or the action changes is seen under the same random numbers, and no
        state looks better than another one because its noise happened to be larger.
        """
        queries, inverse = np.unique(np.column_stack([rows, actions]), axis=0, return_inverse=True)
        asked, took = queries[:, :-1], queries[:, -1].astype(np.int64)
        reward, terms = np.zeros(len(queries)), np.zeros((len(queries), self.num_terms))
        seeds = self._seeds[:num_seeds]
        for seed in seeds:
            steps = self.step(asked, took, np.full(len(asked), seed))
            reward += steps.reward
            terms += steps.reward_terms
        where = inverse.reshape(-1)
        return (reward / len(seeds))[where], (terms / len(seeds))[where]

    def terms(self, rows: Rows, actions: IntArray) -> FloatArray:
        """What the variables of each scope pay, shape (B, scopes)."""
        if self.tells_terms:
            return self.pay(rows, actions)[1]
        return self.split.terms(rows[:, self.k :], self._paid(rows, actions))

    def endogenous(self, rows: Rows, actions: IntArray) -> FloatArray:
        """What is paid at the reference's x beyond the terms there, shape (B,)."""
        there = rows.copy()
        there[:, self.k :] = self.reference[self.k :]
        total, terms = self.pay(there, actions)
        return np.asarray(total - terms.sum(axis=-1))

    def joint_scopes(
        self, rows: Rows, actions: IntArray, num_seeds: int | None = None
    ) -> list[Scope]:
        """The variables that pay only together in some states, and each other one by itself."""
        pay = self._paid(rows, actions, num_seeds)
        x, names = rows[:, self.k :], self.names[self.k :]
        return find_scopes(x, pay, self.reference[self.k :], names)

    def _paid(self, rows: Rows, actions: IntArray, num_seeds: int | None = None) -> Pay:
        """The reward of some states, with another x."""

        def pay(x: Rows, lanes: NDArray[np.intp]) -> FloatArray:
            changed = np.column_stack([rows[lanes, : self.k], x]).astype(rows.dtype)
            return self.pay(changed, actions[lanes], num_seeds)[0]

        return pay


# --- what is found out first ----------------------------------------------------------------------


def probe(model: SteppedModel) -> None:
    """Find out whether an environment goes where it is put, and tells its reward terms."""
    rng, access, env = np.random.default_rng(0), model.access, model.env
    met = list(visits(env, rng, NUM_LOOKED_AT, model.read, max_episode=NUM_PROBES // 2))
    model.tells_terms = model.num_terms > 0 and all(
        np.asarray(visit.info.get("reward_terms")).shape == (model.num_terms,) for visit in met
    )
    rows = np.array(list({visit.before.tobytes(): visit.before for visit in met}.values()))
    rows = rows[:NUM_PROBES]
    if access.shows_state:
        astray = access.astray(env, rows)
        if astray is not None:
            wanted, got = (
                f"n = {r[: model.k].tolist()}, x = {r[model.k :].tolist()}" for r in astray
            )
            if not access.obeys_option:
                raise ArgumentError(f"set_state was given {wanted}, but get_state then says {got}")
            raise ArgumentError(
                f'reset(options={{"state": ...}}) was to start at {wanted}, but the environment is '
                f"at {got}; if it does not know this option, give a set_state function"
            )
    elif len(rows) > 1 and not _is_moved(model, rows):
        # Here nothing shows the state before a step, so this is all that can be found out.
        raise ArgumentError(
            f"set_state has no effect: put into {len(rows)} different states, the environment "
            "always took the same step"
        )


def _is_moved(model: SteppedModel, rows: Rows) -> bool:
    """Whether a step depends on the state that the environment is put into."""
    for action in range(min(model.num_actions, NUM_PROBES)):
        same = np.full(len(rows), action), np.zeros(len(rows), dtype=np.int64)
        if any((values != values[:1]).any() for values in model.step(rows, *same)):
            return True
    return False


# --- chance ---------------------------------------------------------------------------------------


class Chance(NamedTuple):
    """A state and an action whose reward depends on chance, more than in others."""

    row: Rows  # (k + m,)
    action: int
    low: float  # the smallest reward there
    high: float  # the largest
    deviation: float  # the standard deviation of the reward there
    span: float  # the distance between the smallest and the largest reward anywhere

    def is_large(self, samples: int) -> bool:
        """Whether the mean over so many seeds still depends on chance, by much."""
        return self.deviation / self.span / math.sqrt(samples) > LARGE_ERROR


def find_chance(model: SteppedModel, max_steps: int = MAX_CHANCE_STEPS) -> Chance | None:
    """Where the reward of an environment depends on chance the most, if it does.

    Looked at are states of episodes, and every n with every action, if there are not too many, each
    with an x that was met: random actions may never come where chance decides, and a plan does.

    Args:
        model: the adapted environment.
        max_steps: how many steps are taken in states that were met, and as many in others.
    """
    met = model.record(min(NUM_MET, max(1, max_steps // MIN_SEEDS)))
    worst, span = None, 0.0
    everywhere = _everywhere(model, met.rows, max_steps)
    for rows, actions in ((met.rows, np.array(met.actions)), everywhere):
        if not len(rows):
            continue
        number = min(MAX_SEEDS, max(MIN_SEEDS, max_steps // len(rows)))
        seeds = np.random.default_rng(0).integers(NUM_SEEDS, size=number)
        try:
            steps = [model.step(rows, actions, np.full(len(rows), seed)) for seed in seeds]
        except ValueError:
            continue  # a combination of values that never occurs, and cannot be set
        paid = np.array([step.reward for step in steps])
        span = max(span, float(np.ptp(paid)))
        deviations = paid.std(axis=0, ddof=1)
        lane = int(deviations.argmax())
        low, high, own = (float(f[lane]) for f in (paid.min(axis=0), paid.max(axis=0), deviations))
        if worst is None or own > worst.deviation:
            worst = Chance(rows[lane], int(actions[lane]), low, high, own, span)
    if worst is None or worst.high - worst.low <= 1e-9 * (1 + abs(worst.high)):
        return None  # no more than rounding
    return worst._replace(span=span)


def wanted_samples(model: SteppedModel) -> int:
    """The number of seeds that a reward should be averaged over, as far as a planner can wait."""
    chance = find_chance(model)
    if chance is None:
        return 1
    wanted = math.ceil((chance.deviation / chance.span / WANTED_ERROR) ** 2)
    n, x = model.access.parts
    sizes = [REAL_POINTS if own.is_real else int(own.size) for own in n]
    pairs = min(MAX_PAIRS, math.prod(sizes) * model.num_actions)
    values = [REAL_VALUES if own.is_real else int(own.size) for own in x]
    joint = [math.prod(values[i] for i in scope) for scope in model.split.scopes]
    rows = pairs * (1 + sum(min(number, MAX_PAIRS) for number in joint))
    return min(max(1, wanted), max(FEWEST_SAMPLES, min(MOST_SAMPLES, MAX_PLANNED // rows)))


def _everywhere(model: SteppedModel, met: Rows, max_steps: int) -> tuple[Rows, IntArray]:
    """All n, or some of them, with all actions, each with an x that was met."""
    k, num_actions = model.k, model.num_actions
    rng = np.random.default_rng(0)
    variables = model.access.parts[0]
    most = max_steps // (MIN_SEEDS * num_actions)
    if not most:
        return met[:0], np.zeros(0, dtype=np.int64)
    sizes = [int(variable.size) for variable in variables]
    if any(variable.is_real for variable in variables):
        n = met[rng.integers(len(met), size=min(most, len(met))), :k]
    elif math.prod(sizes) <= most:
        n = np.indices(sizes).reshape(k, math.prod(sizes)).T
    else:
        n = np.column_stack([rng.integers(size, size=most) for size in sizes])
    rows = np.column_stack([n, met[rng.integers(len(met), size=len(n)), k:]])
    rows = np.repeat(rows.astype(met.dtype), num_actions, axis=0)
    return rows, np.tile(np.arange(num_actions), len(n))
