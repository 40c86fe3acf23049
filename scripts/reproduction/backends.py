"""Where trials run: the cores of this machine, or a Dask or Ray cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import re
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from reproduction.experiments import Batch, run_batch
from reproduction.provenance import versions
from shared.script import ScriptError
from shared.workers import start_worker

BACKENDS = ("loky", "dask", "ray")
#: What a cluster's workers need of scripts/: this package, and what it shares with others.
PACKAGES = (Path(__file__).parent, Path(__file__).parents[1] / "shared")
#: How often a trial may be running when a worker is killed, before all is stopped.
DEATHS = 2
#: Where a Dask scheduler can be.
ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://[^\s/]+:\d{1,5}")

Records = list[dict[str, Any]]


class BackendError(Exception):
    """A backend that cannot be used."""


@dataclass(frozen=True)
class Workers:
    """Where trials run.

    Attributes:
        number: of trials that run at a time.
        run: runs batches; gives their results as soon as they are there, in any order. Is told
            where to report that a worker was lost.
    """

    number: int
    run: Callable[[Sequence[Batch], Callable[[str], object]], Iterator[Records]]


@contextlib.contextmanager
def use_backend(name: str, *, jobs: int = -1, address: str | None = None) -> Iterator[Workers]:
    """Start a backend, or connect to it.

    Args:
        name: one of :data:`BACKENDS`.
        jobs: how many trials at a time; -1 for as many as there are cores.
        address: of the cluster; without one Dask and Ray start their own on this machine.
    """
    if name == "loky" and address is not None:
        raise BackendError("--address is for a cluster: --backend dask or ray")
    with {"loky": _processes, "dask": _dask, "ray": _ray}[name](jobs, address) as workers:
        yield workers


class _Work:
    """A batch that is run where it is unpickled.

    What only passes it on, such as Dask's scheduler, sees bytes and need not have this package.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __reduce__(self) -> tuple[Any, ...]:
        return run_batch, (self._batch,)


def packed(batch: Batch) -> bytes:
    """A batch for whoever runs it, which is by unpickling."""
    return pickle.dumps(_Work(batch))


# --- processes of this machine ------------------------------------------------------------


@contextlib.contextmanager
def _processes(jobs: int, _: str | None) -> Iterator[Workers]:
    starts = {"initializer": start_worker, "initargs": (os.getpid(),)}
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1, **starts):
        yield Workers(effective_n_jobs(n_jobs=None), _run_in_processes)


def _run_in_processes(batches: Sequence[Batch], tell: Callable[[str], object]) -> Iterator[Records]:
    """Run batches; those whose worker is killed, once more in new ones."""
    left = {str(batch[0].key): batch for batch in batches}
    deaths: Counter[str] = Counter()
    while left:
        try:
            for records in _run_in_parallel(list(left.values())):
                del left[str(records[0]["key"])]
                yield records
        except BrokenProcessPool:  # noqa: PERF203 (rare)
            # Workers take the batches in order: these are the ones that were running.
            running = list(islice(left, effective_n_jobs(n_jobs=None)))
            names = "; ".join(left[key][0].name for key in running)
            deaths.update(running)
            lost = f"a worker was killed (out of memory?) while these trials ran: {names}."
            if max(deaths.values()) == DEATHS:
                raise ScriptError(f"{lost} Fewer workers (--jobs) need less memory.") from None
            tell(f"{lost} They are run once more")


def _run_in_parallel(batches: Sequence[Batch]) -> Iterator[Records]:
    work = [delayed(pickle.loads)(packed(batch)) for batch in batches]
    outputs = Parallel(return_as="generator_unordered", batch_size=1)(work)
    try:
        for records in outputs:  # noqa: UP028 ("yield from" would close them before we do)
            yield records
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about trials that are not waited for
            outputs.close()


# --- Dask ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _dask(jobs: int, address: str | None) -> Iterator[Workers]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise BackendError('--backend dask needs Dask: pip install "dask[distributed]"') from error
    if address is not None and not ADDRESS.fullmatch(address):
        raise BackendError(f"--address is one as tcp://host:8786, not {address!r}")
    with contextlib.ExitStack() as stack:
        if address is None:
            cluster = LocalCluster(
                n_workers=None if jobs == -1 else jobs,
                threads_per_worker=1,
                dashboard_address=":0",  # any port: several clusters may run side by side
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
            address = cluster.scheduler_address
        try:
            client = stack.enter_context(Client(address, set_as_default=False))
        except (OSError, ValueError, TypeError) as error:
            raise BackendError(f"there is no Dask scheduler at {address}: {error}") from error
        try:
            client.wait_for_workers(1, timeout=60)
        except TimeoutError as error:
            raise BackendError(f"the Dask cluster at {address} has no workers") from error
        _send_code(client)
        number = sum(client.ncores().values())
        yield Workers(number, lambda batches, _: _run_in_cluster(client, batches))


def _run_in_cluster(client: Any, batches: Sequence[Batch]) -> Iterator[Records]:
    """Run batches; Dask runs those whose worker is lost again, some times."""
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    futures = {
        client.submit(pickle.loads, packed(batch), pure=False, priority=-k): batch
        for k, batch in enumerate(batches)
    }
    try:
        for future in as_completed(futures, loop=client.loop):
            try:
                records = future.result()
            except KilledWorker as error:
                raise ScriptError(
                    f"workers were killed (out of memory?) while this trial ran: "
                    f"{futures[future][0].name}."
                ) from error
            except CancelledError as error:
                raise ScriptError("the connection to the Dask cluster is lost.") from error
            yield records
    finally:
        client.cancel(list(futures))


def _send_code(client: Any) -> None:
    """Give the workers our packages; those of the suite must be installed there already."""
    from distributed.diagnostics.plugin import UploadFile

    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "reproduction.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for package in PACKAGES:
                for path in sorted(package.rglob("*.py")):
                    file.write(path, path.relative_to(package.parent))
        client.register_plugin(UploadFile(str(archive)))  # for those that come later, too
    mine = versions()
    for worker, theirs in worker_versions(client).items():
        differences = [
            f"{name} {theirs[name]} (here {mine[name]})"
            for name in mine
            if theirs[name] != mine[name]
        ]
        if differences:
            raise BackendError(f"the worker {worker} runs other code: {', '.join(differences)}")


def worker_versions(client: Any) -> dict[str, dict[str, str]]:
    """What each worker runs, by its address."""
    found: dict[str, dict[str, str]] = client.run(versions)
    return found


# --- Ray ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _ray(jobs: int, address: str | None) -> Iterator[Workers]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise BackendError("--backend ray needs Ray: pip install ray") from error
    register_ray()
    packages = [str(package) for package in PACKAGES]
    try:
        ray.init(address=address, runtime_env={"py_modules": packages}, log_to_driver=False)
    except (ConnectionError, ValueError) as error:
        raise BackendError(f"there is no Ray cluster at {address}: {error}") from error
    try:
        with parallel_config("ray", n_jobs=jobs):
            number = effective_n_jobs(n_jobs=None)
            yield Workers(number, lambda batches, _: _run_in_turns(batches, number))
    finally:
        ray.shutdown()


def _run_in_turns(batches: Sequence[Batch], number: int) -> Iterator[Records]:
    """As many at a time as there are workers: Ray gives no results before all are there."""
    for start in range(0, len(batches), number):
        work = [delayed(pickle.loads)(packed(batch)) for batch in batches[start : start + number]]
        yield from Parallel(batch_size=1)(work)
