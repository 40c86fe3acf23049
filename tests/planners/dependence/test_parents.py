"""The choice of parents, on processes whose parents are known."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from processes import ProcessMDP, conditional_mutual_information, lazily

from exo_envs.core.statistics import chi_squared_log_tail
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from planners.core.memory import Memory
from planners.dependence.interventions import actors_of
from planners.dependence.parents import NUM_ROWS, SCREENED, ParentSearch
from planners.samples.rollouts import ExogenousData


def all_parents(mdp, data, *, interventions=True, mask=None, **settings):
    columns = list(range(len(data.names))) if mask is None else mask
    search = ParentSearch(data, **settings)
    suspects = (
        actors_of(mdp, data, columns, among=columns) if interventions else [{}] * len(columns)
    )
    return {
        data.names[i]: {data.names[j] for j in search.parents(i, columns, acting)}
        for i, acting in zip(columns, suspects, strict=True)
    }


@pytest.mark.parametrize("instance", range(4))
def test_planted_parents_are_found_exactly(instance):
    mdp = SyntheticMDP(
        SyntheticParameters(
            instance=instance, num_noise=4, noise_size=16, parents_per_paying=1 + instance % 2
        )
    )
    data = ExogenousData.collect(mdp, 1000, np.random.default_rng(instance))
    expected = {name: set(parents) for name, parents in mdp.parents.items()}
    assert all_parents(mdp, data) == expected


def test_an_xor_pair_needs_the_interventions():
    """Among so many variables that they cannot all be tested as one group."""
    sizes = (2,) * 12

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, [4, 7]] = u[:, [4, 7]] < 0.5
        following[:, 0] = np.where(u[:, 0] < 0.9, x[:, 4] ^ x[:, 7], 1 - (x[:, 4] ^ x[:, 7]))
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 500, np.random.default_rng(0))
    assert all_parents(mdp, data, interventions=False)["x0"] == set()
    found = all_parents(mdp, data)
    assert found.pop("x0") == {"x4", "x7"}
    assert all(
        parents == (set() if name in {"x4", "x7"} else {name}) for name, parents in found.items()
    )


def test_in_a_small_mask_an_xor_of_three_is_found_from_the_data_alone():
    sizes = (2,) * 5

    def step(x, u):
        following = lazily(0.4, sizes)(x, u)
        following[:, 0] = (x[:, 1] + x[:, 2] + x[:, 3] + (u[:, 0] < 0.2)) % 2
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 500, np.random.default_rng(1))
    assert all_parents(mdp, data, interventions=False)["x0"] == {"x1", "x2", "x3"}


def test_a_parent_with_many_values_is_no_rival_to_the_true_one():
    """Plug-in information prefers high cardinality; the test and the criterion do not."""
    sizes = (2, 2, 64, 64)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        following[:, 0] = np.where(u[:, 0] < 0.55, x[:, 1], 1 - x[:, 1])
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 300, np.random.default_rng(2))
    assert all_parents(mdp, data) == {"x0": {"x1"}, "x1": {"x1"}, "x2": {"x2"}, "x3": {"x3"}}


def test_independent_variables_get_no_spurious_parents():
    """At level 0.01 in all, 8 variables in each of 40 runs: 3.2 are expected, 11 has p < 1e-3."""
    sizes = (2, 2, 2, 3, 3, 5, 8, 16)
    mdp = ProcessMDP(sizes, lazily(0.5, sizes))
    spurious = 0
    for seed in range(40):
        data = ExogenousData.collect(mdp, 120, np.random.default_rng(seed))
        found = all_parents(mdp, data, interventions=False, level=0.01)
        for name, parents in found.items():
            spurious += len(parents - {name})
            assert name in parents
    assert scipy.stats.poisson.sf(10, 3.2) < 1e-3
    assert spurious <= 10


def test_slow_variables_do_not_seem_related_because_a_dropped_one_is_slow():
    """x0 follows x1, which is out of the mask and never changes within a rollout; so do others."""
    sizes = (2, 2, *(6,) * 6)

    def step(x, u):
        following = x.copy()
        following[:, 0] = np.where(u[:, 0] < 0.8, x[:, 1], 1 - x[:, 1])
        return following

    mdp = ProcessMDP(sizes, step, horizon=40)
    mask = [0, *range(2, 8)]
    spurious = []
    for seed in range(10):
        data = ExogenousData.collect(mdp, 150, np.random.default_rng(seed))
        search = ParentSearch(data)
        found = [search.all.information(0, [0], j) for j in range(2, 8)]
        most = max(found, key=lambda information: information.statistic)
        assert most.log_p < math.log(1e-3 / 7)  # a plain G-test would accept it
        spurious += search.parents(0, mask)[1:]
    assert spurious == []


def test_a_table_is_never_starved():
    """Every parent matters, but rows must have samples."""
    sizes = (2, *(4,) * 6)

    def step(x, u):
        following = lazily(0.2, sizes)(x, u)
        chance = 0.1 + 0.8 * (x[:, 1:] >= 2).mean(axis=1)
        following[:, 0] = u[:, 0] < chance
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 100, np.random.default_rng(0))
    for min_samples, at_most in ((20, 3), (200, 1)):
        search = ParentSearch(data, min_samples=min_samples)
        parents = search.parents(0, range(7))
        assert 1 <= len(parents) <= at_most
        assert search.all.rows(parents).count * min_samples <= search.all.count
    assert len(ParentSearch(data, max_parents=2).parents(0, range(7))) == 2
    assert ParentSearch(data, max_parents=0).parents(0, range(7)) == ()


def test_one_memory_serves_many_masks_and_searches():
    """What was counted for one mask changes nothing for the next."""
    mdp = SyntheticMDP(SyntheticParameters(num_noise=2))
    data = ExogenousData.collect(mdp, 200, np.random.default_rng(0))
    memory = Memory()
    searches = [ParentSearch(data, level=level, memory=memory) for level in (1e-3, 0.05)]
    for mask in ([0, 3, 5], [0, 3], list(range(10)), [5, 3, 0]):
        for i in mask:
            for search in searches:
                alone = ParentSearch(data, level=search.level)
                assert search.parents(i, mask) == alone.parents(i, mask)


@pytest.mark.parametrize("settings", [{"level": 0.0}, {"level": 2}, {"max_parents": -1}])
def test_settings_that_make_no_sense_are_refused(settings):
    mdp = ProcessMDP((2,), lazily(0.5, (2,)))
    data = ExogenousData.collect(mdp, 10, np.random.default_rng(0))
    with pytest.raises(ValueError, match=next(iter(settings))):
        ParentSearch(data, **settings)


def test_every_pair_of_a_larger_net():
    """A chain in which each variable copies the one before it, noisily."""
    sizes = (3,) * 10

    def step(x, u):
        following = np.roll(x, 1, axis=1)
        anew = np.minimum(np.floor(u / 0.3 * 3), 2)
        return np.where(u < 0.3, anew, following)

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 300, np.random.default_rng(0))
    expected = {f"x{i}": {f"x{j}"} for j, i in itertools.pairwise([*range(10), 0])}
    expected["x0"] = {"x9"}
    assert all_parents(mdp, data) == expected


def test_the_evidence_for_parents():
    """x0 follows x1 and, less often, x2; of x3 it knows nothing."""
    sizes = (2, 2, 4, 16)

    def step(x, u):
        following = lazily(0.5, sizes)(x, u)
        second = (x[:, 2] >= 2).astype(int)
        following[:, 0] = np.where(u[:, 0] < 0.6, x[:, 1], np.where(u[:, 0] < 0.9, second, 0))
        return following

    mdp = ProcessMDP(sizes, step)
    data = ExogenousData.collect(mdp, 800, np.random.default_rng(0))
    search = ParentSearch(data)
    parents = search.parents(0, range(4))
    assert set(parents) == {1, 2}
    evidence = search.explain(0, parents)
    assert list(evidence) == list(parents)
    assert evidence[1].information > evidence[2].information > 0.01
    for j, other in ((1, 2), (2, 1)):
        rows = data.before(other, data.fitted)
        expected = conditional_mutual_information(
            rows, data.after(0, data.fitted), data.before(j, data.fitted)
        )
        count = len(rows)
        found = evidence[j]
        assert found.plug_in == pytest.approx(expected / count, rel=1e-9)
        assert found.statistic == pytest.approx(2 * expected, rel=1e-9)
        assert found.information == pytest.approx(
            found.plug_in - found.freedom / (2 * count), rel=1e-9
        )
        assert found.freedom == data.sizes[other] * (data.sizes[j] - 1)
        assert found.log_p < math.log(1e-6)
    needless = search.explain(0, [*parents, 3])[3]
    assert needless.information < 0.005
    assert needless.log_p > math.log(1e-3)
    assert search.explain(0, []) == {}


def test_only_what_is_not_known_to_act_is_compared_with_other_rollouts():
    """Slow variables: a plain G-test finds a lot, other rollouts of the same just as much."""
    sizes = (2, 2, 6)

    def step(x, u):
        following = x.copy()
        following[:, 0] = np.where(u[:, 0] < 0.8, x[:, 1], 1 - x[:, 1])
        return following

    data = ExogenousData.collect(ProcessMDP(sizes, step, horizon=40), 150, np.random.default_rng(1))
    search = ParentSearch(data)
    compared = search.explain(0, [0, 2])
    plain = search.explain(0, [0, 2], suspects={2: 0.1, 1: 0.0})
    assert plain[0] == compared[0]
    assert plain[2].log_p == chi_squared_log_tail(plain[2].statistic, plain[2].freedom)
    assert plain[2].log_p < compared[2].log_p
    assert plain[2][:-1] == compared[2][:-1]


def test_many_candidates_take_little_memory():
    """What is remembered about thousands of hopeless candidates is bounded."""
    sizes = np.array([2] * 1500 + [3] * 500)
    values = np.random.default_rng(0).integers(sizes, size=(160, 26, 2000)).astype(np.uint8)
    values[:, 1:, 7] = values[:, :-1, 1800] > 0
    names = tuple(f"x{i}" for i in range(2000))
    data = ExogenousData(names, sizes, values, np.zeros((160, 0), dtype=np.int64), seed=0)
    memory = Memory()
    search = ParentSearch(data, memory=memory)
    assert search.parents(7, range(2000)) == (1800,)
    tracemalloc.start()
    for target in range(20):
        assert set(search.parents(target, range(2000))) == ({1800} if target == 7 else set())
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * values.nbytes
    assert kept < 2 * values.nbytes
    shelves = (SCREENED, NUM_ROWS)
    assert sum(len(memory.entries(shelf)) for shelf in shelves) < 20 * 40


def test_variables_of_very_many_values_together_are_ranked_on_fewer_transitions(monkeypatch):
    mdp = SyntheticMDP(SyntheticParameters(num_noise=4, noise_size=16))
    data = ExogenousData.collect(mdp, 1000, np.random.default_rng(0))
    before = ParentSearch(data)
    monkeypatch.setattr("planners.dependence.parents.SCREENED_VALUES", int(data.sizes.sum()) // 2)
    after = ParentSearch(data)
    assert after.few.count < 0.6 * before.few.count
    assert after.all.count == before.all.count
    expected = {name: set(parents) for name, parents in mdp.parents.items()}
    assert all_parents(mdp, data) == expected
