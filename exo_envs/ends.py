"""Episodes whose end is carried in the endogenous part of the state.

A planner that ignores some of x must still know whether the episode is over. So a model whose end
looks at x gets one more endogenous variable, ``done``, which is set when the episode ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from exo_envs.inputs import as_generator, as_values
from exo_envs.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    State,
    Successors,
    Variable,
    as_pair,
)

#: The last endogenous variable of such a model. No observation shows it: it is 0 until the end.
DONE = Variable("done", 2)
#: States in which it is looked for what the end of an episode looks at.
NUM_STATES = 512


class EndCarryingMDP(ExoMDP):
    """A model whose last endogenous variable is ``done``: the episode is over where it is 1."""

    def is_terminal(self, state: State) -> BoolArray:
        """Whether a step has ended the episode."""
        n = as_values("endogenous", as_pair(state).endogenous, self.endogenous_variables)
        return np.asarray(n[..., -1] == 1)

    def _with_end(self, endogenous: IntArray, done: Any) -> IntArray:
        """The n (..., k) followed by ``done`` (...), in the type of the endogenous part."""
        done = np.broadcast_to(np.asarray(done), endogenous.shape[:-1])
        joined = np.concatenate([endogenous, done[..., None]], axis=-1)
        return joined.astype(self.dtype_of("endogenous"))


def carry_end(
    mdp: ExoMDP,
    *,
    looks_at: Collection[str] | None = None,
    rng: np.random.Generator | int = 0,
) -> ExoMDP:
    """A model that pays the same and whose end looks at n alone.

    A state in which ``mdp`` is over still takes one step here: it pays nothing and sets the
    endogenous variable ``done``. So returns are the same, whatever the policy. Since no term
    of the reward is paid in such a state, every term also looks at what the end looks at.

    Args:
        mdp: the model.
        looks_at: the exogenous variables that :meth:`ExoMDP.is_terminal` looks at. By default they
            are found by changing one variable at a time, in states that occur and in random ones.
        rng: draws these states.

    Returns:
        The model with ``done``; ``mdp`` itself if its end looks at no exogenous variable.
    """
    if looks_at is None:
        names = _found(mdp, as_generator("rng", rng))
    else:
        names = tuple(mdp.exogenous_names[i] for i in sorted(mdp.exogenous_indices(looks_at)))
    return _CarriedEnd(mdp, names) if names else mdp


def _found(mdp: ExoMDP, rng: np.random.Generator) -> tuple[str, ...]:
    """The exogenous variables with which the end of an episode is seen to change."""
    size = NUM_STATES // 2
    state, others = mdp.trajectories(size, min(mdp.horizon, 16), rng)
    met = [state]
    for x in others:
        action = rng.integers(mdp.num_actions, size=size)
        state = State(mdp.sample_endogenous(state, action, rng), x)
        met.append(state)
    walked = State(*(np.concatenate(part) for part in zip(*met, strict=True)))
    chosen = rng.choice(len(walked.endogenous), size=size, replace=False)
    parts = zip((part[chosen] for part in walked), mdp.sample_uniform(size, rng), strict=True)
    states = State(*(np.concatenate(part) for part in parts))
    ended = mdp.is_terminal(states)
    found = []
    for i, name in enumerate(mdp.exogenous_names):
        for _ in range(4):
            x = states.exogenous.copy()
            x[:, i] = rng.permutation(x[:, i])
            if (mdp.is_terminal(State(states.endogenous, x)) != ended).any():
                found.append(name)
                break
    return tuple(found)


class _CarriedEnd(EndCarryingMDP):
    """What :func:`carry_end` returns."""

    def __init__(self, model: ExoMDP, looks_at: tuple[str, ...]) -> None:
        self.declare_as(model)
        self.model = model
        self.looks_at = looks_at
        self.endogenous_variables = (*model.endogenous_variables, DONE)
        order = {name: i for i, name in enumerate(model.exogenous_names)}
        fees = (looks_at,) if model.has_endogenous_reward else ()
        scopes = ({*scope, *looks_at} for scope in (*model.reward_scopes, *fees))
        self.reward_scopes = tuple(tuple(sorted(scope, key=order.__getitem__)) for scope in scopes)

    @property
    def held_out(self) -> ExoMDP:
        """That of the model, with its end carried as well."""
        own = self.model.held_out
        return self if own is self.model else _CarriedEnd(own, self.looks_at)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        """Of the model."""
        state = self.model.sample_initial(size, rng)
        return State(self._with_end(state.endogenous, 0), state.exogenous)

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        """Of the model."""
        state, following = self.model.trajectories(size, num_steps, rng)
        return State(self._with_end(state.endogenous, 0), state.exogenous), following

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """Of the model."""
        return self.model.sample_exogenous(exogenous, rng)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Of the model; nothing moves any more where it is over."""
        inner, over = self._inner(state)
        n = self.model.sample_endogenous(inner, action, rng)
        return self._with_end(np.where(over[..., None], inner.endogenous, n), over)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        """Of the model, if it gives one."""
        inner, over = self._inner(state)
        found = self.model.endogenous_distribution(inner, action)
        if found is None:
            return None
        n = np.where(over[..., None, None], inner.endogenous[..., None, :], found.endogenous)
        return Successors(self._with_end(n, over[..., None]), found.probabilities)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Of the model, nothing where it is over; its R(n, a) is the last column, if it has one."""
        inner, over = self._inner(state)
        terms = np.asarray(self.model.reward_terms(inner, action), dtype=np.float64)
        if self.model.has_endogenous_reward:
            fees = self.model.endogenous_reward(inner.endogenous, action)
            terms = np.concatenate([terms, np.asarray(fees)[..., None]], axis=-1)
        return np.where(over[..., None], 0.0, terms)

    def _inner(self, state: State) -> tuple[State, BoolArray]:
        """The model's state, and whether it is over there."""
        state = as_pair(state)
        n = np.asarray(state.endogenous)[..., :-1].astype(self.model.dtype_of("endogenous"))
        inner = State(n, state.exogenous)
        over = self.is_terminal(state) | self.model.is_terminal(inner)
        return inner, np.asarray(over)
