"""What pays its price: the calibrated rule with lambda > 0, and brute force as the truth."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scripted import ScriptedStudy, Sites

from exo_envs import ExoMDP, State, Variable
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters, exact_return
from planners import Estimate
from wrappers import BruteForceMaskLearner, CalibratedMaskLearner, Study
from wrappers.fitting import relevance as relevance_module
from wrappers.fitting.relevance import find_relevance, importance
from wrappers.learners.calibrated import blocks

LEVEL = 1e-4


@pytest.fixture(scope="module")
def grids():
    settings = {"n_rollouts": 200, "n_data_rollouts": 200, "level": LEVEL}
    rules = ("average", "zero")
    return {rule: Study(GridMDP(), 1, ignored_rewards=rule, **settings) for rule in rules}


@pytest.fixture(scope="module")
def grid(grids):
    return grids["average"]


def consistent(learner):
    """Whether the records of a fit tell one story."""
    mask = None
    for record in learner.history_:
        assert record.mask == tuple(n for n in learner.feature_names_in_ if n in record.mask)
        if record.action == "find":
            continue
        if record.action == "start":
            mask = record.mask
            continue
        tried = {
            "add": set(mask) | set(record.candidate),
            "drop": set(mask) - set(record.candidate),
        }
        assert set(record.mask) == (tried[record.action] if record.accepted else set(mask))
        assert record.gain_error >= 0
        if record.accepted:
            assert record.gain >= 0  # on the trajectories that both masks played
            if learner.cost == "size":  # the same contest again
                price = {"cost_weight": learner.cost_weight}
                comparison = learner.study_.evaluator.compare(record.mask, mask, **price)
                assert record.gain == pytest.approx(comparison.gain.mean, rel=1e-9, abs=1e-9)
                assert record.value == pytest.approx(comparison.objective.value, rel=1e-9)
            mask = record.mask
        else:
            assert record.gain < 0 or record.action == "add"
    assert learner.mask_ == mask
    samples = [record.samples for record in learner.history_]
    seconds = [record.seconds for record in learner.history_]
    assert samples == sorted(samples)
    assert seconds == sorted(seconds)
    return True


# --- against brute force ----------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["average", "zero"])
@pytest.mark.parametrize("cost_weight", [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0])
def test_on_the_grid_it_is_as_good_as_brute_force(grids, rule, cost_weight):
    """With averages the empty mask is the best one from about 2 on, without them from 45 on."""
    grid = grids[rule]
    best = BruteForceMaskLearner(cost_weight=cost_weight).fit(grid)
    learned = CalibratedMaskLearner(cost_weight=cost_weight).fit(grid)
    assert consistent(learned)
    # Both were chosen on the same trajectories, and so are compared there.
    prices = {"cost_weight": cost_weight}
    ours, theirs = (grid.evaluator.objective(x.mask_, **prices) for x in (learned, best))
    low, high = ours.interval()
    assert theirs.value <= ours.value + (high - low) / 2


def test_brute_force_finds_what_is_exactly_best():
    """Against the exact J of all 32 masks; the best leads by 7.9 or more, 6 standard errors."""
    mdp = SyntheticMDP(
        SyntheticParameters(
            num_paying=2,
            generations=1,
            num_moving=0,
            num_copies=0,
            num_noise=0,
            num_correlated=0,
        )
    )
    names = mdp.exogenous_names
    masks = [m for k in range(len(names) + 1) for m in itertools.combinations(names, k)]
    exact = {mask: exact_return(mdp, mask).actual for mask in masks}
    settings = {"n_rollouts": 200, "n_data_rollouts": 200, "level": LEVEL}
    study = Study(mdp, 0, ignored_rewards="zero", **settings)
    for cost_weight in (3.0, 12.0, 22.0, 40.0):
        learner = BruteForceMaskLearner(cost_weight=cost_weight).fit(study)
        best = max(masks, key=lambda mask: exact[mask] - cost_weight * len(mask))
        assert learner.mask_ == best
        tried = {r.candidate: r for r in learner.history_}
        assert set(tried) == set(masks)
        values = [r.value for r in learner.history_]
        assert learner.history_[-1].mask == learner.mask_
        assert tried[best].value == max(values)
        for mask, record in tried.items():
            # Five standard errors, and what the end of an episode cuts off (exact_return).
            slack = 5 * record.half_width / 1.96 + 3.0
            assert abs(record.mean_return - exact[mask]) < slack, mask
            assert record.value == pytest.approx(record.mean_return - cost_weight * len(mask))
    calibrated = CalibratedMaskLearner(cost_weight=3.0, level=LEVEL).fit(study)
    assert calibrated.mask_ == mdp.required_mask


# --- prices -----------------------------------------------------------------------------------


def test_a_huge_price_leaves_nothing(grid):
    learner = CalibratedMaskLearner(cost_weight=1e6).fit(grid)
    assert learner.mask_ == ()
    assert learner.objective_.value == learner.objective_.mean_return
    assert consistent(learner)


def test_a_tiny_price_drops_nothing_that_is_worth_more():
    """Each coin is worth 3 * 8 visits * half of the time, about 20; the rain nothing at all."""
    study = Study(Sites(coins=3), 0, n_rollouts=100, n_data_rollouts=100)
    learner = CalibratedMaskLearner(cost_weight=0.5).fit(study)
    assert learner.mask_ == ("coin_0", "coin_1", "coin_2")
    assert consistent(learner)


@pytest.mark.parametrize("coins", [3, 8])
def test_a_variable_stays_only_if_it_pays(coins):
    """Rain pays most of all, but no decision depends on it."""
    study = Study(Sites(coins=coins), 0, n_rollouts=60, n_data_rollouts=100)
    learner = CalibratedMaskLearner(cost_weight=2.0).fit(study)
    price = {"cost_weight": 2.0}
    kept = study.evaluator.objective(learner.mask_, **price)
    for name in learner.mask_:
        less = tuple(other for other in learner.mask_ if other != name)
        assert study.evaluator.objective(less, **price).value < kept.value, name
    assert "rain" not in learner.mask_


def test_the_same_by_size_and_by_a_function(grid):
    by_size = CalibratedMaskLearner(cost_weight=8.0).fit(grid)
    doubled = CalibratedMaskLearner(cost_weight=4.0, cost=lambda mask, plan: 2.0 * len(mask))
    by_function = doubled.fit(grid)
    assert by_size.mask_ == by_function.mask_
    assert by_size.objective_.value == by_function.objective_.value
    assert by_function.objective_.cost == 2.0 * len(by_function.mask_)


def test_the_cost_may_be_the_time(grid):
    free = CalibratedMaskLearner(cost_weight=1e-9, cost="time").fit(grid)
    assert free.objective_.cost == free.objective_.plan.seconds > 0
    assert consistent(free)
    dear = CalibratedMaskLearner(cost_weight=1e12, cost="time").fit(grid)
    assert consistent(dear)


# --- the search -------------------------------------------------------------------------------


def scripted(worth, **arguments):
    """Selection on four coins and the rain, all of which pay."""
    study = ScriptedStudy(Sites(coins=4), worth)
    arguments = {"cost_weight": 1.0, "patience": 100} | arguments
    return CalibratedMaskLearner(**arguments).fit(study)


def test_backward_keeps_exactly_what_pays():
    """Additive worths: every one of the 32 patterns of what pays its price and what does not."""
    for pattern in itertools.product([0.4, 2.5], repeat=5):
        value = dict(zip(("coin_0", "coin_1", "coin_2", "coin_3", "rain"), pattern, strict=True))
        learner = scripted(lambda mask, value=value: sum(value[name] for name in mask))
        assert learner.mask_ == tuple(name for name, worth in value.items() if worth > 1)
        assert consistent(learner)


def test_all_or_nothing():
    """Variables that pay only together, and less than they cost: all of them are dropped."""
    learner = scripted(lambda mask: 4.5 if len(mask) == 5 else 0.0)
    assert learner.mask_ == ()
    learner = scripted(lambda mask: 5.5 if len(mask) == 5 else 0.0)
    assert len(learner.mask_) == 5


def test_what_is_dropped_for_nothing_is_dropped():
    """A variable without effect and without a price: J does not fall."""
    learner = scripted(lambda mask: 7.0, cost_weight=1e-300)
    assert learner.mask_ == ()


class Line(ExoMDP):
    """``pays`` follows ``p``, ``p`` follows ``q``: two generations, and something unrelated."""

    endogenous_variables = (Variable("n", 2),)
    exogenous_variables = tuple(Variable(name, 2) for name in ("q", "p", "pays", "other"))
    num_actions = 2
    discount = 1.0
    horizon = 3

    def sample_initial(self, size, rng):
        x = np.zeros((size, 4), dtype=np.int64)
        x[:, 0] = rng.integers(2, size=size)
        return State(np.zeros((size, 1), dtype=np.int64), x)

    def sample_exogenous(self, exogenous, rng):
        following = rng.integers(2, size=exogenous.shape)
        following[..., 1:3] = exogenous[..., :2]
        return following

    def sample_endogenous(self, state, action, rng):
        return np.asarray(action)[..., None] + np.zeros_like(state.endogenous)

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 2] = np.where(state.exogenous[..., 2] == state.endogenous[..., 0], 1.0, -1.0)
        return terms


def test_importance_ends(monkeypatch):
    """Where x starts elsewhere than it goes, a parent may seem to tell more than there is to know.

    (The entropy is that of all steps, the information that of the later ones.)
    """
    study = Study(Line(), 0, n_rollouts=20, n_data_rollouts=200, level=LEVEL)
    found = find_relevance(study)
    assert set(found.findings) == {"q", "p", "pays"}
    calls, entropy = itertools.count(), relevance_module._entropy

    def counting(*arguments):
        assert next(calls) < 1000, "it goes round in circles"
        return entropy(*arguments)

    monkeypatch.setattr(relevance_module, "_entropy", counting)
    worth = importance(study, found, study.evaluator.visits(("pays",)))
    assert 0 < worth["q"] <= worth["p"] <= worth["pays"]


def test_importance_of_the_grid(grid):
    found = find_relevance(grid)
    worth = importance(grid, found, grid.evaluator.visits(("object", "guard")))
    assert set(worth) == set(found.findings) == {"object", "carrier", "guard", "guard_intent"}
    assert worth["object"] > worth["guard"] > 0
    assert 0 < worth["guard_intent"] < worth["guard"]
    assert 0 < worth["carrier"] < worth["object"]
    groups = blocks(found, ("carrier", "guard_intent"), worth)
    assert sorted(itertools.chain(*groups)) == ["carrier", "guard_intent"]
    assert worth[groups[0][0]] == max(worth["carrier"], worth["guard_intent"])


def forward(worth, **arguments):
    """Selection on ``Line``: it starts from what pays, and q and p predict it."""
    study = ScriptedStudy(Line(), worth, n_data_rollouts=200)
    arguments = {"cost_weight": 1.0, "level": 0.05} | arguments
    return CalibratedMaskLearner(**arguments).fit(study)


def quiet(monkeypatch):
    """The order of the search is not what is looked at."""
    monkeypatch.setattr(
        "wrappers.learners.calibrated.importance",
        lambda study, relevance, visits: dict.fromkeys(relevance.findings, 1.0),
    )


def test_parents_are_added_if_they_pay(monkeypatch):
    quiet(monkeypatch)
    both = {("pays",): 5.0, ("p", "pays"): 7.0, ("q", "p", "pays"): 9.0}
    assert forward(lambda mask: both.get(mask, 0.0)).mask_ == ("q", "p", "pays")
    one = {("pays",): 5.0, ("p", "pays"): 7.0, ("q", "p", "pays"): 6.9}
    learner = forward(lambda mask: one.get(mask, 0.0))
    assert learner.mask_ == ("p", "pays")
    assert consistent(learner)


def test_a_gain_within_the_noise_adds_nothing(monkeypatch):
    quiet(monkeypatch)
    both = {("pays",): 5.0, ("p", "pays"): 7.0, ("q", "p", "pays"): 9.0}
    study = ScriptedStudy(Line(), lambda mask: both.get(mask, 0.0), error=1.5, n_data_rollouts=200)
    learner = CalibratedMaskLearner(cost_weight=1.0, level=0.05).fit(study)
    assert "q" not in learner.mask_  # 2 is less than 1.64 standard errors
    assert "p" not in learner.mask_


# --- comparisons ------------------------------------------------------------------------------


def test_a_comparison_is_paired(grid):
    price = {"cost_weight": 3.0}
    comparison = grid.evaluator.compare(("object", "guard"), ("object",), **price)
    played = len(comparison.objective.returns)
    over, theirs = (
        grid.evaluator.objective(mask, **price).returns[:played]
        for mask in (("object",), ("object", "guard"))
    )
    assert (comparison.objective.returns == theirs).all()
    assert comparison.returns == Estimate.of(theirs - over)
    assert comparison.gain.mean == pytest.approx(comparison.returns.mean - 3.0)
    assert comparison.gain.standard_error == comparison.returns.standard_error


def test_a_clear_loser_is_not_played_to_the_end():
    study = Study(GridMDP(), 0, n_rollouts=200, n_data_rollouts=100, ignored_rewards="zero")
    comparison = study.evaluator.compare((), ("object", "guard"))
    played = len(comparison.objective.returns)
    assert played < 200
    assert comparison.gain.mean < -4 * comparison.gain.standard_error < 0
    assert (comparison.objective.returns == study.evaluator.objective(()).returns[:played]).all()
    # The rest is played when it is asked for.
    assert len(study.evaluator.objective(()).returns) == 200


def test_few_rollouts_do_not_make_losers():
    """A study says that a fair comparison is decided early once in 1,000 times.

    Two coins are worth the same. Three or more of 150 comparisons: 5e-4.
    """
    mdp = Sites(coins=2, rain=False, horizon=8)
    first = Study(mdp, 0, n_rollouts=60, n_data_rollouts=30)
    first.evaluator.objective(("coin_0",)), first.evaluator.objective(("coin_1",))  # planned once
    given_up = 0
    for seed in range(150):
        study = Study(mdp, seed, n_rollouts=60)
        for mask, trial in first.evaluator.trials.items():
            fresh = replace(trial, returns=[], visits=np.zeros_like(trial.visits))
            study.evaluator.trials[mask] = fresh
        given_up += len(study.evaluator.compare(("coin_1",), ("coin_0",)).objective.returns) < 60
    assert given_up <= 2
