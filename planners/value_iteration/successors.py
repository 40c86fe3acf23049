"""Decision lists made ready for sweeps over all states.

A decision list is compact, but asking it takes time. Here lists are shortened: rules that are
never asked are dropped, and where a joint rule of a whole list stays small, it takes its place.
What a rule decides then lies in one short row of successors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.arrays import Floats, Ints, starts_of
from planners.tables import DecisionLists, follow_rules

Unsigned = NDArray[np.uint64]

#: Rows that the joint rule of a whole decision list may have at most.
MAX_JOINT_ROWS = 256
#: Rows that the joint rules of all decision lists may have at most, taken together.
MAX_TOTAL_ROWS = 1_000_000
#: Rows that a row is compared with at most, to find one that is equal.
MAX_COMPARED = 8
#: A rule that passes on no more than this probability decides everything.
NEGLIGIBLE_PROBABILITY = 1e-12


class RuleGroups(NamedTuple):
    """Rules that look at the same variables form a group, whose rows lie side by side.

    At the joint value ``v = sum(values * strides)`` of group g its rules have the rows
    ``rows[row_starts[g] + v * size :]``, in the order of ``rules[starts[g] : starts[g] + size]``;
    rules and values share rows that are equal.
    """

    starts: Ints  # (groups + 1,) in rules
    rules: Ints
    variable_starts: Ints  # (groups + 1,)
    variables: Ints  # decreasing within a group
    strides: Ints
    row_starts: Ints  # (groups,)
    rows: Unsigned


class SuccessorRows(NamedTuple):
    """The rules of all pairs (n, a), mostly one for each, and the rows they lead to.

    A form of its own because a sweep asks every rule at every x: it must find the rows of the next
    x without looking at what has not changed. What a row does not decide, ``left``, is passed on to
    the next rule of the pair.

    Indices are unsigned: Numba then need not ask whether one of them counts from the end, which
    takes a third off the time of a sweep.
    """

    rule_starts: Unsigned  # (N * A + 1,)
    groups: RuleGroups
    entry_starts: Unsigned  # (rows + 1,)
    targets: NDArray[np.uint32]  # (entries,)
    probabilities: Floats  # (entries,)
    left: Floats  # (rows,)

    @property
    def longest_row(self) -> int:
        """The most successors that any row has."""
        return int(np.diff(self.entry_starts.astype(np.int64)).max(initial=0))

    @property
    def longest_list(self) -> int:
        """The most rules that any pair has."""
        return int(np.diff(self.rule_starts.astype(np.int64)).max(initial=0))


class _ShortRules(NamedTuple):
    """The rules of shortened lists: rule r stands for the old rules ``begins[r] : ends[r]``."""

    pair_starts: Ints  # (N * A + 1,): the rules of each pair
    begins: Ints  # (rules,)
    ends: Ints  # (rules,)
    closing: NDArray[np.bool_]  # (rules,): the last rule of a pair always decides
    variable_starts: Ints  # (rules + 1,)
    variables: Ints  # decreasing within a rule
    strides: Ints
    row_starts: Ints  # (rules + 1,)


class _Rows(NamedTuple):
    """What the rows of shortened rules decide, and what they pass on."""

    entry_starts: Ints  # (rows + 1,)
    targets: NDArray[np.uint32]  # (entries,)
    probabilities: Floats  # (entries,)
    left: Floats  # (rows,)

    @classmethod
    def empty(cls, entry_starts: Ints, dtype: Any) -> _Rows:
        """Rows to be filled."""
        size, rows = int(entry_starts[-1]), len(entry_starts) - 1
        return cls(
            entry_starts, np.empty(size, np.uint32), np.empty(size, dtype), np.empty(rows, dtype)
        )


def rows_bytes(lists: DecisionLists, itemsize: int) -> int:
    """What :func:`successor_rows` takes at most while it works, found without doing it."""
    rules = _shorten(lists)
    entry_starts = _count_entries(lists, rules)
    rows = len(entry_starts)
    indices = len(lists.rule_starts) + 8 * len(rules.row_starts) + 2 * len(rules.variables)
    return int(
        8 * (indices + 5 * rows) + 2 * itemsize * rows + 3 * (4 + itemsize) * entry_starts[-1]
    )


def successor_rows(lists: DecisionLists, dtype: Any) -> SuccessorRows:
    """Shorten the decision lists and lay out their rows."""
    rules = _shorten(lists)
    made = _Rows.empty(_count_entries(lists, rules), dtype)
    _fill_rows(lists, rules, made, fill=True)
    rows, num_rows = _share_rows(rules.row_starts, made)
    entries = _pad(made.entry_starts[: num_rows + 1], made.targets, made.probabilities)
    return SuccessorRows(
        rules.pair_starts.astype(np.uint64),
        _group(rules, rows),
        *entries,
        left=made.left[:num_rows].copy(),
    )


def _group(rules: _ShortRules, rows: Unsigned) -> RuleGroups:
    """Put rules that look at the same variables together, rows of the same value side by side."""
    groups: dict[tuple[int, ...], list[int]] = {}
    starts = rules.variable_starts
    for rule in range(len(rules.begins)):
        looks = rules.variables[starts[rule] : starts[rule + 1]]
        groups.setdefault(tuple(looks.tolist()), []).append(rule)
    members = list(groups.values())
    tables = []
    for chosen in members:
        firsts = rules.row_starts[chosen]
        values = np.arange(rules.row_starts[chosen[0] + 1] - firsts[0])
        tables.append(rows[firsts + values[:, None]].reshape(-1))
    return RuleGroups(
        starts=starts_of(members),
        rules=np.concatenate([np.array(chosen, dtype=np.int64) for chosen in members]),
        variable_starts=starts_of(list(groups)),
        variables=np.array([i for looks in groups for i in looks], dtype=np.int64),
        strides=np.concatenate(
            [rules.strides[starts[first] : starts[first + 1]] for first, *_ in members]
        ),
        row_starts=starts_of(tables)[:-1],
        rows=np.concatenate(tables),
    )


def _pad(starts: Ints, targets: Any, probabilities: Any) -> tuple[Any, Any, Any]:
    """Make all rows equally long, if that is not much: their ends are then easy to predict."""
    lengths = np.diff(starts)
    num_rows, num_entries, longest = len(lengths), int(starts[-1]), int(lengths.max(initial=0))
    if num_rows * longest > 2 * num_entries:
        return (
            starts.astype(np.uint64),
            targets[:num_entries].copy(),
            probabilities[:num_entries].copy(),
        )
    place = np.arange(num_entries) + np.repeat(np.arange(num_rows) * longest - starts[:-1], lengths)
    padded_targets = np.zeros(num_rows * longest, dtype=targets.dtype)
    padded_targets[place] = targets[:num_entries]
    padded_probabilities = np.zeros(num_rows * longest, dtype=probabilities.dtype)
    padded_probabilities[place] = probabilities[:num_entries]
    return (
        np.arange(num_rows + 1, dtype=np.uint64) * np.uint64(longest),
        padded_targets,
        padded_probabilities,
    )


def _shorten(lists: DecisionLists) -> _ShortRules:
    """The rules that are ever asked, with those of a list in one where that is small."""
    row_sums = np.bincount(
        np.repeat(np.arange(len(lists.entry_starts) - 1), np.diff(lists.entry_starts)),
        weights=lists.probabilities,
        minlength=len(lists.entry_starts) - 1,
    )
    kept, joint = _analyse(lists, row_sums)
    first = lists.rule_starts[:-1]
    counts = np.where(joint, 1, kept)
    pair_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pair = np.repeat(np.arange(len(counts)), counts)
    begins = first[pair] + np.arange(len(pair)) - pair_starts[pair]
    ends = np.where(joint[pair], first[pair] + kept[pair], begins + 1)
    closing = np.zeros(len(begins), dtype=np.bool_)
    closing[pair_starts[1:] - 1] = True
    variable_starts, variables, strides, rows = _looks(lists, begins, ends)
    row_starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    looks = variable_starts, variables, strides
    return _ShortRules(pair_starts, begins, ends, closing, *looks, row_starts)


def _count_entries(lists: DecisionLists, rules: _ShortRules) -> Ints:
    """Where the entries of each row of the rules start."""
    rows = _Rows.empty(np.zeros(1, dtype=np.int64), np.float64)
    rows = rows._replace(entry_starts=np.zeros(rules.row_starts[-1] + 1, dtype=np.int64))
    _fill_rows(lists, rules, rows, fill=False)
    return rows.entry_starts


@njit(cache=True)
def _analyse(lists: Any, row_sums: Any) -> Any:
    """For each pair: how many of its rules are ever asked, and whether they become one."""
    pairs = len(lists.rule_starts) - 1
    kept = np.zeros(pairs, np.int64)
    joint = np.zeros(pairs, np.bool_)
    total = 0
    looked_at = np.zeros(len(lists.sizes), np.bool_)
    for pair in range(pairs):
        looked_at[:] = False
        rows = 1
        for rule in range(lists.rule_starts[pair], lists.rule_starts[pair + 1]):
            kept[pair] += 1
            for k in range(lists.variable_starts[rule], lists.variable_starts[rule + 1]):
                i = lists.variables[k]
                if not looked_at[i]:
                    looked_at[i] = True
                    # Capped: a product over every variable of a crowd would overflow.
                    rows = min(rows * lists.sizes[i], MAX_JOINT_ROWS + 1)
            decided = row_sums[lists.row_starts[rule] : lists.row_starts[rule + 1]]
            if decided.min() >= 1.0 - NEGLIGIBLE_PROBABILITY:
                break
        if kept[pair] > 1 and rows <= MAX_JOINT_ROWS and total + rows <= MAX_TOTAL_ROWS:
            joint[pair] = True
            total += rows
    return kept, joint


@njit(cache=True)
def _looks(lists: Any, begins: Any, ends: Any) -> Any:
    """What each new rule looks at (C order), the strides of its rows and how many there are."""
    starts = np.zeros(len(begins) + 1, np.int64)
    looked_at = np.empty(len(lists.variables), np.int64)
    strides = np.empty(len(lists.variables), np.int64)
    rows = np.ones(len(begins), np.int64)
    seen = np.zeros(len(lists.sizes), np.bool_)
    total = 0
    for rule in range(len(begins)):
        seen[:] = False
        for k in range(lists.variable_starts[begins[rule]], lists.variable_starts[ends[rule]]):
            seen[lists.variables[k]] = True
        for i in range(len(seen) - 1, -1, -1):
            if seen[i]:
                looked_at[total] = i
                strides[total] = rows[rule]
                rows[rule] *= lists.sizes[i]
                total += 1
        starts[rule + 1] = total
    return starts, looked_at[:total].copy(), strides[:total].copy(), rows


@njit(cache=True)
def _fill_rows(lists: Any, rules: Any, out: Any, fill: bool) -> None:
    """Fill the rows of the rules; or only set ``out.entry_starts``, from which to fill."""
    x = np.zeros(len(lists.sizes), np.int64)
    mass = np.zeros(lists.num_states)
    reached = np.zeros(lists.num_states, np.int64)
    for rule in range(len(rules.begins)):
        for row in range(rules.row_starts[rule], rules.row_starts[rule + 1]):
            for k in range(rules.variable_starts[rule], rules.variable_starts[rule + 1]):
                i = rules.variables[k]
                x[i] = (row - rules.row_starts[rule]) // rules.strides[k] % lists.sizes[i]
            count, total, passed = follow_rules(
                lists, rules.begins[rule], rules.ends[rule], x, mass, reached
            )
            start = out.entry_starts[row]
            if fill:
                out.left[row] = 0.0 if rules.closing[rule] else passed
                scale = 1.0 / total if rules.closing[rule] else 1.0
                for k in range(count):
                    out.targets[start + k] = reached[k]
                    out.probabilities[start + k] = mass[reached[k]] * scale
            else:
                out.entry_starts[row + 1] = start + count
            for k in range(count):
                mass[reached[k]] = 0.0


@njit(cache=True)
def _share_rows(row_starts: Any, made: Any) -> Any:
    """Keep equal rows of a rule once, in place: the row of each, and how many are left.

    A cell ahead is blocked or not, wherever else the obstacle may be: a hundred rows, two of them
    different, and these two stay in the cache.
    """
    entry_starts, targets, probabilities, left = made
    rows = np.empty(len(left), np.uint64)
    kept = 0
    for rule in range(len(row_starts) - 1):
        first = kept  # of this rule
        for row in range(row_starts[rule], row_starts[rule + 1]):
            start = entry_starts[row]
            length = entry_starts[row + 1] - start
            same = kept
            for other in range(first, min(first + MAX_COMPARED, kept)):
                begin, end = entry_starts[other], entry_starts[other + 1]
                if end - begin == length and _equal(start, begin, length, targets, probabilities):
                    same = other
                    break
            rows[row] = same
            if same == kept:
                place = entry_starts[kept]
                for k in range(length):
                    targets[place + k] = targets[start + k]
                    probabilities[place + k] = probabilities[start + k]
                left[kept] = left[row]
                kept += 1
                entry_starts[kept] = place + length
    return rows, kept


@njit(cache=True)
def _equal(first: int, second: int, length: int, targets: Any, probabilities: Any) -> bool:
    for k in range(length):
        if (
            targets[first + k] != targets[second + k]
            or probabilities[first + k] != probabilities[second + k]
        ):
            return False
    return True
