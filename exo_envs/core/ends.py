"""Episodes whose end is carried in the endogenous part of the state.

A planner that ignores some of x must still know whether the episode is over. So a model whose end
looks at x gets one more endogenous variable, ``done``, which is set when the episode ends
(:func:`carry_end`). Learners do so by themselves. Adapted environments and RDDL descriptions have
the same variable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from exo_envs.core.arguments import as_generator, shown
from exo_envs.core.batches import as_lanes, as_values
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import (
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
#: The same in a model that answers one state at a time.
FEW_STATES = 64
#: Steps that the agent takes at most to get there.
NUM_STEPS = 16
#: How often the x of these states are exchanged.
NUM_ROUNDS = 16


class EndCarryingMDP(ExoMDP):
    """A model whose last endogenous variable is ``done``: the episode is over where it is 1."""

    def is_terminal(self, state: State) -> BoolArray:
        n = as_values("endogenous", as_pair(state).endogenous, self.endogenous_ranges)
        return np.asarray(n[..., -1] == 1)

    def _with_end(self, endogenous: IntArray, done: Any) -> IntArray:
        """The n (..., k) followed by ``done`` (...), in the type of the endogenous part."""
        done = np.broadcast_to(np.asarray(done), endogenous.shape[:-1])
        joined = np.concatenate([endogenous, done[..., None]], axis=-1)
        return joined.astype(self.dtype_of("endogenous"))


class CarriedEnd(EndCarryingMDP):
    """What :func:`carry_end` returns: a model with its end in the endogenous variable ``done``.

    Args:
        model: the model.
        looks_at: the exogenous variables that its end looks at.

    Attributes:
        model: the model.
        looks_at: these variables, in the model's order.
    """

    def __init__(self, model: ExoMDP, looks_at: Collection[str]) -> None:
        own = model.endogenous_variables + model.exogenous_variables
        if DONE.name in (variable.name for variable in own):
            raise ArgumentError(
                f"the model has a variable {DONE.name!r}, which is the name of the one that "
                "carries the end of an episode; give it another name"
            )
        self.declare_as(model)
        self.model = model
        self.looks_at = _in_order(model, looks_at)
        self.endogenous_variables = (*model.endogenous_variables, DONE)
        fees = ((),) if model.has_endogenous_reward else ()
        self.reward_scopes = tuple(
            _in_order(model, {*scope, *self.looks_at}) for scope in (*model.reward_scopes, *fees)
        )

    @property
    def held_out(self) -> CarriedEnd:
        own = self.model.held_out
        return self if own is self.model else CarriedEnd(own, self.looks_at)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        state = self.model.sample_initial(size, rng)
        return State(self._with_end(state.endogenous, 0), state.exogenous)

    def trajectories(
        self, size: int, num_steps: int, rng: np.random.Generator
    ) -> tuple[State, Iterator[IntArray]]:
        state, following = self.model.trajectories(size, num_steps, rng)
        return State(self._with_end(state.endogenous, 0), state.exogenous), following

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        return self.model.sample_exogenous(exogenous, rng)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Of the model; nothing moves any more where it is over."""
        shape, inner, over, actions = self._inner(state, action)
        n = self.model.sample_endogenous(inner, actions, rng)
        n = self._with_end(np.where(over[:, None], inner.endogenous, n), over)
        return n.reshape(*shape, n.shape[-1])

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        shape, inner, over, actions = self._inner(state, action)
        found = self.model.endogenous_distribution(inner, actions)
        if found is None:
            return None
        n = np.where(over[:, None, None], inner.endogenous[:, None, :], found.endogenous)
        n, chances = self._with_end(n, over[:, None]), np.asarray(found.probabilities)
        return Successors(n.reshape(*shape, *n.shape[1:]), chances.reshape(*shape, -1))

    #: It is a term, since nothing is paid where x ends the episode.
    endogenous_reward = ExoMDP.endogenous_reward

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """Of the model, nothing where it is over; its R(n, a) is the last column, if it has one."""
        shape, inner, over, actions = self._inner(state, action)
        terms = np.asarray(self.model.reward_terms(inner, actions), dtype=np.float64)
        if self.model.has_endogenous_reward:
            fees = self.model.endogenous_reward(inner.endogenous, actions)
            terms = np.concatenate([terms, np.asarray(fees)[:, None]], axis=-1)
        return np.where(over[:, None], 0.0, terms).reshape(*shape, terms.shape[-1])

    def without_end(self, state: State) -> State:
        """The model's own state: the same without ``done``."""
        state = as_pair(state)
        n = as_values("endogenous", state.endogenous, self.endogenous_ranges)[..., :-1]
        return State(n.astype(self.model.dtype_of("endogenous")), state.exogenous)

    def _inner(
        self, state: State, action: IntArray
    ) -> tuple[tuple[int, ...], State, BoolArray, IntArray]:
        """The batch shape; then, one a lane, the model's states, whether it is over, the action."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        inner = State(n[:, :-1].astype(self.model.dtype_of("endogenous")), x)
        over = (n[:, -1] == 1) | self.model.is_terminal(inner)
        return shape, inner, np.asarray(over), actions


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

    Policies for that model also take states of ``mdp``, in which ``done`` is missing.

    Args:
        mdp: the model.
        looks_at: the exogenous variables that :meth:`ExoMDP.is_terminal` looks at. By default they
            are looked for in states that occur and in random ones: whenever two of them that differ
            in x alone are not both over, the variables that make the difference are found by
            exchanging one at a time.
        rng: draws these states.

    Returns:
        The model with ``done``; ``mdp`` itself if its end looks at no exogenous variable.

    Raises:
        ValueError: the model has a variable ``done`` of its own, or lacks one of ``looks_at``.
    """
    if not isinstance(mdp, ExoMDP):
        raise ArgumentTypeError(f"mdp is an ExoMDP, not {shown(mdp)}")
    rng = as_generator("rng", rng)
    names = _found(mdp, rng) if looks_at is None else _in_order(mdp, looks_at)
    return CarriedEnd(mdp, names) if names else mdp


