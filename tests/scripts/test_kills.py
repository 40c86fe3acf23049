"""Scripts that are killed at random moments end, after all, as those that are not."""

import signal
import time

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tensorboard")

from reliability.kills import TARGETS, Killer, Run

CASES = {
    "learn": [signal.SIGINT],
    "reproduce": [signal.SIGKILL, signal.SIGTERM],
    "train_sb3": [signal.SIGTERM, signal.SIGKILL],
    "train_cleanrl_style": [signal.SIGINT],
}


@pytest.mark.parametrize("name", CASES)
def test_a_killed_run_ends_as_one_that_is_not(name, tmp_path):
    """No process outlives it by more than seconds, and the same command leaves the same bytes."""
    killer = Killer(TARGETS[name], tmp_path)
    killer.undisturbed()
    assert len(killer.expected) > 100
    killer.round(np.random.default_rng(0), CASES[name])


def started(run, enough):
    """Wait until a run has written something."""
    results = run.output / "results.jsonl"
    deadline = time.monotonic() + 120
    while not results.exists() or results.read_bytes().count(b"\n") < enough:
        assert run.process.poll() is None, run.printed()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_sigterm_ends_with_one_line_that_tells_how_to_go_on(tmp_path):
    run = Run(TARGETS["reproduce"], tmp_path / "results")
    started(run, 1)
    assert run.kill(signal.SIGTERM, after=0.0) == 143
    bar, line = run.printed().rstrip("\n").rsplit("\n", 1)
    assert line.startswith("stopped by SIGTERM. What is finished is kept. To go on: ")
    assert f"reproduce.py small --quick --trials 2 --jobs 2 --output {run.output}" in line
    assert "Traceback" not in bar
    assert "Warning" not in bar
