"""Plans that start from earlier plans: the same guarantees, fewer sweeps."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from factored import independent_moves, random_mdp, state_at
from hypothesis import given, settings
from hypothesis import strategies as st

from exo_envs import State, Variable
from exo_envs.domains.grid import GridMDP
from planners import (
    UCT,
    Clock,
    DefaultPlanner,
    ForecastPlanner,
    ReducedMDP,
    ValueIteration,
    estimate_objective,
    to_discrete_dp,
)
from planners.core.planner import warm_start_for
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor

SIZES = {"pays": 3, "pays_too": 4, "idle": 5, "idle_too": 2}


def product_mdp(names, *, num_states=6, discount=0.99, sizes=SIZES, terminal=0):
    """Independent variables; those that are called idle matter to nobody."""
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.full(num_states, 0.1), size=(num_states, 3))
    factors, terms = {}, {}
    for name, size in sizes.items():
        sticky = 0.8 * np.eye(size) + 0.2 * rng.dirichlet(np.ones(size), size=size)
        factors[name] = sticky
        terms[name] = rng.normal(size=(size, num_states, 3))
    ended = np.arange(num_states) >= num_states - terminal
    lengths = [sizes[name] for name in names]
    return FactoredMDP(
        endogenous_variables=(Variable("n", num_states),),
        exogenous_variables=tuple(Variable(name, sizes[name]) for name in names),
        num_actions=3,
        discount=discount,
        horizon=10,
        factors=[Factor.from_table((i,), factors[name]) for i, name in enumerate(names)],
        decision_lists=independent_moves(moves, lengths),
        base_reward=rng.normal(size=(num_states, 3)) + 1.0,
        terms={i: terms[name] for i, name in enumerate(names) if name.startswith("pays")},
        terminal=ended,
        initial=State(np.zeros((1, 1), dtype=int), np.zeros((1, len(names)), dtype=int)),
    )


def any_mdp(seed, sizes=None):
    rng = np.random.default_rng(seed)
    drawn = tuple(int(s) for s in rng.integers(1, 4, size=rng.integers(1, 5)))
    return random_mdp(
        rng,
        sizes=drawn if sizes is None else sizes,
        endogenous=(2, 2),
        num_actions=int(rng.integers(1, 4)),
        discount=float(rng.uniform(0.5, 0.99)),
        sparse=float(rng.choice([0.0, 0.5])),
        num_terminal=int(rng.integers(2)),
    )


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), change=st.integers(-2, 2))
def test_warm_and_cold_plans_agree(seed, change):
    """From a model that has nothing in common but the names, some of them."""
    mdp = any_mdp(seed)
    sizes = tuple(int(size) for size in mdp.exogenous_sizes)
    other = any_mdp(seed + 1, (*sizes, 2, 3)[: max(0, len(sizes) + change)])
    planner = ValueIteration(tolerance=1e-6)
    cold = planner.plan(mdp)
    for dtype in (np.float64, np.float32):
        start = ValueIteration(dtype=dtype).plan(other)
        before = start.values.copy()
        warm = planner.plan(mdp, warm_start=start)
        assert warm.converged
        np.testing.assert_allclose(warm.values, cold.values, atol=1e-6)
        np.testing.assert_array_equal(start.values, before)


@given(
    seed=st.integers(0, 2**32), sweeps=st.integers(1, 10), scale=st.sampled_from([1, 1e3, 1e200])
)
def test_the_bound_on_the_loss_holds_from_any_start(seed, sweeps, scale):
    mdp = any_mdp(seed)
    start = ValueIteration().plan(mdp)
    noise = np.random.default_rng(seed).normal(size=start.values.shape)
    planner = ValueIteration(tolerance=1e-5, max_iterations=sweeps, dtype=np.float32)
    plan = planner.plan(mdp, warm_start=replace(start, values=scale * noise))
    problem = to_discrete_dp(mdp)
    actions = np.asarray(plan.policy(state_at(mdp, np.arange(mdp.num_states))))
    best = np.asarray(problem.solve(method="policy_iteration").v)
    loss = best - np.asarray(problem.evaluate_policy(actions))
    assert loss.max() <= plan.loss_bound + 1e-9
    if plan.converged:
        np.testing.assert_allclose(plan.values.reshape(-1), best, atol=1e-5)


@pytest.mark.parametrize("terminal", [0, 2])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("pays", "pays_too"), ("idle", "pays_too", "idle_too", "pays")),
        (("idle", "pays_too", "idle_too", "pays"), ("pays", "pays_too")),
        (("idle", "pays_too", "pays"), ("pays", "idle_too", "pays_too")),
        (("idle",), ()),
        ((), ("idle", "idle_too")),
        (("pays", "idle"), ("pays", "idle")),
    ],
    ids=str,
)
def test_what_is_known_already_takes_one_sweep(before, after, terminal):
    """Where the variables that differ do not matter, in whatever order they come."""
    planner = ValueIteration()
    small, large = (product_mdp(names, terminal=terminal) for names in (before, after))
    cold = planner.plan(large)
    warm = planner.plan(large, warm_start=ValueIteration(tolerance=1e-7).plan(small))
    assert (warm.iterations, warm.converged) == (1, True)
    assert cold.iterations > 10
    np.testing.assert_allclose(warm.values, cold.values, atol=planner.tolerance)


@pytest.fixture(scope="module")
def grid():
    """Reduced models of ExoGrid, from the smallest to the largest mask."""
    mdp, rng = GridMDP(), np.random.default_rng(0)
    data = ExogenousData.collect(mdp, 1000, rng)
    survey = EndogenousSurvey.collect(mdp, data, rng)
    names = ("object", "guard", "carrier", "guard_intent", "weather")
    return [
        ReducedMDP.estimate(mdp, names[:k], rng=rng, data=data, survey=survey)
        for k in range(len(names) + 1)
    ]


@pytest.mark.parametrize("growing", [True, False], ids=["grown", "shrunk"])
def test_masks_grown_and_shrunk(grid, growing):
    planner = ValueIteration()
    masks = grid if growing else grid[::-1]
    cold = [planner.plan(reduced) for reduced in masks]
    warm = [cold[0]]
    for reduced in masks[1:]:
        warm.append(planner.plan(reduced, warm_start=warm[-1]))
    for one, other in zip(cold, warm, strict=True):
        assert other.converged
        np.testing.assert_allclose(other.values, one.values, atol=planner.tolerance)
    # The weather comes or goes first or last, and changes next to nothing.
    place = -1 if growing else 1
    assert warm[place].iterations < 0.7 * cold[place].iterations


def test_a_warm_start_that_does_not_fit_is_ignored():
    planner = ValueIteration()
    mdp = product_mdp(("pays", "pays_too"))
    plan = planner.plan(mdp)
    spoilt = plan.values.copy()
    spoilt[0, 0] = np.nan
    resized = product_mdp(("pays", "pays_too"), sizes={**SIZES, "pays": 2})
    many = product_mdp([f"idle_{i}" for i in range(70)], sizes={f"idle_{i}": 1 for i in range(70)})
    useless = {
        "no values": replace(plan, values=None),
        "no time": planner.plan(mdp, time_limit=0.0),
        "not numbers": replace(plan, values=spoilt),
        "another shape": replace(plan, values=plan.values[:-1]),
        "another type": replace(plan, values=plan.values.astype(np.int64)),
        "other endogenous states": planner.plan(product_mdp(("pays",), num_states=5)),
        "another size": planner.plan(resized),
        "too many variables": planner.plan(many),
        "another planner": ForecastPlanner().plan(mdp),
        "no tables at all": UCT().plan(mdp, warm_start=plan),
    }
    for reason, start in useless.items():
        again = planner.plan(mdp, warm_start=start)
        assert again.iterations == plan.iterations, reason
        np.testing.assert_array_equal(again.values, plan.values)


def test_memory_and_time_limits_hold():
    sizes = {f"pays_{i}": 8 for i in range(5)}
    small, large = (product_mdp(list(sizes)[:k], sizes=sizes, num_states=40) for k in (4, 5))
    start = ValueIteration(tolerance=1.0).plan(small)
    limited = ValueIteration(tolerance=1e-9)
    clock = Clock(None)
    plan = limited.plan(large, time_limit=0.5, warm_start=start)
    assert clock.seconds() < 0.9  # what a busy machine may add
    assert not plan.converged
    nothing = limited.plan(large, time_limit=1e-6, warm_start=start)
    assert nothing.values is None
    for mdp, earlier in ((large, start), (small, plan)):
        limit = ValueIteration().bytes_needed(mdp)
        tracemalloc.start()
        ValueIteration(max_iterations=3, memory_limit=limit).plan(mdp, warm_start=earlier)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.05 * limit + 1e6


class Recorder:
    """Somebody's planner, which takes a warm start and remembers it."""

    def plan(self, mdp, *, rng=None, time_limit=None, **others):
        self.others = others
        return ValueIteration().plan(mdp, rng=rng, time_limit=time_limit)


