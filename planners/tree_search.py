"""Monte-Carlo tree search (UCT) on the generative model, for models too large for any table.

The exogenous state hardly ever repeats, so a tree keyed by whole states would never be revisited.
The nodes here are histories of (action, n'): what the agent did and what came of it; the
exogenous variables are drawn anew in every simulation. All lanes of a batch search side by side,
one simulation each at a time, so the model is only ever called with batches.

**Many actions.** A few hundred simulations cannot tell a thousand actions apart. So where there are
more than ``MOST_NODE_ACTIONS``, every decision first tries all of them a few steps, and the tree
has the best of them and some that are drawn at random. How many of these a node looks at grows with
the square root of its visits (progressive widening, Couetoux et al. 2011).

**What is lost.** Nothing bounds what such a policy loses, however many simulations there are: n and
the actions are sampled. ``Plan.converged`` is False and ``Plan.loss_bound`` infinite.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.contract.answers import check_declaration
from exo_envs.contract.checked_mdp import checked
from exo_envs.contract.steps import check_terminal, take_step
from exo_envs.core.arguments import (
    Constraints,
    as_generator,
    check_fields,
    check_real,
    check_whole,
    optional,
    real,
    whole,
)
from exo_envs.core.clock import Clock
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State
from planners.core.arrays import Ints, joint_index
from planners.core.planner import Plan, check_problem
from planners.core.policy import Policy
from planners.discretization.coarse import coarsened, with_values
from planners.samples.rollouts import ExogenousData

#: Simulations for a decision, at most; each takes memory in every lane.
MAX_SIMULATIONS = 1_000_000
#: Steps ahead, at most.
MAX_STEPS_AHEAD = 1_000_000
#: Rollouts that show where the values of real variables lie, which are then seen in bins.
NUM_ROLLOUTS = 200
#: Actions that a node has at most.
MOST_NODE_ACTIONS = 64
#: Actions in the tree, where there are more than a node may have.
NUM_CHOSEN = 32
#: One in so many actions of the tree is drawn at random; the others did best when tried.
RANDOM_ONE_IN = 4
#: Actions that are tried for one decision at most.
MOST_TRIED = 4096
#: Steps for which an action is tried, again and again.
TRIED_STEPS = 2
#: States that are stepped together where all actions are tried.
TRIED_TOGETHER = 200_000
#: Lanes that search side by side where it is measured how long that takes.
MEASURED_LANES = 128
#: Lanes that are measured in a model that answers one state at a time; time grows with them.
SLOW_LANES = 4
#: The share of a time limit that playing an episode may take.
PLAYING_SHARE = 0.5
#: Steps of a simulation that are measured.
MEASURED_STEPS = 4
#: Steps ahead that are kept as long as there are fewer simulations to save time by.
LEAST_DEPTH = 8
#: Simulations that are kept as long as there are steps ahead to save time by.
LEAST_SIMULATIONS = 32


@dataclass(kw_only=True, eq=False)
class UCT:
    """Tree search from every observation.

    All work is done when the policy is asked. So a time limit holds for playing: the decisions of
    an episode, in 128 lanes side by side, take about half of it at most. If that takes fewer
    simulations or steps ahead than these arguments say, ``Plan.out_of_time`` is set and
    ``Plan.method`` says how many are left.

    Args:
        simulations: how many a decision takes.
        depth: how many steps ahead they go; by default as far as an episode does.
        exploration: the constant of the upper confidence bound, in units of the range of the
            returns seen so far.
    """

    simulations: int = 200
    depth: int | None = None
    exploration: float = 1.0

    constraints: ClassVar[Constraints] = {
        "simulations": whole(1),
        "depth": optional(whole(1)),
        "exploration": real(0),
    }

    def __post_init__(self) -> None:
        check_fields(self)

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> Plan:
        """Draw a seed, and see how much search the time allows; nothing starts warm."""
        check_problem(mdp, warm_start)
        clock = Clock(time_limit)
        rng = as_generator("rng", rng, default=0)
        if mdp.endogenous_ranges.is_real or mdp.exogenous_ranges.is_real:
            seen = coarsened(mdp, ExogenousData.collect(mdp, NUM_ROLLOUTS, rng).bins)
            plan = self.plan(seen, rng=rng, time_limit=clock.left(), warm_start=warm_start)
            return with_values(replace(plan, seconds=clock.seconds()), seen)
        depth, method = self.depth or mdp.horizon, "tree search"
        policy = UCTPolicy(
            mdp,
            simulations=self.simulations,
            depth=depth,
            exploration=self.exploration,
            seed=int(rng.integers(2**31)),
        )
        left = clock.left()
        is_cut = left is not None and policy._save_time(PLAYING_SHARE * left / mdp.horizon)
        if is_cut:
            method += f" with {policy.simulations} of {self.simulations} simulations"
            method += f", {policy.depth} of {depth} steps ahead"
        return Plan(
            policy,
            None,
            converged=False,  # there is no number of simulations at which it has
            residual=float("inf"),
            iterations=policy.simulations,
            seconds=clock.seconds(),
            method=method,
            out_of_time=is_cut,
        )


class UCTPolicy(Policy):
    """Searches a tree from each observation; the same observations get the same actions."""

    def __init__(
        self, mdp: ExoMDP, *, simulations: int, depth: int, exploration: float, seed: int
    ) -> None:
        super().__init__(*Policy.names_of(mdp), variables=Policy.variables_of(mdp))
        check_declaration(mdp)
        self.mdp = mdp
        self.simulations = check_whole("simulations", simulations, 1, MAX_SIMULATIONS)
        self.depth = check_whole("depth", depth, 1, MAX_STEPS_AHEAD)
        self.exploration = check_real("exploration", exploration, 0.0)
        self.seed = check_whole("seed", seed, 0)

    def _save_time(self, seconds: float) -> bool:
        """Search less, if a decision takes longer than so many seconds; and whether it does so.

        It is measured in ``MEASURED_LANES`` lanes side by side, without the time for compiling.
        """
        lanes = MEASURED_LANES if self.mdp.is_batched else SLOW_LANES
        rng = np.random.default_rng(self.seed)
        root, wanted = self.mdp.sample_initial(lanes, rng), (self.simulations, self.depth)
        self.depth = min(self.depth, MEASURED_STEPS)
        choosing = step = 0.0
        for _ in range(2):  # what is made on the first call does not count
            clock = Clock(None)
            chosen = self._choose(root, rng)
            choosing = clock.seconds()
            self._simulate(root, _Tree.empty(lanes, 2, chosen.shape[1]), chosen, rng)
            step = max((clock.seconds() - choosing) / self.depth, 1e-6)
        steps = max(0.0, seconds * lanes / MEASURED_LANES - choosing) / step
        simulations, depth = wanted
        if simulations * depth > steps:
            depth = max(min(depth, LEAST_DEPTH), int(steps / simulations))
            simulations = min(simulations, max(LEAST_SIMULATIONS, int(steps / depth)))
            depth = max(1, min(depth, int(steps / simulations)))
        self.simulations, self.depth = simulations, depth
        return (simulations, depth) != wanted

    def act(self, endogenous: NDArray[np.int64], exogenous: NDArray[np.int64]) -> IntArray:
        """The most visited first action of each lane."""
        endogenous, exogenous = self.as_batch(endogenous, exogenous)
        root = State(
            np.clip(endogenous, 0, self.mdp.endogenous_sizes - 1),
            np.clip(exogenous, 0, self.mdp.exogenous_sizes - 1),
        )
        # The noise is a function of what is asked, not of how often: a policy has no memory.
        asked = zlib.crc32(endogenous.tobytes() + exogenous.tobytes())
        rng = np.random.default_rng([self.seed, asked])
        chosen = self._choose(root, rng)
        tree = _Tree.empty(len(endogenous), self.simulations + 1, chosen.shape[1])
        for _ in range(self.simulations):
            self._simulate(root, tree, chosen, rng)
        best = tree.visits[:, 0].argmax(axis=1)
        return np.take_along_axis(chosen, best[:, None], axis=1)[:, 0]

    def _choose(self, root: State, rng: np.random.Generator) -> Ints:
        """The actions that the tree of each lane has, the most promising first, (lanes, slots)."""
        lanes, everything = len(root.endogenous), self.mdp.num_actions
        if everything <= MOST_NODE_ACTIONS:
            return np.broadcast_to(np.arange(everything), (lanes, everything))
        tried = np.arange(everything)
        if everything > MOST_TRIED:
            tried = np.sort(rng.choice(everything, size=MOST_TRIED, replace=False))
        drawn = rng.integers(everything, size=(lanes, NUM_CHOSEN))
        is_drawn = np.arange(NUM_CHOSEN) % RANDOM_ONE_IN == RANDOM_ONE_IN - 1
        chosen = drawn.copy()
        together = max(1, TRIED_TOGETHER // len(tried))
        for first in range(0, lanes, together):
            part = slice(first, first + together)
            earned = self._try(State(*(values[part] for values in root)), tried, rng)
            best = np.argsort(-earned, axis=1, kind="stable")[:, :NUM_CHOSEN]
            chosen[part, ~is_drawn] = tried[best[:, : np.count_nonzero(~is_drawn)]]
        return chosen

    def _try(self, root: State, tried: Ints, rng: np.random.Generator) -> FloatArray:
        """What each action earns if it is taken a few times, in all lanes: (lanes, actions).

        All actions meet the same x, which none of them moves.
        """
        model, lanes = checked(self.mdp), len(root.endogenous)
        action = np.tile(tried, lanes)
        n, x = np.repeat(root.endogenous, len(tried), axis=0), root.exogenous
        earned, over = np.zeros(len(action)), np.zeros(len(action), dtype=np.bool_)
        for step in range(min(TRIED_STEPS, self.depth)):
            state = State(n, np.repeat(x, len(tried), axis=0))
            over |= model.is_terminal(state)
            earned += np.where(over, 0.0, self.mdp.discount**step * model.reward(state, action))
            n, x = model.sample_endogenous(state, action, rng), model.sample_exogenous(x, rng)
        return earned.reshape(lanes, len(tried))

    def _greedy(self, state: State, chosen: Ints, rng: np.random.Generator) -> Ints:
        """The slot whose action pays most at once, one of the best where several do, (lanes,)."""
        lanes, num_slots = chosen.shape
        rows = State(*(np.repeat(values, num_slots, axis=0) for values in state))
        paid = checked(self.mdp).reward(rows, chosen.reshape(-1)).reshape(lanes, num_slots)
        is_best = paid >= paid.max(axis=1, keepdims=True)
        return np.where(is_best, rng.random(paid.shape), -1.0).argmax(axis=1)

    def _simulate(self, root: State, tree: _Tree, chosen: Ints, rng: np.random.Generator) -> None:
        """One path down the tree in every lane, a random walk from its end, and the way back."""
        lanes, num_slots = chosen.shape
        widens = num_slots < self.mdp.num_actions
        arrays = tuple(tree)  # Numba recognises plain tuples faster than named ones
        state = root
        node = np.zeros(lanes, dtype=np.int64)  # -1: below the tree
        nodes = np.full((self.depth, lanes), -1)
        slots = np.zeros((self.depth, lanes), dtype=np.int64)  # the place of an action in `chosen`
        rewards = np.zeros((self.depth, lanes))
        for d in range(self.depth):
            nodes[d] = node
            slots[d] = rng.integers(num_slots, size=lanes)
            if widens and (node < 0).any():
                slots[d] = np.where(node < 0, self._greedy(state, chosen, rng), slots[d])
            _select(arrays, node, slots[d], self.exploration, widens)
            action = np.take_along_axis(chosen, slots[d][:, None], axis=1)[:, 0]
            state, rewards[d], _ = take_step(self.mdp, state, action, rng)
            # The index may be too large for an integer and wrap round: it is only a hash.
            key = joint_index(state.endogenous, self.mdp.endogenous_sizes)
            _descend(arrays, node, key * self.mdp.num_actions + action)
            if check_terminal(self.mdp, state).all():
                break
        _back_up(arrays, nodes, slots, rewards, self.mdp.discount)


class _Tree(NamedTuple):
    """The trees of all lanes: up to ``size`` nodes each, node 0 is the root.

    Of each node so many of the actions (slots) are looked at.
    """

    visits: NDArray[np.int32]  # (lanes, size, slots)
    totals: NDArray[np.float64]  # (lanes, size, slots): the sum of the returns
    first_child: NDArray[np.int32]  # (lanes, size), or -1
    sibling: NDArray[np.int32]  # (lanes, size): the next child of the same node, or -1
    keys: Ints  # (lanes, size): the action and the n' that lead to a node
    used: NDArray[np.int32]  # (lanes,): the number of nodes
    spans: NDArray[np.float64]  # (lanes, 2): the lowest and the highest return so far

    @classmethod
    def empty(cls, lanes: int, size: int, num_slots: int) -> _Tree:
        return cls(
            visits=np.zeros((lanes, size, num_slots), dtype=np.int32),
            totals=np.zeros((lanes, size, num_slots)),
            first_child=np.full((lanes, size), -1, dtype=np.int32),
            sibling=np.full((lanes, size), -1, dtype=np.int32),
            keys=np.zeros((lanes, size), dtype=np.int64),
            used=np.ones(lanes, dtype=np.int32),
            spans=np.tile(np.array([np.inf, -np.inf]), (lanes, 1)),
        )


@njit(cache=True)
def _select(tree: Any, node: Any, action: Any, exploration: float, widens: bool) -> None:
    """Inside the tree, replace the random action by an untried one or by the best bound.

    If the tree ``widens``, a node looks at the first actions only: the more, the more visits.
    """
    visits, totals, _, _, _, _, spans = tree
    for lane in range(len(node)):
        if node[lane] < 0:
            continue
        counts, sums = visits[lane, node[lane]], totals[lane, node[lane]]
        all_visits = counts.sum()
        num_seen = len(counts)
        if widens:
            num_seen = min(num_seen, 1 + int(2.0 * np.sqrt(all_visits)))
            action[lane] %= num_seen
        if counts[action[lane]] == 0:
            continue
        spread = max(spans[lane, 1] - spans[lane, 0], 1e-12)
        best, best_bound = -1, -np.inf
        for a in range(num_seen):
            if counts[a] == 0:
                best = a
                break
            width = exploration * spread * np.sqrt(np.log(all_visits) / counts[a])
            bound = sums[a] / counts[a] + width
            if bound > best_bound:
                best, best_bound = a, bound
        action[lane] = best


@njit(cache=True)
def _descend(tree: Any, node: Any, key: Any) -> None:
    """Go to the child with this key; where there is none, add it and leave the tree."""
    _, _, first_child, sibling, keys, used, _ = tree
    for lane in range(len(node)):
        if node[lane] < 0:
            continue
        child = first_child[lane, node[lane]]
        while child >= 0 and keys[lane, child] != key[lane]:
            child = sibling[lane, child]
        if child >= 0:
            node[lane] = child
            continue
        if used[lane] < keys.shape[1]:
            child = used[lane]
            used[lane] += 1
            keys[lane, child] = key[lane]
            sibling[lane, child] = first_child[lane, node[lane]]
            first_child[lane, node[lane]] = child
        node[lane] = -1


@njit(cache=True)
def _back_up(tree: Any, nodes: Any, actions: Any, rewards: Any, discount: float) -> None:
    """Add each return to the pairs (node, action) that it passed."""
    visits, totals, _, _, _, _, spans = tree
    depth, lanes = nodes.shape
    for lane in range(lanes):
        total = 0.0
        for d in range(depth - 1, -1, -1):
            total = rewards[d, lane] + discount * total
            node = nodes[d, lane]
            if node >= 0:
                visits[lane, node, actions[d, lane]] += 1
                totals[lane, node, actions[d, lane]] += total
                spans[lane, 0] = min(spans[lane, 0], total)
                spans[lane, 1] = max(spans[lane, 1], total)
