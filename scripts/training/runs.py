"""Runs of training: one for each observation and seed, side by side, each in its own folder."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from planners import Estimate
from shared.folders import remove_parts
from shared.script import ScriptError
from shared.workers import start_worker
from training.curves import Curve
from training.task import Mask, Task

CURVE = "curve.json"


@dataclass(frozen=True)
class Run:
    """One agent to be trained.

    Attributes:
        task: the environment, and the trajectories of evaluations.
        algorithm: its name.
        observation: one of ``training.task.OBSERVATIONS``.
        mask: the exogenous variables that it sees; None is all of them, unmasked.
        world: where it is trained: in the full model or in the mask's reduced one.
        seed: of everything random in training.
        steps: how many, over all lanes.
        evaluations: how many, after the one at the start.
        output: the folder of the task.
        hyperparameters: of the algorithm.
        threads: that it may use; nothing depends on it.
    """

    task: Task
    algorithm: str
    observation: str
    mask: Mask | None
    world: str
    seed: int
    steps: int
    evaluations: int
    output: Path
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    threads: int = 1

    @property
    def label(self) -> str:
        """What it is called in plots and tables."""
        return self.observation + (", in the reduced model" if self.world == "reduced" else "")

    @property
    def name(self) -> str:
        """The same, with its seed."""
        return f"{self.label}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Its own place."""
        return self.output / f"{self.algorithm}-{self.observation}-{self.world}-{self.seed}"

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        described = {k: v for k, v in asdict(self).items() if k not in ("output", "threads")}
        return json.loads(json.dumps(described))  # as a file will say it


class Recorder:
    """Evaluates an agent while it is trained, and keeps its learning curve.

    A run that was stopped is taken up where the curve, and the trainer's checkpoint, end.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._file = run.folder / CURVE
        settings = run.settings()
        self.curve = Curve(run.label, run.seed, settings)
        if self._file.exists():
            self.curve = Curve.load(self._file)
            if self.curve.settings != settings:
                changed = [k for k in settings if self.curve.settings.get(k) != settings[k]]
                raise SystemExit(
                    f"error: {run.folder} is of a run with another {', '.join(changed)}; "
                    "choose another --output, or delete it"
                )
            if self.curve.points and len(self.curve.returns) != run.task.rollouts:
                raise SystemExit(f"error: {self._file} is damaged (returns); delete its folder")
        run.folder.mkdir(parents=True, exist_ok=True)
        remove_parts(run.folder)
        self._start = time.perf_counter() - self._seconds_before()

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return bool(self.curve.points) and self.curve.points[-1].steps >= self.run.steps

    def rewind(self, steps: int) -> None:
        """Forget what came after a checkpoint at ``steps``."""
        self.curve.points = [point for point in self.curve.points if point.steps <= steps]
        self._start = time.perf_counter() - self._seconds_before()

    def due(self, steps: int) -> bool:
        """Whether an evaluation is due: one after each share of the steps, at the first chance."""
        run, points = self.run, self.curve.points
        if steps >= run.steps:
            return not self.finished
        share = run.steps / run.evaluations
        return not points or steps // share > points[-1].steps // share

    def record(self, steps: int, policy: Any) -> Estimate:
        """Evaluate a policy of the full model on the task's trajectories."""
        seconds = time.perf_counter() - self._start
        began = time.perf_counter()
        returns = self.run.task.evaluate(policy)
        self.curve.add(steps, seconds, returns)
        self.curve.save(self._file)
        self._start += time.perf_counter() - began
        estimate = Estimate.of(returns)
        line = f"{seconds:6.0f} s  {self.run.name:38} {steps:>11,}  {estimate}\n"
        print(line, end="", flush=True)  # in one piece: others write, too
        return estimate

    def _seconds_before(self) -> float:
        return self.curve.points[-1].seconds if self.curve.points else 0.0


Trainer = Callable[[Run, Recorder], None]


def execute(trainer: Trainer, run: Run) -> Curve:
    """Train, unless that was done before."""
    import numba
    import torch

    torch.set_num_threads(run.threads)
    numba.set_num_threads(min(run.threads, numba.config.NUMBA_NUM_THREADS))
    recorder = Recorder(run)
    if not recorder.finished:
        trainer(run, recorder)
    return recorder.curve


def execute_all(trainer: Trainer, runs: Sequence[Run], jobs: int) -> list[Curve]:
    """Train all, several at a time; an error of one ends them all."""
    for run in runs:
        Recorder(run)  # whatever is wrong with a folder is found before work begins
    print(f"{'time':>8}  {'agent':38} {'steps':>11}  return", flush=True)
    if jobs == 1 or len(runs) == 1:
        return [execute(trainer, run) for run in runs]
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads leave the cores alone
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(jobs, context, start_worker, (os.getpid(),)) as pool:
        futures = {pool.submit(execute, trainer, run): k for k, run in enumerate(runs)}
        curves: dict[int, Curve] = {}
        try:
            for future in as_completed(futures):
                curves[futures[future]] = future.result()
        except BrokenProcessPool:
            # Workers take the runs in order: these are the ones that were running.
            running = [run.name for k, run in enumerate(runs) if k not in curves][:jobs]
            raise ScriptError(
                f"a worker was killed (out of memory?) while these were trained: "
                f"{'; '.join(running)}. Fewer at a time (--jobs) need less memory."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return [curves[k] for k in range(len(runs))]


def cores() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
