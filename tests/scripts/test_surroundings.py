"""Folders that cannot be written to, disks that are full, and how scripts end."""

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from reproductions import TINY, run

from reproduction.report import write_report
from reproduction.results import ResultsError, ResultsFolder, read_results, read_settings
from reproduction.settings import Settings
from shared import folders, script
from shared.folders import Claim, FolderError

SCRIPTS = Path(script.__file__).parents[1]


# --- folders ------------------------------------------------------------------------------------


def test_a_folder_is_claimed_by_one(tmp_path):
    with (
        Claim(tmp_path / "new"),
        pytest.raises(FolderError, match=rf"another run \(process {os.getpid()}\) is writing"),
    ):
        Claim(tmp_path / "new")
    with Claim(tmp_path / "new"):
        assert [path.name for path in (tmp_path / "new").iterdir()] == [".lock"]


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    code = "import os, sys; from shared.folders import Claim; from pathlib import Path; "
    code += "Claim(Path(sys.argv[1])); os._exit(9)"
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    ended = subprocess.run([sys.executable, "-c", code, tmp_path], check=False, env=environment)
    assert ended.returncode == 9
    assert (tmp_path / ".lock").read_text().strip().isdigit()
    with Claim(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_what_a_killed_run_was_writing_is_removed(tmp_path):
    number = "0123456789abcdef" * 2
    (tmp_path / f".{number}").mkdir()
    (tmp_path / f".{number}" / "model.zip").touch()
    (tmp_path / f".curve.json.{number}").touch()
    for name in (".gitignore", "curve.json", number):
        (tmp_path / name).touch()
    with Claim(tmp_path):
        left = {path.name for path in tmp_path.iterdir()}
    assert left == {".gitignore", "curve.json", number, ".lock"}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="is a file, not a folder"):
        Claim(tmp_path / "file")
    with pytest.raises(FolderError, match=r"cannot write to .*file/below"):
        Claim(tmp_path / "file" / "below")
    with pytest.raises(FolderError, match="File name too long"):
        Claim(tmp_path / ("x" * 300))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB, where one may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_noticed_before_work(small_disk):
    (small_disk / "large").write_bytes(bytes(3 << 19))
    with pytest.raises(FolderError, match="No space left on device"):
        Claim(small_disk / "results")
    assert [path.name for path in (small_disk / "results").iterdir()] == []
    (small_disk / "large").unlink()
    Claim(small_disk / "results").close()


def test_a_folder_that_may_only_be_read_is_noticed_before_work(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(ResultsError, match=r"cannot write to .*: Read-only file system"):
        run(small_disk / "results")


def refuse(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("owner", "name"), [(folders.Path, "open"), (folders.os, "fsync")])
def test_what_cannot_be_written_is_noticed_before_work(tmp_path, monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, refuse)
    with pytest.raises(FolderError, match="No space left on device"):
        Claim(tmp_path)


def test_a_disk_that_becomes_full_loses_only_what_is_being_written(tmp_path, monkeypatch):
    append, calls = ResultsFolder.append, []

    def full(self, records):
        calls.append(records)
        if len(calls) == 3:
            self._file.write(b'{"key": {"exp')
            self._file.flush()
            refuse()
        append(self, records)

    with monkeypatch.context() as patch:
        patch.setattr(ResultsFolder, "append", full)
        with pytest.raises(OSError, match="No space left"):
            run(tmp_path)
    kept = sum(map(len, calls[:2]))
    assert len(read_results(tmp_path)) == kept
    told = run(tmp_path)
    assert told[-1].startswith(f"{kept} of 24 trials were finished before")
    assert "damaged" in told[0]


# --- how scripts end ----------------------------------------------------------------------------


ENDS = {
    0: ("None", None),
    2: ("raise SystemExit('error: no such thing')", "error: no such thing"),
    1: ("raise ScriptError('a worker died.')", "error: a worker died. What is finished is kept."),
    130: ("os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", "stopped by Ctrl-C. "),
    143: ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", "stopped by SIGTERM. "),
}
DISK = "raise OSError(28, 'No space left on device', 'a file')"
ENDS_BADLY = (
    "error: cannot read or write (No space left on device: a file); that is lost. What is finished"
)


def end(code, *given):
    lines = [
        "import os, signal, sys, time",
        "signal.signal(signal.SIGINT, signal.default_int_handler)",  # those in the background
        "from shared.script import ScriptError, run_script",
        "def main():",
        f"    {code}",
        "run_script(main)",
    ]
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *given],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
    )


