"""Endogenous dynamics and rewards, learned by asking the model at states of our choice.

Nothing here depends on a mask: an :class:`EndogenousSurvey` finds out once, for all variables,
which of them each (n, a) depends on and how, and what each of them pays. The reduced dynamics of
any mask follow from it and from the rollouts, without further questions to the model
(:mod:`planners.reduction.marginals`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from exo_envs import ExoMDP
from exo_envs.errors import unknown_name
from exo_envs.mdp import BoolArray, FloatArray
from planners.arrays import Ints, chunks
from planners.information.group_testing import NUM_TESTS, draw_contexts, find_relevant
from planners.information.rollouts import ExogenousData, is_slow
from planners.reduction.decision_list_learning import SMALL_JOINT, Domain, Step, peel, row_values
from planners.reduction.questions import MoveOracle
from planners.reduction.rewards import reward_terms, terminal_states, total_rewards
from planners.tables import (
    Rule,
    count_outcomes,
    num_endogenous_states,
    split_rows,
    with_default,
)

Reward = Literal["terms", "total"]

#: More pairs (n, a) than this are not enumerated.
MAX_PAIRS = 100_000
#: Comparisons in one round of group tests, over all pairs; a pair has at least MIN_TESTS.
MAX_TESTS, MIN_TESTS = 4_000_000, 32
#: How many x of the rollouts stand for their distribution.
NUM_CONTEXTS = 20_000
#: Draws for each row of a table: so many where nothing is left to chance,
CERTAIN_DRAWS = 32
#: otherwise between these, as many as make this many states, or values of x, in all.
MIN_DRAWS, MAX_DRAWS, DRAW_STATES, DRAW_VALUES = 200, 10_000, 5_000_000, 200_000_000
#: A model that answers one question at a time is asked so many.
SLOW_TESTS, SLOW_DRAWS = 32, 200


@dataclass(frozen=True, eq=False)
class Contexts:
    """Values of x that occur in the rollouts: the distribution that dropped variables have.

    The first ``num_independent`` come from different rollouts.
    """

    data: ExogenousData
    rollout: Ints  # (contexts,)
    step: Ints  # (contexts,)
    num_independent: int
    _columns: dict[int, Ints] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: ExogenousData, rng: np.random.Generator) -> Contexts:
        """Steps of all rollouts, as many of each."""
        rollouts = data.num_rollouts
        repeats = max(1, min(data.num_steps, NUM_CONTEXTS // rollouts))
        steps = rng.permuted(np.tile(np.arange(data.num_steps), (rollouts, 1)), axis=1)
        chosen = np.ascontiguousarray(steps[:, :repeats].T).reshape(-1)
        return cls(data, np.tile(np.arange(rollouts), repeats), chosen, rollouts)

    def column(self, j: int) -> Ints:
        """The values of one variable, shape (contexts,)."""
        if j not in self._columns:
            values = self.data.values[self.rollout, self.step, j]
            self._columns[j] = values.astype(np.int64)
        return self._columns[j]


@dataclass(frozen=True, eq=False)
class OpenEnd:
    """The end of a decision list that no rule covers: n' as drawn in all contexts."""

    outcomes: Ints  # (contexts,)


