"""The table of what is to be fast: its rows run, on the tree that is asked for, and say if not."""

import argparse
import json
import os
import sys
from dataclasses import replace

import pytest

import benchmark
from benchmarks.table import command, runner
from benchmarks.table.report import cells, missed, table
from benchmarks.table.rows import COPYING, ROWS, SYNC, Row, Target
from benchmarks.table.trees import BEFORE, ROOT, commit_of, tree_of

BY_NAME = {row.name: row for row in ROWS}
TINY = runner.Effort(seconds=0.01, turns=1, rounds=1)
RATE = Row("some/rate", "rate", "step", unit="steps/s", target=Target("5", figure=5, known=1))
SECONDS = Row("some/seconds", "seconds", "plan", target=Target("3 x Q", times=3, than="Q"))


def side(ours, **peers):
    said = {"note": "", "holds": True, "memory": None, "answer": "", "peak": 100.0}
    return {"ours": ours, "peers": peers, **said}


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "all", *map(str, arguments)])
    benchmark.main()


def lines_of(printed):
    return [line for line in printed.splitlines() if line.startswith("| ")]


def test_rows_are_measured_kept_and_printed_again_and_one_that_fails_says_so(
    monkeypatch, capsys, tmp_path
):
    step = BY_NAME["step/grid-512-one-core"]
    small = replace(step, options={"env_id": "ExoGrid-v0", "lanes": 4})
    broken = replace(step, name="step/broken", options={"env_id": "ExoNothing-v0", "lanes": 4})
    monkeypatch.setattr(command, "ROWS", (broken, small))
    output = tmp_path / "folder" / "table.jsonl"
    asked = ["--quick", "--seconds", 0.01, "--without-before", "--without-profile"]
    run(monkeypatch, *asked, "--output", output)
    _, failed, measured = lines_of(capsys.readouterr().out)
    assert "not asked for | failed: " in failed
    assert "ExoNothing" in failed
    assert failed.endswith("| no |  |")
    assert f"x {SYNC}; " in measured
    assert f"x {COPYING}" in measured
    assert "steps/s" in measured
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [record["row"] for record in records] == [broken.name, small.name]
    assert records[1]["now"]["ours"] > records[1]["now"]["peers"][SYNC] > 0
    run(monkeypatch, "--from", output)
    assert lines_of(capsys.readouterr().out)[1:] == [failed, measured]


def test_a_process_measures_the_tree_that_it_is_given(tmp_path):
    package = tmp_path / "exo_envs"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import time, sys, types, gymnasium\n"
        "time.sleep(0.3)\n"
        "sys.modules['numba'] = types.ModuleType('numba')\n"
        "cart = 'gymnasium.envs.classic_control:CartPoleEnv'\n"
        "gymnasium.register('ExoCrowd-v0', entry_point=cart)\n"
    )
    row = BY_NAME["import/exo_envs"]
    found = runner.measure(row, {"now": tmp_path}, TINY)["now"]
    assert found["ours"] >= 0.3
    assert found["note"].startswith("loads Numba: yes")
    assert not found["holds"]
    assert missed(row, {"before": {"error": ""}, "now": found})


def test_a_tree_without_the_packages_is_refused(tmp_path):
    row = BY_NAME["import/exo_envs"]
    (found,) = runner.measure(row, {"now": tmp_path}, TINY).values()
    assert "not from" in found["error"]


def test_a_process_that_does_not_end_is_stopped():
    row = replace(BY_NAME["import/exo_envs"], timeout=0.01)
    (found,) = runner.measure(row, {"now": ROOT}, TINY).values()
    assert found == {"error": "no end after 0 s"}


def test_a_profile_names_the_functions_of_ours():
    row = replace(BY_NAME["step/grid-512-one-core"], options={"env_id": "ExoGrid-v0", "lanes": 4})
    lines = runner.profile(row, ROOT, TINY)
    assert len(lines) == 11
    assert any("exo_envs/" in line for line in lines)


