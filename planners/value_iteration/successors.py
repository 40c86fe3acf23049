"""Decision lists made ready for sweeps over all states.

A decision list is compact, but asking it takes time. Here lists are shortened: rules that are
never asked are dropped, and where a joint rule of a whole list stays small, it takes its place.
What a rule decides then lies in one short row of successors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import INNER, njit
from planners.core.arrays import Floats, Ints, subset_index
from planners.tables.decision_lists import DecisionLists, follow_rules
from planners.tables.ragged import Ragged

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

    At the joint value v (C order) of its variables group g has the rows
    ``rows[row_starts[g] + v * size :]``, in the order of its ``size`` rules; rules and values share
    rows that are equal.
    """

    rules: Ragged  # of each group
    variables: Ragged  # of each group, increasing
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
        return int(np.diff(self.entry_starts.astype(np.int64)).max(initial=0))

    @property
    def longest_list(self) -> int:
        return int(np.diff(self.rule_starts.astype(np.int64)).max(initial=0))


class _ShortRules(NamedTuple):
    """Which rules become one, before their rows are: r stands for ``begins[r] : ends[r]``."""

    pair_starts: Ints  # (N * A + 1,): the rules of each pair
    begins: Ints  # (rules,)
    ends: Ints  # (rules,)
    variables: Ints  # increasing within a rule
    variable_starts: Ints  # (rules + 1,)
    row_starts: Ints  # (rules + 1,)
    most_entries: int  # that all rows have together, at most


def rows_bytes(lists: DecisionLists, itemsize: int) -> int:
    """What :func:`successor_rows` takes at most while it works, found without doing it."""
    rules = _ShortRules(*_shorten(lists))
    rows = int(rules.row_starts[-1]) + 1
    indices = len(lists.rule_starts) + 8 * len(rules.row_starts) + 2 * len(rules.variables)
    return 8 * (indices + 5 * rows) + 2 * itemsize * rows + 3 * (4 + itemsize) * rules.most_entries


def successor_rows(lists: DecisionLists, dtype: Any) -> SuccessorRows:
    """Shorten the decision lists and lay out their rows."""
    rules = _ShortRules(*_shorten(lists))
    num_rows, entries = int(rules.row_starts[-1]), rules.most_entries
    places, row_starts = np.empty(num_rows, np.uint64), np.zeros(num_rows + 1, np.int64)
    made = np.empty(entries, np.uint32), np.empty(entries, dtype), np.empty(num_rows, dtype)
    num_kept, num_entries = _fill_rows(lists, rules, places, row_starts, *made)
    starts = row_starts[: num_kept + 1]
    lengths = np.diff(starts)
    longest = int(lengths.max(initial=0))
    # All rows are made equally long, if that is not much: their ends are then easy to predict.
    padding = num_kept * longest <= 2 * num_entries
    padded = np.arange(num_kept + 1) * longest if padding else starts
    place = np.arange(num_entries) + np.repeat(padded[:-1] - starts[:-1], lengths)
    targets = np.zeros(padded[-1], dtype=np.uint32)
    targets[place] = made[0][:num_entries]
    probabilities = np.zeros(padded[-1], dtype=dtype)
    probabilities[place] = made[1][:num_entries]
    return SuccessorRows(
        rules.pair_starts.astype(np.uint64),
        _group(rules, places),
        padded.astype(np.uint64),
        targets,
        probabilities,
        made[2][:num_kept].copy(),
    )


