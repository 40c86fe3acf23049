"""The paper's experiments: nothing is lost or mixed, the same seeds give the same bytes."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numba
import pytest
from threadpoolctl import threadpool_info

from wrappers import CorrelationalMaskLearner

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from reproduction import experiments, runner, tables
from reproduction.backends import BackendError
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
from reproduction.plots import all_plots
from reproduction.progress import ProgressBar
from reproduction.results import (
    ResultsError,
    ResultsFolder,
    read_results,
    read_settings,
    without_times,
)
from reproduction.settings import CROWD, EXPERIMENTS, FACTORY, GRID, METHODS, Settings

SCRIPTS = Path(runner.__file__).parents[1]

TINY = Settings(
    trials=3,
    n_rollouts=20,
    n_data_rollouts=60,
    n1=50,
    greedy_trials=2,
    small_cost_weights=(1.0, 20.0),
)


def run(folder, settings=TINY, *, jobs=1, **options):
    told = []
    runner.run(settings, ["small"], folder, jobs=jobs, hidden=True, tell=told.append, **options)
    return told


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A folder that one process made without interruption."""
    folder = tmp_path_factory.mktemp("reference")
    assert run(folder) == []
    return folder


def content(folder):
    return without_times(read_results(folder))


def copy(reference, folder):
    folder.mkdir()
    for name in ("settings.json", "results.jsonl"):
        (folder / name).write_bytes((reference / name).read_bytes())
    return folder / "results.jsonl"


# --- what a run leaves --------------------------------------------------------------------


def test_there_is_a_line_for_each_trial(reference):
    lines = (reference / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 4 * 2 * 3  # methods, lambdas, trials
    for record in records:
        assert set(record["key"]) == {
            *("experiment", "domain", "goal", "method", "cost_weight", "trial")
        }
        price = record["key"]["cost_weight"] * len(record["mask"])
        assert record["value"] == pytest.approx(record["mean_return"] - price)
        assert record["measured"]["seconds"] > 0
        assert "seconds" not in json.dumps(record["history"])


def test_settings_tell_what_made_the_results(reference):
    settings = read_settings(reference)
    assert settings["parameters"] == json.loads(json.dumps(TINY.as_dict()))
    assert {"python", "numpy", "numba", "exo-envs", "code"} == set(settings["versions"])
    assert {"commit", "machine"} <= set(settings)


def test_parallel_workers_find_the_same(reference, tmp_path):
    run(tmp_path, jobs=2)
    assert content(tmp_path) == content(reference)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    keys = [json.loads(line)["key"] for line in lines]
    assert keys == [record["key"] for record in read_results(reference)]


def test_a_finished_run_is_not_run_again(reference, tmp_path, monkeypatch):
    before = copy(reference, tmp_path / "copy").read_bytes()
    monkeypatch.setattr(runner, "run_all", lambda batches: pytest.fail("ran something"))
    assert run(tmp_path / "copy") == ["24 of 24 trials were finished before; 0 are left"]
    assert (tmp_path / "copy/results.jsonl").read_bytes() == before


# --- nothing is lost ----------------------------------------------------------------------

RUN = """
from pathlib import Path
import sys
from reproduction.runner import run
from reproduction.settings import Settings

if __name__ == "__main__":
    settings = Settings(**eval(sys.argv[2]))
    run(settings, ["small"], Path(sys.argv[1]), jobs=2, hidden=True)
"""


def test_a_killed_run_resumes(reference, tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    folder = tmp_path / "results"
    command = [sys.executable, "-W", "error", script, folder, repr(TINY.as_dict())]
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    results = folder / "results.jsonl"
    try:
        deadline = time.monotonic() + 120
        while not results.exists() or results.read_bytes().count(b"\n") < 3:
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        finished = results.read_bytes().count(b"\n")
        assert 3 <= finished < 24
        told = run(folder)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its workers
    assert told[-1].startswith(f"{finished} of 24 trials were finished before")
    assert content(folder) == content(reference)


@pytest.mark.parametrize("kept", [0, 1, 57, -1])
def test_a_truncated_last_line_is_dropped_and_redone(reference, tmp_path, kept):
    results = copy(reference, tmp_path / "copy")
    *lines, last = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines) + last[:kept])
    told = run(tmp_path / "copy")
    assert any("not complete" in note for note in told) == (kept != 0)
    assert "23 of 24 trials were finished before; 1 are left" in told
    assert content(tmp_path / "copy") == content(reference)


