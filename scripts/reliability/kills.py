"""Kill scripts at random moments, start them again, and compare what they leave.

    python scripts/reliability/kills.py --rounds 10
    python scripts/reliability/kills.py --rounds 30 --only reproduce train_sb3

Each round kills a run up to three times, by SIGKILL, SIGTERM or SIGINT, and
lets it end. It must leave the bytes of a run that nobody disturbed (times
aside), and no process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

SCRIPTS = Path(__file__).resolve().parents[1]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: Seconds after which no process of a killed run may be left.
PATIENCE = 10.0
#: Seconds after which a run hangs.
LONGEST = 300.0
#: The name of the variable that marks all processes of a run.
MARK = "EXO_ENVS_KILLED_RUN"


class KillError(AssertionError):
    """A run that was killed did not end as one that was not."""


def records_of(folder: Path) -> bytes:
    """The results of reproduce.py without what was measured."""
    lines = (folder / "results.jsonl").read_bytes().splitlines()
    return _bytes([_without(json.loads(line), "measured", "crc32") for line in lines])


def masks_of(folder: Path) -> bytes:
    """What learn_mask.py found."""
    found = [json.loads(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
    return _bytes([[mask["mask"], mask["status"], mask["objective"]] for mask in found])


def curves_of(folder: Path) -> bytes:
    """The curves of the training scripts without the seconds, and what they are compared with."""
    curves = [json.loads(file.read_bytes()) for file in sorted(folder.rglob("curve.json"))]
    for curve in curves:
        curve["points"] = [[point[0], *point[2:]] for point in curve["points"]]
    references = [json.loads(file.read_bytes()) for file in sorted(folder.rglob("reference.json"))]
    return _bytes([curves, references])


def _without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def _bytes(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


TINY = ("--rollouts", "20", "--evaluations", "4", "--set", "width=8", "--set", "lanes=8")


@dataclass(frozen=True)
class Target:
    """A script that is killed.

    Attributes:
        script: its name.
        arguments: small ones.
        read: what it leaves, times aside.
    """

    script: str
    arguments: tuple[str, ...]
    read: Callable[[Path], bytes]

    def command(self, folder: Path) -> list[str]:
        """The same for every start of a run."""
        script = str(SCRIPTS / f"{self.script}.py")
        return [sys.executable, script, *self.arguments, "--output", str(folder)]


TARGETS = {
    "learn": Target("learn_mask", ("ExoFactory-v0", "--no-compare", "--rollouts", "50"), masks_of),
    "reproduce": Target(
        "reproduce", ("small", "--quick", "--trials", "2", "--jobs", "2"), records_of
    ),
    "train_sb3": Target(
        "train_sb3",
        (
            *("ExoGrid-v0", "--steps", "4000", "--jobs", "2"),
            *("--observation", "learned", "none"),
            *("--set", "n_steps=16", "--set", "batch_size=64", *TINY),
        ),
        curves_of,
    ),
    "train_cleanrl_style": Target(
        "train_cleanrl_style",
        (
            *("ExoGrid-v0", "--steps", "4000", "--jobs", "1"),
            *("--observation", "learned", "--set", "rollout=16", *TINY),
        ),
        curves_of,
    ),
}


@dataclass
class Killer:
    """Runs a target undisturbed once, then as often as asked for with interruptions.

    Attributes:
        target: what is run.
        folder: for all runs.
        expected: what the undisturbed run left.
        seconds: that it took.
        codes: how the runs that were stopped ended, by signal.
    """

    target: Target
    folder: Path
    expected: bytes = b""
    seconds: float = 0.0
    codes: dict[str, list[int]] = field(default_factory=dict)

    def undisturbed(self) -> None:
        """The run that others are compared with."""
        started = time.monotonic()
        run = Run(self.target, self.folder / "undisturbed")
        run.end()
        self.seconds = time.monotonic() - started
        self.expected = self.target.read(run.output)

    def round(self, rng: np.random.Generator, signals: Sequence[signal.Signals]) -> None:
        """Kill a run by each of the signals, at random moments, then let it end."""
        output = self.folder / uuid4().hex
        for number in signals:
            run = Run(self.target, output)
            code = run.kill(number, after=float(rng.uniform(0.1, 1.0)) * self.seconds)
            self.codes.setdefault(number.name, []).append(code)
        Run(self.target, output).end()
        if (found := self.target.read(output)) != self.expected:
            raise KillError(
                f"{self.target.script} left other results after {[s.name for s in signals]}: "
                f"{found[:500]!r} instead of {self.expected[:500]!r}"
            )
        parts = [path for path in output.rglob(".*") if path.name != ".lock"]
        if parts:
            raise KillError(f"{self.target.script} left {parts}")
        shutil.rmtree(output)


class Run:
    """A script that was started, with all of its processes."""

    def __init__(self, target: Target, output: Path) -> None:
        self.output = output
        self._mark = uuid4().hex
        paths = filter(None, [str(SCRIPTS.parent), os.environ.get("PYTHONPATH")])
        environment = {
            **os.environ,
            MARK: self._mark,
            "PYTHONPATH": os.pathsep.join(paths),
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        self._printed = output.with_name(f"{output.name}.txt")
        # A file, not a pipe: workers that live on would keep a pipe open.
        with self._printed.open("wb") as file:
            self.process = subprocess.Popen(
                target.command(output), env=environment, stdout=file, stderr=file
            )

    def printed(self) -> str:
        """All that it has said."""
        return self._printed.read_text(encoding="utf-8", errors="replace")

    def end(self) -> None:
        """Let it end by itself."""
        code = self._wait(LONGEST)
        self._gone()
        if code != 0:
            raise KillError(f"it ended with {code}:\n{self.printed()[-3000:]}")

    def kill(self, number: signal.Signals, *, after: float) -> int:
        """Send a signal after some seconds; the code it ended with, 0 if it was too late."""
        try:
            return self._wait(after)
        except subprocess.TimeoutExpired:
            self.process.send_signal(number)
        code = self._wait(PATIENCE)
        self._gone()
        allowed = {
            signal.SIGKILL: {-signal.SIGKILL},
            signal.SIGTERM: {143, -signal.SIGTERM},  # the second one while it still starts
            signal.SIGINT: {130, -signal.SIGINT, 1, 0},  # learning keeps the best mask so far
        }
        if code not in allowed[number]:
            raise KillError(f"{number.name} ended it with {code}:\n{self.printed()[-3000:]}")
        return code

    def processes(self) -> list[int]:
        """All processes of the run that are alive, on systems that tell (Linux)."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                mine = f"{MARK}={self._mark}".encode() in (path / "environ").read_bytes()
            except OSError:  # gone, or somebody else's
                continue
            if mine:
                found.append(int(path.name))
        return found

    def _wait(self, seconds: float) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            if seconds == LONGEST:
                self.process.kill()
            raise

    def _gone(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while left := self.processes():
            if time.monotonic() > deadline:
                for process in left:
                    os.kill(process, signal.SIGKILL)
                raise KillError(f"processes outlived it by {PATIENCE:.0f} s: {left}")
            time.sleep(0.05)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="of each script: 5")
    parser.add_argument("--seed", type=int, default=0, help="of the moments: 0")
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=[*TARGETS], metavar="WHAT")
    arguments = parser.parse_args(argv)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            rng = np.random.default_rng(arguments.seed)
            killer = Killer(TARGETS[name], Path(folder) / name)
            killer.undisturbed()
            equal = 0
            for _ in range(arguments.rounds):
                signals = [SIGNALS[k] for k in rng.integers(len(SIGNALS), size=rng.integers(1, 4))]
                try:
                    killer.round(rng, signals)
                    equal += 1
                except (KillError, subprocess.TimeoutExpired) as error:
                    failures += 1
                    print(f"{name}: {error}", flush=True)
            kills = sum(map(len, killer.codes.values()))
            print(f"{name}: {kills} kills, {equal} of {arguments.rounds} runs equal", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
