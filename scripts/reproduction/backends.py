"""Where trials run: the cores of this machine, or a Dask or Ray cluster, all through joblib."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from reproduction.experiments import Batch, run_batch
from reproduction.provenance import versions

BACKENDS = ("loky", "dask", "ray")
#: What a cluster's workers need of scripts/: this package, and what it shares with others.
PACKAGES = (Path(__file__).parent, Path(__file__).parents[1] / "shared")


class BackendError(Exception):
    """A backend that cannot be used."""


@contextlib.contextmanager
def use_backend(name: str, *, jobs: int = -1, address: str | None = None) -> Iterator[None]:
    """Make joblib use a backend.

    Args:
        name: one of :data:`BACKENDS`.
        jobs: how many trials at a time; -1 for as many as there are cores.
        address: of the cluster; without one Dask and Ray start their own on this machine.
    """
    if name == "loky" and address is not None:
        raise BackendError("--address is for a cluster: --backend dask or ray")
    if name == "loky":
        context = parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1)
    else:
        context = {"dask": _dask, "ray": _ray}[name](jobs, address)
    with context:
        yield


@contextlib.contextmanager
def _dask(jobs: int, address: str | None) -> Iterator[None]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise BackendError('--backend dask needs Dask: pip install "dask[distributed]"') from error
    with contextlib.ExitStack() as stack:
        if address is None:
            workers = None if jobs == -1 else jobs
            cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(cluster)
            address = cluster.scheduler_address
        try:
            client = stack.enter_context(Client(address, set_as_default=False))
        except OSError as error:
            raise BackendError(f"there is no Dask scheduler at {address}: {error}") from error
        client.wait_for_workers(1, timeout=60)
        _send_code(client)
        with parallel_config("dask", client=client, n_jobs=jobs):
            yield


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


@contextlib.contextmanager
def _ray(jobs: int, address: str | None) -> Iterator[None]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise BackendError("--backend ray needs Ray: pip install ray") from error
    register_ray()
    packages = [str(package) for package in PACKAGES]
    ray.init(address=address, runtime_env={"py_modules": packages}, log_to_driver=False)
    try:
        with parallel_config("ray", n_jobs=jobs):
            yield
    finally:
        ray.shutdown()


class _Work:
    """A batch that is run where it is unpickled.

    What only passes it on, such as Dask's scheduler, sees bytes and need not have this package.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __reduce__(self) -> tuple[Any, ...]:
        return run_batch, (self._batch,)


def run_all(batches: Sequence[Batch]) -> Iterator[list[dict[str, Any]]]:
    """Run batches where :func:`use_backend` says; their results as soon as they are there."""
    work = [delayed(pickle.loads)(pickle.dumps(_Work(batch))) for batch in batches]
    try:
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
    except ValueError:  # Ray's backend gives no results before all of them are there
        parallel = Parallel(batch_size=1)
        size = parallel._effective_n_jobs()
        for start in range(0, len(work), size):
            yield from parallel(work[start : start + size])
        return
    yield from parallel(work)
