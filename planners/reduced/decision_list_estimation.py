"""The decision lists of all pairs (n, a), with their probabilities.

What the rules look at is learned first (:mod:`planners.reduced.decision_list_learning`). The
probabilities are frequencies of n' where a rule's variables have given values and all others are as
they are in the rollouts.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exo_envs.core.mdp import BoolArray, IntArray
from planners.core.arrays import Ints, chunks, joint_values, starts_of
from planners.reduced.backgrounds import Backgrounds
from planners.reduced.decision_list_learning import Domain, RuleSkeleton, learn_decision_list
from planners.reduced.successors import SuccessorSampler
from planners.tables.rules import Rule, count_outcomes, with_default

#: Draws for each row of a table if n' was never seen to be left to chance.
CERTAIN_DRAWS = 32
#: Draws for each row of a table where n' is left to chance, at least.
MIN_DRAWS = 200
#: Draws for each row of a table where n' is left to chance, at most.
MAX_DRAWS = 10_000
#: States that are drawn for the rows of all tables together.
DRAW_STATES = 5_000_000
#: The same three for a model that answers one question at a time.
SLOW_MIN_DRAWS, SLOW_MAX_DRAWS, SLOW_DRAW_STATES = 24, 200, 100_000
#: Values of single variables that are drawn for the rows of all tables together.
DRAW_VALUES = 200_000_000
#: The same, for rows asked about at once, if n' was never seen to be left to chance.
CERTAIN_VALUES = 20_000_000
#: Rules of a list from which on those that look at as many variables are asked about at once.
MANY_RULES = 32


class _Asked(NamedTuple):
    """Rows of tables: what is known of x in each of them."""

    pairs: Ints  # (rows,)
    columns: Ints  # (rows, width): the variables that are given values
    values: Ints  # (rows, width)
    domain: Domain  # to which all other variables are restricted


@dataclass
class DecisionListEstimator:
    """Estimates the decision lists of all pairs.

    Args:
        sampler: asks the model about all n.
        relevant: whether each pair depends on variable j, shape (pairs, m).
        backgrounds: the x over which what a list leaves undecided is averaged.
        is_noisy: whether n' was seen to be left to chance anywhere.
        num_draws: how many n' to draw for each row of a table then; by default as many as can be
            afforded.
    """

    sampler: SuccessorSampler
    relevant: BoolArray
    backgrounds: Backgrounds
    is_noisy: bool
    num_draws: int | None

    def estimate(self, alive: Ints) -> tuple[list[list[Rule]], dict[int, Ints]]:
        """The lists of all pairs; those not ``alive`` are terminal and stay where they are.

        Returns:
            One list for each pair; and, of the pairs whose list does not decide everything, the n'
            drawn in all backgrounds.
        """
        data, num_actions = self.backgrounds.data, self.sampler.mdp.num_actions
        learned = {
            pair: learn_decision_list(
                self.sampler, pair, np.flatnonzero(self.relevant[pair]).tolist(), data
            )
            for pair in alive.tolist()
        }
        draws = CERTAIN_DRAWS
        if self.is_noisy:
            total = sum(len(rule.rows) for found in learned.values() for rule in found.rules)
            draws = self.num_draws or self._affordable(total, len(data.sizes))

        # Small tables are asked for together: as few calls as there are widths.
        small: dict[int, dict[int, RuleSkeleton]] = defaultdict(dict)
        for pair, found in learned.items():
            if found.is_small:
                small[len(found.rules[0].variables)][pair] = found.rules[0]
        rules = {
            pair: [rule]
            for _, tables in sorted(small.items())
            for pair, rule in zip(tables, self._rules(tables, tables.values(), draws), strict=True)
        }
        lists = [[Rule.certain(pair // num_actions)] for pair in range(len(self.relevant))]
        undecided = {}
        for pair, found in learned.items():
            if not found.is_small:
                rules[pair] = [
                    rule
                    for similar in _asked_together(found.rules)
                    for rule in self._rules([pair] * len(similar), similar, draws)
                ]
            if found.is_complete:
                lists[pair] = [*rules[pair][:-1], *with_default(rules[pair][-1])]
            else:
                lists[pair] = rules[pair]
                undecided[pair] = self._draw_in_backgrounds(pair)
        return lists, undecided

    def _affordable(self, num_rows: int, num_variables: int) -> int:
        """Draws for each of so many rows."""
        least, most, states = SLOW_MIN_DRAWS, SLOW_MAX_DRAWS, SLOW_DRAW_STATES
        if self.sampler.mdp.is_batched:
            least, most, states = MIN_DRAWS, MAX_DRAWS, DRAW_STATES
        affordable = min(states, DRAW_VALUES // max(1, num_variables)) // max(1, num_rows)
        return max(least, min(most, affordable))

    def _rules(
        self, pairs: Iterable[int], skeletons: Collection[RuleSkeleton], draws: int
    ) -> list[Rule]:
        """Rules of some pairs, as wide as each other and in one domain.

        The rows are frequencies of n'; those that do not decide are empty.
        """
        sizes, num_states = self.backgrounds.data.sizes, len(self.sampler.endogenous)
        values = [joint_values(found.rows, sizes[list(found.variables)]) for found in skeletons]
        starts = starts_of(values)
        of = np.repeat(np.arange(len(values)), np.diff(starts))
        columns = np.array([found.variables for found in skeletons], dtype=np.int64)
        domain = next(iter(skeletons)).domain
        asked = _Asked(np.array([*pairs])[of], columns[of], np.concatenate(values), domain)
        counted = self._count(asked, np.arange(len(of)), draws)
        table = count_outcomes(counted, len(of), num_states)
        unsure = np.flatnonzero(np.diff(table.starts) > 1)
        if draws == CERTAIN_DRAWS and len(unsure):
            # Certain as far as we know; where it turns out not to be, we look again.
            sure = [~np.isin(cells // num_states, unsure) for cells, _ in counted]
            counted = [(c[kept], n[kept]) for (c, n), kept in zip(counted, sure, strict=True)]
            again = MAX_DRAWS // 4 if self.sampler.mdp.is_batched else SLOW_MAX_DRAWS
            counted += self._count(asked, unsure, again)
            table = count_outcomes(counted, len(of), num_states)
        rules = []
        for found, start in zip(skeletons, starts.tolist(), strict=False):
            rows = np.full(math.prod(sizes[list(found.variables)].tolist()), -1)
            rows[found.rows] = start + np.arange(len(found.rows))
            rules.append(table.with_rows(found.variables, rows))
        return rules

    def _count(self, asked: _Asked, chosen: Ints, draws: int) -> list[tuple[Ints, Ints]]:
        """How often each n' follows in the chosen rows; see :func:`count_outcomes`."""
        pairs, columns, values, domain = asked
        data, sampler, counted = self.backgrounds.data, self.sampler, []
        place = {j: j for j in domain.variables}
        total = len(chosen) * draws
        most = CERTAIN_VALUES if draws == CERTAIN_DRAWS else DRAW_VALUES
        is_wide = total * len(data.sizes) > most
        x = np.zeros((0, 0), np.int64)
        drawn: IntArray = x
        for part in chunks(total, len(data.sizes)):
            rows = chosen[np.arange(part.start, part.stop) // draws]
            lane = np.arange(len(rows))
            if not is_wide or part.start == 0:
                x = domain.restrict(data.sample(len(rows), sampler.rng), sampler.rng, place)
                drawn = sampler.refine(x)
            # Of very many states the first ones are used again, but for the given values.
            states, kept = drawn[: len(rows)], []
            for k in range(columns.shape[1]):
                at = lane, columns[rows, k]
                kept.append((at, x[at], states[at]))
                x[at] = values[rows, k]
                states[at] = sampler.refine_some(x[at], columns[rows, k], sampler.rng)
            inside: Any = slice(None)
            if domain.excluded:
                inside = domain.contains(x[: len(rows)], place)
                # A row that never occurs inside the domain is asked about outside of it.
                inside |= ~np.isin(rows, rows[inside])
            asked_rows = rows[inside]
            following = sampler.draw_refined(pairs[asked_rows], states[inside])
            for at, before, refined in reversed(kept):
                x[at], states[at] = before, refined
            cells = asked_rows * len(sampler.endogenous) + following
            counted.append(np.unique(cells, return_counts=True))
        return counted

    def _draw_in_backgrounds(self, pair: int) -> Ints:
        """The n' of one pair, shape (backgrounds,)."""
        drawn = []
        for part in chunks(len(self.backgrounds), len(self.backgrounds.data.sizes)):
            x = self.backgrounds.rows(part)
            drawn.append(self.sampler.draw(np.full(len(x), pair), x))
        return np.concatenate(drawn)


def _asked_together(rules: list[RuleSkeleton]) -> list[list[RuleSkeleton]]:
    """The rules of one list, in order: each alone, or runs of one width and domain if many."""
    if len(rules) < MANY_RULES:
        return [[rule] for rule in rules]
    runs = itertools.groupby(rules, key=lambda rule: (len(rule.variables), id(rule.domain)))
    return [list(run) for _, run in runs]
