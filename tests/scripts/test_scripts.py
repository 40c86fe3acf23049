"""The scripts run; what they measure is not the tests' business."""

import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from exo_envs.domains.crowd import CrowdParameters
from exo_envs.rendering.viewer import SIZES
from wrappers.fitting.saved import SavedMask

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def command(script, *arguments):
    return [sys.executable, "-W", "error", SCRIPTS / script, *map(str, arguments)]


def run(script, *arguments):
    asked = command(script, *arguments)
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def complaint(script, *arguments):
    """What a script says when it refuses its arguments."""
    done = subprocess.run(command(script, *arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def interruptible():
    """Processes that ignore Ctrl-C, as those in the background may, pass that on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_at(word, *arguments):
    """Exit code and output of learn_mask.py if Ctrl-C comes after a line with ``word``."""
    asked = command("learn_mask.py", *arguments)
    with subprocess.Popen(
        asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if word in line:
                process.send_signal(signal.SIGINT)
                break
        lines.append(process.stdout.read())
    return process.returncode, "".join(lines)


def frames_of(path):
    with Image.open(path) as film:
        return film.n_frames


SMALL = ("--rollouts", 50, "--data", 200)


def test_masks_are_explained_and_held_against_the_code(tmp_path):
    printed = run("explain.py", "grid", "--output", tmp_path)
    assert "ExoGrid-v0: 5 rows, every row agrees with the code" in printed
    table = (tmp_path / "grid_explained.md").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in table[2:]] == [
        *("object", "carrier", "guard", "guard_intent", "weather")
    ]
    assert "| best for λ |" in (tmp_path / "grid_path.md").read_text(encoding="utf-8")
    for name in ("grid_explained.svg", "grid_path.svg"):
        assert "</svg>" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_mask_is_learned_explained_compared_and_filmed(tmp_path):
    printed = run("learn_mask.py", "ExoGrid-v0", *SMALL, "--frames", 3, "--output", tmp_path)
    saved = SavedMask.load(tmp_path / "ExoGrid-v0.json")
    assert saved.status == "finished"
    assert saved.spec["id"] == "ExoGrid-v0"
    assert f"Kept {len(saved.mask)} of 5 variables" in printed
    kept, dropped = printed.split("\nKept")[1].split("\nWhat an agent")[0].split("\nDropped")
    for name in saved.names:
        assert f"  {name} " in (kept if name in saved.mask else dropped)
    assert max(map(len, printed.replace(str(tmp_path), "").splitlines())) <= 80
    table = printed.split("What an agent earns")[1]
    for line in ("nothing, blind ", "greedy: ", "phase one: ", "everything ", "learned "):
        assert f"  {line}" in table
    assert f"{saved.objective['value']:.1f}" in table
    with Image.open(tmp_path / "ExoGrid-v0.png") as picture:
        assert picture.size == (480, 414)
    assert 1 < frames_of(tmp_path / "ExoGrid-v0.gif") <= 3
    good = " ".join(printed.split("How good is that?")[1].split())
    assert re.search(r"earns [\d.]+ ± [\d.]+; no policy can earn more than [\d.]+ ± [\d.]+", good)
    assert re.search(r"ignoring the rest: .*, at most [\d.]+ \(95%\)", good)
    assert "found by value iteration" in good
    assert "knows nothing" in (tmp_path / "ExoGrid-v0.bracket.svg").read_text("utf-8")


def test_the_bound_can_be_asked_for_or_left_out_by_itself(tmp_path):
    quick = ("ExoGrid-v0", *SMALL, "--no-film", "--output", tmp_path)
    assert "How good is that?" not in run("learn_mask.py", *quick, "--no-bracket")
    assert not (tmp_path / "ExoGrid-v0.bracket.svg").exists()
    printed = run("learn_mask.py", *quick, "--no-compare", "--bracket")
    assert "no policy can earn more than" in printed
    assert "What an agent earns" not in printed
    assert (tmp_path / "ExoGrid-v0.bracket.svg").exists()


def test_variables_are_told_by_family_and_options_reach_the_environment(tmp_path):
    options = ("--option", "num_noise=12", "--cost-weight", 0, "--no-compare", "--output", tmp_path)
    printed = run("learn_mask.py", "ExoSynthetic-v0", *SMALL, *options)
    assert re.search(r"noise_\* +12 of 12 ", printed)
    assert "draws text only" in printed
    saved = SavedMask.load(tmp_path / "ExoSynthetic-v0.json")
    assert saved.spec["kwargs"] == {"num_noise": 12}
    assert [path.name for path in tmp_path.iterdir()] == ["ExoSynthetic-v0.json"]


def test_the_papers_rule_and_a_time_limit(tmp_path):
    options = ("--rule", "paper", "--time-limit", 1e-9, "--no-film", "--output", tmp_path)
    printed = run("learn_mask.py", "ExoGrid-v0", *SMALL, *options)
    assert "stopped (time limit)" in printed
    saved = SavedMask.load(tmp_path / "ExoGrid-v0.json")
    assert saved.learner["class"] == "CorrelationalMaskLearner"
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".png"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ExoCrwd-v0",), "Did you mean: `ExoCrowd`?"),
        (("ExoGrid-v0", "--option", "slipp=0.1"), "did you mean 'slip'?"),
        (("ExoGrid-v0", "--option", "slip"), "an option is name=value, not 'slip'"),
        (("ExoGrid-v0", "--level", "2"), "a probability between 0 and 1, not '2'"),
    ],
)
def test_wrong_arguments_end_with_one_clear_line(tmp_path, arguments, words):
    said = complaint("learn_mask.py", *arguments, "--output", tmp_path)
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_an_interrupt_keeps_the_best_mask_so_far(tmp_path, interruptible):
    code, printed = interrupted_at(": earns ", "ExoFactory-v0", "--output", tmp_path)
    assert code == 130
    assert "stopped (interrupted): this is the best mask so far" in printed
    saved = SavedMask.load(tmp_path / "ExoFactory-v0.json")
    assert saved.status == "interrupted"
    assert f"Kept {len(saved.mask)} of 22 variables" in printed


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_an_interrupt_before_there_is_a_mask_says_so(tmp_path, interruptible):
    code, printed = interrupted_at(" ...", "ExoFactory-v0", "--output", tmp_path)
    assert code == 130
    assert printed.endswith("interrupted before there was a mask; nothing was saved\n")
    assert not list(tmp_path.iterdir())


def test_the_demo_learns_the_mask_of_a_crowd(tmp_path):
    small = ("--rollouts", 10, "--data", 100, "--frames", 3)
    printed = run("demo.py", *small, "--output", tmp_path)
    model = CrowdParameters()
    assert f"pays {model.goal_reward:g}, a crash costs {model.crash_cost:g}" in printed
    saved = SavedMask.load(tmp_path / "ExoCrowd-v0.json")
    assert f"Kept {len(saved.mask)} of 124 variables" in printed
    dropped = printed.split("\nDropped ")[1].split("\nWhat an agent")[0]
    assert dropped.startswith(f"{124 - len(saved.mask)}\n")
    left = sum(name.startswith("wanderer") for name in set(saved.names) - set(saved.mask))
    assert left > 0
    assert sum(map(int, re.findall(r"  wanderer_\* +(\d+) of 30 ", dropped))) == left
    assert 1 < frames_of(tmp_path / "ExoCrowd-v0.gif") <= 3
    assert (tmp_path / "ExoCrowd-v0.png").exists()


def test_without_pybullet_the_film_is_flat(tmp_path, monkeypatch):
    """There are no wheels of it for Python 3.12 and newer."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pybullet'] = None")
    folders = filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    quick = ("--time-limit", 1e-9, "--no-film", "--no-compare", "--output", tmp_path)
    run("learn_mask.py", "ExoFactory-v0", *SMALL, *quick)
    with Image.open(tmp_path / "ExoFactory-v0.png") as picture:
        assert picture.size == SIZES["flat"]


def test_without_pybullet_the_pictures_of_the_documentation_are_flat(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "pybullet", None)
    pictures = importlib.import_module("pictures")
    monkeypatch.setattr(pictures, "PICTURES", {"factory": pictures.factory})
    pictures.main(tmp_path)
    assert "no PyBullet here" in capsys.readouterr().out
    with Image.open(tmp_path / "factory.png") as picture:
        assert picture.size == (640, 480)


@pytest.mark.skipif(sys.platform == "win32", reason="has no bash")
@pytest.mark.parametrize("script", ["setup.sh", "test.sh", "demo.sh", "lowest.sh"])
def test_help_of_a_shell_script_is_help_and_nothing_else(script, tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    for name in ("setup.sh", script):
        shutil.copy(SCRIPTS / name, folder)
    shutil.copy(SCRIPTS.parent / "pyproject.toml", tmp_path)
    asked = ["bash", folder / script, "--help"]
    printed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    assert printed.startswith(f"usage: bash scripts/{script} [")
    assert max(map(len, printed.splitlines())) <= 80
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pyproject.toml", "scripts"]
    if script == "setup.sh":
        told = printed.partition("The extras are:")[2].split()
        project = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
        assert told == list(project["project"]["optional-dependencies"])


@pytest.mark.skipif(sys.platform == "win32", reason="has no bash")
def test_an_unknown_extra_is_refused_before_anything_is_made(tmp_path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPTS / "setup.sh", tmp_path / "scripts")
    shutil.copy(SCRIPTS.parent / "pyproject.toml", tmp_path)
    for wrong in ("tset", "classifiers", "packages"):  # the last two are no extras either
        asked = ["bash", tmp_path / "scripts" / "setup.sh", "human", wrong]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: unknown extra '{wrong}'")
        assert not (tmp_path / ".venv").exists()


def test_the_step_benchmark_prints_every_contender():
    printed = run("benchmark.py", "step", "ExoGrid-v0", "--seconds", 0.01, "--rounds", 1)
    for contender in ("single shell", "SyncVectorEnv, 512", "shell, 1 ", "shell, 512", "4096"):
        assert contender in printed


def test_the_adapter_is_raced_against_a_loop(monkeypatch, capsys):
    pytest.importorskip("stable_baselines3")
    benchmark = importlib.import_module("benchmarks.rl")
    monkeypatch.setattr(benchmark, "LANES", (2,))
    benchmark.compare_adapters("ExoGrid-v0", seconds=0.01, rounds=1)
    *_, last = capsys.readouterr().out.splitlines()
    lanes, looped, batched, times = (
        float(word.strip("x")) for word in last.replace(",", "").split()
    )
    assert lanes == 2
    assert min(looped, batched) > 0
    assert times == pytest.approx(batched / looped, abs=0.06)


def test_objectives_are_compared_line_by_line():
    masks = ["--mask", "object", "--mask", "object,guard*"]
    settings = ["ExoGrid-v0", "--rollouts", 50, "--data", 200, *masks]
    for rule, told in (("average", "pays its average"), ("zero", "pays nothing")):
        printed = run("objective.py", *settings, "--ignored-rewards", rule)
        assert told in printed
        assert max(map(len, printed.splitlines())) <= 80
        rows = [line.split() for line in printed.splitlines() if re.match(r" +\d+ ", line)]
        assert [row[0] for row in rows] == ["0", "1", "3", "5"]
        assert [row[-1] for row in rows] == ["blind", "object", "guard*", "everything"]
        assert float(rows[0][1]) > 60  # it plans with averages whatever the rule is
        assert printed.count("by value iteration") == 4
    printed = run("objective.py", *settings, "--bracket")
    assert "pays its average" in printed
    last = " ".join(printed.splitlines()[-2:])
    assert re.search(r"[^:]+: earns [\d.]+ ± [\d.]+; no policy can earn more than [\d.]+ ±", last)


def test_a_typo_in_the_last_mask_is_found_before_the_first_is_computed():
    said = complaint("objective.py", "ExoGrid-v0", "--mask", "object", "--mask", "gard")
    assert said == "error: unknown exogenous variable 'gard'; did you mean 'guard'?\n"


@pytest.mark.parametrize(
    "script", ["demo.py", "learn_mask.py", "benchmark.py", "objective.py", "pictures.py"]
)
def test_help_is_help(script):
    assert "usage" in run(script, "--help")
