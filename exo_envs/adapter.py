"""Environments that somebody else wrote, as an :class:`ExoMDP` to sample from.

A Gymnasium environment knows only where it is now. One that can be put into a given state is a
generative model all the same: put it there, seed it, take one step, read what came of it. That is
all :class:`AdaptedMDP` does. What the environment cannot say is whether its exogenous variables
really move by themselves and whether its reward really is a sum over them (section 3.1 of the
paper): those are claims of whoever splits its state in two, and
:func:`exo_envs.testing.check_mdp` compares them with :meth:`AdaptedMDP.observed_step`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from exo_envs.inputs import as_action, as_integers
from exo_envs.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Variable

PARTS = State._fields
NUM_SEEDS = 2**31  # what every environment takes, legacy NumPy and C generators included
NUM_PROBES = 16  # states that a new adapter tries to put its environment into
NEEDED_SPACE = "Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)"
NOTHING: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

Env: TypeAlias = gym.Env[Any, Any]
Pair: TypeAlias = tuple[Any, Any]


class _Steps(NamedTuple):
    """What a batch of single steps of the environment gave, not yet checked."""

    endogenous: IntArray  # (B, k), without `done`
    exogenous: IntArray  # (B, m)
    reward: FloatArray  # (B,)
    terminated: BoolArray  # (B,)
    reward_terms: FloatArray | None  # (B, m), if the environment tells them


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
      different episodes: the model is P(n'|n,a,x) P(x'|x) whatever the environment does.
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
        reference: the pair (n, x) described above; by default an initial state.
        reference_action: the action described above.
        reward_samples: the number of seeds a reward is averaged over.

    Raises:
        TypeError: if the environment lacks something; the message says what to give.
        ValueError: if an argument does not fit the environment, or if the environment does not go
            where it is put.
    """

    def __init__(
        self,
        env: Env,
        *,
        split: Callable[[Any], Pair] | None = None,
        get_state: Callable[[Any], Pair] | None = None,
        set_state: Callable[[Any, IntArray, IntArray], object] | None = None,
        endogenous_variables: Sequence[Variable | str] | None = None,
        exogenous_variables: Sequence[Variable | str] | None = None,
        discount: float = 0.99,
        horizon: int | None = None,
        reference: State | Mapping[str, Any] | Pair | None = None,
        reference_action: int = 0,
        reward_samples: int = 1,
    ) -> None:
        """See the class."""
        if not isinstance(env, gym.Env):
            raise TypeError(f"an AdaptedMDP is made of a gymnasium.Env, not of {env!r}")
        if split is not None and get_state is not None:
            raise TypeError("give either split or get_state: both say where n and x are read")
        self.env = env
        self._split = _split_dict if split is None else split
        self._get_state = get_state
        self._set_state = set_state
        given = {"endogenous": endogenous_variables, "exogenous": exogenous_variables}
        if split is None and get_state is None:
            self._variables = _variables_of_space(env.observation_space, given)
        else:
            self._variables = _given_variables(given)
        self.endogenous_variables = (*self._variables["endogenous"], Variable("done", 2))
        self.exogenous_variables = self._variables["exogenous"]
        _check_names(self.endogenous_variables + self.exogenous_variables)
        self.num_actions = _num_actions(env.action_space)
        self.discount = _check_discount(discount)
        self.horizon = _check_horizon(env, horizon)
        self.reward_samples = _check_count("reward_samples", reward_samples)
        self.reference_action = as_action(self, reference_action)
        self._tells_terms = False
        self._probe()
        self.reference = self._as_reference(reference)  # without `done`

    # --- the model --------------------------------------------------------------------------

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """What ``size`` resets give."""
        endogenous = np.zeros((size, len(self.endogenous_variables)), dtype=np.int64)
        exogenous = np.zeros((size, len(self.exogenous_variables)), dtype=np.int64)
        for i, seed in enumerate(_seeds(rng, (size,)).tolist()):
            endogenous[i, :-1], exogenous[i] = self._initial(seed)
        return State(endogenous, exogenous)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """The x' after one step from (the reference's n, x) with the reference action."""
        batch = exogenous.shape[:-1]
        seeds = _seeds(rng, batch).reshape(-1)
        x = _rows(exogenous)
        if x.shape[1] == 0:
            return np.zeros(exogenous.shape, dtype=np.int64)
        n = np.broadcast_to(self.reference.endogenous, (len(x), len(self.reference.endogenous)))
        steps = self._step(n, x, np.full(len(x), self.reference_action), seeds)
        wrong = self._wrong("exogenous", steps.exogenous)
        self._check("exogenous", steps.exogenous, wrong & ~steps.terminated)
        hint = "; the step ended the episode: give a reference (or its action) that never does"
        self._check("exogenous", steps.exogenous, wrong, hint)
        return steps.exogenous.reshape(exogenous.shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """The n' and ``done`` after one step from (n, x)."""
        return self.observed_step(state, action, rng)[0].endogenous

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """What each exogenous variable pays, see the class; nothing once ``done``."""
        n, x, alive, actions = self._flatten(state, action)
        terms = np.zeros(x.shape)
        if self._tells_terms:
            terms[alive] = self._rewards_at(n[alive], x[alive], actions[alive])[1]
        else:
            # Where x^i is the reference's, the term is 0 and nothing need be asked.
            differs = alive[:, None] & (x != self.reference.exogenous)
            origin = np.tile(self.reference.exogenous, (len(x), 1))
            base = np.zeros(len(x))
            some = differs.any(axis=1)
            base[some] = self._rewards_at(n[some], origin[some], actions[some])[0]
            for i in np.flatnonzero(differs.any(axis=0)):
                rows = np.flatnonzero(differs[:, i])
                changed = origin[rows]
                changed[:, i] = x[rows, i]
                reward = self._rewards_at(n[rows], changed, actions[rows])[0]
                terms[rows, i] = reward - base[rows]
        return terms.reshape(state.exogenous.shape)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """What is paid at the reference's x beyond the terms there; nothing once ``done``."""
        batch = endogenous.shape[:-1]
        x = np.broadcast_to(self.reference.exogenous, (*batch, len(self.exogenous_variables)))
        n, flat, alive, actions = self._flatten(State(endogenous, x), action)
        rewards = np.zeros(len(n))
        total, terms = self._rewards_at(n[alive], flat[alive], actions[alive])
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
        factored model claims to equal. States that are ``done`` stay and pay nothing. What the
        environment shows after the end of an episode counts if it is in range; otherwise the
        part stays as it was.
        """
        n, x, alive, actions = self._flatten(state, action)
        seeds = _seeds(rng, np.shape(state.endogenous)[:-1]).reshape(-1)
        endogenous, exogenous, done = n.copy(), x.copy(), ~alive
        reward = np.zeros(len(n))
        steps = self._step(n[alive], x[alive], actions[alive], seeds[alive])
        for part, into, values in (
            ("endogenous", endogenous, steps.endogenous),
            ("exogenous", exogenous, steps.exogenous),
        ):
            wrong = self._wrong(part, values)
            self._check(part, values, wrong & ~steps.terminated)
            into[alive] = np.where(wrong[:, None], into[alive], values)
        done[alive] = steps.terminated
        reward[alive] = steps.reward
        following = np.concatenate([endogenous, done[:, None]], axis=1).astype(np.int64)
        return (
            State(
                following.reshape(state.endogenous.shape), exogenous.reshape(state.exogenous.shape)
            ),
            reward.reshape(state.endogenous.shape[:-1]),
        )

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    # --- the environment --------------------------------------------------------------------

    def _start(self, n: IntArray, x: IntArray, seed: int) -> Any:
        """Put the environment into a state; what the reset showed."""
        if self._set_state is None:
            state = {part: v for part, v in zip(PARTS, (n, x), strict=True) if len(v)}
            return self.env.reset(seed=seed, options={"state": state})[0]
        observation, _ = self.env.reset(seed=seed)
        self._set_state(self.env.unwrapped, n, x)
        return observation

    def _read(self, observation: Any) -> tuple[IntArray, IntArray]:
        """The (n, x) of the environment after ``observation``, of the right shapes."""
        if self._get_state is None:
            pair = self._split(observation)
        else:
            pair = self._get_state(self.env.unwrapped)
        if not isinstance(pair, (tuple, list)) or len(pair) != len(PARTS):
            raise TypeError(
                f"split and get_state return a pair (endogenous, exogenous), not {pair!r}"
            )
        return self._vector("endogenous", pair[0]), self._vector("exogenous", pair[1])

    def _initial(self, seed: int) -> State:
        return self._in_range(*self._read(self.env.reset(seed=seed)[0]))

    def _step(self, n: IntArray, x: IntArray, actions: IntArray, seeds: IntArray) -> _Steps:
        """One seeded step from each row: the only place where the environment is stepped."""
        size = len(n)
        endogenous, exogenous = np.empty_like(n), np.empty_like(x)
        reward, terminated = np.empty(size), np.empty(size, dtype=np.bool_)
        terms = np.empty(x.shape) if self._tells_terms else None
        # The environment may keep what it is given, and write to it.
        rows = zip(n.copy(), x.copy(), actions.tolist(), seeds.tolist(), strict=True)
        for i, (n_i, x_i, action, seed) in enumerate(rows):
            self._start(n_i, x_i, seed)
            observation, reward[i], terminated[i], _, info = self.env.step(action)
            endogenous[i], exogenous[i] = self._read(observation)
            if terms is not None:
                terms[i] = self._terms(info)
        return _Steps(endogenous, exogenous, reward, terminated, terms)

    def _rewards_at(
        self, n: IntArray, x: IntArray, actions: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """R(n, x, a) and what the environment says of its terms (0 if nothing), per row.

        Rows that occur more than once are asked for once.
        """
        queries = np.concatenate([n, x, actions[:, None]], axis=1)
        distinct, inverse = np.unique(queries, axis=0, return_inverse=True)
        n, x, actions = np.split(distinct, [n.shape[1], n.shape[1] + x.shape[1]], axis=1)
        reward, terms = np.zeros(len(distinct)), np.zeros(x.shape)
        for seed in range(self.reward_samples):
            steps = self._step(n, x, actions[:, 0], np.full(len(distinct), seed))
            reward += steps.reward
            if steps.reward_terms is not None:
                terms += steps.reward_terms
        where = inverse.reshape(-1)
        return (reward / self.reward_samples)[where], (terms / self.reward_samples)[where]

    def _flatten(
        self, state: State, action: IntArray
    ) -> tuple[IntArray, IntArray, BoolArray, IntArray]:
        """Rows of n (without ``done``) and x, whether each is still alive, and the actions."""
        n = _rows(state.endogenous)
        actions = np.broadcast_to(action, state.endogenous.shape[:-1]).reshape(-1)
        return n[:, :-1], _rows(state.exogenous), n[:, -1] == 0, actions.astype(np.int64)

    # --- checks -----------------------------------------------------------------------------

    def _vector(self, part: str, values: Any) -> IntArray:
        vector = as_integers(f"the {part} part of the state", values)
        variables = self._variables[part]
        if vector.shape != (len(variables),):
            names = ", ".join(v.name for v in variables)
            raise ValueError(
                f"the {part} part of the state has shape {vector.shape}; it should be "
                f"({len(variables)},), one value for each of: {names or 'nothing'}"
            )
        return vector

    def _wrong(self, part: str, values: IntArray) -> BoolArray:
        """Whether a row of ``values``, shape (B, ...), is out of range, shape (B,)."""
        sizes = np.array([v.size for v in self._variables[part]], dtype=np.int64)
        return np.asarray(((values < 0) | (values >= sizes)).any(axis=-1))

    def _check(self, part: str, values: IntArray, wrong: BoolArray, hint: str = "") -> None:
        """Raise if any of the rows of ``values`` is ``wrong``."""
        for row in values[wrong]:
            for variable, value in zip(self._variables[part], row, strict=True):
                if not 0 <= value < variable.size:
                    raise ValueError(
                        f"{part} variable {variable.name!r} cannot be {value}; "
                        f"its values are 0 ... {variable.size - 1}{hint}"
                    )

    def _in_range(self, endogenous: IntArray, exogenous: IntArray) -> State:
        """One state, copied, if its values are in range."""
        state = State(np.array(endogenous, dtype=np.int64), np.array(exogenous, dtype=np.int64))
        for part, values in zip(PARTS, state, strict=True):
            self._check(part, values[None], self._wrong(part, values[None]))
        return state

    def _as_reference(self, given: Any) -> State:
        if given is None:
            return self._initial(0)
        pair = _split_dict(given) if isinstance(given, Mapping) else given
        if not isinstance(pair, (tuple, list)) or len(pair) != len(PARTS):
            raise TypeError(
                f"reference is a pair (endogenous, exogenous) or a mapping with the keys {PARTS}, "
                f"not {given!r}"
            )
        return self._in_range(
            self._vector("endogenous", pair[0]), self._vector("exogenous", pair[1])
        )

    def _terms(self, info: Mapping[str, Any]) -> FloatArray:
        """The reward terms that a step tells."""
        terms = np.asarray(info.get("reward_terms"), dtype=np.float64)
        if terms.shape != self.exogenous_sizes.shape:
            raise ValueError(
                f'info["reward_terms"] is {info.get("reward_terms")!r}; it used to hold '
                f"{len(self.exogenous_variables)} numbers, one for each exogenous variable"
            )
        return terms

    def _probe(self) -> None:
        """Find out whether the environment goes where it is put, and tells its reward terms."""
        states, infos = self._walk()
        self._tells_terms = bool(self.exogenous_variables and infos) and all(
            np.asarray(info.get("reward_terms")).shape == self.exogenous_sizes.shape
            for info in infos
        )
        if self._set_state is None or self._get_state is not None:
            for state in states:
                self._check_arrival(state)
        elif len(states) > 1 and not self._is_moved(states):
            # Here nothing shows the state before a step, so this is all that can be found out.
            raise ValueError(
                f"set_state has no effect: put into {len(states)} different states, the "
                "environment always took the same step"
            )

    def _walk(self) -> tuple[list[State], list[dict[str, Any]]]:
        """Different states met on the way from a few initial ones, and what steps said there."""
        states: dict[tuple[int, ...], State] = {}
        infos = []
        rng = np.random.default_rng(0)
        for seed in range(NUM_PROBES // 2):
            state = self._initial(seed)
            for action in rng.integers(self.num_actions, size=NUM_PROBES // 2).tolist():
                states.setdefault((*state.endogenous.tolist(), *state.exogenous.tolist()), state)
                observation, _, terminated, truncated, info = self.env.step(action)
                infos.append(info)
                if terminated or truncated:  # in a state that need not be one to start in
                    break
                state = self._in_range(*self._read(observation))
        return list(states.values())[:NUM_PROBES], infos

    def _check_arrival(self, state: State) -> None:
        """Put the environment into a state and see whether it is there."""
        found = State(*self._read(self._start(state.endogenous.copy(), state.exogenous.copy(), 0)))
        if all(np.array_equal(a, b) for a, b in zip(found, state, strict=True)):
            return
        wanted, got = (
            f"n = {s.endogenous.tolist()}, x = {s.exogenous.tolist()}" for s in (state, found)
        )
        if self._set_state is not None:
            raise ValueError(f"set_state was given {wanted}, but get_state then says {got}")
        raise ValueError(
            f'reset(options={{"state": ...}}) was to start at {wanted}, but the environment is at '
            f"{got}; if it does not know this option, give a set_state function"
        )

    def _is_moved(self, states: list[State]) -> bool:
        """Whether what a step does depends on the state the environment is put into."""
        n, x = (np.array(part) for part in zip(*states, strict=True))
        for action in range(min(self.num_actions, NUM_PROBES)):
            steps = self._step(n, x, np.full(len(n), action), np.zeros(len(n), dtype=np.int64))
            outcomes = (steps.endogenous, steps.exogenous, steps.reward, steps.terminated)
            if any((values != values[:1]).any() for values in outcomes):
                return True
        return False


def as_mdp(mdp_or_env: Any) -> ExoMDP:
    """The model behind what a user has.

    Args:
        mdp_or_env: an :class:`ExoMDP`, which is returned as it is; an environment made of one
            (single or vector, wrapped or not), which gives that model whatever its wrappers do;
            or any other ``gymnasium.Env`` that :class:`AdaptedMDP` takes without further
            arguments.

    Raises:
        TypeError: if it is none of these.
    """
    if isinstance(mdp_or_env, ExoMDP):
        return mdp_or_env
    if isinstance(mdp_or_env, (gym.Env, VectorEnv)):
        mdp = getattr(mdp_or_env.unwrapped, "mdp", None)
        if isinstance(mdp, ExoMDP):
            return mdp
    if isinstance(mdp_or_env, gym.Env):
        return AdaptedMDP(mdp_or_env)
    hint = "; of a vector environment, give one of its lanes"
    raise TypeError(
        "needed: an ExoMDP, an environment made of one, or a gymnasium.Env with the observation "
        f'{NEEDED_SPACE} and reset(options={{"state": ...}}), not {mdp_or_env!r}'
        f"{hint if isinstance(mdp_or_env, VectorEnv) else ''}"
    )


def _split_dict(observation: Mapping[str, Any]) -> Pair:
    """The two parts of the observation dict; an empty part may be missing."""
    return observation.get("endogenous", NOTHING), observation.get("exogenous", NOTHING)


def _rows(values: IntArray) -> IntArray:
    """(..., k) as (B, k)."""
    batch = math.prod(values.shape[:-1])
    return np.asarray(values, dtype=np.int64).reshape(batch, values.shape[-1])


def _seeds(rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
    return rng.integers(NUM_SEEDS, size=shape)


def _variables_of_space(
    space: spaces.Space[Any], given: Mapping[str, Sequence[Variable | str] | None]
) -> dict[str, tuple[Variable, ...]]:
    """The variables of the observation dict, named as the user wants."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    sizes_of = {
        part: values.nvec.tolist()
        for part, values in parts.items()
        if part in PARTS
        and isinstance(values, spaces.MultiDiscrete)
        and values.nvec.ndim == 1
        and not np.any(values.start)
    }
    if not parts or len(sizes_of) < len(parts):
        raise TypeError(
            f"the observation space is {space}, not {NEEDED_SPACE} with values from 0; give "
            "split (or get_state), endogenous_variables and exogenous_variables"
        )
    variables = {}
    for part, wanted in given.items():
        sizes = sizes_of.get(part, [])  # an empty part is left out of an observation
        names = [f"{part}_{i}" for i in range(len(sizes))] if wanted is None else list(wanted)
        if len(names) != len(sizes):
            raise ValueError(
                f"{part}_variables has {len(names)} entries, but the environment's {part} part "
                f"has {len(sizes)}"
            )
        variables[part] = tuple(
            _fitting_variable(part, name, size) for name, size in zip(names, sizes, strict=True)
        )
    return variables


