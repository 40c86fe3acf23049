"""The paper's experiments: nothing is lost or mixed, the same seeds give the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from reproductions import TINY, run

from reproduction import runner
from reproduction.backends import BackendError
from reproduction.results import (
    ResultsError,
    ResultsFolder,
    read_results,
    read_settings,
    without_times,
)
from reproduction.settings import CROWD, FACTORY

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
    folders = filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
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