def _in_order(mdp: ExoMDP, names: Collection[str]) -> tuple[str, ...]:
    if isinstance(names, np.ndarray):
        names = names.reshape(-1).tolist()
    return tuple(mdp.exogenous_names[i] for i in sorted(set(mdp.exogenous_indices(names).tolist())))


def _found(mdp: ExoMDP, rng: np.random.Generator) -> tuple[str, ...]:
    """The exogenous variables with which the end of an episode is seen to change."""
    states = _states(mdp, rng)
    ended = np.asarray(mdp.is_terminal(states), dtype=np.bool_)
    found: set[int] = set()
    for _ in range(NUM_ROUNDS):
        others = states.exogenous[rng.permutation(len(ended))]
        differs = np.asarray(mdp.is_terminal(State(states.endogenous, others))) != ended
        if not differs.any():
            continue
        # From the one x to the other, a variable at a time: whoever changes the end is found.
        n, x, others = states.endogenous[differs], states.exogenous[differs], others[differs]
        before = ended[differs]
        for i in rng.permutation(len(mdp.exogenous_names)).tolist():
            x[:, i] = others[:, i]
            after = np.asarray(mdp.is_terminal(State(n, x.copy())), dtype=np.bool_)
            if (after != before).any():
                found.add(i)
            before = after
    return tuple(mdp.exogenous_names[i] for i in sorted(found))


def _states(mdp: ExoMDP, rng: np.random.Generator) -> State:
    """States of a random walk, and as many random ones."""
    size = (NUM_STATES if mdp.is_batched else FEW_STATES) // 2
    lanes = -(-size // NUM_STEPS)
    state, following = mdp.trajectories(lanes, min(mdp.horizon, NUM_STEPS), rng)
    met = [state]
    for x in following:
        action = rng.integers(mdp.num_actions, size=lanes)
        state = State(mdp.sample_endogenous(state, action, rng), x)
        met.append(state)
    anywhere = mdp.sample_uniform(size, rng)
    return State(*(np.concatenate(part) for part in zip(*met, anywhere, strict=True)))
