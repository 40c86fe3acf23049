"""An :class:`ExoMDP` made of single steps of a foreign environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.adapter.foreign import Env, ForeignEnv, Rows
from exo_envs.adapter.variables import check_all_shown, check_names, declared_variables
from exo_envs.inputs import as_action
from exo_envs.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Variable
from exo_envs.spaces import observed_variables

NUM_SEEDS = 2**31  # what every environment takes, legacy NumPy and C generators included


class AdaptedMDP(ExoMDP):
    """An :class:`ExoMDP` made of a Gymnasium environment.

    Without further arguments the environment has the interface of :class:`exo_envs.ExoEnv`:
    observations ``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)`` and
    ``reset(options={"state": {"endogenous": n, "exogenous": x}})``. For any other environment
    give functions that read and write its state.

    Every step is a new episode, seeded from the ``rng`` argument: results depend on the arguments
    alone, and nothing is carried over from one call to the next.

    * **End of an episode.** ``terminated`` need not be visible in an observation, so the model has
      one more endogenous variable, ``done``, which the flag sets for good. ``truncated`` is
      ignored; the model has its ``horizon``.
    * **x'** is what follows x when the environment is in the reference state's n and takes the
      reference action; **n'** is what follows (n, x) and the action. The two are drawn in
      different episodes: the model is P(n'|n,a,x) P(x'|x) whatever the environment does, also if
      there n' (or the end of the episode) looks at x' instead of x.
    * **Reward terms** are ``info["reward_terms"]`` where ``step`` gives as many numbers as there
      are exogenous variables. Otherwise they are recovered, assuming that the reward is a sum, by
      changing one variable at a time: with x° the reference state's x, the endogenous reward is
      R(n, x°, a) and the term of variable i is R(n, x° with x^i, a) - R(n, x°, a). If some
      variables pay only together, make one variable of them (the paper's super-variable).
    * **Rewards** are functions of the state and the action, so they are always asked for under
      the same seeds. One that depends on chance is averaged over ``reward_samples`` of them.

    The environment is stepped one state at a time; it should not be used elsewhere meanwhile.
    It is asked about any combination of values in range, also about those that never occur.

    Gymnasium's taxi, for which the destination is given and the rest is its own doing:

    >>> from gymnasium.envs.toy_text.taxi import TaxiEnv
    >>> def split(s):
    ...     return (s // 100, s // 20 % 5, s // 4 % 5), (s % 4,)
    >>> def set_state(taxi, n, x):
    ...     taxi.s = taxi.encode(*n, *x)
    >>> mdp = AdaptedMDP(
    ...     TaxiEnv(),
    ...     split=split,
    ...     set_state=set_state,
    ...     endogenous_variables=[Variable("row", 5), Variable("column", 5), Variable("rider", 5)],
    ...     exogenous_variables=[Variable("destination", 4)],
    ...     horizon=200,
    ... )
    >>> at_destination = State(np.array([0, 4, 4, 0]), np.array([1]))  # not done, the rider aboard
    >>> drop_off = np.array(5)
    >>> float(mdp.reward(at_destination, drop_off))
    20.0
    >>> mdp.sample_next(at_destination, drop_off, np.random.default_rng(0)).endogenous
    array([0, 4, 1, 1])

    Args:
        env: the environment, with ``Discrete`` actions. Wrappers stay in effect.
        split: takes an observation to the pair (n, x) of integer vectors. Of a step that ended
            the episode, values out of range are ignored.
        get_state: reads (n, x) from ``env.unwrapped``, for observations that do not tell them.
        set_state: ``set_state(env.unwrapped, n, x)`` puts the environment into a state; it is
            called right after a reset. By default the state is an option of ``reset``.
        endogenous_variables: the variables of n, or their names; by default ``endogenous_0`` ...
            With ``split`` or ``get_state`` they must be given, as :class:`Variable`.
        exogenous_variables: the same for x.
        discount: the paper's gamma.
        horizon: the length of an episode; by default the environment's ``max_episode_steps``.
        reference: the pair (n, x) described above; by default an initial state. A step from its n
            with the reference action should not end the episode: x' may mean nothing then.
        reference_action: the action described above.
        reward_samples: the number of seeds a reward is averaged over.

    Attributes:
        env: the environment.
        reference: the pair (n, x) described above, a :class:`State` without ``done``.
        tells_reward_terms: whether the environment tells its reward terms; else they are recovered.

    Raises:
        TypeError: if the environment lacks something; the message says what to give.
        ValueError: if an argument does not fit the environment, or if the environment does not go
            where it is put.
    """

    is_batched = False  # the environment is stepped one state at a time

    def __init__(
        self,
        env: Env,
        *,
        split: Callable[[Any], Any] | None = None,
        get_state: Callable[[Any], Any] | None = None,
        set_state: Callable[[Any, IntArray, IntArray], object] | None = None,
        endogenous_variables: Sequence[Variable | str] | None = None,
        exogenous_variables: Sequence[Variable | str] | None = None,
        discount: float = 0.99,
        horizon: int | None = None,
        reference: State | Mapping[str, Any] | tuple[Any, Any] | None = None,
        reference_action: int = 0,
        reward_samples: int = 1,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise TypeError(f"an AdaptedMDP is made of a gymnasium.Env, not of {env!r}")
        if split is not None and get_state is not None:
            raise TypeError("give either split or get_state: both say where n and x are read")
        wanted = {"endogenous": endogenous_variables, "exogenous": exogenous_variables}
        n_variables, x_variables = (
            observed_variables(env.observation_space, part, entries)
            if split is None and get_state is None
            else declared_variables(part, entries)
            for part, entries in wanted.items()
        )
        if split is None and get_state is None and set_state is None:
            check_all_shown(env)
        self.env = env
        self.endogenous_variables = (*n_variables, Variable("done", 2))
        self.exogenous_variables = x_variables
        check_names(self.endogenous_variables + self.exogenous_variables)
        self.discount = _check_discount(discount)
        self.horizon = _check_horizon(env, horizon)
        self.reward_samples = _check_count("reward_samples", reward_samples)
        self._foreign = ForeignEnv(
            env,
            (n_variables, x_variables),
            split=split,
            get_state=get_state,
            set_state=set_state,
        )
        self.num_actions = self._foreign.num_actions
        self.tells_reward_terms = self._foreign.tells_terms
        self.reference_action = as_action(self, reference_action)
        self.reference = self._as_reference(reference)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """What ``size`` resets give."""
        rows = np.zeros((size, sum(map(len, self.reference))), dtype=np.int64)
        for i, seed in enumerate(_seeds(rng, size).tolist()):
            rows[i] = self._foreign.initial(seed)
        return self._as_state(rows, np.zeros(size, dtype=np.bool_), (size,))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """The x' after one step from (the reference's n, x) with the reference action."""
        n = self.reference.endogenous
        batch = exogenous.shape[:-1]
        state = State(np.broadcast_to(np.append(n, 0), (*batch, len(n) + 1)), exogenous)
        rows, _, actions = self._flatten(state, np.array(self.reference_action))
        seeds = _seeds(rng, len(rows))
        if not self.exogenous_variables:
            return np.zeros(exogenous.shape, dtype=np.int64)
        following = self._foreign.step(rows, actions, seeds).following
        wrong = self._foreign.out_of_range(following)
        wrong[:, : len(n)] = False
        hint = "; the step ended the episode: give a reference (or its action) that never does"
        self._foreign.check(following, wrong, hint)
        return following[:, len(n) :].reshape(exogenous.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """The n' and ``done`` after one step from (n, x)."""
        return self.observed_step(state, action, rng)[0].endogenous

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What each exogenous variable pays, see the class; nothing once ``done``."""
        rows, alive, actions = self._flatten(state, action)
        k = len(self.reference.endogenous)
        terms = np.zeros((len(rows), len(self.exogenous_variables)))
        if self.tells_reward_terms:
            terms[alive] = self._pay(rows[alive], actions[alive])[1]
        else:
            origin = rows.copy()
            origin[:, k:] = self.reference.exogenous
            # Where x^i is the reference's, the term is 0 and nothing need be asked.
            differs = alive[:, None] & (rows[:, k:] != origin[:, k:])
            some, base = differs.any(axis=1), np.zeros(len(rows))
            base[some] = self._pay(origin[some], actions[some])[0]
            for i in np.flatnonzero(differs.any(axis=0)):
                lanes = np.flatnonzero(differs[:, i])
                changed = origin[lanes]
                changed[:, k + i] = rows[lanes, k + i]
                terms[lanes, i] = self._pay(changed, actions[lanes])[0] - base[lanes]
        return terms.reshape(state.exogenous.shape)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """What is paid at the reference's x beyond the terms there; nothing once ``done``."""
        batch = endogenous.shape[:-1]
        x = np.broadcast_to(self.reference.exogenous, (*batch, len(self.exogenous_variables)))
        rows, alive, actions = self._flatten(State(endogenous, x), action)
        rewards = np.zeros(len(rows))
        total, terms = self._pay(rows[alive], actions[alive])
        rewards[alive] = total - terms.sum(axis=-1)
        return rewards.reshape(batch)

    def is_terminal(self, state: State) -> BoolArray:
        """Whether a step has ended the episode."""
        return np.asarray(state.endogenous[..., -1] == 1)

    def observed_step(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[State, FloatArray]:
        """One step of the environment itself from each state: s' and the reward.

        Here n' and x' come from one step, with the reward that it paid: the truth that the
        factored model claims to equal. States that are ``done`` stay and pay nothing. After the
        end of an episode, a variable whose value is out of range stays as it was.
        """
        rows, alive, actions = self._flatten(state, action)
        seeds = _seeds(rng, len(rows))
        done, reward = ~alive, np.zeros(len(rows))
        steps = self._foreign.step(rows[alive], actions[alive], seeds[alive])
        nowhere = self._foreign.out_of_range(steps.following)
        rows[alive] = np.where(nowhere, rows[alive], steps.following)
        done[alive] = steps.terminated
        reward[alive] = steps.reward
        batch = state.endogenous.shape[:-1]
        return self._as_state(rows, done, batch), reward.reshape(batch)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _pay(self, rows: Rows, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """R(n, x, a) and what the environment says of its terms (0 if nothing), per row.

        Rows that occur more than once are asked for once.
        """
        queries, inverse = np.unique(np.column_stack([rows, actions]), axis=0, return_inverse=True)
        reward, terms = np.zeros(len(queries)), np.zeros((len(queries), len(self.exogenous_sizes)))
        for seed in range(self.reward_samples):
            seeds = np.full(len(queries), seed)
            steps = self._foreign.step(queries[:, :-1], queries[:, -1], seeds)
            reward += steps.reward
            terms += steps.reward_terms
        where = inverse.reshape(-1)
        return (reward / self.reward_samples)[where], (terms / self.reward_samples)[where]

    def _flatten(self, state: State, action: IntArray) -> tuple[Rows, BoolArray, IntArray]:
        """Rows of n (without ``done``) and x, whether each is still alive, and the actions."""
        batch = state.endogenous.shape[:-1]
        n, x = (part.reshape(math.prod(batch), part.shape[-1]) for part in state)
        rows = np.concatenate([n[:, :-1], x], axis=1).astype(np.int64)
        return rows, n[:, -1] == 0, np.broadcast_to(action, batch).reshape(-1)

    def _as_state(self, rows: Rows, done: BoolArray, batch: tuple[int, ...]) -> State:
        """The states of rows."""
        n, x = np.split(rows, [len(self.reference.endogenous)], axis=1)
        n = np.column_stack([n, done]).astype(np.int64)
        return State(n.reshape(*batch, n.shape[1]), x.reshape(*batch, x.shape[1]))

    def _as_reference(self, given: Any) -> State:
        if given is None:
            row = self._foreign.initial(0)
        else:
            row = self._foreign.in_range(self._foreign.as_row("reference is", given))
        n, x = np.split(row, [len(self.endogenous_variables) - 1])
        return State(n, x)


def _seeds(rng: np.random.Generator, size: int) -> IntArray:
    return rng.integers(NUM_SEEDS, size=size)


def _check_discount(discount: float) -> float:
    if not 0 < discount <= 1:
        raise ValueError(f"discount is a number in (0, 1], not {discount!r}")
    return float(discount)


def _check_horizon(env: Env, horizon: int | None) -> int:
    if horizon is None and env.spec is not None:
        horizon = env.spec.max_episode_steps
    if horizon is None:
        raise ValueError(f"{env} does not say how long an episode is; give horizon")
    return _check_count("horizon", horizon)


def _check_count(name: str, count: Any) -> int:
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
        raise ValueError(f"{name} is a whole number, at least 1, not {count!r}")
    return int(count)
