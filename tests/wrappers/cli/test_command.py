"""The command exo-mask, mostly within this process."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wrappers import CalibratedMaskLearner, LearnedMask
from wrappers import cli as command_line
from wrappers.cli.command import main
from wrappers.cli.console import CommandError, run
from wrappers.cli.models import make_env
from wrappers.fitting.saved import SavedMask

ROOT = Path(__file__).resolve().parents[3]
SMALL = ("--rollouts", "50", "--data", "200")

#: A worker with an umbrella: the forecast predicts the rain, the lottery never matters.
WORLD = """
import numpy as np
import gymnasium as gym
from exo_envs import ExoEnv, ExoMDP, State, Variable

class Umbrella(ExoMDP):
    endogenous_variables = (Variable("carries", 2),)
    exogenous_variables = (Variable("rain", 2), Variable("price", 2), Variable("lottery", 10))
    num_actions, discount, horizon = 2, 0.95, 10

    def __init__(self, cost=10.0, fails=False):
        self.cost, self.fails = cost, fails

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), int), rng.integers([2, 2, 10], size=(size, 3)))

    def sample_exogenous(self, exogenous, rng):
        if self.fails:
            {}["umbrella"]
        following = rng.integers([2, 2, 10], size=exogenous.shape)
        following[..., 0] = exogenous[..., 1]
        return following

    def sample_endogenous(self, state, action, rng):
        return np.array(action)[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = -self.cost * (state.exogenous[..., 0] > state.endogenous[..., 0])
        return terms

    def endogenous_reward(self, endogenous, action):
        return -1.0 * np.asarray(action)

class UmbrellaEnv(ExoEnv):
    def __init__(self, **parameters):
        super().__init__(Umbrella(**parameters))

def make(cost=10.0):
    return Umbrella(cost)

ready = Umbrella()
number = 3

def wrong():
    return 4
"""


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    """A directory with a module in it, whose name no other test has imported."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"world_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(WORLD)
    yield name
    sys.modules.pop(name, None)


def refused(capsys, *arguments):
    """The only line of a command that is refused its arguments."""
    assert main([*map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("thing", ["Umbrella", "UmbrellaEnv", "make", "ready"])
def test_models_environments_and_functions_that_make_them_can_be_named(world, capsys, thing):
    assert main([f"{world}:{thing}", *SMALL, "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.out == "rain\nprice\n"
    assert said.err == ""


def test_it_says_what_to_keep_why_and_what_that_costs(world, capsys, tmp_path):
    file = tmp_path / "new" / "mask.json"
    arguments = [f"{world}:Umbrella", *SMALL, "--set", "cost=20", "--cost-weight", "1"]
    assert main([*arguments, "--save", str(file)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("exo-envs 0.1.0: Umbrella cost=20 has 3 exogenous variables\n")
    assert "Kept 2 of 3 variables, at λ = 1 each" in said.out
    assert re.search(r"\n  price +1 of 1 +predicts +", said.out)
    assert re.search(r"\n  lottery +1 of 1  no sign that it matters", said.out)
    assert "What it gives up by ignoring the rest: " in said.out
    assert said.out.endswith(f"The mask\n  rain, price\nsaved in {file}\n")
    assert SavedMask.load(file).mask == ("rain", "price")
    assert "planning with" in said.err
    assert "price: worth" in said.err
    for line in (said.out + said.err).splitlines():
        assert len(line) <= 80 or str(file) in line


def test_a_zip_has_the_policy_too(world, capsys, tmp_path):
    arguments = [f"{world}:UmbrellaEnv", *SMALL, "--quiet", "--save"]
    for name in ("mask.json", "mask.ZIP"):
        assert main([*arguments, str(tmp_path / name)]) == 0
    env = make_env(f"{world}:UmbrellaEnv", [])
    assert LearnedMask.load(env, tmp_path / "mask.json").policy is None
    loaded = LearnedMask.load(env, tmp_path / "mask.ZIP")
    assert loaded.mask == ("rain", "price")
    assert loaded.policy(loaded.reset(seed=0)[0]) in (0, 1)
    assert capsys.readouterr().err == ""


def test_only_regular_files_are_written_and_links_stay(world, capsys, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "latest.json"
    os.mkfifo(pipe)
    said = refused(capsys, f"{world}:Umbrella", *SMALL, "--save", str(pipe))
    assert "is no regular file, and would be replaced by one; name a file to write" in said
    assert pipe.is_fifo()
    link.symlink_to(tmp_path / "mask.json")
    assert main([f"{world}:Umbrella", *SMALL, "--quiet", "--save", str(link)]) == 0
    assert link.is_symlink()
    assert SavedMask.load(tmp_path / "mask.json").mask == ("rain", "price")


def test_every_variable_can_be_told_by_itself(world, capsys):
    assert main([f"{world}:Umbrella", *SMALL, "--all-variables"]) == 0
    printed = capsys.readouterr().out
    said = " ".join(printed.split())
    assert "price predicts rain (" in said
    assert "lottery shows no sign that it matters" in said
    assert max(map(len, printed.splitlines())) <= 80


def test_a_registered_id_with_and_without_its_module(capsys):
    for name in ("ExoGrid-v0", "exo_envs:ExoGrid-v0"):
        assert main([name, *SMALL, "--quiet", "--set", "horizon=5"]) == 0
        assert "object" in capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ExoGrd-v0"], "Did you mean: `ExoGrid`?"),
        (["Nothing"], "choose from ExoGrid-v0, "),
        (["nowhere:Model"], "no module 'nowhere', neither in this directory nor installed"),
        (["{world}.py:Umbrella"], "write '{world}', not '{world}.py'"),
        (["{world}:Umbrela"], "unknown name in {world} 'Umbrela'; did you mean 'Umbrella'?"),
        (["{world}:number"], "neither a model or an environment"),
        (["{world}:wrong"], "makes int, not an ExoMDP"),
        (["{world}:ready", "--set", "cost=3"], "made already, so it takes no options"),
        (["{world}:Umbrella", "--set", "csot=3"], "unexpected keyword argument 'csot'"),
        (["ExoGrid-v0", "--set", "slipp=0.1"], "did you mean 'slip'?"),
        (["ExoGrid-v0", "--set", "slip"], "an option is name=value, not 'slip'"),
        (["ExoGrid-v0", "--rollouts", "0"], "a whole number, at least 1, not '0'"),
        (["ExoGrid-v0", "--cost-weight", "nan"], "a number, at least 0, not 'nan'"),
        (["ExoGrid-v0", "--time-limit", "0"], "a number, greater than 0, not '0'"),
        (["ExoGrid-v0", "--level", "2"], "a probability between 0 and 1, not '2'"),
        (["ExoGrid-v0", "--seed", "-1"], "a whole number, at least 0, not '-1'"),
        (["ExoGrid-v0", "--rle", "paper"], "unrecognized arguments: --rle paper"),
        (["ExoGrid-v0", "--save", "."], "'.' names no file to write"),
        (["ExoGrid-v0", "--save", ".."], "'..' is a folder; name a file to write"),
        (["ExoGrid-v0", "--save", "{world}.py/mask.json"], "cannot write "),
        (["CartPole-v1"], "the observation space is Box"),
        ([], "arguments are required: MODEL (exo-mask --help says more)"),
    ],
)
def test_wrong_arguments_end_with_one_line_before_any_work(world, capsys, arguments, words):
    said = refused(capsys, *(argument.format(world=world) for argument in arguments))
    assert words.format(world=world) in said


def test_an_error_of_the_users_own_code_comes_with_its_traceback_and_no_other(world, capsys):
    assert main([f"{world}:Umbrella", *SMALL, "--set", "fails=True"]) == 1
    said = capsys.readouterr().err
    assert f"{world}.py" in said
    assert "KeyError: 'umbrella'" in said
    assert "if none of the lines above is of your own model" in said


def test_a_mistake_of_the_suite_is_not_blamed_on_the_user(world, capsys, monkeypatch):
    monkeypatch.setattr(command_line.command, "learn", len)
    assert main([f"{world}:Umbrella", *SMALL]) == 1
    said = capsys.readouterr().err
    assert "TypeError: len() takes" in said
    assert said.endswith("please report it\n")


def test_the_class_of_an_error_says_whether_it_is_one_line(capsys):
    def ends_with(error):
        def body():
            raise error

        code = run(body)
        return code, capsys.readouterr().err.splitlines()

    assert ends_with(CommandError("no\n such thing")) == (2, ["error: no such thing"])
    assert ends_with(KeyboardInterrupt()) == (130, ["", "interrupted"])
    code, lines = ends_with(ValueError("of somebody else"))
    assert code == 1
    assert lines[0].startswith("Traceback")
    assert lines[-2:-1] == ["ValueError: of somebody else"]


def test_a_mask_that_cannot_be_saved_is_shown(world, capsys, monkeypatch):
    def full(learner, path, *, with_policy):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CalibratedMaskLearner, "save", full)
    assert main([f"{world}:Umbrella", *SMALL, "--save", "mask.json", "--quiet"]) == 1
    said = capsys.readouterr()
    assert said.out == "rain\nprice\n"
    assert said.err.startswith("error: could not save mask.json: No space left on device")


def test_a_time_limit_is_told(capsys):
    arguments = ["ExoGrid-v0", *SMALL, "--rule", "paper", "--time-limit", "1e-9"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "stopped (time limit): this is the best mask so far" in said
    assert "(empty: all can be ignored)" not in said


def test_help_fits_the_terminal_and_explains_every_option(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "exo-mask my_module:MyModel" in said


def command(*arguments):
    return [sys.executable, "-W", "error", "-m", "exo_envs", *arguments]


@pytest.fixture
def environment(monkeypatch):
    folders = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT to send")
def test_a_closed_pipe_ends_quietly_and_ctrl_c_keeps_the_mask(world, environment, tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = command("ExoFactory-v0", "--cost-weight", "1", "--save", "mask.json")
    try:
        with subprocess.Popen(
            asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline().startswith("exo-envs")
            for line in process.stderr:
                if ": earns " in line:
                    process.send_signal(signal.SIGINT)
                    break
            shown, complaints = process.communicate()
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.returncode == 130
    assert "stopped (interrupted): this is the best mask so far" in shown
    assert "Traceback" not in complaints
    assert SavedMask.load("mask.json").status == "interrupted"
    with subprocess.Popen(
        command("ExoGrid-v0", *SMALL), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read()
    assert process.returncode == 141
    assert "Error" not in complaints
