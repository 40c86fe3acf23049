"""Endogenous lists in sparse rows, ready for sweeps over all states.

A decision list is compact, but asking it takes time. Here lists are shortened: rules that are
never asked are dropped, and where a joint rule of a whole list stays small, it takes its place.
What a rule decides then lies in one short row of successors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planners.arrays import Ints
from planners.tables.decision_lists import DecisionLists, joint_value

Unsigned = NDArray[np.uint64]

#: A decision list becomes one joint rule if that has at most this many rows ...
MAX_JOINT_ROWS = 256
#: ... and all joint rules together at most this many.
MAX_TOTAL_ROWS = 1_000_000
#: Rows of a rule are compared with so many others of it.
MAX_COMPARED = 8
#: What a rule decides is everything if no more than this is left to pass on.
NOTHING = 1e-12


@dataclass(frozen=True)
class SuccessorRows:
    """The rules of all pairs (n, a), mostly one for each, and the rows they lead to.

    What a row does not decide, ``left``, is passed on to the next rule of the pair. Rules that
    look at the same variables form a group. At the joint value ``v = sum(values * strides)`` of
    group g its rules have the rows ``rows[row_starts[g] + v * size :]``, in the order of
    ``rules[starts[g] : starts[g] + size]``; rules and values share rows that are equal.

    Indices are unsigned: Numba then need not ask whether one of them counts from the end, which
    takes a third off the time of a sweep.
    """

    rule_starts: Unsigned  # (N * A + 1,)
    starts: Ints  # (groups + 1,) in rules
    rules: Ints
    variable_starts: Ints  # (groups + 1,)
    variables: Ints  # decreasing within a group
    strides: Ints
    row_starts: Ints  # (groups,)
    rows: Unsigned
    entry_starts: Unsigned  # (rows + 1,)
    targets: NDArray[np.uint32]  # (entries,)
    probabilities: NDArray[np.floating[Any]]  # (entries,)
    left: NDArray[np.floating[Any]]  # (rows,)

    @property
    def longest_row(self) -> int:
        """The most successors that any row has."""
        return int(np.diff(self.entry_starts.astype(np.int64)).max(initial=0))

    @property
    def longest_list(self) -> int:
        """The most rules that any pair has."""
        return int(np.diff(self.rule_starts.astype(np.int64)).max(initial=0))


def rows_bytes(lists: DecisionLists, itemsize: int) -> int:
    """What :func:`successor_rows` takes at most while it works, found without doing it."""
    rules, _, row_starts, entry_starts = _shorten(lists)
    _, variables, _ = rules[3:]
    rows = len(entry_starts)
    indices = len(lists.rule_starts) + 8 * len(row_starts) + 2 * len(variables) + 5 * rows
    return int(8 * indices + 2 * itemsize * rows + 3 * (4 + itemsize) * entry_starts[-1])


def successor_rows(lists: DecisionLists, dtype: Any) -> SuccessorRows:
    """Shorten the decision lists and lay out their rows."""
    rules, rule_starts, row_starts, entry_starts = _shorten(lists)
    targets = np.empty(entry_starts[-1], dtype=np.uint32)
    probabilities = np.empty(entry_starts[-1], dtype=dtype)
    left = np.empty(len(entry_starts) - 1, dtype=dtype)
    made: tuple[Any, ...] = (row_starts, entry_starts, targets, probabilities, left)
    _fill_rows(True, *(*rules, *made, *_lists(lists)))
    rows, num_rows = _share_rows(*made)
    _, _, _, variable_starts, variables, strides = rules
    entries = _pad(entry_starts[: num_rows + 1], targets, probabilities)
    grouped = _group(variable_starts, variables, strides, row_starts, rows)
    starts = rule_starts.astype(np.uint64)
    arrays: tuple[Any, ...] = (starts, *grouped, *entries, left[:num_rows].copy())
    return SuccessorRows(*arrays)


def _group(
    variable_starts: Ints, variables: Ints, strides: Ints, row_starts: Ints, rows: Unsigned
) -> tuple[Any, ...]:
    """Put rules that look at the same variables together, rows of the same value side by side."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rule in range(len(row_starts) - 1):
        looks = variables[variable_starts[rule] : variable_starts[rule + 1]]
        groups.setdefault(tuple(looks.tolist()), []).append(rule)
    members = list(groups.values())
    tables = []
    for chosen in members:
        values = row_starts[chosen[0] + 1] - row_starts[chosen[0]]
        tables.append(rows[row_starts[chosen][None, :] + np.arange(values)[:, None]].reshape(-1))
    firsts = [chosen[0] for chosen in members]
    return (
        np.cumsum([0, *(len(chosen) for chosen in members)]),
        np.concatenate([np.array(chosen, dtype=np.int64) for chosen in members]),
        np.cumsum([0, *(len(looks) for looks in groups)]),
        np.array([i for looks in groups for i in looks], dtype=np.int64),
        np.concatenate([strides[variable_starts[r] : variable_starts[r + 1]] for r in firsts]),
        np.cumsum([0, *(len(table) for table in tables)])[:-1],
        np.concatenate(tables),
    )


