"""The scripts run; what they measure is not the tests' business."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def run(script, *arguments):
    command = [sys.executable, "-W", "error", SCRIPTS / script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_demo_films_what_has_pictures(tmp_path):
    printed = run("demo.py", "--output", tmp_path, "--steps", 1)
    films = sorted(path.name for path in tmp_path.iterdir())
    assert films == ["ExoCrowd-v0.gif", "ExoFactory-v0.gif", "ExoGrid-v0.gif"]
    assert "ExoSynthetic-v0" in printed


def test_the_step_benchmark_prints_every_contender():
    printed = run("benchmark.py", "step", "ExoGrid-v0", "--seconds", 0.01, "--rounds", 1)
    for contender in ("single shell", "SyncVectorEnv, 512", "shell, 1 ", "shell, 512", "4096"):
        assert contender in printed


def test_objectives_are_compared_line_by_line():
    masks = ["--mask", "object", "--mask", "object,guard*", "--mask", "*"]
    printed = run("objective.py", "ExoGrid-v0", "--rollouts", 50, "--data", 200, *masks)
    assert [line.split()[0] for line in printed.splitlines()[-3:]] == ["1", "3", "5"]


@pytest.mark.parametrize("script", ["demo.py", "benchmark.py", "objective.py", "pictures.py"])
def test_help_is_help(script):
    assert "usage" in run(script, "--help")
