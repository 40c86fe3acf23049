"""The decision lists of all pairs (n, a), with their probabilities.

A pair that depends on few joint values of x gets one table over them; of the others the list is
learned first (:mod:`planners.reduction.decision_list_learning`). The probabilities are frequencies
of n' where a rule's variables have given values and all others are as they are in the rollouts.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from exo_envs.mdp import BoolArray
from planners.arrays import Ints, chunks, join, starts_of
from planners.information import ExogenousData
from planners.reduction.backgrounds import Backgrounds
from planners.reduction.decision_list_learning import (
    SMALL_JOINT,
    Domain,
    RuleSkeleton,
    learn_decision_list,
    row_values,
)
from planners.reduction.successors import SuccessorSampler
from planners.tables import Rule, count_outcomes, split_rows, with_default

#: Draws for each row of a table if n' was never seen to be left to chance.
CERTAIN_DRAWS = 32
#: Draws for each row of a table where n' is left to chance, at least.
MIN_DRAWS = 200
#: Draws for each row of a table where n' is left to chance, at most.
MAX_DRAWS = 10_000
#: States that are drawn for the rows of all tables together.
DRAW_STATES = 5_000_000
#: Values of x in those states.
DRAW_VALUES = 200_000_000


class DecisionListEstimator:
    """Estimates the decision lists of all pairs.

    Args:
        sampler: asks the model about all n.
        relevant: whether each pair depends on variable j, shape (pairs, m).
        backgrounds: the x over which what a list leaves undecided is averaged.
        rng: where the randomness comes from.
        is_noisy: whether n' was seen to be left to chance anywhere.
        num_draws: how many n' to draw for each row of a table then; by default as many as can be
            afforded.
    """

    def __init__(
        self,
        sampler: SuccessorSampler,
        relevant: BoolArray,
        backgrounds: Backgrounds,
        rng: np.random.Generator,
        *,
        is_noisy: bool,
        num_draws: int | None,
    ) -> None:
        self.sampler = sampler
        self.relevant = relevant
        self.backgrounds = backgrounds
        self.data: ExogenousData = backgrounds.data
        self.rng = rng
        self.is_noisy = is_noisy
        self.num_draws = num_draws
        self.draws = CERTAIN_DRAWS

    def estimate(self, alive: Ints) -> tuple[list[list[Rule]], dict[int, Ints]]:
        """The lists of all pairs; those not ``alive`` are terminal and stay where they are.

        Returns:
            One list for each pair; and, of the pairs whose list does not decide everything, the n'
            drawn in all backgrounds.
        """
        sizes = self.data.sizes
        rows = np.array(
            [  # anything above SMALL_JOINT is as good: the product may be astronomical
                min(SMALL_JOINT + 1, math.prod(int(size) for size in sizes[looked_at]))
                for looked_at in self.relevant
            ]
        )
        simple = alive[rows[alive] <= SMALL_JOINT]
        learned = {
            pair: learn_decision_list(
                self.sampler,
                pair,
                np.flatnonzero(self.relevant[pair]).tolist(),
                self.data,
                self.rng,
            )
            for pair in alive[rows[alive] > SMALL_JOINT].tolist()
        }
        if self.is_noisy:
            total = int(rows[simple].sum())
            total += sum(len(rule.rows) for found in learned.values() for rule in found.rules)
            affordable = min(DRAW_STATES, DRAW_VALUES // max(1, len(sizes))) // max(1, total)
            self.draws = self.num_draws or max(MIN_DRAWS, min(MAX_DRAWS, affordable))

        num_pairs = len(self.relevant)
        num_actions = num_pairs // self.sampler.num_states
        lists = [[Rule.certain(pair // num_actions)] for pair in range(num_pairs)]
        for pair, rule in self._joint_rules(simple).items():
            lists[pair] = with_default(rule)
        undecided = {}
        for pair, found in learned.items():
            rules = [self._rule(pair, skeleton) for skeleton in found.rules]
            if found.is_complete:
                lists[pair] = [*rules[:-1], *with_default(rules[-1])]
            else:
                lists[pair] = rules
                undecided[pair] = self._draw_in_backgrounds(pair)
        return lists, undecided

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
            starts = starts_of(values)
            columns = np.array([looked_at[pair] for pair in chosen], dtype=np.int64)
            row_of = np.repeat(np.arange(len(chosen)), np.diff(starts))
            table = self._frequencies(
                np.array(chosen)[row_of], columns[row_of], np.concatenate(values)
            )
            for pair, rule in zip(chosen, split_rows(table, starts.tolist()), strict=True):
                rules[pair] = replace(rule, variables=looked_at[pair])
        return rules

    def _rule(self, pair: int, skeleton: RuleSkeleton) -> Rule:
        """A rule of a learned list; rows that do not decide are empty."""
        variables, rows, domain = skeleton
        values = row_values(variables, rows, self.data.sizes)
        columns = np.tile(np.array(variables, dtype=np.int64), (len(values), 1))
        found = self._frequencies(np.full(len(values), pair), columns, values, domain)
        lengths = np.zeros(math.prod(int(self.data.sizes[j]) for j in variables), dtype=np.int64)
        lengths[rows] = np.diff(found.starts)
        starts = np.concatenate([[0], lengths.cumsum()])
        return Rule(variables, starts, found.targets, found.probabilities)

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
            rows = np.arange(part.start, part.stop) // draws
            x = self.data.sample(len(rows), self.rng)
            if domain is not None:
                x = domain.restrict(x, self.rng)
            for k in range(columns.shape[1]):
                x[np.arange(len(rows)), columns[rows, k]] = values[rows, k]
            if domain is not None and domain.excluded:
                inside = domain.contains(x)
                # A row that never occurs there is asked about where it does.
                inside |= ~np.isin(rows, rows[inside])
                rows, x = rows[inside], x[inside]
            cells = rows * self.sampler.num_states + self.sampler.draw(pairs[rows], x)
            counted.append(np.unique(cells, return_counts=True))
        return count_outcomes(counted, len(pairs), self.sampler.num_states)

    def _draw_in_backgrounds(self, pair: int) -> Ints:
        """The n' of one pair, shape (backgrounds,)."""
        drawn = []
        for part in chunks(len(self.backgrounds), len(self.data.sizes)):
            x = self.backgrounds.rows(part)
            drawn.append(self.sampler.draw(np.full(len(x), pair), x))
        return np.concatenate(drawn)


def _replace_rows(rule: Rule, rows: Ints, better: Rule) -> Rule:
    """The rule with some rows from another one, which has those rows only."""
    pieces = split_rows(rule, range(rule.num_rows + 1))
    for row, piece in zip(rows, split_rows(better, range(len(rows) + 1)), strict=True):
        pieces[row] = piece
    return Rule(
        rule.variables,
        starts_of([piece.targets for piece in pieces]),
        join([piece.targets for piece in pieces], np.int64),
        join([piece.probabilities for piece in pieces], np.float64),
    )