@pytest.mark.parametrize(
    ("code", "line", "number"),
    [*((*ENDS[number], number) for number in ENDS), (DISK, ENDS_BADLY, 1)],
)
def test_a_script_ends_with_one_line_and_a_code_that_tells(code, line, number):
    ended = end(code, "two words")
    assert ended.returncode == number
    said = ended.stderr.strip()
    assert said.startswith(line or "")
    assert "\n" not in (said if number in (0, 2) else said.rpartition(" -c ")[0])
    assert ("To go on: " in said) == (number in (1, 130, 143))
    assert ("'two words'" in said) == (number in (1, 130, 143))


def test_errors_in_a_program_are_not_hidden():
    assert "ZeroDivisionError" in end("1 / 0").stderr
    assert "ConnectionRefusedError" in end("raise ConnectionRefusedError(111, 'no')").stderr


@pytest.mark.parametrize("trials", [0, 10_001, 10**9])
def test_trials_have_limits(trials):
    with pytest.raises(ValueError, match="trials"):
        Settings(trials=trials)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--trials", "1000000000"], "trials are at most 10,000, not 1,000,000,000"),
        (["--trials", "1e3"], "'1e3' is not a positive whole number"),
        (["--jobs", "1000000000"], "there are at most 1024"),
        (["--seed", "-1"], "seed is a whole number from 0"),
        (["--address", "garbage"], "--address is for a cluster"),
        (["--backend", "dask", "--address", "garbage"], "tcp://host:8786, not 'garbage'"),
        (["--output", "/dev/null"], "/dev/null is a file, not a folder"),
    ],
)
def test_odd_arguments_end_before_work(given, words, tmp_path):
    line = [sys.executable, "-W", "error", SCRIPTS / "reproduce.py", "small", "--quick", *given]
    ended = subprocess.run(line, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("name", ["reproduce", "train_sb3", "train_cleanrl_style"])
def test_help_fits_the_terminal(name):
    command = [sys.executable, SCRIPTS / f"{name}.py", "--help"]
    environment = os.environ | {"COLUMNS": "80"}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert [line for line in told.stdout.splitlines() if len(line) > 80] == []
    assert "price" not in told.stdout


# --- the report ---------------------------------------------------------------------------------


def test_the_command_of_a_report_goes_on_with_it(tmp_path):
    """In a folder with a space in its name, with a trial that is lost."""
    command = [sys.executable, str(SCRIPTS / "reproduce.py"), "small", "--quick", "--trials", "1"]
    command += ["--jobs", "1", "--output", "a folder"]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    folder = tmp_path / "a folder"
    (typed,) = read_settings(folder)["commands"]
    assert shlex.split(typed) == command
    html = (folder / "report.html").read_text()
    assert "commands" in html
    lines = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "results.jsonl").write_bytes(b"".join(lines[:-1]))
    again = subprocess.run(typed, check=True, capture_output=True, cwd=tmp_path, shell=True)
    assert f"{len(lines) - 1} of {len(lines)} trials".encode() in again.stdout
    assert read_settings(folder)["commands"] == [typed]
    assert len(read_results(folder)) == len(lines)


def test_a_command_names_its_folder(monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "scripts/reproduce.py", "all"])
    assert script.this_command(Path("a b")) == "python scripts/reproduce.py all --output 'a b'"
    monkeypatch.setattr(sys, "orig_argv", ["python", "x.py", "--output=a b"])
    assert script.this_command(Path("a b")) == "python x.py '--output=a b'"


def test_figures_of_few_rollouts_are_no_results(tmp_path):
    few, many = tmp_path / "few", tmp_path / "many"
    ResultsFolder(few, TINY).__exit__(None, None, None)
    ResultsFolder(many, Settings()).__exit__(None, None, None)
    for folder, marked in ((few, True), (many, False)):
        html = write_report(folder).read_text()
        assert ('<p class="banner" role="note">A smoke test, not results' in html) == marked
        assert ("smoke test" in (folder / "report.md").read_text()) == marked


def test_the_report_explains_its_words(tmp_path):
    ResultsFolder(tmp_path, TINY).__exit__(None, None, None)
    html, text = write_report(tmp_path).read_text(), (tmp_path / "report.md").read_text()
    for word in ("mask", "endogenous", "exogenous", "λ", "J", "first phase", "±"):
        assert f"<dt>{word}</dt>" in html
        assert f"- **{word}**: " in text
    assert "price" not in html + text
