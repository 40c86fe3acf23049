"""Text and tables that fit, in letters that the terminal has; progress for who waits."""

import io
import re
import sys
import time
import warnings

import pytest

from wrappers import LearningStoppedWarning
from wrappers.cli import progress
from wrappers.cli.console import PLAIN_HANDLER, say, set_up_streams, table_lines, wrap
from wrappers.cli.progress import ProgressBar, plain_warnings
from wrappers.fitting.history import Progress, Record


@pytest.fixture(autouse=True)
def eighty(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_table_is_as_wide_as_it_needs_to_be():
    lines = table_lines(("name", "", "count"), [("a", "", "1"), ("bcdef", "", "22")], "<<>")
    assert lines == ["  name   count", "  a          1", "  bcdef     22"]


def test_text_gives_way_before_names_and_numbers_do():
    name, number = "a_name_of_twenty_fiv", "123456.7 ± 1234.5"
    rows = [(name, "so many words " * 9, number), ("b", "short", "1.0 ± 0.1")]
    lines = table_lines(("name", "why", "worth"), rows, "<<>")
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith(f"  {name}  so many")
    assert lines[1].endswith(number)
    assert "so many words" in lines[2]


def test_names_without_end_go_on_in_the_next_line():
    rows = [(f"{'very_' * 30}{k}", "1.0") for k in range(3)]
    lines = table_lines(("name", "worth"), rows, "<>")
    assert max(map(len, lines)) <= 80
    told = "".join(line.removesuffix("1.0").strip() for line in lines)
    assert all(name in told for name, _ in rows)
    assert max(map(len, wrap(f"of {'x' * 200}, and more", indent=4))) <= 80


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_a_terminal_lacks_are_written_out(encoding, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    set_up_streams()
    say("λ = 1 ± 0.1 \N{SNOWMAN}")
    sys.stdout.write("".join(f"{line}\n" for line in table_lines(["λ"], [["±±"]], ">")))
    sys.stdout.flush()
    text = raw.getvalue().decode(encoding)
    expected = "λ = 1 ± 0.1 \N{SNOWMAN}".encode(encoding, PLAIN_HANDLER).decode(encoding)
    first, header, row = text.splitlines()
    assert first == expected
    assert len(header) == len(row)  # aligned, however long the letters have become
    if encoding == "ascii":
        assert first == "lambda = 1 +/- 0.1 ?"


def test_on_a_terminal_the_bar_moves_by_itself_and_steps_leave_a_line():
    step = Record(action="try", candidate=(), accepted=True, reason="", mask=())
    terminal = Terminal()
    with ProgressBar(lambda record: f"a {record.action}", terminal) as bar:
        bar(Progress("testing", 0.0, done=1, total=4))
        bar(Progress("a reason", 0.0, record=step))
        deadline = time.monotonic() + 30
        while terminal.getvalue().count("testing") < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    written = terminal.getvalue()
    assert written.count("testing 1/4") >= 2
    assert re.search(r"\d s  a try *\n", written)
    assert written.endswith("\x1b[2K")  # the line is wiped


def test_a_dumb_terminal_gets_no_escapes(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with ProgressBar(stream=terminal) as bar:
        bar.stage("testing")
    assert re.fullmatch(r" +0\.\d s  testing \.\.\.\n", terminal.getvalue())


def test_without_a_terminal_long_stages_say_how_far_they_are(monkeypatch):
    stream = io.StringIO()
    with ProgressBar(stream=stream) as bar:
        for done in range(3):  # too soon
            bar(Progress("planning", 0.0, done=done, total=9))
        monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
        bar(Progress("planning", 0.0, done=3, total=9, detail="sweep 5"))
    first, later = stream.getvalue().splitlines()
    assert first.endswith(" s  planning ...")
    assert later.endswith(" s  planning 3/9: sweep 5")


def test_warnings_are_sentences_and_libraries_do_not_chatter():
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ProgressBar(stream=stream, hidden=True) as bar, plain_warnings(bar.warn):
            bar.stage("not shown")
            warnings.warn("the data cannot tell", stacklevel=1)
            warnings.warn("learning was stopped", LearningStoppedWarning, stacklevel=1)
            warnings.warn_explicit("deprecated", DeprecationWarning, "f.py", 1, "gymnasium.core")
    assert stream.getvalue() == "warning: the data cannot tell\n"