@pytest.mark.parametrize(
    ("row", "before", "now", "expected"),
    [
        (RATE, side(1.0), side(5.0), "yes"),
        (RATE, side(2.0), side(5.0), "the figure, not the ratio"),  # the machine is faster
        (RATE, side(1.0), side(4.9), "no"),
        (RATE, {"error": "not here"}, side(5.0), "yes"),
        (RATE, side(1.0), {"error": "killed by SIGKILL"}, "no"),
        (RATE, side(1.0), {"error": "interrupted", "skipped": True}, "–"),
        (RATE, side(1.0), {**side(9.0), "holds": False}, "no"),
        (SECONDS, side(4.0, Q=6.0), side(2.0, Q=6.0), "yes"),
        (SECONDS, side(4.0, Q=6.0), side(2.1, Q=6.0), "no"),
        (replace(RATE, target=Target("", figure=1, memory=99)), side(1.0), side(9.0), "no"),
        (replace(RATE, target=Target("", times=2, than="before")), side(1.0), side(1.9), "no"),
        (replace(RATE, target=None), side(1.0), side(1.0), "–"),
    ],
)
def test_what_is_reached(row, before, now, expected):
    result = {"before": before, "now": now}
    assert cells(row, result)[-2] == expected
    assert missed(row, result) == (expected not in ("yes", "–") and "ours" in now)
    assert "\n| " in table([(row, result)])


def test_ratios_are_larger_if_ours_is_faster():
    result = {"before": side(4.0, Q=6.0), "now": side(2.0, Q=6.0)}
    assert cells(SECONDS, result)[3:5] == ["2 x", "1.5 → 3 x Q"]


def test_trees_take_turns_and_the_best_counts(monkeypatch):
    figures = iter([[3.0], [9.0, 8.0], [4.0], [7.0, 6.0]])
    asked = []

    def measured(row, tree, effort):
        asked.append(tree)
        return {**side(0.0), "ours": next(figures)}

    monkeypatch.setattr(runner, "run_child", measured)
    row = replace(RATE, turns=2)
    found = runner.measure(row, {"before": "old", "now": "new"}, runner.Effort())
    assert asked == ["old", "new", "old", "new"]
    assert [found[name]["ours"] for name in ("before", "now")] == [4.0, 9.0]


def test_more_cores_than_there_are_is_no_failure():
    row = replace(RATE, cores=(os.cpu_count() or 1) + 1)
    result = {"before": {"error": "not here"}, **runner.measure(row, {"now": ROOT}, TINY)}
    assert cells(row, result)[-2] == "–"


def test_a_commit_that_is_not_here_leaves_its_column_empty(monkeypatch, capsys, tmp_path):
    assert commit_of("no-such-commit") is None
    monkeypatch.setattr(command, "measure", lambda *_: {"now": side(5.0)})
    monkeypatch.setattr(command, "ROWS", (RATE,))
    output = tmp_path / "table.jsonl"
    run(monkeypatch, "--before", "no-such-commit", "--output", output)
    assert "| rate | not here | 5 steps/s | – |" in capsys.readouterr().out


def test_ctrl_c_skips_a_row_and_twice_it_ends(monkeypatch, capsys, tmp_path):
    said = iter([KeyboardInterrupt, None, KeyboardInterrupt, KeyboardInterrupt])

    def measured(*_):
        error = next(said)
        if error is not None:
            raise error
        monkeypatch.setattr(command, "PATIENCE", 100.0)
        return {"now": side(5.0)}

    monkeypatch.setattr(command, "PATIENCE", 0.0)
    monkeypatch.setattr(command, "measure", measured)
    monkeypatch.setattr(command, "ROWS", (RATE,) * 4)
    run(monkeypatch, "--without-before", "--output", tmp_path / "table.jsonl")
    _, *rows = lines_of(capsys.readouterr().out)
    assert ["interrupted" in row for row in rows] == [True, False]


def test_an_unknown_row_is_named(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, "--only", "stepp")
    assert "no row is called 'stepp'; there are step/crowd" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("only", "names"),
    [
        (["learn/crowd"], {"learn/crowd"}),
        (["learn/crowd-"], {"learn/crowd-cold", "learn/crowd-1000", "learn/crowd-10000"}),
        (["import", "learn/crowd-1000"], {"import/exo_envs", "import/all", "learn/crowd-1000"}),
    ],
)
def test_a_whole_name_is_one_row_and_the_beginning_of_names_is_all_of_them(only, names):
    arguments = argparse.Namespace(only=only, quick=False, threads=None)
    assert {row.name for row in command.chosen(arguments)} == names


def test_the_sources_of_a_commit_are_unpacked_once(tmp_path):
    if commit_of("HEAD") is None:
        pytest.skip("not a clone")
    commit = commit_of("HEAD")
    tree = tree_of(commit, tmp_path)
    assert (tree / "exo_envs" / "__init__.py").is_file()
    (tree / "mark").touch()
    assert (tree_of(commit, tmp_path) / "mark").exists()
    assert len(BEFORE) == 40
