"""Values with so many steps left, against backward induction with dense matrices."""

import numpy as np
import pytest
from factored import random_mdp, to_arrays

from planners.value_iteration.sweeps import backward_induction


@pytest.mark.parametrize("seed", range(6))
def test_the_values_are_those_of_dense_backward_induction(seed):
    rng = np.random.default_rng(seed)
    discount = 1.0 if seed % 3 == 0 else 0.9
    mdp = random_mdp(rng, discount=discount, num_terminal=seed % 2, sizes=(2, 3, 2)[: seed % 4])
    transitions, rewards = to_arrays(mdp)
    expected = np.zeros(len(rewards))
    made = 0
    for values in backward_induction(mdp, 5):
        made += 1
        assert values.shape[1] == mdp.num_endogenous_states
        np.testing.assert_allclose(values.reshape(-1), expected, atol=1e-12)
        following = np.einsum("ast,t->sa", transitions, expected)
        expected = (rewards + discount * following).max(axis=1)
    assert made == 6


def test_single_precision_is_close():
    mdp = random_mdp(np.random.default_rng(1))
    for exact, single in zip(
        backward_induction(mdp, 4), backward_induction(mdp, 4, np.float32), strict=True
    ):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, exact, atol=1e-5)