def _fitting_variable(part: str, given: Any, size: int) -> Variable:
    variable = given if isinstance(given, Variable) else Variable(given, size)
    if variable.size != size:
        raise ValueError(
            f"{part} variable {variable.name!r} has {size} values in the environment's "
            f"observation space, not {variable.size}"
        )
    return variable


def _given_variables(
    given: Mapping[str, Sequence[Variable | str] | None],
) -> dict[str, tuple[Variable, ...]]:
    """The variables that split or get_state return, as the user says."""
    variables = {}
    for part, entries in given.items():
        if entries is None or not all(isinstance(entry, Variable) for entry in entries):
            raise TypeError(
                f"with split or get_state, {part}_variables is a sequence of Variable(name, size) "
                f"that says what they return, not {entries!r}"
            )
        variables[part] = tuple(entry for entry in entries if isinstance(entry, Variable))
    return variables


def _check_names(variables: Sequence[Variable]) -> None:
    names = [variable.name for variable in variables]
    for name in names:
        if names.count(name) > 1:
            hint = " (one of them is the adapter's own)" if name == "done" else ""
            raise ValueError(f"there are two variables named {name!r}{hint}")


def _num_actions(space: spaces.Space[Any]) -> int:
    if not isinstance(space, spaces.Discrete) or space.start != 0:
        raise TypeError(f"the action space must be Discrete(n) with actions from 0, not {space}")
    return int(space.n)


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
