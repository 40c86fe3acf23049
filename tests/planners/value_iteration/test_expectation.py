"""The expectation over x', factor by factor, against the joint matrix."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planners.tables.factors import Factor
from planners.value_iteration import elimination, expectation
from planners.value_iteration.elimination import eliminate
from planners.value_iteration.expectation import Expectation


def random_factors(rng, sizes, parents=None):
    """Factors with any parents: none, itself, others, in any order; with zeros in some."""
    factors = []
    for i, size in enumerate(sizes):
        count = rng.integers(min(len(sizes), 3) + 1)
        chosen = rng.permutation(len(sizes))[:count] if parents is None else parents[i]
        rows = math.prod(sizes[p] for p in chosen)
        table = rng.dirichlet(np.ones(size), size=rows)
        table[rng.random(table.shape) < rng.choice([0.0, 0.6])] = 0.0
        table[table.sum(axis=1) == 0, 0] = 1.0
        table /= table.sum(axis=1, keepdims=True)
        factors.append(Factor.from_table([int(p) for p in chosen], table))
    return factors


def joint_matrix(factors, sizes):
    """P(x'|x), shape (X, X)."""
    joint = np.array(list(itertools.product(*(range(size) for size in sizes))), dtype=int)
    matrix = np.ones((len(joint), len(joint)))
    for i, factor in enumerate(factors):
        rows = np.zeros(len(joint), dtype=int)
        for parent in factor.parents:
            rows = rows * sizes[parent] + joint[:, parent]
        matrix *= factor.to_table(sizes[i])[rows][:, joint[:, i]]
    return matrix


def expected(factors, sizes, values, dtype=np.float64):
    """W by the steps."""
    work = Expectation(sizes, factors, values.shape[1], dtype)
    return work.of(values.astype(dtype))


@settings(max_examples=200)
@given(
    sizes=st.lists(st.integers(1, 4), max_size=5).map(tuple),
    piece=st.sampled_from([1 << 22, 40, 1]),
    joint_entries=st.sampled_from([5_000_000, 0]),  # groups at once, or one by one
    seed=st.integers(0, 2**32),
)
def test_steps_are_the_joint_matrix(sizes, piece, joint_entries, seed):
    rng = np.random.default_rng(seed)
    factors = random_factors(rng, sizes)
    values = rng.normal(size=(math.prod(sizes), int(rng.integers(1, 5))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination, "MAX_JOINT_ENTRIES", joint_entries)
        patch.setattr(expectation, "PIECE_MULTIPLICATIONS", piece)
        found = expected(factors, sizes, values)
    np.testing.assert_allclose(found, joint_matrix(factors, sizes) @ values, atol=1e-12)


def test_float32_gives_float32():
    rng = np.random.default_rng(0)
    factors = random_factors(rng, (3, 4))
    values = rng.normal(size=(12, 5))
    found = expected(factors, (3, 4), values, np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, joint_matrix(factors, (3, 4)) @ values, atol=1e-6)


def test_parents_first_needs_no_larger_tensor(monkeypatch):
    """A chain of dependencies, given backwards: nothing is ever larger than V."""
    monkeypatch.setattr(elimination, "MAX_JOINT_ENTRIES", 0)
    sizes = (3, 4, 2, 5)
    parents = [(0, 1), (1, 2), (2, 3), (3,)]
    factors = random_factors(np.random.default_rng(0), sizes, parents)
    steps = eliminate(sizes, factors, 1)
    assert [step.group for step in steps.steps] == [(3,), (2,), (1,), (0,)]
    assert all(steps.size(step.after) == math.prod(sizes) for step in steps.steps)


def test_cycles_cost_an_axis_or_a_joint_factor(monkeypatch):
    """Two that depend on each other: at once, or with one of them twice in the tensor."""
    sizes = (6, 6)
    factors = random_factors(np.random.default_rng(0), sizes, [(0, 1), (0, 1)])
    (step,) = eliminate(sizes, factors, 10).steps
    assert step.group == (0, 1)
    monkeypatch.setattr(elimination, "MAX_JOINT_ENTRIES", 0)
    steps = eliminate(sizes, factors, 10)
    assert [steps.size(step.after) for step in steps.steps] == [6**3, 6**2]
    assert steps.nbytes(10, 8) >= 8 * 10 * 6**3


def test_small_neighbours_are_taken_together():
    sizes = (2,) * 6
    factors = [Factor.from_table((i,), np.full((2, 2), 0.5)) for i in range(6)]
    steps = eliminate(sizes, factors, 10).steps
    assert [step.group for step in steps] == [(0, 1, 2), (3, 4, 5)]


def test_the_joint_matrix_is_never_formed():
    """A million joint values: the tables of the steps are small, the arrays a few times V."""
    sizes = (10,) * 6
    factors = random_factors(np.random.default_rng(0), sizes, [(i,) for i in range(6)])
    steps = eliminate(sizes, factors, 3)
    assert steps.nbytes(3, 8) < 3 * (8 * 3 * 10**6) + 10**6
