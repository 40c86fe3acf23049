"""Training, from the task to the plot: small runs, whole and interrupted."""

import dataclasses
import functools
import gc
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("stable_baselines3")
pytest.importorskip("tensorboard")

import numba
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train_sb3
from shared.folders import Claim
from shared.script import ScriptError
from training import runs, study, task
from training.curves import Curve
from training.runs import Recorder, Run
from training.task import Reference, Task
from wrappers import AgentPolicy, CalibratedMaskLearner
from wrappers.fitting.history import Record

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
GRID = Task("ExoGrid-v0", rollouts=50)


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads(), numba.get_num_threads()
    yield
    torch.set_num_threads(before[0])
    numba.set_num_threads(before[1])


# --- references -------------------------------------------------------------------------------


def test_what_agents_are_compared_with_is_found_once(tmp_path, monkeypatch):
    learner = CalibratedMaskLearner(n_rollouts=30, n_data_rollouts=60)
    monkeypatch.setattr(task, "CalibratedMaskLearner", lambda cost_weight: learner)
    file = tmp_path / "new" / "reference.json"
    found = Reference.of(GRID, 1.0, file)
    assert found.learned == learner.mask_
    assert found.planner == GRID.evaluate(learner.policy_).tolist()
    assert found.idle == GRID.idle_returns().tolist()
    monkeypatch.setattr(task, "CalibratedMaskLearner", None)  # it is not asked again
    assert Reference.of(GRID, 1.0, file) == found
    with pytest.raises(SystemExit, match=r"^error: .* with cost weight 1.0; choose another --out"):
        Reference.of(GRID, 2.0, file)
    with pytest.raises(SystemExit, match=r"reference\.json is of .*'rollouts': 50"):
        Reference.of(Task("ExoGrid-v0", rollouts=60), 1.0, file)
    whole = json.loads(file.read_text())
    changes = ({"learned": 3}, {"learned": ["gard"]}, {"idle": [1.0]}, {"planner": ["x"] * 50})
    texts = [json.dumps(whole | change) for change in changes]
    for text in ("", "{}", "[1]", file.read_text()[:-9], *texts):
        file.write_text(text)
        with pytest.raises(SystemExit, match=r"^error: .*reference\.json is damaged \(.*delete"):
            Reference.of(GRID, 1.0, file)


# --- runs that were interrupted ---------------------------------------------------------------

SMALL = {"lanes": 8, "width": 8, "learning_rate": 0.01}
DQN = {"batch_size": 16, "learning_starts": 200, "target_update_interval": 160}
SETTINGS = {
    "ppo": {**SMALL, "n_steps": 16, "batch_size": 32},
    "a2c": SMALL,
    "dqn": {**SMALL, **DQN, "buffer_size": 600},  # older steps are forgotten
}


def make_run(algorithm, output):
    settings = train_sb3.DEFAULTS[algorithm] | SETTINGS[algorithm]
    return Run(GRID, algorithm, "oracle", ("guard",), "full", 0, 1024, 4, output, settings)


def execute(run, monkeypatch):
    """The curve and the weights; what is random in this process does not matter."""
    models = []

    def watched(model, env):
        models.append(model)
        return AgentPolicy(model, env)

    for scramble in (np.random.seed, random.seed, torch.manual_seed):
        scramble(99)
    monkeypatch.setattr(train_sb3, "AgentPolicy", watched)
    curve = runs.execute(train_sb3.train, run)
    return curve, {k: v.numpy() for k, v in models[-1].policy.state_dict().items()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    output = tmp_path_factory.mktemp("whole")

    @functools.cache
    def run_of(algorithm):
        run = make_run(algorithm, output)
        with pytest.MonkeyPatch.context() as monkeypatch:
            return run.folder, *execute(run, monkeypatch)

    return run_of


def count(monkeypatch, owner, name, last=None):
    """The calls of a function; the last one is interrupted."""
    original, calls = getattr(owner, name), []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == last:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupted)
    return calls