class Plain:
    """Somebody's planner, which knows nothing of warm starts."""

    def plan(self, mdp, *, rng=None, time_limit=None):
        return ValueIteration().plan(mdp, rng=rng, time_limit=time_limit)


def test_objectives_pass_it_to_planners_that_take_it():
    def objective(mask, **arguments):
        return estimate_objective(
            GridMDP(), mask, rng=0, n_rollouts=20, num_rollouts=300, **arguments
        )

    mask = ["object", "guard"]
    first = objective(mask)
    again = objective(mask, warm_start=first)
    assert again.plan.iterations < 0.5 * first.plan.iterations
    np.testing.assert_array_equal(again.returns, first.returns)
    recorder = Recorder()
    objective(mask, planner=recorder)
    assert recorder.others == {}
    objective(mask, planner=recorder, warm_start=first)
    assert recorder.others["warm_start"] is first.plan
    assert objective(mask, planner=Plain(), warm_start=first).plan.converged
    assert warm_start_for(Plain(), first.plan) == {}


def test_the_default_planner_passes_it_on_and_takes_a_precision(grid):
    planner = DefaultPlanner(tolerance=0.5, dtype=np.float32)
    cold = planner.plan(grid[4])
    assert cold.values.dtype == np.float32
    assert cold.loss_bound <= 0.5
    precise = DefaultPlanner().plan(grid[4])
    assert precise.values.dtype == np.float64
    assert 1 < cold.iterations < precise.iterations
    assert planner.plan(grid[4], warm_start=precise).iterations == 1
    # Other planners do without.
    assert DefaultPlanner(max_states=1).plan(grid[4], warm_start=cold).values is None
    assert DefaultPlanner(max_endogenous_pairs=1).plan(grid[4], warm_start=cold).values is None
    with pytest.raises(ValueError, match="tolerance"):
        DefaultPlanner(tolerance=-1.0)
