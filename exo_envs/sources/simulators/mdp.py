"""An :class:`ExoMDP` made of single steps of somebody else's environment."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.contract.original import WatchStep
from exo_envs.core.arguments import (
    as_generator,
    check_choice,
    check_discount,
    check_function,
    check_horizon,
    check_lanes,
    check_whole,
)
from exo_envs.core.batches import as_action, as_batch, as_size
from exo_envs.core.clock import tick
from exo_envs.core.ends import DONE, EndCarryingMDP
from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import BoolArray, FloatArray, IntArray, State, Variable
from exo_envs.core.spaces import observed_variables
from exo_envs.sources.access.episodes import NUM_SEEDS
from exo_envs.sources.access.state_access import Env, Row, SplitState
from exo_envs.sources.rewards import Scope
from exo_envs.sources.simulators.discovery import (
    Discovery,
    check_all_shown,
    check_distinct,
    declared_variables,
    discover,
    horizon_of,
    scope_positions,
)
from exo_envs.sources.simulators.played import (
    PlayedDifferentlyError,
    PlayedDifferentlyWarning,
    find_differences,
    find_moved,
)
from exo_envs.sources.simulators.stepped import SteppedModel, probe, wanted_samples
from exo_envs.sources.simulators.workers import Rows, Workers

#: The share of actions that are taken at random where a policy leads the way.
EXPLORED = 0.1


class AdaptedMDP(EndCarryingMDP):
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
      variables at a time (:mod:`exo_envs.sources.rewards`): with x° the reference
      state's x, the endogenous reward is R(n, x°, a) and the term of variable i is
      R(n, x° with x^i, a) - R(n, x°, a). Variables that pay only together are looked for in states
      that occur, and get a term together.
    * **Rewards** are functions of the state and the action, so they are always asked for under
      the same seeds. One that depends on chance is averaged over ``reward_samples`` of them.

    * **What is played.** Before something is learned or planned, episodes of the environment itself
      are compared with what the model says of the same states (:meth:`check_claims`).
      :meth:`play` plays a policy in the environment.

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
        access: how the state of the environment is read and set.
        stepped: the model in rows of n and x.
        is_played_as_claimed: whether :meth:`check_claims` has looked, and refused nothing.

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
        check_function("split", split, optional=True)
        check_function("get_state", get_state, optional=True)
        check_function("set_state", set_state, optional=True)
        check_function("make_env", make_env, optional=True)
        if split is not None and get_state is not None:
            raise ArgumentTypeError(
                "give either split or get_state: both say where n and x are read"
            )
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
        check_distinct(self.endogenous_variables + self.exogenous_variables)
        self.discount = check_discount("discount", discount)
        self.horizon = horizon_of(env, horizon)
        self.reward_samples = check_whole("reward_samples", reward_samples, 1)
        self.differences = differences
        self.found: Discovery | None = None
        self.is_played_as_claimed = False  # until it was looked at
        self.num_workers = check_whole("num_workers", num_workers, 1)
        scopes = None if reward_scopes is None else scope_positions(self, reward_scopes)
        self.access = SplitState(
            (n_variables, x_variables), split=split, get_state=get_state, set_state=set_state
        )
        num_terms = len(x_variables if scopes is None else scopes)
        self.stepped = stepped = SteppedModel(env, self.access, num_terms, self.horizon)
        self.num_actions = stepped.num_actions
        self.reference_action = stepped.reference_action = as_action(self, reference_action)
        probe(stepped)
        self.tells_reward_terms = stepped.tells_terms
        if self.num_workers > 1:
            make = partial(_copy_of, copy.copy(stepped), make_env)
            stepped.workers = Workers(self.num_workers, make)
        if reference is None:
            stepped.reference = stepped.initial(0)
        else:
            stepped.reference = stepped.in_range(self.access.as_row("reference is", reference))
        self.reference = State(*self.access.split_row(stepped.reference))
        self._average(self.reward_samples, scopes)

    def _average(self, reward_samples: int, scopes: list[Scope] | None) -> None:
        """Average rewards over so many seeds; look for scopes if they are not given."""
        self.reward_samples = reward_samples
        self.stepped.average(reward_samples, scopes)
        names = self.exogenous_names
        self.reward_scopes = tuple(
            tuple(names[i] for i in sorted(scope)) for scope in self.stepped.split.scopes
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
        found = discover(env, actions, names, endogenous, rng, given=arguments)
        mdp = cls(found.env, **{**found.arguments, **arguments})
        if "reward_samples" not in arguments:
            samples = wanted_samples(mdp.stepped)
            if samples > 1:
                scopes = mdp.stepped.split.scopes if "reward_scopes" in arguments else None
                mdp._average(samples, scopes)
                arguments = {**arguments, "reward_samples": samples}
        while found.may_be_split_anew and mdp.exogenous_variables:
            moved = find_moved(mdp.stepped)
            if moved is None:
                break
            found = found.with_moved(moved)
            mdp = cls(found.env, **{**found.arguments, **arguments})
        mdp.found = found
        return mdp

    # --- the model --------------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """The states after ``size`` resets."""
        size = as_size(self, size)
        rows = np.zeros((size, len(self.access.names)), dtype=self.access.ranges.dtype)
        for i, seed in enumerate(_seeds(rng, size).tolist()):
            rows[i] = self.stepped.initial(seed)
        return self._as_state(rows, np.zeros(size, dtype=np.bool_), (size,))

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """The x' after one step from (the reference's n, x) with the reference action."""
        state = State(self._with_end(self.reference.endogenous, 0), exogenous)
        batch, rows, _, _ = self._flatten(state, np.array(self.reference_action))
        seeds, shape = _seeds(rng, len(rows)), (*batch, len(self.exogenous_variables))
        if not self.exogenous_variables:
            return np.zeros(shape, dtype=np.int64)
        x = rows[:, len(self.reference.endogenous) :]
        return self.stepped.exogenous_after(x, seeds).reshape(shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """The n' and ``done`` after one step from (n, x)."""
        return self.observed_step(state, action, rng)[0].endogenous

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The payment of the variables of each scope, see the class; nothing once ``done``."""
        batch, rows, alive, actions = self._flatten(state, action)
        terms = np.zeros((len(rows), len(self.reward_scopes)))
        terms[alive] = self.stepped.terms(rows[alive], actions[alive])
        return terms.reshape(*batch, len(self.reward_scopes))

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """The payment at the reference's x beyond the terms there; nothing once ``done``."""
        state = State(endogenous, self.reference.exogenous)
        batch, rows, alive, actions = self._flatten(state, action)
        rewards = np.zeros(len(rows))
        rewards[alive] = self.stepped.endogenous(rows[alive], actions[alive])
        return rewards.reshape(batch)

    # --- the environment itself -------------------------------------------------------------

    def observed_step(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[State, FloatArray]:
        """One step of the environment itself from each state: s' and the reward.

        Here n' and x' come from one step, with the reward that it paid: the truth that the
        factored model claims to equal. States that are ``done`` stay and pay nothing. After the
        end of an episode, a variable whose value is out of range stays as it was.
        """
        batch, rows, alive, actions = self._flatten(state, action)
        seeds = _seeds(rng, len(rows))
        done, reward = ~alive, np.zeros(len(rows))
        steps = self.stepped.step(rows[alive], actions[alive], seeds[alive])
        nowhere = self.access.ranges.misfits(steps.following)
        rows[alive] = np.where(nowhere, rows[alive], steps.following)
        done[alive] = steps.terminated
        reward[alive] = steps.reward
        return self._as_state(rows, done, batch), reward.reshape(batch)

    def sample_outcome(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, FloatArray]:
        """The n' (and ``done``) of one step of the environment, and the reward that it paid.

        That is how a policy is played in the model: noise in the reward is drawn anew in each
        step, so nobody can count on it, and one step is asked for instead of many.
        """
        following, reward = self.observed_step(state, action, rng)
        return following.endogenous, reward

    def play(
        self, policy: Callable[[State], Any], episodes: int = 100, seed: int = 0
    ) -> FloatArray:
        """Discounted returns of episodes of the environment itself, shape (episodes,).

        Nothing of the model is asked: the environment is reset and stepped, and the policy acts
        on what its observations show (:meth:`state_of`). Episodes end when the environment says
        so, or at the model's horizon. :func:`planners.evaluate` does this for such a model.

        Args:
            policy: maps a :class:`State` to an action; a :class:`planners.Policy`, say.
            episodes: how many.
            seed: of the resets.
        """
        return np.array(list(self.play_episodes(policy, episodes, seed)), dtype=np.float64)

    def play_episodes(
        self,
        policy: Callable[[State], Any],
        episodes: int,
        seed: int,
        *,
        horizon: int | None = None,
        watch: WatchStep | None = None,
    ) -> Iterator[float]:
        """The same, one episode after another; ``watch`` is shown every step."""
        check_function("policy", policy)
        check_function("watch", watch, optional=True)
        episodes = check_lanes("episodes", episodes, len(self.access.names) + 1, least=1)
        steps = check_horizon("horizon", self.horizon if horizon is None else horizon)
        rng = np.random.default_rng(check_whole("seed", seed, 0))
        for own in _seeds(rng, episodes).tolist():
            total = 0.0
            observation, _ = self.env.reset(seed=own)
            for step in range(steps):
                tick()
                state = self.state_of(observation)
                action = as_action(self, np.asarray(policy(state)).item())
                if watch is not None:
                    watch(step, state, action)
                observation, reward, terminated, truncated, _ = self.env.step(action)
                total += self.discount**step * float(reward)
                if terminated or truncated:
                    break
            yield total

    def state_of(self, observation: Any, env: Env | None = None) -> State:
        """The state that an observation of the environment shows, for a policy to act on.

        >>> from gymnasium.envs.toy_text.taxi import TaxiEnv
        >>> mdp = AdaptedMDP(
        ...     TaxiEnv(),
        ...     split=lambda s: ((s // 4,), (s % 4,)),
        ...     set_state=lambda taxi, n, x: setattr(taxi, "s", 4 * n[0] + x[0]),
        ...     endogenous_variables=[Variable("place and rider", 125)],
        ...     exogenous_variables=[Variable("destination", 4)],
        ...     horizon=200,
        ... )
        >>> mdp.state_of(41)  # not done
        State(endogenous=array([10,  0]), exogenous=array([1]))

        Args:
            observation: the answer of ``reset`` or ``step`` of the environment, or of another one
                of its kind, while the episode goes on.
            env: the environment that showed it, which ``get_state`` reads; by default the one that
                was adapted. Where observations tell the state it is not needed.
        """
        row = self.stepped.read(observation, env)
        return self._as_state(row[None], np.zeros(1, dtype=np.bool_), ())

    def check_claims(self) -> None:
        """Refuse the model, or warn, once, if episodes of the environment itself differ.

        Learners and :func:`planners.estimate_objective` do this before anything is learned or
        planned (:func:`exo_envs.sources.simulators.played.find_differences`).

        Raises:
            PlayedDifferentlyError: its ``reason`` says why, and its message what to do about it.
        """
        if self.is_played_as_claimed:
            return
        found = next(find_differences(self.stepped), None)
        if found is not None and self.differences == "refuse":
            raise PlayedDifferentlyError(found)
        self.is_played_as_claimed = True
        if found is not None:
            warnings.warn(
                f"{found}; the model is an approximation: compare what it claims with what "
                "AdaptedMDP.play earns",
                PlayedDifferentlyWarning,
                stacklevel=3,
            )

    def why_different(self, policy: Callable[[State], Any]) -> str:
        """In which way the environment is not what the model says, where a policy leads.

        Episodes of random actions need not show it: they may never come so far. Empty if there is
        nothing to be found in a few hundred steps.
        """
        check_function("policy", policy)

        def follow(row: Row, rng: np.random.Generator) -> int:
            if rng.random() < EXPLORED:
                return int(rng.integers(self.num_actions))
            state = self._as_state(row[None], np.zeros(1, dtype=np.bool_), ())
            return int(np.asarray(policy(state)).item())

        return str(next(find_differences(self.stepped, choose=follow), ""))

    def close(self) -> None:
        """Close the environment, and the processes with its copies."""
        self.stepped.close()

    # --- rows -------------------------------------------------------------------------------

    def _flatten(
        self, state: State, action: IntArray
    ) -> tuple[tuple[int, ...], Rows, BoolArray, IntArray]:
        """The batch, its rows of n (without ``done``) and x, which are alive, and the actions."""
        batch, n, x, actions = as_batch(self, state, action)
        return batch, np.concatenate([n[:, :-1], x], axis=1), n[:, -1] == 0, actions

    def _as_state(self, rows: Rows, done: BoolArray, batch: tuple[int, ...]) -> State:
        """The states of rows (B, k + m) of n and x."""
        n, x = self.access.split_row(rows)
        n = self._with_end(n, done)
        return State(n.reshape(*batch, n.shape[1]), x.reshape(*batch, x.shape[1]))


def _seeds(rng: np.random.Generator, size: int) -> IntArray:
    """Seeds that every environment takes."""
    return rng.integers(NUM_SEEDS, size=size)


def _copy_of(stepped: SteppedModel, make_env: Callable[[], Env] | None) -> SteppedModel:
    """The copy of a process, which need not be looked at again."""
    if make_env is not None:
        stepped.env = make_env()
    return stepped
