"""The exact worth of a mask, by enumeration: what learners and planners are measured against.

What the agent does at one site changes neither when it comes to the next nor any x, so the return
is a sum over sites and each can be solved by itself, on the few variables it has to do with. That
makes large problems as easy as small ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exo_envs.core.arguments import shown
from exo_envs.core.batches import as_mask, as_state
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import FloatArray, IntArray, State
from exo_envs.domains.synthetic.model import SyntheticMDP
from exo_envs.domains.synthetic.parameters import SITE

MAX_VALUES = 4096  # joint values of x; their transition matrix has the square of it


class ExactReturn(NamedTuple):
    """The discounted return over ``horizon`` steps, in expectation and without any estimate.

    Theorem 1 says that the two are equal, and as high as can be, if the mask has the required one.
    """

    actual: float  # of the reduced policy in the full MDP: J of the paper with lambda = 0
    believed: float  # of the reduced policy in its own reduced MDP


def exact_return(
    mdp: SyntheticMDP,
    mask: Any = None,
    *,
    state: State | None = None,
    by_site: bool = True,
) -> ExactReturn:
    """What the best policy for the reduced MDP of a mask is worth.

    The reduced MDP has the transitions that one sees through the mask, with the other variables
    marginalised by their stationary distribution, and the reward terms of the variables in the
    mask (of two variables that pay together, both have to be in it); as in the paper, what is
    ignored pays nothing (``ignored_rewards="zero"``). It is solved
    by backward induction over the ``horizon`` steps of an episode, so the policy may depend on the
    time. (The best one that may not is worth less by at most the fees of one bet, which the end of
    the episode cuts off.)

    Args:
        mdp: the planted problem.
        mask: see :func:`exo_envs.core.batches.as_mask`; by default the required mask: then it is
            the optimal value.
        state: where the episode starts; by default it starts as the problem's episodes do.
        by_site: solve site by site. If False, everything is enumerated at once, which small
            problems allow; the result is the same.

    Raises:
        ValueError: if there are too many joint values to enumerate.
    """
    if not isinstance(mdp, SyntheticMDP):
        raise ArgumentTypeError(
            f"mdp is a SyntheticMDP, whose right mask is known, not {shown(mdp)}"
        )
    kept = mdp.required_mask if mask is None else as_mask(mdp, mask)
    start = None if state is None else as_state(mdp, state, ())
    if not by_site:
        return _return_at(mdp, kept, start, list(range(len(mdp.sites))))
    returns = []
    for i, site in enumerate(mdp.sites):
        # Variables that have no ancestor in common with what acts here are independent of it.
        family = set(mdp.closure(site.variables))
        related = tuple(name for name in kept if not family.isdisjoint(mdp.closure([name])))
        returns.append(_return_at(mdp, related, start, [i]))
    return ExactReturn(*np.sum(returns, axis=0).tolist())


def _return_at(
    mdp: SyntheticMDP, mask: tuple[str, ...], start: State | None, sites: list[int]
) -> ExactReturn:
    """The part of the return that is earned at ``sites``."""
    needed = mdp.closure(name for i in sites for name in mdp.sites[i].variables)
    process = _joint_process(mdp, mdp.closure((*needed, *mask)))
    full = _enumerate(mdp, process, sites, needed)
    reduced, lift = _reduce(_enumerate(mdp, process, sites, mask), process, mask)

    actual = np.zeros(full.rewards.shape[1:])  # (n, x)
    believed = np.zeros(reduced.rewards.shape[1:])  # (n, masked x)
    for _ in range(mdp.horizon):
        values = reduced.action_values(believed, mdp.discount)
        policy = values.argmax(axis=0)
        believed = np.take_along_axis(values, policy[None], axis=0)[0]
        values = full.action_values(actual, mdp.discount)
        actual = np.take_along_axis(values, policy[None][..., lift], axis=0)[0]

    if start is None:
        n, weights = mdp.initial_endogenous, process.stationary
    else:
        n = start.endogenous[None]
        here = start.exogenous[mdp.exogenous_indices(process.names)]
        weights = (process.values == here).all(axis=-1).astype(np.float64)
    rows = _codes(n, mdp.endogenous_sizes)
    return ExactReturn(
        float((actual[rows] @ weights).mean()), float((believed[rows][:, lift] @ weights).mean())
    )


@dataclass(frozen=True)
class _Process:
    """The joint process of some exogenous variables that no others drive."""

    names: tuple[str, ...]
    values: IntArray  # (X, variables): every joint value
    transitions: FloatArray  # (X, X)
    stationary: FloatArray  # (X,)


def _joint_process(mdp: SyntheticMDP, names: tuple[str, ...]) -> _Process:
    sizes = mdp.exogenous_sizes[mdp.exogenous_indices(names)]
    if math.prod(sizes.tolist()) > MAX_VALUES:
        raise ArgumentError(
            f"{len(names)} variables have {math.prod(sizes.tolist())} joint values; at most "
            f"{MAX_VALUES} can be enumerated"
        )
    values = _product(sizes)
    transitions = np.ones((len(values), 1))
    stationary = np.ones(1)
    for name in names:
        parents = tuple(values[:, names.index(parent)] for parent in mdp.parents[name])
        each = np.broadcast_to(mdp.table(name)[parents], (len(values), mdp.node(name).size))
        transitions = (transitions[:, :, None] * each[:, None, :]).reshape(len(values), -1)
        stationary = np.outer(stationary, mdp.node(name).base).ravel()
    for _ in range(mdp.depth):  # see sample_initial
        stationary = stationary @ transitions
    return _Process(names, values, transitions, stationary)


@dataclass(frozen=True)
class _Enumerated:
    """An MDP over (n, x) with x a joint value, whose n' is one of two."""

    rewards: FloatArray  # (A, N, X)
    straight: IntArray  # (A, N): n' if the bet goes straight
    turned: IntArray  # (A, N): n' if it is turned round
    turn: FloatArray  # (A, N, X): the probability of that
    transitions: FloatArray  # (X, X)

    def action_values(self, values: FloatArray, discount: float) -> FloatArray:
        """One step of backward induction, from (N, X) to (A, N, X)."""
        ahead = values @ self.transitions.T
        mean = (1 - self.turn) * ahead[self.straight] + self.turn * ahead[self.turned]
        return self.rewards + discount * mean


