"""Monte-Carlo tree search (UCT) on the generative model, for models too large for any table.

The exogenous state hardly ever repeats, so a tree keyed by whole states would never be revisited.
The nodes here are histories of (action, n'): what the agent did and what came of it; the
exogenous variables are drawn anew in every simulation. All lanes of a batch search side by side,
one simulation each at a time, so the model is only ever called with batches.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.borders import check_declaration, check_terminal, take_step
from exo_envs.compiled import njit
from exo_envs.inputs import as_generator, check_real, check_whole, convert
from exo_envs.mdp import IntArray
from planners.archive import MAX_BYTES
from planners.arrays import Ints, joint_index
from planners.binned_policy import with_values
from planners.clock import Clock
from planners.coarse import coarsened
from planners.files import read_file, write_file
from planners.information import ExogenousData
from planners.planner import Plan, check_problem
from planners.policy import Mask, Policy

#: Simulations for a decision, at most; each takes memory in every lane.
MAX_SIMULATIONS = 1_000_000
#: Steps ahead, at most.
MAX_DEPTH = 1_000_000
#: Rollouts that show where the values of real variables lie, which are then seen in bins.
NUM_ROLLOUTS = 200


@dataclass(kw_only=True, eq=False)
class UCT:
    """Tree search from every observation.

    Args:
        simulations: how many a decision takes.
        depth: how many steps ahead they go; by default as far as an episode does.
        exploration: the constant of the upper confidence bound, in units of the range of the
            returns seen so far.
    """

    simulations: int = 200
    depth: int | None = None
    exploration: float = 1.0

    def __post_init__(self) -> None:
        convert(self, check_whole, "simulations", least=1)
        convert(self, check_whole, "depth", least=1, optional=True)
        convert(self, check_real, "exploration", least=0)

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        warm_start: Plan | None = None,
    ) -> Plan:
        """Draw a seed, since all work is done when the policy is asked; nothing starts warm."""
        check_problem(mdp, warm_start)
        clock = Clock(time_limit)
        rng = as_generator("rng", rng, default=0)
        if mdp.endogenous_ranges.is_real or mdp.exogenous_ranges.is_real:
            seen = coarsened(mdp, ExogenousData.collect(mdp, NUM_ROLLOUTS, rng).bins)
            plan = self.plan(seen, rng=rng, time_limit=clock.left(), warm_start=warm_start)
            return with_values(replace(plan, seconds=clock.seconds()), seen)
        policy = UCTPolicy(
            mdp,
            simulations=self.simulations,
            depth=self.depth or mdp.horizon,
            exploration=self.exploration,
            seed=int(rng.integers(2**31)),
        )
        return Plan(
            policy,
            None,
            converged=True,
            residual=0.0,
            iterations=self.simulations,
            seconds=clock.seconds(),
            method="tree search",
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
        self.depth = check_whole("depth", depth, 1, MAX_DEPTH)
        self.exploration = check_real("exploration", exploration, 0.0)
        self.seed = check_whole("seed", seed, 0)

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
        tree = _Tree.empty(len(endogenous), self.simulations + 1, self.mdp.num_actions)
        for _ in range(self.simulations):
            self._simulate(root, tree, rng)
        return tree.visits[:, 0].argmax(axis=1)

    def _simulate(self, root: State, tree: _Tree, rng: np.random.Generator) -> None:
        """One path down the tree in every lane, a random walk from its end, and the way back."""
        lanes = len(root.endogenous)
        arrays = tuple(tree)  # Numba recognises plain tuples faster than named ones
        state = root
        node = np.zeros(lanes, dtype=np.int64)  # -1: below the tree
        nodes = np.full((self.depth, lanes), -1)
        actions = np.zeros((self.depth, lanes), dtype=np.int64)
        rewards = np.zeros((self.depth, lanes))
        for d in range(self.depth):
            nodes[d] = node
            actions[d] = rng.integers(self.mdp.num_actions, size=lanes)
            _select(arrays, node, actions[d], self.exploration)
            state, rewards[d], _ = take_step(self.mdp, state, actions[d], rng)
            # The index may be too large for an integer and wrap round: it is only a hash.
            key = joint_index(state.endogenous, self.mdp.endogenous_sizes)
            _descend(arrays, node, key * self.mdp.num_actions + actions[d])
            if check_terminal(self.mdp, state).all():
                break
        _back_up(arrays, nodes, actions, rewards, self.mdp.discount)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file; the model is given again to :meth:`load`."""
        names = ("mask", "full", "simulations", "depth", "exploration", "seed")
        write_file(path, type(self).__name__, {name: getattr(self, name) for name in names})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mdp: ExoMDP | None = None,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> UCTPolicy:
        """Read what :meth:`save` wrote; ``mdp`` is the model it searched in, and has to be given.

        ``max_bytes`` is how much the file may hold, once it is no longer compressed.
        """
        if not isinstance(mdp, ExoMDP):
            raise TypeError(f"tree search is loaded with its model: mdp is an ExoMDP, not {mdp!r}")

        def make(mask: Mask, full: Mask, **settings: Any) -> UCTPolicy:
            if (mask, full) != Policy.names_of(mdp)[:2]:
                raise ValueError("it was saved for a model with other variables")
            return cls(mdp, **settings)

        return read_file(path, cls.__name__, make, max_bytes=max_bytes)


class _Tree(NamedTuple):
    """The trees of all lanes: up to ``size`` nodes each, node 0 is the root."""

    visits: NDArray[np.int32]  # (lanes, size, A)
    totals: NDArray[np.float64]  # (lanes, size, A): the sum of the returns
    first_child: NDArray[np.int32]  # (lanes, size), or -1
    sibling: NDArray[np.int32]  # (lanes, size): the next child of the same node, or -1
    keys: Ints  # (lanes, size): the action and the n' that lead to a node
    used: NDArray[np.int32]  # (lanes,): the number of nodes
    spans: NDArray[np.float64]  # (lanes, 2): the lowest and the highest return so far

    @classmethod
    def empty(cls, lanes: int, size: int, num_actions: int) -> _Tree:
        """Trees of a root."""
        return cls(
            visits=np.zeros((lanes, size, num_actions), dtype=np.int32),
            totals=np.zeros((lanes, size, num_actions)),
            first_child=np.full((lanes, size), -1, dtype=np.int32),
            sibling=np.full((lanes, size), -1, dtype=np.int32),
            keys=np.zeros((lanes, size), dtype=np.int64),
            used=np.ones(lanes, dtype=np.int32),
            spans=np.tile(np.array([np.inf, -np.inf]), (lanes, 1)),
        )


@njit(cache=True)
def _select(tree: Any, node: Any, action: Any, exploration: float) -> None:
    """Inside the tree, replace the random action by an untried one or by the best bound."""
    visits, totals, _, _, _, _, spans = tree
    for lane in range(len(node)):
        if node[lane] < 0:
            continue
        counts, sums = visits[lane, node[lane]], totals[lane, node[lane]]
        all_visits = counts.sum()
        if counts[action[lane]] == 0:
            continue
        spread = max(spans[lane, 1] - spans[lane, 0], 1e-12)
        best, best_bound = -1, -np.inf
        for a in range(len(counts)):
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