#: When Ctrl-C comes, and after how many steps the run goes on.
MOMENTS = {
    "before the first evaluation": (Recorder, "record", 1, 0),
    "before an evaluation": (Recorder, "record", 3, 512),
    "before the last evaluation": (Recorder, "record", 5, 1024),
    "while it makes the first checkpoint": (pickle, "dumps", 1, 0),
    "while it makes a checkpoint": (pickle, "dumps", 3, 256),
    "while it removes the one before": (shutil, "rmtree", 2, 512),
    "while it learns": (train_sb3.SB3VecEnv, "step_wait", 70, 512),
}
CASES = [(algorithm, moment) for algorithm in ("ppo", "dqn") for moment in [*MOMENTS][1::3]]
CASES += [("a2c", moment) for moment in MOMENTS]


@pytest.mark.parametrize(("algorithm", "moment"), CASES)
def test_an_interrupted_run_learns_what_it_would_have_learned(
    algorithm, moment, tmp_path, uninterrupted, monkeypatch
):
    _, curve, weights = uninterrupted(algorithm)
    assert [point.steps for point in curve.points] == [0, 256, 512, 768, 1024]
    run = make_run(algorithm, tmp_path)
    *function, checkpoint = MOMENTS[moment]
    with monkeypatch.context() as patch:
        count(patch, *function)
        with pytest.raises(KeyboardInterrupt):
            execute(run, patch)
    steps = count(monkeypatch, train_sb3.SB3VecEnv, "step_wait")
    resumed, found = execute(run, monkeypatch)
    assert len(steps) * SMALL["lanes"] == 1024 - checkpoint
    assert [point.steps for point in resumed.points] == [0, 256, 512, 768, 1024]
    for name, expected in weights.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-3, atol=1e-4, err_msg=name)
    left = {path.name for path in run.folder.iterdir()}
    assert left == {"checkpoint-1024", "curve.json", "sb3_0"}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # SB3 leaves a damaged file open