def _group(rules: _ShortRules, rows: Unsigned) -> RuleGroups:
    """Put rules that look at the same variables together, rows of the same value side by side."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rule, looks in enumerate(Ragged(rules.variables, rules.variable_starts).pieces()):
        groups.setdefault(tuple(looks.tolist()), []).append(rule)
    tables = []
    for chosen in groups.values():
        firsts = rules.row_starts[chosen]
        values = np.arange(rules.row_starts[chosen[0] + 1] - firsts[0])
        tables.append(rows[firsts + values[:, None]].reshape(-1))
    joined = Ragged.of(tables, np.uint64)
    members = Ragged.of(list(groups.values()))
    return RuleGroups(members, Ragged.of(list(groups)), joined.starts[:-1], joined.values)


@njit(cache=True)
def _shorten(lists: Any) -> Any:
    """The rules that are ever asked, with those of a list in one where that is small."""
    sizes, rule_starts = lists.sizes, lists.rule_starts
    asked, looks = lists.tables.variables
    pair_starts = np.zeros(len(rule_starts), np.int64)
    begins = np.empty(rule_starts[-1], np.int64)
    ends = np.empty(rule_starts[-1], np.int64)
    variable_starts = np.zeros(rule_starts[-1] + 1, np.int64)
    variables = np.empty(len(asked), np.int64)
    row_starts = np.zeros(rule_starts[-1] + 1, np.int64)
    marks = np.zeros(len(sizes), np.bool_)
    total = count = entries = 0  # of joint rows, of rules and of entries
    for pair in range(len(rule_starts) - 1):
        first = last = rule_starts[pair]
        while last < rule_starts[pair + 1]:
            last += 1
            if _always_decides(lists, last - 1):
                break
        joint = False
        if last - first > 1:
            start = variable_starts[count]
            end = _mark(asked[looks[first] : looks[last]], marks, variables, start)
            # Capped: a product over every variable of a crowd would overflow.
            rows = 1
            for k in range(start, end):
                rows = min(rows * sizes[variables[k]], MAX_JOINT_ROWS + 1)
            joint = rows <= MAX_JOINT_ROWS and total + rows <= MAX_TOTAL_ROWS
            total += rows if joint else 0
        for begin in range(first, first + 1 if joint else last):
            begins[count], ends[count] = begin, last if joint else begin + 1
            start = variable_starts[count]
            looked_at = asked[looks[begin] : looks[ends[count]]]
            end = _mark(looked_at, marks, variables, start)
            of_list = np.int64(1)
            for k in range(start, end):
                of_list *= sizes[variables[k]]
            entries += _most_entries(lists, begin, ends[count], of_list)
            count += 1
            variable_starts[count] = end
            row_starts[count] = row_starts[count - 1] + of_list
        pair_starts[pair + 1] = count
    looked_at = variables[: variable_starts[count]], variable_starts[: count + 1]
    return pair_starts, begins[:count], ends[:count], *looked_at, row_starts[: count + 1], entries


@njit(**INNER)
def _mark(looked_at: Any, marks: Any, variables: Any, start: int) -> int:
    """Write the variables, increasing and each once, from ``start`` on: where they end."""
    for i in looked_at:
        marks[i] = True
    end = start
    for i in range(len(marks) if len(looked_at) else 0):
        if marks[i]:
            variables[end] = i
            end += 1
            marks[i] = False
    return end


@njit(**INNER)
def _most_entries(lists: Any, begin: int, end: int, rows: int) -> int:
    """The entries that the joint rule of these rules has at most, in all of its ``rows``."""
    entries = 0
    for rule in range(begin, end):
        first, last = lists.tables.row_starts[rule], lists.tables.row_starts[rule + 1]
        own = lists.tables.values.starts[last] - lists.tables.values.starts[first]
        entries += own * (rows // max(last - first, 1))
    return min(entries, rows * lists.num_states)


@njit(**INNER)
def _always_decides(lists: Any, rule: int) -> bool:
    _, row_starts, (_, entry_starts), probabilities = lists.tables
    for row in range(row_starts[rule], row_starts[rule + 1]):
        total = 0.0
        for entry in range(entry_starts[row], entry_starts[row + 1]):
            total += probabilities[entry]
        if total < 1.0 - NEGLIGIBLE_PROBABILITY:
            return False
    return True


@njit(cache=True)
def _fill_rows(
    lists: Any,
    rules: Any,
    places: Any,
    starts: Any,
    targets: Any,
    probabilities: Any,
    left: Any,
) -> Any:
    """Fill the rows, equal ones of a rule once: how many rows and entries are kept.

    A cell ahead is blocked or not, wherever else the obstacle may be: a hundred rows, two of them
    different, and these two stay in the cache.

    Args:
        lists: the decision lists.
        rules: those that become one.
        places: the kept row that equals each row, (rows,).
        starts: where kept rows start, (rows + 1,).
        targets: of the entries of kept rows.
        probabilities: of the same.
        left: the probability that each kept row passes on.
    """
    sizes, variable_starts, variables = lists.sizes, rules.variable_starts, rules.variables
    x = np.zeros(len(sizes), np.int64)
    mass = np.zeros(lists.num_states)
    reached = np.zeros(lists.num_states, np.int64)
    (asked_variables, asked_starts), row_starts, (_, entry_starts), _ = lists.tables
    asked = np.empty(len(row_starts), np.int64)  # the rows of the rules that the last row asked
    kept = end = np.int64(0)  # not constants, for which Numba would compile functions anew
    for pair in range(len(rules.pair_starts) - 1):
        for rule in range(rules.pair_starts[pair], rules.pair_starts[pair + 1]):
            closing = rule + 1 == rules.pair_starts[pair + 1]  # it always decides
            first = kept
            begin, stop = rules.begins[rule], rules.ends[rule]
            asked[: stop - begin] = -2
            for row in range(rules.row_starts[rule], rules.row_starts[rule + 1]):
                rest = row - rules.row_starts[rule]
                for k in range(variable_starts[rule + 1] - 1, variable_starts[rule] - 1, -1):
                    size = sizes[variables[k]]
                    x[variables[k]] = rest % size
                    rest //= size
                # An empty row decides nothing, so that all of them count as the same.
                same_rows = True
                for k in range(stop - begin):
                    looks, last = asked_starts[begin + k], asked_starts[begin + k + 1]
                    own = row_starts[begin + k]
                    own += subset_index(x, asked_variables, looks, last, sizes)
                    if entry_starts[own] == entry_starts[own + 1]:
                        own = -1
                    same_rows &= asked[k] == own
                    asked[k] = own
                if same_rows:
                    places[row] = places[row - 1]
                    continue
                count, total, passed = follow_rules(lists, begin, stop, x, mass, reached)
                start, end = end, end + count
                for k in range(count):
                    share = mass[reached[k]]
                    targets[start + k] = reached[k]
                    probabilities[start + k] = share * (1.0 / total) if closing else share
                    mass[reached[k]] = 0.0
                same = _find_equal(first, kept, start, end, starts, targets, probabilities)
                places[row] = same
                if same == kept:
                    left[kept] = 0.0 if closing else passed
                    kept += 1
                    starts[kept] = end
                end = starts[kept]
    return kept, end


@njit(**INNER)
def _find_equal(
    first: int, kept: int, start: int, end: int, starts: Any, targets: Any, probabilities: Any
) -> int:
    """The first row from ``first`` on that has the entries start ... end - 1, or else ``kept``."""
    for row in range(first, min(first + MAX_COMPARED, kept)):
        back = start - starts[row]
        same = starts[row + 1] - starts[row] == end - start
        for k in range(start, end if same else start):
            if targets[k] != targets[k - back] or probabilities[k] != probabilities[k - back]:
                same = False
                break
        if same:
            return row
    return kept
