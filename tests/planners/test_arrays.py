"""The numbers of joint values, in arrays and in kernels."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planners.core.arrays import joint_index, joint_values, set_joint_values, subset_index


@given(sizes=st.lists(st.integers(1, 4), max_size=5))
def test_joint_values_are_numbered_in_c_order(sizes):
    numbers = np.arange(math.prod(sizes))
    values = joint_values(numbers, sizes)
    assert values.shape == (len(numbers), len(sizes))
    assert sorted(values.tolist()) == values.tolist()
    np.testing.assert_array_equal(joint_index(values, sizes), numbers)


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5), seed=st.integers(0, 2**32))
def test_kernels_number_alike(sizes, seed):
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes)
    x = rng.integers(sizes)
    variables = rng.permutation(len(sizes))
    start, end = np.sort(rng.integers(len(sizes) + 1, size=2))
    some = variables[start:end]
    assert subset_index(x, variables, start, end, sizes) == joint_index(x[some], sizes[some])
    out = np.zeros_like(x)
    set_joint_values(int(joint_index(x, sizes)), sizes, out)
    np.testing.assert_array_equal(out, x)