@pytest.mark.parametrize("damage", ["cut off", "empty", "garbage", "missing"])
@pytest.mark.parametrize("name", ["model.zip", "buffer.pkl", "state.pkl"])
def test_a_damaged_checkpoint_is_named(name, damage, tmp_path, uninterrupted):
    run = make_run("dqn", tmp_path)
    shutil.copytree(uninterrupted("dqn")[0] / "checkpoint-1024", run.folder / "checkpoint-1024")
    file = run.folder / "checkpoint-1024" / name
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        left = {"cut off": content[: len(content) // 2], "empty": b"", "garbage": b"garbage" * 9}
        file.write_bytes(left[damage])
    with pytest.raises(SystemExit, match=r"^error: .*checkpoint-1024 is damaged \("):
        runs.execute(train_sb3.train, run)
    gc.collect()


# --- the scripts ------------------------------------------------------------------------------


def arguments(output, *others, **settings):
    settings = {"lanes": 16, "width": 8} | settings
    parts = ["ExoGrid-v0", "--steps", 600, "--evaluations", 2, "--rollouts", 50, *others]
    parts += [part for setting in settings.items() for part in ("--set", "{}={}".format(*setting))]
    return [str(part) for part in (*parts, "--output", output)]


def run_script(script, *given):
    command = [sys.executable, "-W", "error", SCRIPTS / script, *given]
    # On a busy machine torch's threads would wait for each other in vain, at full speed.
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


def table_of(printed):
    """Rows by their names, and what is said below."""
    wide = [line for line in printed.splitlines() if len(line) > 80]
    assert [line for line in wide if not line.startswith("plot  ")] == []
    table, _, rest = printed.partition("\n  agent ")[2].partition("\n\n")
    cells = [re.split(r" {2,}", line.strip()) for line in table.splitlines()[1:]]
    rows = {name: others for name, *others in cells if others}
    return rows, " ".join(rest.partition("\nplot ")[0].split())


def check_plots(output, algorithm):
    svg, png = (output / "ExoGrid-v0" / f"{algorithm}{suffix}" for suffix in (".svg", ".png"))
    assert "</svg>" in svg.read_text()
    with Image.open(png) as picture:
        assert picture.size == (900, 540)


def check_board(output, name, events="sb3_0"):
    """TensorBoard has the whole curve."""
    folder = output / "ExoGrid-v0" / name
    board = EventAccumulator(str(folder / events)).Reload()
    points = Curve.load(folder / "curve.json").points
    logged = [(event.step, event.value) for event in board.Scalars("eval/mean_return")]
    assert len(points) == 3
    assert logged == [(point.steps, pytest.approx(point.mean, rel=1e-5)) for point in points]


OBSERVED = ("--observation", "full", "learned", "oracle", "none", "--mask", "guard*")
PPO = {"n_steps": 8, "batch_size": 64}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder, and what was printed."""
    output = tmp_path_factory.mktemp("trained")
    given = arguments(output, *OBSERVED, "--jobs", 1, **PPO)
    return output, run_script("train_sb3.py", *given).stdout


def in_process(monkeypatch, *given):
    monkeypatch.setattr(study, "cores", lambda: 1)  # threads
    return train_sb3.main([*map(str, given), "--jobs", "1"])


def test_agents_are_trained_compared_and_plotted(trained):
    output, printed = trained
    rows, rest = table_of(printed)
    learned = json.loads((output / "ExoGrid-v0" / "reference.json").read_text())["learned"]
    numbers = {"planner, learned mask": len(learned), "idle": 0}
    numbers |= {"full": 5, "learned": len(learned), "oracle": 2, "none": 0}
    assert {name: int(cells[0]) for name, cells in rows.items()} == numbers
    for observation in ("learned", "oracle", "none"):
        assert re.search(rf"full (needs [\d.]+ times the steps of|against) {observation}\b", rest)
    check_plots(output, "ppo")
    for observation in ("full", "learned", "oracle", "none"):
        folder = output / "ExoGrid-v0" / f"ppo-{observation}-full-0"
        check_board(output, folder.name)
        last = Curve.load(folder / "curve.json").points[-1]
        assert last.steps == 640  # five rollouts of 128 steps
        assert rows[observation][2].startswith(f"{last.mean:.1f} ± ")
        assert (folder / "checkpoint-640" / "model.zip").exists()


def test_what_is_done_is_not_done_again(trained, monkeypatch, capsys):
    output, printed = trained
    monkeypatch.setattr(train_sb3, "train", None)
    pictures = sorted((output / "ExoGrid-v0").glob("ppo.*"))
    before = [picture.read_bytes() for picture in pictures]
    assert in_process(monkeypatch, *arguments(output, *OBSERVED, **PPO)) == 0
    assert table_of(capsys.readouterr().out) == table_of(printed)
    assert [picture.read_bytes() for picture in pictures] == before


def test_agents_are_trained_in_reduced_models_too(trained, monkeypatch, capsys):
    output, observed = trained[0], ("--observation", "learned", "none")
    given = ("--algorithm", "a2c", "--train-in", "reduced", "full", "--seeds", 0, 1)
    assert in_process(monkeypatch, *arguments(output, *given, *observed)) == 0
    rows, _ = table_of(capsys.readouterr().out)
    labels = [f"{what}, in the reduced model" for what in ("learned", "none")]
    assert [*rows][2:] == [*labels, "learned", "none"]
    assert all(rows[label][1] == "2" for label in labels)  # runs
    check_plots(output, "a2c")
    check_board(output, "a2c-none-reduced-1")


@pytest.mark.parametrize("extra", [{}, {"network": "plain", "encoding": "scaled"}])
def test_dqn_is_trained_with_either_network(extra, trained, monkeypatch, capsys):
    output, seed = trained[0], len(extra)
    given = arguments(output, "--algorithm", "dqn", "--seeds", seed, **DQN, **extra)
    assert in_process(monkeypatch, *given, "--observation", "full") == 0
    assert [*table_of(capsys.readouterr().out)[0]][2:] == ["full"]
    check_plots(output, "dqn")
    check_board(output, f"dqn-full-full-{seed}")


def test_the_one_file_recipe_runs_side_by_side(trained):
    output, settings = trained[0], {"rollout": 8, "minibatches": 4}
    given = arguments(output, "--observation", "learned", "none", "--jobs", 2, **settings)
    rows, _ = table_of(run_script("train_cleanrl_style.py", *given).stdout)
    assert [*rows][2:] == ["learned", "none"]
    check_plots(output, "one-file-ppo")
    for observation in ("learned", "none"):
        folder = output / "ExoGrid-v0" / f"one-file-ppo-{observation}-full-0"
        check_board(output, folder.name, events="")
        weights = torch.load(folder / "agent.pt", weights_only=True)
        assert all(part.isfinite().all() for part in weights.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--set", "learning_rat=1"), "'learning_rat' cannot be set; there are: lanes, "),
        (("--set", "lanes"), "an option is name=value, not 'lanes'"),
        (("--observation", "oracle"), "does not tell which variables are needed"),
        (("--observation", "oracle", "--mask", "gard"), "unknown exogenous variable 'gard'"),
        (("--option", "slipp=0.1"), "did you mean 'slip'?"),
        (("--steps", 700), "is of a run with another steps; choose another --output"),
        (("--rollouts", 60), "choose another --output for other settings"),
        (("--cost-weight", 2), "choose another --output for other settings"),
        (("--seeds", 3, 4, 3), "--seeds has 3 more than once"),
    ],
)
def test_wrong_arguments_end_with_one_clear_line(change, words, trained, monkeypatch):
    with pytest.raises(SystemExit) as raised:
        in_process(monkeypatch, *arguments(trained[0], "--observation", "full", **PPO), *change)
    assert isinstance(raised.value.code, str)  # printed, without a traceback
    assert words in raised.value.code
    assert "\n" not in raised.value.code


def test_an_unknown_environment_ends_with_one_clear_line(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"^error: ExoGrd-v0: .*Did you mean: `ExoGrid`\?$"):
        in_process(monkeypatch, "ExoGrd-v0", "--output", tmp_path)


def test_two_studies_do_not_share_a_folder(trained, monkeypatch):
    given = arguments(trained[0], *OBSERVED, **PPO)
    with (
        Claim(trained[0] / "ExoGrid-v0"),
        pytest.raises(SystemExit, match=rf"^error: another run \(process {os.getpid()}\) is"),
    ):
        in_process(monkeypatch, *given)
    assert in_process(monkeypatch, *given) == 0


def test_what_is_wrong_with_a_later_run_is_found_before_the_first(trained, monkeypatch):
    """The second seed's folder is damaged, and the first one is not trained."""
    folder = trained[0] / "ExoGrid-v0" / "ppo-none-full-8"
    folder.mkdir()
    (folder / "curve.json").write_text("{")
    monkeypatch.setattr(train_sb3, "train", None)
    given = arguments(trained[0], "--observation", "none", "--seeds", 7, 8, **PPO)
    with pytest.raises(SystemExit, match=r"ppo-none-full-8.*is damaged"):
        in_process(monkeypatch, *given)


def killed(trainer, run):
    os._exit(9)


def test_a_killed_worker_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "execute", killed)
    two = [make_run("ppo", tmp_path), dataclasses.replace(make_run("ppo", tmp_path), seed=1)]
    with pytest.raises(ScriptError, match=r"worker was killed .*oracle, seed 0; oracle, seed 1"):
        runs.execute_all(train_sb3.train, two, 2)


def steps_of_a_learner(self, session):
    yield Record(action="find", candidate=("guard",), accepted=True, reason="", mask=("guard",))
    raise KeyboardInterrupt


@pytest.mark.parametrize("stage", ["mask", "training"])
def test_an_interrupt_ends_the_script(stage, trained, tmp_path, monkeypatch):
    output = tmp_path if stage == "mask" else trained[0]
    monkeypatch.setattr(CalibratedMaskLearner, "_steps", steps_of_a_learner)
    count(monkeypatch, Recorder, "record", 2)
    given = arguments(output, "--observation", "none", "--seeds", 9, **PPO)
    with pytest.raises(KeyboardInterrupt):
        in_process(monkeypatch, *given)
