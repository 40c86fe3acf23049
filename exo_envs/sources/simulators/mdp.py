"""An :class:`ExoMDP` made of single steps of a foreign environment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.core.arguments import (
    as_generator,
    check_choice,
    check_discount,
    check_function,
    check_whole,
)
from exo_envs.core.batches import as_action, as_size
from exo_envs.core.ends import DONE
from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import FloatArray, IntArray, State, Variable
from exo_envs.core.spaces import observed_variables
from exo_envs.sources.simulators.discovery import Discovery, adapt
from exo_envs.sources.simulators.foreign import Env, ForeignEnv, copy_of
from exo_envs.sources.simulators.payment import Payment
from exo_envs.sources.simulators.playing import PlayableMDP, draw_seeds
from exo_envs.sources.simulators.variables import (
    as_scopes,
    check_all_shown,
    check_functions,
    check_names,
    declared_variables,
    horizon_of,
)
from exo_envs.sources.simulators.workers import Workers


class AdaptedMDP(PlayableMDP):
    """An :class:`ExoMDP` made of a Gymnasium environment.

    Without further arguments the environment has the interface of :class:`exo_envs.ExoEnv`:
    observations ``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)`` and
    ``reset(options={"state": {"endogenous": n, "exogenous": x}})``. For any other environment
    give functions that read and write its state, or let :meth:`from_env` find them.

    Every step is a new episode, seeded from the ``rng`` argument: results depend on the arguments
    alone, and nothing is carried over from one call to the next.

    * **End of an episode.** ``terminated`` need not be visible in an observation, so the model has
      one more endogenous variable, ``done``, which the flag sets for good. ``truncated`` is
      ignored; the model has its ``horizon``. Policies take n with ``done`` or without.
    * **x'** is what follows x when the environment is in the reference state's n and takes the
      reference action; **n'** is what follows (n, x) and the action. The two are drawn in
      different episodes: the model is P(n'|n,a,x) P(x'|x) whatever the environment does, also if
      there n' (or the end of the episode) looks at x' instead of x.
    * **Reward terms** are ``info["reward_terms"]`` where ``step`` gives as many numbers as there
      are exogenous variables (or ``reward_scopes``). Otherwise they are recovered by changing some
      variables at a time (:mod:`exo_envs.sources.simulators.rewards`): with x° the reference
      state's x, the endogenous reward is R(n, x°, a) and the term of variable i is
      R(n, x° with x^i, a) - R(n, x°, a). Variables that pay only together are looked for in states
      that occur, and get a term together.
    * **Rewards** are functions of the state and the action, so they are always asked for under
      the same seeds. One that depends on chance is averaged over ``reward_samples`` of them.

    * **What is played.** Before something is learned or planned, episodes of the environment itself
      are compared with what the model says of the same states
      (:func:`exo_envs.sources.simulators.check_played`). :meth:`play` plays a policy in the
      environment.

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
        split: takes an observation to the pair (n, x) of vectors. Of a step that ended the
            episode, values out of range are ignored.
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
        reward_scopes: the names of the exogenous variables that each reward term looks at; by
            default they are found, and otherwise must cover all that pays.
        differences: what to do if episodes of the environment are not what the model says:
            "refuse" to go on, or "warn" and take the model for an approximation.
        num_workers: with more than one, as many processes step copies of the environment. Results
            are the same.
        make_env: makes the copies; by default the environment itself is copied.

    Attributes:
        env: the environment.
        reference: the pair (n, x) described above, a :class:`State` without ``done``.
        tells_reward_terms: whether the environment tells its reward terms; else they are recovered.
        found: what :meth:`from_env` found, or None.
        foreign: the environment as something to be put into states.
        payment: its rewards.

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
        reward_scopes: Collection[Collection[str]] | None = None,
        differences: str = "refuse",
        num_workers: int = 1,
        make_env: Callable[[], Env] | None = None,
    ) -> None:
        if not isinstance(env, gym.Env):
            raise ArgumentTypeError(f"an AdaptedMDP is made of a gymnasium.Env, not of {env!r}")
        check_functions(split=split, get_state=get_state, set_state=set_state)
        check_function("make_env", make_env, optional=True)
        check_choice("way to take differences", differences, ("refuse", "warn"))
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
        self.endogenous_variables = (*n_variables, DONE)
        self.exogenous_variables = x_variables
        check_names(self.endogenous_variables + self.exogenous_variables)
        self.discount = check_discount("discount", discount)
        self.horizon = horizon_of(env, horizon)
        self.reward_samples = check_whole("reward_samples", reward_samples, 1)
        self.differences = differences
        self.found: Discovery | None = None
        self.is_played_as_claimed = False  # until it was looked at
        scopes = None if reward_scopes is None else as_scopes(self, reward_scopes)
        functions: dict[str, Any] = {
            "split": split,
            "get_state": get_state,
            "set_state": set_state,
        }
        num_terms = len(x_variables if scopes is None else scopes)
        parts = (n_variables, x_variables)
        self.foreign = ForeignEnv(env, parts, **functions, num_terms=num_terms)
        self.num_actions = self.foreign.num_actions
        self.tells_reward_terms = self.foreign.tells_terms
        self.num_workers = check_whole("num_workers", num_workers, 1)
        if self.num_workers > 1:
            functions |= {"num_terms": num_terms, "tells_terms": self.tells_reward_terms}
            copied = partial(copy_of, env, make_env, parts, functions)
            self.foreign.workers = Workers(self.num_workers, copied)
        self.reference_action = as_action(self, reference_action)
        self.reference = self._as_reference(reference)
        self.payment = Payment(
            self.foreign,
            self.reference.exogenous,
            reward_samples=self.reward_samples,
            scopes=scopes,
            horizon=self.horizon,
        )
        names = self.exogenous_names
        self.reward_scopes = tuple(
            tuple(names[i] for i in sorted(scope)) for scope in self.payment.scopes
        )

    @classmethod
    def from_env(
        cls,
        env: Env,
        *,
        actions: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        endogenous: Collection[str] | None = None,
        rng: np.random.Generator | int = 0,
        **arguments: Any,
    ) -> AdaptedMDP:
        """An environment whose state, and how to set it, are found as far as they can be.

        See :mod:`exo_envs.sources.simulators.discovery` for what is tried; ``found`` says what was
        found.

        >>> from gymnasium.envs.toy_text.taxi import TaxiEnv
        >>> mdp = AdaptedMDP.from_env(TaxiEnv(), horizon=200)
        >>> [variable.name for variable in mdp.endogenous_variables]
        ['taxi_row', 'taxi_col', 'pass_loc', 'done']
        >>> mdp.exogenous_names
        ('dest_idx',)

        Args:
            env: the environment.
            actions: actions of the environment that stand for 0, 1 ..., if its own are none of
                ``Discrete`` or few of ``MultiDiscrete``.
            names: of the numbers of an observation, or of the state where that is read; by default
                they follow from the space.
            endogenous: the names of variables that actions are known to move. By default
                :func:`exo_envs.testing.audit` looks for them.
            rng: draws what is tried.
            arguments: of :class:`AdaptedMDP`, if they are known: these are not looked for.

        Raises:
            ValueError: no way to put the environment into a state works; it says what was tried.
        """
        rng = as_generator("rng", rng)
        return adapt(
            cls, env, actions=actions, names=names, endogenous=endogenous, rng=rng, given=arguments
        )

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """What ``size`` resets give."""
        size = as_size(self, size)
        rows = np.zeros((size, sum(map(len, self.reference))), dtype=self.foreign.ranges.dtype)
        for i, seed in enumerate(draw_seeds(rng, size).tolist()):
            rows[i] = self.foreign.initial(seed)
        return self.as_state(rows, np.zeros(size, dtype=np.bool_), (size,))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """The x' after one step from (the reference's n, x) with the reference action."""
        n = self.reference.endogenous
        state = State(self._with_end(n, 0), exogenous)
        batch, rows, _, actions = self._flatten(state, np.array(self.reference_action))
        seeds = draw_seeds(rng, len(rows))
        if not self.exogenous_variables:
            return np.zeros((*batch, 0), dtype=np.int64)
        following = self.foreign.step(rows, actions, seeds).following
        wrong = self.foreign.out_of_range(following)
        wrong[:, : len(n)] = False
        hint = "; the step ended the episode: give a reference (or its action) that never does"
        self.foreign.check(following, wrong, hint)
        x = self.foreign.split_row(following)[1]
        return x.reshape(*batch, len(self.exogenous_variables))

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """The n' and ``done`` after one step from (n, x)."""
        return self.observed_step(state, action, rng)[0].endogenous

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What the variables of each scope pay, see the class; nothing once ``done``."""
        batch, rows, alive, actions = self._flatten(state, action)
        terms = np.zeros((len(rows), len(self.reward_scopes)))
        terms[alive] = self.payment.terms(rows[alive], actions[alive])
        return terms.reshape(*batch, len(self.reward_scopes))

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """What is paid at the reference's x beyond the terms there; nothing once ``done``."""
        state = State(endogenous, self.reference.exogenous)
        batch, rows, alive, actions = self._flatten(state, action)
        rewards = np.zeros(len(rows))
        total, terms = self.payment.pay(rows[alive], actions[alive])
        rewards[alive] = total - terms.sum(axis=-1)
        return rewards.reshape(batch)

    def close(self) -> None:
        """Close the environment, and the processes with its copies."""
        self.foreign.close()

    def _as_reference(self, given: Any) -> State:
        if given is None:
            row = self.foreign.initial(0)
        else:
            row = self.foreign.in_range(self.foreign.as_row("reference is", given))
        return State(*self.foreign.split_row(row))