def _enumerate(
    mdp: SyntheticMDP, process: _Process, sites: list[int], paying: Sequence[str]
) -> _Enumerated:
    """The MDP in which only ``sites`` cost and only terms of the variables ``paying`` pay."""
    endogenous = _product(mdp.endogenous_sizes)
    action = np.arange(mdp.num_actions)[:, None, None]
    shape = (mdp.num_actions, len(endogenous), len(process.values))
    indices = mdp.exogenous_indices(process.names)
    x = np.zeros((len(process.values), len(mdp.nodes)), dtype=np.int64)
    x[:, indices] = process.values
    state = State(endogenous[:, None, :], x)

    here = np.isin(endogenous[:, SITE], sites)
    visits = State(endogenous[here][:, None, :], x)
    kept = [i for i, site in enumerate(mdp.sites) if set(site.scope).issubset(paying)]
    terms = mdp.reward_terms(visits, action)[..., mdp.reward_columns[kept]]
    rewards = np.zeros(shape)
    rewards[:, here] = terms.sum(axis=-1) + mdp.endogenous_reward(visits.endogenous, action)
    straight, turned, turn = mdp.endogenous_outcomes(state, action)
    return _Enumerated(
        rewards,
        _codes(straight[:, :, 0], mdp.endogenous_sizes),
        _codes(turned[:, :, 0], mdp.endogenous_sizes),
        turn,
        process.transitions,
    )


def _reduce(
    full: _Enumerated, process: _Process, mask: tuple[str, ...]
) -> tuple[_Enumerated, IntArray]:
    """The MDP that is seen through the mask, and the masked value of every x."""
    columns = [process.names.index(name) for name in mask]
    masked, lift = np.unique(process.values[:, columns], axis=0, return_inverse=True)
    lift = lift.reshape(-1)
    belongs = (lift == np.arange(len(masked))[:, None]).astype(np.float64)  # (masked, X)
    weights = belongs * process.stationary
    total = weights.sum(axis=1, keepdims=True)
    # Without noise some masked values never occur; what is believed about them does not matter.
    weights = np.where(total > 0, weights, belongs)
    weights /= weights.sum(axis=1, keepdims=True)
    reduced = _Enumerated(
        full.rewards @ weights.T,  # a sum over masked variables: nothing is averaged here
        full.straight,
        full.turned,
        full.turn @ weights.T,
        weights @ full.transitions @ belongs.T,
    )
    return reduced, lift


def _product(sizes: IntArray) -> IntArray:
    """Every joint value of variables of some sizes, shape (values, variables)."""
    return np.indices(tuple(sizes.tolist())).reshape(len(sizes), -1).T


def _codes(values: IntArray, sizes: IntArray) -> IntArray:
    """The positions of joint values in :func:`_product`."""
    return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(values, -1, 0)), tuple(sizes)))