def test_a_broken_line_in_the_middle_is_an_error(reference, tmp_path):
    results = copy(reference, tmp_path / "copy")
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join([*lines[:4], b'{"key": 1}\n', *lines[5:]]))
    with pytest.raises(ResultsError, match="line 5"):
        run(tmp_path / "copy")


# --- nothing is mixed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed: 0 there, 1 here"),
        ({"trials": 4}, "trials: 3 there, 4 here"),
        ({"cost_weights": {FACTORY: 2.0, CROWD: 3.0}}, "cost_weights"),
    ],
)
def test_other_parameters_are_refused(reference, tmp_path, change, message):
    before = copy(reference, tmp_path / "copy").read_bytes()
    with pytest.raises(ResultsError, match=f"other parameters.*{message}"):
        run(tmp_path / "copy", replace(TINY, **change))
    assert (tmp_path / "copy/results.jsonl").read_bytes() == before


def test_other_code_is_refused(reference, tmp_path):
    copy(reference, tmp_path / "copy")
    settings = read_settings(reference)
    settings["versions"]["numpy"] = "1.0"
    (tmp_path / "copy/settings.json").write_text(json.dumps(settings))
    with pytest.raises(ResultsError, match=r"other code.*numpy: '1\.0' there"):
        run(tmp_path / "copy")


def test_results_of_nobody_knows_what_are_refused(reference, tmp_path):
    copy(reference, tmp_path / "copy")
    (tmp_path / "copy/settings.json").unlink()
    with pytest.raises(ResultsError, match="has results but no settings"):
        run(tmp_path / "copy")


def test_two_runs_do_not_share_a_folder(tmp_path):
    with ResultsFolder(tmp_path, TINY), pytest.raises(ResultsError, match="another run"):
        run(tmp_path)


def test_the_command_refuses_too(reference, tmp_path):
    copy(reference, tmp_path / "copy")
    line = [sys.executable, "-W", "error", SCRIPTS / "reproduce.py", "small", "--quick"]
    printed = subprocess.run(
        [*line, "--output", tmp_path / "copy"], check=False, capture_output=True, text=True
    )
    assert printed.returncode == 1
    assert "error:" in printed.stderr
    assert "other parameters" in printed.stderr
    assert "Traceback" not in printed.stderr


def test_backends_say_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BackendError, match="pip install ray"):
        run(tmp_path, backend="ray")
    with pytest.raises(BackendError, match="needs Dask"):
        run(tmp_path, backend="dask")
    with pytest.raises(BackendError, match="for a cluster"):
        run(tmp_path, address="tcp://localhost:1")


# --- trials -------------------------------------------------------------------------------


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
    learner = CorrelationalMaskLearner(cost_weight=0.1, n_rollouts=100).fit(mdp, 0)
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


# --- tables -------------------------------------------------------------------------------


def record(method, trial, mean_return, *, domain=FACTORY, experiment="large", **more):
    key = {
        "experiment": experiment,
        "domain": domain,
        "goal": "movable" if domain == CROWD else None,
        "method": method,
        "cost_weight": 2.0,
        "trial": trial,
    }
    mask = more.pop("mask", ["a", "b"])
    values = {"mask": mask, "mean_return": mean_return, "value": mean_return - 2.0 * len(mask)}
    base = {"key": key, "seed": 0, "standard_error": 1.0, "history": []}
    return base | values | {"measured": {"seconds": 10.0 + trial}} | more


