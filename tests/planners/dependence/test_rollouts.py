"""The data: rollouts of the exogenous variables."""

import math

import numpy as np
import pytest
from processes import ProcessMDP, lazily

from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from planners.core.arrays import joint_index
from planners.dependence.contingency import count_table
from planners.samples.rollouts import ExogenousData


def test_data_is_compact_and_complete():
    mdp = SyntheticMDP(SyntheticParameters(num_noise=1))
    data = ExogenousData.collect(mdp, 16, np.random.default_rng(0))
    assert data.values.shape == (16, mdp.horizon + 1, len(mdp.nodes))
    assert data.values.dtype == np.uint8
    assert data.held_out.sum() == 2
    assert data.initial().endogenous.shape == (16, 3)
    again = ExogenousData.collect(mdp, 16, np.random.default_rng(0))
    assert (again.values == data.values).all()
    assert again.seed == data.seed
    part = data.restrict(data.names[3:5])
    assert (part.values == data.values[:, :, 3:5]).all()


def test_values_are_stored_in_the_smallest_type():
    mdp = ProcessMDP((2, 256), lazily(0.1, (2, 256)), horizon=3)
    data = ExogenousData.collect(mdp, 200, np.random.default_rng(0))
    assert data.values.dtype == np.uint8
    assert data.values[..., 1].max() > 230
    assert not data.bins


def test_the_data_agrees_with_the_model():
    """The frequencies of transitions, against the exact table (Hoeffding at 1e-6)."""
    mdp = SyntheticMDP(SyntheticParameters(num_noise=2))
    data = ExogenousData.collect(mdp, 400, np.random.default_rng(0))
    everything = np.arange(400)
    for name in mdp.required_mask:
        i = mdp.exogenous_names.index(name)
        given = [mdp.exogenous_names.index(parent) for parent in mdp.parents[name]]
        shape = [int(data.sizes[j]) for j in given]
        codes = joint_index(np.stack([data.before(j, everything) for j in given], axis=-1), shape)
        counts = count_table(codes, math.prod(shape), data.after(i, everything), 2)
        samples = counts.sum(axis=-1, keepdims=True)
        spread = np.sqrt(np.log(2 / 1e-6) / (2 * samples))
        assert (np.abs(counts / samples - mdp.table(name).reshape(-1, 2)) < spread).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_rollouts": 0}, ValueError, "num_rollouts is a whole number, at least 1, not 0"),
        ({"num_rollouts": 2.5}, ValueError, "num_rollouts is a whole number, at least 1, not 2.5"),
        ({"num_rollouts": True}, ValueError, "not True"),
        ({"num_steps": 0}, ValueError, "num_steps is a whole number, at least 1, not 0"),
    ],
)
def test_bad_amounts_of_data_are_refused(arguments, error, message):
    mdp = ProcessMDP((2,), lazily(0.5, (2,)))
    with pytest.raises(error, match=message):
        ExogenousData.collect(mdp, **arguments)


def test_unknown_variables_of_the_data_are_refused():
    mdp = ProcessMDP((2, 2), lazily(0.5, (2, 2)))
    data = ExogenousData.collect(mdp, 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="did you mean 'x1'"):
        data.restrict(["x11"])
