"""A reward is split into terms of few variables by changing some of them at a time."""

import numpy as np
import pytest

from exo_envs.sources.rewards import ScopesError, SplitReward, find_scopes

NAMES = [f"x{i}" for i in range(12)]


def pay(x, lanes):
    """Two pairs and a triple pay only together, two variables by themselves; lanes have fees."""
    a = x.astype(float)
    together = a[:, 0] * a[:, 1] + a[:, 1] * a[:, 2] * a[:, 5] + a[:, 10] * a[:, 11]
    return together + 3.0 * a[:, 7] - a[:, 8] ** 2 + 0.1 * lanes


@pytest.fixture
def x():
    return np.random.default_rng(0).integers(4, size=(60, len(NAMES)))


def test_scopes_that_overlap_are_found_and_add_up_anywhere(x):
    reference, lanes = x[0], np.arange(60)
    scopes = find_scopes(x, pay, reference, NAMES)
    assert [sorted(s) for s in scopes if len(s) > 1] == [[0, 1], [1, 2, 5], [10, 11]]
    assert frozenset().union(*scopes) == set(range(12))
    split = SplitReward(scopes, reference)
    for values in (x, x[::-1]):
        np.testing.assert_allclose(split.totals(values, pay), pay(values, lanes))
    terms = split.terms(x, pay)
    assert not terms[0].any()  # at the reference
    alone = scopes.index(frozenset({7}))
    np.testing.assert_allclose(terms[:, alone], 3.0 * (x[:, 7] - reference[7]))


def test_too_many_variables_that_pay_only_together_are_refused_by_name(x):
    def product(x, lanes):
        return (x[:, :4] + 0.5).prod(axis=1)

    with pytest.raises(ScopesError, match=r"'x0', 'x1', 'x2', 'x3' pay only together"):
        find_scopes(x, product, x[0], NAMES)
