"""Runs the trials that are not finished yet, and keeps what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from reproduction.backends import Workers, use_backend
from reproduction.experiments import TrialSpec, batches_of, plan_trials
from reproduction.progress import ProgressBar
from reproduction.results import ResultsFolder
from reproduction.settings import Settings


def run(
    settings: Settings,
    experiments: Sequence[str],
    folder: Path,
    *,
    backend: str = "loky",
    jobs: int = -1,
    address: str | None = None,
    hidden: bool = False,
    tell: Callable[[str], object] = print,
    command: str | None = None,
) -> None:
    """Run all trials of some experiments that the folder does not have yet.

    Args:
        settings: what to run.
        experiments: of "small", "large" and "goals".
        folder: where results are, and go.
        backend: "loky", "dask" or "ray".
        jobs: trials at a time; -1 for all cores.
        address: of a cluster.
        hidden: show no progress bar.
        tell: is told what a user should know.
        command: what the user typed for this; the folder keeps it.
    """
    with ResultsFolder(folder, settings, command) as results:
        for note in results.notes:
            tell(note)
        specs = plan_trials(settings, experiments)
        missing = [spec for spec in specs if not results.has(spec.key)]
        done = len(specs) - len(missing)
        if done:
            tell(f"{done} of {len(specs)} trials were finished before; {len(missing)} are left")
        if missing:
            with use_backend(backend, jobs=jobs, address=address) as workers:
                _run_missing(missing, results, workers, done, hidden)
        results.sort()


def _run_missing(
    specs: Sequence[TrialSpec], results: ResultsFolder, workers: Workers, done: int, hidden: bool
) -> None:
    batches = batches_of(specs)
    by_key = {str(batch[0].key): batch for batch in batches}
    with (
        ProgressBar(batches, done=done, workers=workers.number, hidden=hidden) as bar,
        closing(workers.run(batches, bar.write)) as finished,
    ):
        for records in finished:
            results.append(records)
            bar.update(by_key[str(records[0]["key"])], records)