def test_intervals_are_students():
    interval = tables.Interval.of([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.half_width == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert str(interval) == "2.00 ± 2.48"
    assert str(tables.Interval.of([5.0])) == "5.00"


def test_the_papers_figures_stand_beside_ours():
    records = [
        *(record("greedy", trial, 0.0, mask=[]) for trial in range(3)),
        *(record("first phase", trial, 100.0 + trial) for trial in range(3)),
        *(record("ours", trial, 200.0 + trial) for trial in range(3)),
    ]
    table, orderings = tables.large_tables(records)
    assert [row[0] for row in table.rows] == ["Greedy", "First phase", "Full, ours"]
    assert [row[3] for row in table.rows] == [0, 186, 226]
    assert [row[5] for row in table.rows] == [13.4, None, 53.8]
    assert table.rows[2][2].mean == 201.0
    assert "| Full, ours | ExoFactory-v0 | 201.0 ± 2.5 | 226 | 11.0 ± 2.5 | 53.8 |" in (
        table.to_markdown()
    )
    assert [row[5] for row in orderings.rows] == ["yes", "yes"]
    assert orderings.rows[1][2] == (100.0, 0.0, 3)
    assert orderings.rows[1][6] == 1.99


def test_an_ordering_that_does_not_hold_is_shown():
    returns = {"first phase": (100.0, 200.0), "ours": (150.0, 190.0)}
    records = [
        record(method, trial, value)
        for method, values in returns.items()
        for trial, value in enumerate(values)
    ]
    assert tables.large_tables(records)[1].rows[0][5] == "no"


def test_where_the_best_mask_grows():
    returns = [0.0, 30.0, 35.0, 47.0, 47.0]
    best = [{"mask": ["v"] * k, "mean_return": value} for k, value in enumerate(returns)]
    # Two variables are never the best: three are better from where one ceases to be.
    assert tables.growth(best) == [30.0, 8.5, 8.5, 0.0]
    records = [
        record("brute force", trial, 1.0, domain=GRID, experiment="small", best_of_each_size=best)
        for trial in range(2)
    ]
    table = tables.growth_table(records)
    assert [row[0] for row in table.rows] == [1, 2, 3]
    assert [row[1].mean for row in table.rows] == [30.0, 8.5, 8.5]
    assert table.rows[0][3] == "2 of 2"


def test_the_turn_of_the_curve():
    points = [
        {"num_variables": k, "added": f"v_{k}", "value": v, "mean_return": r, "standard_error": 1.0}
        for k, v, r in [(0, 0, 0), (4, 50, 58), (5, 52, 62), (6, 51, 63), (10, 40, 60)]
    ]
    before, after = tables.turning_point(points)
    assert (before["num_variables"], after["num_variables"]) == (5, 6)
    assert tables.turning_point(points[:3]) is None
    curve = record("curve", 0, 1.0, domain=CROWD, history=points)
    (table,) = tables.curve_tables([curve])
    assert "Variable number 6 (v_6) lowers J from 52.0 to 51.0" in table.note
    assert len(table.rows) == 5
    assert set(all_plots([curve])) == {"crowd_curve"}


def test_goals_differ_in_what_most_masks_have():
    records = []
    for trial, extra in enumerate(["porter_0_cell", "porter_0_cell", "object_10"]):
        for goal, mask in (("fixed", ["object_2"]), ("movable", ["object_2", extra])):
            made = record("ours", trial, 1.0, domain=CROWD, experiment="goals", mask=mask)
            made["key"]["goal"] = goal
            records.append(made)
    summary, differences = tables.goal_tables(records)
    assert [row[0] for row in summary.rows] == ["fixed", "movable"]
    assert differences.rows == (("porter_0_cell", 0.0, 0.667),)
    assert tables.differing_variables(["a", "b"], ["b", "c"]) == {"fixed": ["a"], "movable": ["c"]}


def test_plots_are_pictures_and_the_same_each_time(reference):
    records = read_results(reference)
    for image_format, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        plots = all_plots(records, image_format)
        assert set(plots) == {"small_objective", "small_time"}
        assert all(image.startswith(start) for image in plots.values())
        assert plots == all_plots(records, image_format)


def test_tables_are_written(reference):
    markdown, *plots = tables.write_tables(reference)
    assert "| 1 |" in markdown.read_text(encoding="utf-8")
    assert [path.name for path in plots] == ["small_objective.svg", "small_time.svg"]
