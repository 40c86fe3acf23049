"""Trials of the paper's experiments: which there are, and what each of them does."""

from dataclasses import replace

import numba
import pytest
from reproductions import TINY
from threadpoolctl import threadpool_info

from reproduction import experiments
from reproduction.curve import grow, order_of_importance
from reproduction.experiments import (
    TrialSpec,
    batches_of,
    heuristic_mask,
    make_mdp,
    plan_trials,
    run_batch,
    run_trial,
)
from reproduction.progress import ProgressBar
from reproduction.results import without_times
from reproduction.settings import CROWD, EXPERIMENTS, GRID, METHODS, Settings
from wrappers import CalibratedMaskLearner


def test_every_experiment_is_planned():
    specs = plan_trials(Settings(), EXPERIMENTS)
    assert len({str(spec.key) for spec in specs}) == len(specs)
    assert {spec.method for spec in specs} == set(METHODS)
    assert all(
        (batch[0].domain, batch[0].method) in experiments.EXPECTED_SECONDS
        for batch in batches_of(specs)
    )


def test_methods_share_seeds_and_trials_do_not():
    specs = plan_trials(Settings(), ["small"])
    seeds = {spec.trial: spec.seed for spec in specs}
    assert all(spec.seed == seeds[spec.trial] for spec in specs)
    assert len(set(seeds.values())) == Settings.trials
    assert replace(specs[0], settings=Settings(seed=1)).seed != specs[0].seed


def test_two_experiments_share_the_work_on_a_goal():
    specs = plan_trials(Settings(trials=1), ["large", "goals"])
    shared = [batch for batch in batches_of(specs) if len(batch) > 1]
    assert [[spec.experiment for spec in batch] for batch in shared] == [["large", "goals"]]


def test_brute_force_finds_with_others_what_it_finds_alone():
    specs = [s for s in plan_trials(TINY, ["small"]) if s.method == "brute force"][:2]
    together = run_batch(tuple(specs))
    assert without_times(together) == without_times(map(run_trial, specs))
    assert [r["key"]["cost_weight"] for r in together] == [1.0, 20.0]


def test_a_trial_has_one_thread():
    before = numba.get_num_threads()
    with experiments.one_thread():
        assert numba.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert numba.get_num_threads() == before


def test_a_mask_by_hand():
    mdp = make_mdp(TrialSpec("large", CROWD, "movable", "greedy + heuristics", 3.0, 0, TINY))
    mask = heuristic_mask(mdp, TINY.heuristics)
    assert len(mask) == 12
    assert mask[0] == "occupancy_0_2"
    with pytest.raises(TypeError, match="ExoCrowd"):
        heuristic_mask(make_mdp(TrialSpec("small", GRID, None, "greedy", 1.0, 0, TINY)), ())


def test_growing_masks_start_with_what_matters():
    mdp = make_mdp(TrialSpec("small", GRID, None, "ours", 1.0, 0, TINY))
    learner = CalibratedMaskLearner(cost_weight=0.1, n_rollouts=100).fit(mdp, 0)
    order = order_of_importance(learner)
    assert sorted(order) == sorted(mdp.exogenous_names)
    assert set(order[: len(learner.mask_)]) == set(learner.mask_)
    points = grow(learner, step=2, detail=1)
    assert points[0]["num_variables"] == 0
    top = max(points, key=lambda point: point["value"])["num_variables"]
    assert {top - 1, top, min(top + 1, 5)} <= {point["num_variables"] for point in points}


def test_the_bar_counts_trials(capsys):
    batches = batches_of(plan_trials(TINY, ["small"]))
    with ProgressBar(batches, done=7, workers=2) as bar:
        before = bar.seconds_left()
        records = [{"measured": {"seconds": 0.0}}] * len(batches[0])
        bar.update(batches[0], records)
        assert bar.seconds_left() < before
    printed = capsys.readouterr().err
    assert "9 of 31 trials" in printed
    assert "22 left" in printed
