"""Trials of the paper's experiments: which there are, and what each of them does."""

from dataclasses import replace

import numba
import pytest
from reproductions import TINY
from threadpoolctl import threadpool_info

from reproduction import experiments
from reproduction.curve import points_of
from reproduction.experiments import (
    TrialSpec,
    batches_of,
    make_learner,
    make_mdp,
    plan_trials,
    run_batch,
    run_trial,
)
from reproduction.heuristics import heuristic_mask
from reproduction.progress import ProgressBar
from reproduction.results import without_times
from reproduction.settings import CROWD, EXPERIMENTS, FACTORY, GRID, METHODS, READINGS, Settings
from wrappers import CorrelationalMaskLearner


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


def test_experiments_share_the_work_on_a_goal_and_a_method():
    specs = plan_trials(Settings(trials=1), ["large", "goals", "readings"])
    shared = {
        (batch[0].domain, batch[0].method): [spec.experiment for spec in batch]
        for batch in batches_of(specs)
        if len(batch) > 1
    }
    assert shared == {
        (CROWD, "paper"): ["large", "goals", "readings"],
        (CROWD, "ours"): ["large", "goals"],
        (FACTORY, "paper"): ["large", "readings"],
    }


def test_readings_differ_in_their_switches():
    mdp = make_mdp(TrialSpec("large", FACTORY, None, "paper", 1.0, 0, TINY))

    def given(method):
        spec = TrialSpec("readings", FACTORY, None, method, 1.0, 0, TINY)
        learner = make_learner(spec, mdp)
        assert type(learner) is CorrelationalMaskLearner
        return learner.get_params()

    usual = given("paper")
    assert usual["sampling"] == "visited"
    for reading, switches in READINGS.items():
        assert given(reading) == usual | switches
        assert all(usual[name] != value for name, value in switches.items())
    assert set(READINGS["narrow"]) == {name for r in READINGS.values() for name in r}
    assert given("curve") == usual | {"patience": TINY.curve_patience}


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
    mask = heuristic_mask(mdp)
    assert mask[-6:] == tuple(f"object_{k}" for k in range(6))
    cells = {tuple(map(int, name.split("_")[1:])) for name in mask[:-6]}
    tables = {divmod(cell, 8) for cell in mdp.table_cells.tolist()}
    start = divmod(mdp.start, 8)
    assert tables <= cells
    assert start not in cells
    for row, column in cells:  # in the row of the start, or in the column of a table
        assert row == start[0] or column in {table[1] for table in tables}
    for cell in cells:  # and next to another one, or to the start
        others = {*cells, start} - {cell}
        assert any(abs(cell[0] - r) + abs(cell[1] - c) == 1 for r, c in others)
    with pytest.raises(TypeError, match="ExoCrowd"):
        heuristic_mask(make_mdp(TrialSpec("small", GRID, None, "greedy", 1.0, 0, TINY)))


def test_the_curve_has_a_point_for_each_mask_of_the_run():
    mdp = make_mdp(TrialSpec("small", GRID, None, "paper", 1.0, 0, TINY))
    learner = CorrelationalMaskLearner(cost_weight=2.0, n_rollouts=50, patience=5, tau_correl=0.0)
    learner.set_params(bias_corrected=False).fit(mdp, 0)
    points = points_of(learner.history_)
    assert [point["num_variables"] for point in points] == [2, 3, 4, 5]
    assert points[0]["added"] is None
    assert sorted(point["added"] for point in points[1:]) == ["carrier", "guard_intent", "weather"]
    for point in points:
        price = 2.0 * point["num_variables"]
        assert point["value"] == pytest.approx(point["mean_return"] - price)
        assert point["standard_error"] > 0


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