@dataclass(frozen=True, eq=False)
class EndogenousSurvey:
    """How n moves and what is paid, for all (n, a) and all exogenous variables of a model.

    Attributes:
        names: the exogenous variables.
        relevant: whether the pair ``n * num_actions + a`` depends on variable j.
        lists: the decision list of each pair; positions of variables are those of the model.
        open_ends: of the pairs whose list does not decide everything.
        terminal: which n are terminal.
        base_reward: R(n, a).
        terms: the R^i of the variables that pay.
        contexts: the x that occur, over which dropped variables are averaged.
        moves_asked: how many n' were drawn.
        rewards_asked: how many rewards were asked for.
        common_noise: whether the model honours common random numbers.
    """

    names: tuple[str, ...]
    relevant: BoolArray  # (N * A, m)
    lists: list[list[Rule]]
    open_ends: dict[int, OpenEnd]
    terminal: BoolArray  # (N,)
    base_reward: FloatArray  # (N, A)
    terms: dict[int, FloatArray]  # (size, N, A)
    contexts: Contexts
    moves_asked: int
    rewards_asked: int
    common_noise: bool
    #: What was averaged over dropped variables once, for the next mask; never changes a result.
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)

    @classmethod
    def collect(
        cls,
        mdp: ExoMDP,
        data: ExogenousData,
        rng: np.random.Generator,
        *,
        reward: Reward = "terms",
        num_tests: int | None = None,
        num_draws: int | None = None,
    ) -> EndogenousSurvey:
        """Ask ``mdp`` about every (n, a), in contexts from ``data``.

        Args:
            mdp: the model.
            data: rollouts of all its exogenous variables.
            rng: where the randomness comes from.
            reward: "terms" to use ``mdp.reward_terms``, which is exact; "total" for a black box
                that has a total reward only (see :func:`planners.reduction.rewards.total_rewards`).
            num_tests: comparisons per pair and round when looking for what it depends on; fewer
                for a model that is slow to ask.
            num_draws: how many n' to draw for each row of a table, where n' is left to chance.
        """
        if reward not in ("terms", "total"):
            raise unknown_name("kind of reward", reward, ("terms", "total"))
        if data.names != mdp.exogenous_names:
            raise ValueError(
                f"the data has {len(data.names)} variables, not the "
                f"{len(mdp.exogenous_names)} of the model; collect it for the whole model"
            )
        states = num_endogenous_states(mdp)
        if states * mdp.num_actions > MAX_PAIRS:
            raise ValueError(
                f"{states} endogenous states and {mdp.num_actions} actions are more than "
                f"{MAX_PAIRS} pairs to ask about; plan with UCT, which does not enumerate them"
            )
        terminal = terminal_states(mdp, data, rng)
        rewards = (
            reward_terms(mdp, terminal)
            if reward == "terms"
            else total_rewards(mdp, data, terminal, rng)
        )
        contexts = Contexts.of(data, rng)
        for name, number in (("num_tests", num_tests), ("num_draws", num_draws)):
            if number is not None and number < 1:
                raise ValueError(f"{name} is at least 1, not {number}")
        if is_slow(mdp):
            num_tests, num_draws = num_tests or SLOW_TESTS, num_draws or SLOW_DRAWS
        surveyor = _Surveyor(mdp, data, contexts, terminal, rng)
        lists, open_ends = surveyor.survey(num_tests, num_draws)
        return cls(
            data.names,
            surveyor.relevant,
            lists,
            open_ends,
            terminal,
            rewards.base,
            rewards.terms,
            contexts,
            surveyor.oracle.states_asked,
            rewards.samples,
            surveyor.oracle.common_noise,
        )

    @property
    def moving(self) -> tuple[str, ...]:
        """The variables that some n' depends on."""
        return tuple(self.names[j] for j in np.flatnonzero(self.relevant.any(axis=0)))

    @property
    def paying(self) -> tuple[str, ...]:
        """The variables that pay."""
        return tuple(self.names[j] for j in sorted(self.terms))


