"""The tests behind every choice of variables, against SciPy."""

import numpy as np
import pytest
import scipy.stats

from planners.dependence.significance import Information, chi_squared_log_tail, compare_histograms


def test_the_tail_of_chi_squared_agrees_with_scipy():
    for freedom in (1, 2, 3, 7, 30, 500, 20_000):
        for ratio in (0.01, 0.3, 0.8, 0.999, 1.0, 1.001, 1.3, 3.0, 20.0):
            expected = scipy.stats.chi2.logsf(ratio * freedom, freedom)
            found = chi_squared_log_tail(ratio * freedom, freedom)
            if np.isfinite(expected):
                assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_the_tail_has_its_limits():
    assert chi_squared_log_tail(0.0, 5) == 0.0
    assert chi_squared_log_tail(3.0, 0) == 0.0  # nothing can vary: nothing is surprising
    assert chi_squared_log_tail(5000.0, 1) < -2000  # far below what a float can hold as p


def test_two_samples_are_compared_as_scipy_does():
    rng = np.random.default_rng(0)
    first, second = (rng.multinomial(60, [0.5, 0.3, 0.2, 0.0], size=(2, 3)) for _ in range(2))
    statistic, freedom = compare_histograms(first, second)
    assert statistic.shape == freedom.shape == (2, 3)
    for place in np.ndindex(2, 3):
        table = np.stack([first[place], second[place]])
        table = table[:, table.any(axis=0)]
        expected = scipy.stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
        assert statistic[place] == pytest.approx(expected.statistic)
        assert freedom[place] == expected.dof
        found = Information(statistic[place], freedom[place])
        assert np.exp(found.log_p) == pytest.approx(expected.pvalue)
