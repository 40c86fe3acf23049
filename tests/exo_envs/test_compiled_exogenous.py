"""x' in one compiled call: in any integer type and on any number of threads, it is the same."""

import numba
import numpy as np
import pytest

from exo_envs.contract.checked_mdp import CountedMDP, checked, compiled_exogenous_of
from exo_envs.core.clock import Clock
from exo_envs.core.kernels import BLOCK_VALUES, MANY_VALUES
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters

SMALL = SyntheticMDP(SyntheticParameters(num_pairs=1, num_copies=9))
LARGE = SyntheticMDP(SyntheticParameters(num_noise=1000))
RNG = np.random.default_rng(0)
GENERATORS = (np.random.PCG64, np.random.SFC64)


def reference(mdp, x, uniforms):
    """x' from the nodes of the net, one variable after another."""
    place = {node.name: i for i, node in enumerate(mdp.nodes)}
    following = np.empty_like(x)
    for i, node in enumerate(mdp.nodes):
        called_for = node.function[tuple(x[:, place[name]] for name in node.parents)]
        quantile = np.minimum(uniforms[:, i] / node.noise, 1.0 - 1e-12)
        drawn = np.minimum(np.searchsorted(node.base.cumsum(), quantile, "right"), node.size - 1)
        if (node.base == node.base[0]).all():
            drawn = (quantile * node.size).astype(int)
        following[:, i] = np.where(uniforms[:, i] < node.noise, drawn, called_for)
    return following


@pytest.mark.parametrize("mdp", [SMALL, LARGE])
def test_every_variable_is_drawn_anew_or_follows_its_parents(mdp):
    x = mdp.sample_uniform(50, np.random.default_rng(0)).exogenous
    uniforms = np.random.default_rng(1).random(x.shape)
    following = mdp.sample_exogenous(x, np.random.default_rng(1))
    assert (following == reference(mdp, x, uniforms)).all()


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("values", [100, BLOCK_VALUES + 5000, MANY_VALUES + 5000])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
def test_types_and_sizes_of_batches_give_the_same(kind, values, dtype):
    width = len(LARGE.exogenous_sizes)
    lanes = -(-values // width)
    x = LARGE.sample_initial(lanes, np.random.default_rng(0)).exogenous
    rng, twin = (np.random.Generator(kind(3)) for _ in range(2))
    rng.integers(3), twin.integers(3)  # leaves half a number behind
    following = np.empty(x.shape, dtype)
    assert compiled_exogenous_of(LARGE).write(x.astype(dtype), rng, following)
    assert (following == reference(LARGE, x, twin.random(x.shape))).all()
    assert rng.integers(3, size=9).tolist() == twin.integers(3, size=9).tolist()
    assert rng.random() == twin.random()


def test_bytes_do_not_depend_on_the_number_of_threads():
    assert numba.config.NUMBA_NUM_THREADS > 1 or pytest.skip("there is one thread")
    lanes = MANY_VALUES // len(LARGE.exogenous_sizes) + 7
    before, found = numba.get_num_threads(), []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            found.append(LARGE.sample_initial(lanes, np.random.default_rng(0)).exogenous)
    finally:
        numba.set_num_threads(before)
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("lanes", [3, 300])
@pytest.mark.parametrize("odd", [-1, 2, 2**40, 2**32])
@pytest.mark.parametrize("at", ["first", "last"])
def test_values_out_of_range_are_refused(lanes, odd, at):
    x = LARGE.sample_uniform(lanes, np.random.default_rng(0)).exogenous
    i = [i for i, size in enumerate(LARGE.exogenous_sizes) if size == 2][0 if at == "first" else -1]
    x[0 if at == "first" else -1, i] = odd
    with pytest.raises(ValueError, match=LARGE.exogenous_names[i]):
        LARGE.sample_exogenous(x, np.random.default_rng(0))


@pytest.mark.parametrize("wrap", [checked, CountedMDP, lambda mdp: CountedMDP(checked(mdp))])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_trajectories_are_written_as_they_follow(wrap, dtype):
    rng, twin = (np.random.default_rng(0) for _ in range(2))
    values = np.full((300, 5, len(LARGE.exogenous_sizes)), 99, dtype)
    n = wrap(LARGE).write_trajectories(values, rng)
    state, following = LARGE.trajectories(300, 4, twin)
    assert (n == state.endogenous).all()
    for t, x in enumerate([state.exogenous, *following]):
        assert (values[:, t] == x).all()
    assert rng.random() == twin.random()


def test_written_trajectories_are_counted_and_tick():
    mdp, ticks = CountedMDP(SMALL), []
    with Clock(None, watch=ticks.append).above():
        mdp.write_trajectories(np.empty((9, 6, len(SMALL.exogenous_sizes)), np.uint8), RNG)
    assert mdp.exogenous_samples == 9 * 6
    assert len(ticks) == 6

    def stop(_):
        raise KeyboardInterrupt

    with Clock(None, watch=stop).above(), pytest.raises(KeyboardInterrupt):
        mdp.write_trajectories(np.empty((9, 6, len(SMALL.exogenous_sizes)), np.uint8), RNG)


def test_a_model_that_draws_in_its_own_way_has_none():
    class Slower(SyntheticMDP):
        def sample_exogenous(self, exogenous, rng):
            return exogenous

    patched = SyntheticMDP()
    patched.sample_exogenous = lambda exogenous, rng: exogenous
    assert compiled_exogenous_of(Slower()) is None
    assert compiled_exogenous_of(patched) is None
    assert compiled_exogenous_of(CrowdMDP()) is None
    assert compiled_exogenous_of(SMALL) is not None
