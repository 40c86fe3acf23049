"""Greedy forward selection, on candidates whose worth is known."""

import numpy as np

from planners.dependence.selection import select_forward

#: What a candidate is worth once 1 is chosen; before, 3 is worth most. 2 never passes its test.
WORTH = {1: 2.0, 2: 3.0, 3: 1.0, 4: 0.0}


def select(limit, *, asked=None):
    def rank(chosen, live):
        if asked is not None:
            asked.append((list(chosen), live.tolist()))
        worth = {j: WORTH[j] + (2.5 if j == 3 and 1 not in chosen else 0) for j in live.tolist()}
        live = live[live != 4]
        return live, sorted((j for j in live.tolist() if worth[j] > 0), key=lambda j: -worth[j])

    def passes(chosen, j):
        return j != 2

    return select_forward(np.arange(1, 5), limit, rank=rank, passes=passes)


def test_the_best_that_passes_is_chosen_given_those_before():
    assert select(5) == [3, 1]
    assert select(1) == [3]
    assert select(0) == []


def test_what_is_chosen_or_dropped_is_not_looked_at_again():
    asked = []
    select(5, asked=asked)
    assert asked == [([], [1, 2, 3, 4]), ([3], [1, 2]), ([3, 1], [2])]
