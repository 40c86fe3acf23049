"""The fuzzer counts what it should, reaches all that is public, and finds nothing."""

import json
import math
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from exo_envs import Variable
from exo_envs.domains.grid import GridMDP
from reliability import entries
from reliability.entries.policies import may_hold
from reliability.odd import Odd, UserError, Wrong
from reliability.reach import all_names
from reliability.registry import ENTRIES, chosen, odd_of
from reliability.verdict import Kind, judge
from reliability.worker import attempt, parse_case
from shared.folders import Claim

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers are watched by signals")

FUZZ = Path(__file__).resolve().parents[2] / "scripts" / "fuzz.py"


def fuzz(folder, *arguments):
    """The exit code, what was printed, the summary, and the failures."""
    command = [sys.executable, FUZZ, *map(str, arguments), "--output", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    summary = json.loads((folder / "summary.json").read_text("utf-8"))
    lines = (folder / "failures.jsonl").read_text("utf-8").splitlines()
    return done.returncode, done.stdout, summary, [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """What the runner says of failures that are planted: the case with number 3 of each entry."""
    return fuzz(tmp_path_factory.mktemp("planted"), "--only", "planted")


PLANTED = {
    "planted/crash": "CRASH",
    "planted/abort": "CRASH",
    "planted/hang": "HANG",
    "planted/internal": "INTERNAL",
    "planted/memory": "INTERNAL",
    "planted/exit": "INTERNAL",
    "planted/wrong": "WRONG",
}


@pytest.mark.parametrize(("name", "kind"), PLANTED.items())
def test_a_planted_failure_is_counted_and_attributed(planted, name, kind):
    code, _, summary, failures = planted
    assert code == 1
    assert summary["entries"][name][kind.lower()] == 1
    (failure,) = (one for one in failures if one["entry"] == name)
    assert failure["case"] == f"{name}:3:0"
    assert failure["replay"] == f"python scripts/fuzz.py --replay {name}:3:0"
    assert failure["kind"] == kind


def test_crashes_and_hangs_are_confirmed_alone(planted):
    messages = {one["entry"]: one["message"] for one in planted[-1]}
    assert messages["planted/crash"].startswith("alone too; SIGSEGV")
    assert messages["planted/abort"].startswith("alone too; SIGABRT")
    assert messages["planted/hang"].startswith("alone too")
    assert "planted.py" in messages["planted/hang"]  # where it was


def test_what_is_fine_is_counted_as_fine(planted):
    counts = planted[2]["entries"]["planted/user"]
    assert (counts["clear"], counts["result"]) == (1, 7)
    assert sum(counts.values()) == 8


def test_the_cases_after_a_crash_are_tried_too(planted):
    assert planted[2]["entries"]["planted/crash"]["result"] == 7
    assert planted[2]["entries"]["planted/hang"]["result"] == 7


def test_the_table_fits_a_terminal(planted):
    lines = [line for line in planted[1].splitlines() if "failures.jsonl" not in line]
    assert max(map(len, lines)) <= 80


def test_a_minute_of_odd_inputs_finds_nothing_and_reaches_everything(tmp_path):
    code, printed, summary, failures = fuzz(tmp_path, "--minutes", 1, "--seed", 0)
    assert failures == []
    assert code == 0, printed
    assert summary["inputs"] > 5_000
    assert summary["unreached"] == []


def test_a_folder_that_cannot_be_written_to_is_noticed_before_anything_is_tried(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    command = [sys.executable, FUZZ, "--only", "planted", "--output"]
    for folder, words in (
        (tmp_path / "file", "file is a file, not a folder"),
        (tmp_path / "claimed", "is writing to"),
    ):
        with Claim(tmp_path / "claimed"):
            done = subprocess.run([*command, folder], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")
        assert words in line


def test_every_public_name_is_looked_for():
    names = all_names()
    wanted = ("exo_envs.ExoEnv.step", "planners.evaluate", "planners.Scenarios.sample")
    assert {
        *wanted,
        "wrappers.LearnedMask.__init__",
        "exo_envs.domains.synthetic.exact_return",
    } <= names


def test_a_case_is_a_function_of_entry_number_and_seed():
    one, again, other = (odd_of("models/grid", 5, seed).rng.random(3) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    entry = ENTRIES["make/values"]
    assert [attempt(entry, k, 0)[1].kind for k in range(20)] == [
        attempt(entry, k, 0)[1].kind for k in range(20)
    ]


def verdict_on(function):
    try:
        function()
    except Exception as error:  # noqa: BLE001 - all kinds are looked at
        return judge(error).kind
    raise AssertionError("it should have failed")


def raise_wrong():
    raise Wrong("so it is")


def raise_user_error():
    raise UserError("of the user")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda: Variable("x", 0), Kind.CLEAR),
        (lambda: gym.make("ExoGrd-v0"), Kind.CLEAR),
        (lambda: gym.make("ExoGrid-v0", slip=2), Kind.CLEAR),
        (lambda: Variable("x", 2, colour="red"), Kind.CLEAR),
        (lambda: Path("there/is/none").read_text("utf-8"), Kind.CLEAR),
        (raise_user_error, Kind.CLEAR),
        (raise_wrong, Kind.WRONG),
        (lambda: np.zeros(3)[5], Kind.INTERNAL),
        (lambda: GridMDP().endogenous_variables[9], Kind.INTERNAL),
        (lambda: np.zeros(3).reshape(2, 2), Kind.INTERNAL),
    ],
)
def test_errors_are_told_apart(function, kind):
    assert verdict_on(function) is kind


def test_must_work_and_must_fail():
    odd = Odd(np.random.default_rng(0))
    assert odd.must_work(int, "3") == 3
    with pytest.raises(Wrong, match="refuses sound input"):
        odd.must_work(int, "x")
    with pytest.raises(Wrong, match="answers 3"):
        odd.must_fail(int, "3")
    with pytest.raises(ValueError, match="invalid literal"):
        odd.must_fail(int, "x")


def test_what_a_policy_ignores_may_be_real_but_not_infinite():
    seen = ("price", "season")  # and not the news
    assert may_hold("exogenous", 2, 0.5, seen) is None
    assert may_hold("exogenous", 2, math.nan, seen) is False
    assert may_hold("exogenous", 2, math.inf, seen) is False
    assert may_hold("exogenous", 1, 0.5, seen) is False
    assert may_hold("endogenous", 0, 0.5, seen) is False


def test_entries_are_chosen_by_name():
    assert entries.__all__
    assert {one.name for one in chosen(["models"])} > {"models/grid", "models/factored"}
    assert [one.name for one in chosen(["user-bugs"])] == ["user-bugs"]
    assert not any(one.name.startswith("planted") for one in chosen([]))
    with pytest.raises(SystemExit, match="no entry is called 'modles'"):
        chosen(["modles"])
    assert parse_case("models/grid:17:3") == ("models/grid", 17, 3)
    with pytest.raises(SystemExit, match="entry:number:seed"):
        parse_case("models/grid:x")
