"""The paper's experiments: nothing is lost or mixed, the same seeds give the same bytes."""

import itertools
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from reproductions import TINY, run

from reproduction import backends, runner
from reproduction.backends import BackendError
from reproduction.results import (
    ResultsError,
    ResultsFolder,
    read_results,
    read_settings,
    without_times,
)
from reproduction.settings import CROWD, FACTORY
from shared.script import ScriptError
from wrappers import BruteForceMaskLearner

SCRIPTS = Path(runner.__file__).parents[1]


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
    monkeypatch.setattr(runner, "use_backend", lambda *a, **k: pytest.fail("ran something"))
    assert run(tmp_path / "copy") == ["24 of 24 trials were finished before; 0 are left"]
    assert (tmp_path / "copy/results.jsonl").read_bytes() == before


# --- nothing is lost ----------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 57, -1])
def test_a_truncated_last_line_is_dropped_and_redone(reference, tmp_path, kept):
    results = copy(reference, tmp_path / "copy")
    *lines, last = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines) + last[:kept])
    told = run(tmp_path / "copy")
    assert any("damaged: 24;" in note for note in told) == (kept != 0)
    assert "23 of 24 trials were finished before; 1 are left" in told
    assert content(tmp_path / "copy") == content(reference)


DAMAGES = {
    "another result": lambda line: b'{"key": 1}\n',
    "nothing": lambda line: b"\n",
    "no JSON": lambda line: line[3:],
    "no text": lambda line: b"\xff\x00" + line,
    "another number": lambda line: line.replace(b'"trial": ', b'"trial": 1'),
    "no number": lambda line: line.replace(b'"seed": ', b'"seed": NaN, "s": '),
    "huge": lambda line: line.replace(b'"seconds": ', b'"seconds": 1' + b"0" * 400 + b', "s": '),
    "deep": lambda line: b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_loses_only_itself(reference, tmp_path, damage):
    results = copy(reference, tmp_path / "copy")
    lines = results.read_bytes().splitlines(keepends=True)
    assert DAMAGES[damage](lines[4]) != lines[4]
    results.write_bytes(b"".join([*lines[:4], DAMAGES[damage](lines[4]), *lines[5:]]))
    told = run(tmp_path / "copy")
    assert "lines that are damaged: 5;" in told[0]
    assert told[1] == "23 of 24 trials were finished before; 1 are left"
    assert content(tmp_path / "copy") == content(reference)
    assert run(tmp_path / "copy") == ["24 of 24 trials were finished before; 0 are left"]


def interrupted_after_a_step(self, session):
    yield from itertools.islice(self._all_steps(session), 1)
    raise KeyboardInterrupt


def test_a_learner_that_is_interrupted_leaves_no_result(tmp_path, monkeypatch):
    """It has a mask and its J, which are not those of the trial."""
    steps = BruteForceMaskLearner._steps
    monkeypatch.setattr(BruteForceMaskLearner, "_all_steps", steps, raising=False)
    monkeypatch.setattr(BruteForceMaskLearner, "_steps", interrupted_after_a_step)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, jobs=1)
    assert (tmp_path / "results.jsonl").read_bytes() == b""


@pytest.mark.parametrize("text", ["", "[]", "3", '{"parameters": 3}', "\x80", "[" * 100_000])
def test_damaged_settings_are_named(reference, tmp_path, text):
    before = copy(reference, tmp_path / "copy").read_bytes()
    (tmp_path / "copy/settings.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ResultsError, match=r"settings\.json cannot be read"):
        run(tmp_path / "copy")
    assert (tmp_path / "copy/results.jsonl").read_bytes() == before


# --- workers that die ---------------------------------------------------------------------


class Bomb:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (9,)


def test_trials_of_a_killed_worker_are_run_once_more(reference, tmp_path, monkeypatch, capsys):
    pack, packed = backends.packed, []

    def bombed(batch):
        packed.append(batch)
        return pickle.dumps(Bomb()) if len(packed) == 5 else pack(batch)

    monkeypatch.setattr(backends, "packed", bombed)
    run(tmp_path, jobs=2)
    assert content(tmp_path) == content(reference)


def test_a_trial_that_kills_every_worker_is_named(tmp_path, monkeypatch):
    pack = backends.packed
    deadly = ("paper", 20.0, 1)

    def bombed(batch):
        key = batch[0].key
        wrong = (key["method"], key["cost_weight"], key["trial"]) == deadly
        return pickle.dumps(Bomb()) if wrong else pack(batch)

    monkeypatch.setattr(backends, "packed", bombed)
    with pytest.raises(ScriptError, match=r"killed .*ExoGrid-v0, paper, λ = 20, trial 1.*--jobs"):
        run(tmp_path, jobs=2)
    assert len(read_results(tmp_path)) > 0


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
    assert printed.returncode == 2
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