class _Surveyor:
    """Learns the decision lists of all pairs."""

    def __init__(
        self,
        mdp: ExoMDP,
        data: ExogenousData,
        contexts: Contexts,
        terminal: BoolArray,
        rng: np.random.Generator,
    ) -> None:
        self.data = data
        self.contexts = contexts
        self.rng = rng
        self.oracle = MoveOracle(mdp, rng)
        self.num_pairs = self.oracle.num_states * mdp.num_actions
        self.over = np.repeat(terminal, mdp.num_actions)  # (pairs,)
        self.relevant = np.zeros((self.num_pairs, len(data.sizes)), dtype=np.bool_)
        self.draws = CERTAIN_DRAWS

    def survey(
        self, num_tests: int | None, num_draws: int | None
    ) -> tuple[list[list[Rule]], dict[int, OpenEnd]]:
        """The decision lists, and the contexts' outcomes where they are incomplete."""
        alive = np.flatnonzero(~self.over)
        tests = num_tests or max(MIN_TESTS, min(NUM_TESTS, MAX_TESTS // max(1, len(alive))))
        is_noisy = self._look_at_noise(alive, tests)
        self.relevant = find_relevant(
            self.oracle.differ,
            self.num_pairs,
            self.data,
            self.rng,
            questions=alive,
            num_tests=tests,
        )
        sizes = self.data.sizes
        rows = np.array(
            [  # anything above SMALL_JOINT is as good: the product may be astronomical
                min(SMALL_JOINT + 1, math.prod(int(size) for size in sizes[looked_at]))
                for looked_at in self.relevant
            ]
        )
        simple = alive[rows[alive] <= SMALL_JOINT]
        peeled = {
            pair: peel(
                self.oracle, pair, np.flatnonzero(self.relevant[pair]).tolist(), self.data, self.rng
            )
            for pair in alive[rows[alive] > SMALL_JOINT].tolist()
        }
        if is_noisy:
            total = int(rows[simple].sum())
            total += sum(len(step.rows) for found in peeled.values() for step in found.steps)
            affordable = min(DRAW_STATES, DRAW_VALUES // max(1, len(sizes))) // max(1, total)
            self.draws = num_draws or max(MIN_DRAWS, min(MAX_DRAWS, affordable))

        num_actions = self.num_pairs // self.oracle.num_states
        lists = [[Rule.certain(pair // num_actions)] for pair in range(self.num_pairs)]
        for pair, rule in self._joint_rules(simple).items():
            lists[pair] = with_default(rule)
        open_ends = {}
        for pair, found in peeled.items():
            rules = [self._step_rule(pair, step) for step in found.steps]
            if found.is_open:
                lists[pair] = rules
                open_ends[pair] = OpenEnd(self._outcomes_in_contexts(pair))
            else:
                lists[pair] = [*rules[:-1], *with_default(rules[-1])]
        return lists, open_ends

    def _look_at_noise(self, alive: Ints, tests: int) -> bool:
        """Whether n' is left to chance anywhere; and whether noise can be held fixed."""
        pairs = np.repeat(alive, tests)
        lane = np.tile(np.arange(tests), len(alive))
        contexts = [draw_contexts(self.data, tests, self.rng) for _ in range(2)]
        is_noisy = False
        for part in chunks(len(pairs), len(self.data.sizes)):
            x, y = (some[lane[part]] for some in contexts)
            first = self.oracle.outcomes(pairs[part], x)
            is_noisy |= bool((self.oracle.outcomes(pairs[part], x) != first).any())
            if self.oracle.common_noise:
                self.oracle.check_common_noise(pairs[part], x, y)
        return is_noisy

    def _joint_rules(self, pairs: Ints) -> dict[int, Rule]:
        """One rule for each pair, over all variables it depends on."""
        rules = {}
        looked_at = {
            int(pair): tuple(np.flatnonzero(self.relevant[pair]).tolist()) for pair in pairs
        }
        for width in sorted({len(variables) for variables in looked_at.values()}):
            chosen = [pair for pair, variables in looked_at.items() if len(variables) == width]
            values = []
            for pair in chosen:
                sizes = self.data.sizes[list(looked_at[pair])]
                number = math.prod(int(size) for size in sizes)
                values.append(row_values(looked_at[pair], np.arange(number), self.data.sizes))
            starts = np.cumsum([0, *(len(rows) for rows in values)])
            columns = np.array([looked_at[pair] for pair in chosen], dtype=np.int64)
            row_of = np.repeat(np.arange(len(chosen)), np.diff(starts))
            table = self._frequencies(
                np.array(chosen)[row_of], columns[row_of], np.concatenate(values)
            )
            for pair, rule in zip(chosen, split_rows(table, starts.tolist()), strict=True):
                variables = looked_at[pair]
                rules[pair] = Rule(variables, rule.starts, rule.targets, rule.probabilities)
        return rules

    def _step_rule(self, pair: int, step: Step) -> Rule:
        """The rule of one step of a peeled list; rows that do not decide are empty."""
        values = row_values(step.variables, step.rows, self.data.sizes)
        columns = np.tile(np.array(step.variables, dtype=np.int64), (len(values), 1))
        found = self._frequencies(np.full(len(values), pair), columns, values, step.domain)
        number = math.prod(int(self.data.sizes[j]) for j in step.variables)
        lengths = np.zeros(number, dtype=np.int64)
        lengths[step.rows] = np.diff(found.starts)
        starts = np.concatenate([[0], lengths.cumsum()])
        return Rule(step.variables, starts, found.targets, found.probabilities)

    def _frequencies(
        self, pairs: Ints, columns: Ints, values: Ints, domain: Domain | None = None
    ) -> Rule:
        """How often each n' follows where some variables have given values.

        All other variables are as they are in the rollouts.

        Args:
            pairs: one for each row, (rows,).
            columns: the variables that are given values, (rows, width).
            values: the values, (rows, width).
            domain: to which the other variables are restricted.
        """
        found = self._draw(pairs, columns, values, domain, self.draws)
        if self.draws == CERTAIN_DRAWS:
            # Certain as far as we know; where it turns out not to be, we look again.
            unsure = np.flatnonzero(np.diff(found.starts) > 1)
            if len(unsure):
                again = self._draw(
                    pairs[unsure], columns[unsure], values[unsure], domain, MAX_DRAWS // 4
                )
                found = _replace_rows(found, unsure, again)
        return found

    def _draw(
        self, pairs: Ints, columns: Ints, values: Ints, domain: Domain | None, draws: int
    ) -> Rule:
        counted = []
        for part in chunks(len(pairs) * draws, len(self.data.sizes)):
            lanes = np.arange(part.start, part.stop) // draws  # their rows
            x = self.data.sample(len(lanes), self.rng)
            if domain is not None:
                x = domain.restrict(x, self.rng)
            for k in range(columns.shape[1]):
                x[np.arange(len(lanes)), columns[lanes, k]] = values[lanes, k]
            if domain is not None and domain.excluded:
                inside = domain.contains(x)
                # A row that never occurs there is asked about where it does.
                inside |= ~np.isin(lanes, lanes[inside])
                lanes, x = lanes[inside], x[inside]
            cells = lanes * self.oracle.num_states + self.oracle.outcomes(pairs[lanes], x)
            counted.append(np.unique(cells, return_counts=True))
        return count_outcomes(counted, len(pairs), self.oracle.num_states)

    def _outcomes_in_contexts(self, pair: int) -> Ints:
        outcomes = []
        for part in chunks(len(self.contexts.rollout), len(self.data.sizes)):
            x = self.data.values[self.contexts.rollout[part], self.contexts.step[part]]
            pairs = np.full(len(x), pair)
            outcomes.append(self.oracle.outcomes(pairs, x.astype(np.int64)))
        return np.concatenate(outcomes)


def _replace_rows(rule: Rule, rows: Ints, better: Rule) -> Rule:
    """The rule with some rows from another one, which has those rows only."""
    lengths = np.diff(rule.starts)
    lengths[rows] = np.diff(better.starts)
    starts = np.concatenate([[0], lengths.cumsum()])
    targets = np.empty(starts[-1], dtype=np.int64)
    probabilities = np.empty(starts[-1])
    place = {int(row): k for k, row in enumerate(rows)}
    for row in range(rule.num_rows):
        source, k = (better, place[row]) if row in place else (rule, row)
        part = slice(int(source.starts[k]), int(source.starts[k + 1]))
        here = slice(int(starts[row]), int(starts[row + 1]))
        targets[here], probabilities[here] = source.targets[part], source.probabilities[part]
    return Rule(rule.variables, starts, targets, probabilities)
