"""Frequencies against probabilities."""

import numpy as np

ERROR_PROBABILITY = 1e-6  # of one statistical comparison below, were its seed not fixed


def assert_frequencies(samples, probabilities):
    """Samples (N,) of a distribution (values,), by Hoeffding's inequality."""
    bound = np.sqrt(np.log(2 * len(probabilities) / ERROR_PROBABILITY) / (2 * len(samples)))
    found = np.bincount(samples, minlength=len(probabilities)) / len(samples)
    assert np.abs(found - probabilities).max() < bound