def _pad(starts: Ints, targets: Any, probabilities: Any) -> tuple[Any, Any, Any]:
    """Make all rows equally long, if that is not much: their ends are then easy to predict."""
    lengths = np.diff(starts)
    num_rows, num_entries, longest = len(lengths), int(starts[-1]), int(lengths.max(initial=0))
    if num_rows * longest > 2 * num_entries:
        return (
            starts.astype(np.uint64),
            targets[:num_entries].copy(),
            (probabilities[:num_entries].copy()),
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


def _lists(lists: DecisionLists) -> tuple[Any, ...]:
    """The decision lists, in the order in which the kernels below take them."""
    return (
        lists.num_states,
        lists.sizes,
        lists.variable_starts,
        lists.variables,
        lists.row_starts,
        lists.entry_starts,
        lists.targets,
        lists.probabilities,
    )


def _shorten(lists: DecisionLists) -> tuple[tuple[Any, ...], Ints, Ints, Ints]:
    """The rules that are left, and where those of a pair, their rows and the entries start.

    The new rule r stands for the old rules ``begins[r] : ends[r]``.
    """
    row_sums = np.bincount(
        np.repeat(np.arange(len(lists.entry_starts) - 1), np.diff(lists.entry_starts)),
        weights=lists.probabilities,
        minlength=len(lists.entry_starts) - 1,
    )
    kept, joint = _analyse(
        lists.sizes,
        lists.rule_starts,
        lists.variable_starts,
        lists.variables,
        lists.row_starts,
        row_sums,
    )
    first = lists.rule_starts[:-1]
    counts = np.where(joint, 1, kept)
    rule_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    pair = np.repeat(np.arange(len(counts)), counts)
    begins = first[pair] + np.arange(len(pair)) - rule_starts[pair]
    ends = np.where(joint[pair], first[pair] + kept[pair], begins + 1)
    closing = np.zeros(len(begins), dtype=np.bool_)  # the last rule of a pair decides
    closing[rule_starts[1:] - 1] = True
    *looks, rows = _looks(begins, ends, lists.variable_starts, lists.variables, lists.sizes)
    row_starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    entry_starts = np.zeros(row_starts[-1] + 1, dtype=np.int64)
    rules = (begins, ends, closing, *looks)
    nothing = np.zeros(0)
    none: tuple[Any, ...] = (nothing.astype(np.uint32), nothing, nothing)
    _fill_rows(False, *(*rules, row_starts, entry_starts, *none, *_lists(lists)))
    return rules, rule_starts, row_starts, entry_starts


@njit(cache=True)
def _analyse(
    sizes: Any,
    rule_starts: Any,
    variable_starts: Any,
    variables: Any,
    row_starts: Any,
    row_sums: Any,
) -> Any:
    """For each pair: how many of its rules are ever asked, and whether they become one."""
    pairs = len(rule_starts) - 1
    kept = np.zeros(pairs, np.int64)
    joint = np.zeros(pairs, np.bool_)
    total = 0
    looked_at = np.zeros(len(sizes), np.bool_)
    for pair in range(pairs):
        looked_at[:] = False
        rows = 1
        for rule in range(rule_starts[pair], rule_starts[pair + 1]):
            kept[pair] += 1
            for k in range(variable_starts[rule], variable_starts[rule + 1]):
                if not looked_at[variables[k]]:
                    looked_at[variables[k]] = True
                    # Capped: a product over every variable of a crowd would overflow.
                    rows = min(rows * sizes[variables[k]], MAX_JOINT_ROWS + 1)
            if row_sums[row_starts[rule] : row_starts[rule + 1]].min() >= 1.0 - NOTHING:
                break
        if kept[pair] > 1 and rows <= MAX_JOINT_ROWS and total + rows <= MAX_TOTAL_ROWS:
            joint[pair] = True
            total += rows
    return kept, joint


@njit(cache=True)
def _looks(begins: Any, ends: Any, variable_starts: Any, variables: Any, sizes: Any) -> Any:
    """What each new rule looks at (C order), the strides of its rows and how many there are."""
    starts = np.zeros(len(begins) + 1, np.int64)
    looked_at = np.empty(len(variables), np.int64)
    strides = np.empty(len(variables), np.int64)
    rows = np.ones(len(begins), np.int64)
    seen = np.zeros(len(sizes), np.bool_)
    total = 0
    for rule in range(len(begins)):
        seen[:] = False
        for k in range(variable_starts[begins[rule]], variable_starts[ends[rule]]):
            seen[variables[k]] = True
        for i in range(len(sizes) - 1, -1, -1):
            if seen[i]:
                looked_at[total] = i
                strides[total] = rows[rule]
                rows[rule] *= sizes[i]
                total += 1
        starts[rule + 1] = total
    return starts, looked_at[:total].copy(), strides[:total].copy(), rows


@njit(cache=True)
def _fill_rows(
    fill: bool,
    begins: Any,
    ends: Any,
    closing: Any,
    new_variable_starts: Any,
    new_variables: Any,
    new_strides: Any,
    new_row_starts: Any,
    new_entry_starts: Any,
    new_targets: Any,
    new_probabilities: Any,
    left: Any,
    num_states: int,
    sizes: Any,
    variable_starts: Any,
    variables: Any,
    row_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
) -> None:
    """Fill the rows of the new rules; or only set ``new_entry_starts``, from which to fill."""
    x = np.zeros(len(sizes), np.int64)
    mass = np.zeros(num_states)
    reached = np.zeros(num_states, np.int64)
    for rule in range(len(begins)):
        for row in range(new_row_starts[rule], new_row_starts[rule + 1]):
            for k in range(new_variable_starts[rule], new_variable_starts[rule + 1]):
                i = new_variables[k]
                x[i] = (row - new_row_starts[rule]) // new_strides[k] % sizes[i]
            count, total, passed = decide(
                x,
                mass,
                reached,
                begins[rule],
                ends[rule],
                sizes,
                variable_starts,
                variables,
                row_starts,
                entry_starts,
                targets,
                probabilities,
            )
            if fill:
                left[row] = 0.0 if closing[rule] else passed
                scale = 1.0 / total if closing[rule] else 1.0
                start = new_entry_starts[row]
                for k in range(count):
                    new_targets[start + k] = reached[k]
                    new_probabilities[start + k] = mass[reached[k]] * scale
            else:
                new_entry_starts[row + 1] = new_entry_starts[row] + count
            for k in range(count):
                mass[reached[k]] = 0.0


@njit(cache=True)
def decide(
    x: Any,
    mass: Any,
    reached: Any,
    begin: int,
    end: int,
    sizes: Any,
    variable_starts: Any,
    variables: Any,
    row_starts: Any,
    entry_starts: Any,
    targets: Any,
    probabilities: Any,
) -> Any:
    """What the rules begin ... end - 1 decide at x: how many n', their mass, what is passed on."""
    count = 0
    total = 0.0
    passed = 1.0
    for rule in range(begin, end):
        row = row_starts[rule] + joint_value(
            x, variables, variable_starts[rule], variable_starts[rule + 1], sizes
        )
        decided = 0.0
        for entry in range(entry_starts[row], entry_starts[row + 1]):
            share = passed * probabilities[entry]
            decided += probabilities[entry]
            if share > 0.0:
                if mass[targets[entry]] == 0.0:
                    reached[count] = targets[entry]
                    count += 1
                mass[targets[entry]] += share
                total += share
        passed *= max(0.0, 1.0 - decided)
    return count, total, passed


@njit(cache=True)
def _share_rows(
    row_starts: Any, entry_starts: Any, targets: Any, probabilities: Any, left: Any
) -> Any:
    """Keep equal rows of a rule once, in place: the row of each, and how many are left.

    A cell ahead is blocked or not, wherever else the obstacle may be: a hundred rows, two of them
    different, and these two stay in the cache.
    """
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
