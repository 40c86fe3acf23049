"""The paper's experiments on a Dask cluster: the same bytes as on this machine's cores."""

import os
import pickle
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from reproduction import backends, provenance
from reproduction.backends import BackendError, use_backend
from reproduction.results import read_results, without_times
from reproduction.runner import run
from reproduction.settings import Settings
from shared.script import ScriptError

distributed = pytest.importorskip("distributed")
SubprocessCluster = pytest.importorskip("distributed.deploy.subprocess").SubprocessCluster

TINY = Settings(
    trials=2, n_rollouts=20, n_data_rollouts=60, n1=50, greedy_trials=2, small_cost_weights=(1.0,)
)


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    run(TINY, ["small"], folder, jobs=1, hidden=True)
    return without_times(read_results(folder))


def test_a_cluster_finds_the_same(address, reference, tmp_path):
    run(TINY, ["small"], tmp_path, backend="dask", address=address, hidden=True)
    assert reference.count(b"\n") == 8
    assert without_times(read_results(tmp_path)) == reference


def test_a_cluster_elsewhere_finds_the_same(reference, tmp_path):
    """Its scheduler and worker are processes that do not know of these scripts."""
    with SubprocessCluster(n_workers=1, worker_kwargs={"nthreads": 1}) as cluster:
        address = cluster.scheduler_address
        run(TINY, ["small"], tmp_path, backend="dask", address=address, hidden=True)
    assert without_times(read_results(tmp_path)) == reference


def test_workers_with_other_code_are_refused(address, monkeypatch):
    theirs = provenance.versions()
    monkeypatch.setattr(backends, "versions", lambda: theirs | {"numpy": "0"})
    monkeypatch.setattr(backends, "worker_versions", lambda client: {"worker": theirs})
    with (
        pytest.raises(BackendError, match=r"worker runs other code: numpy .* \(here 0\)"),
        use_backend("dask", address=address),
    ):
        pass


def test_workers_get_the_code_of_the_experiments(address):
    with use_backend("dask", address=address), distributed.Client(address) as client:
        files = client.run(lambda: sys.modules["reproduction.experiments"].__file__)
        assert len(files) == 2
        assert all(".zip" in file for file in files.values())


class Bomb:
    """Ends the worker that unpickles it."""

    def __reduce__(self):
        return os._exit, (9,)


def test_a_trial_that_kills_every_worker_is_named(tmp_path, monkeypatch):
    """Dask runs it again in new workers, as often as it is told to."""
    import dask

    monkeypatch.setattr(backends, "packed", lambda batch: pickle.dumps(Bomb()))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        pytest.raises(ScriptError, match=r"workers were killed .* trial ran: ExoGrid-v0, "),
    ):
        run(TINY, ["small"], tmp_path, backend="dask", jobs=1, hidden=True)


@pytest.mark.parametrize("address", ["garbage", "", "http://x:1", "tcp://127.0.0.1", "tcp://a b:1"])
def test_an_address_that_is_none_is_refused_at_once(address):
    with pytest.raises(BackendError, match="--address is one as tcp://host:8786, not"):
        use_backend("dask", address=address).__enter__()


def test_no_scheduler_is_a_clear_error():
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(BackendError, match="no Dask scheduler at tcp://127"),
        use_backend("dask", address="tcp://127.0.0.1:9"),
    ):
        pass
