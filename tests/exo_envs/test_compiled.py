"""Compiled functions where nothing can be written: containers, full disks."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba import int64, types
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from exo_envs.compiled import functions as compiled


def twice(x):
    return 2 * x


def pick(values, k):
    return values[k]


def thrice(x):
    return 3 * x


@pytest.fixture(autouse=True)
def fresh():
    """The warning comes once in a process, so once in each of these tests."""
    compiled._warn_of_no_cache.cache_clear()
    yield
    compiled._warn_of_no_cache.cache_clear()


def test_functions_are_kept_as_numba_does(monkeypatch):
    saved = []
    monkeypatch.setattr(FunctionCache, "save_overload", lambda cache, *what: saved.append(what))
    monkeypatch.setattr(FunctionCache, "load_overload", lambda *_: None)
    assert compiled.njit(cache=True)(twice)(2) == 4
    assert len(saved) == 1
    assert compiled.njit()(twice)(2) == 4
    assert len(saved) == 1
    function = compiled.njit(int64(int64), cache=True)(twice)
    assert function(2) == 4
    assert len(saved) == 2
    with pytest.raises(TypeError, match="No matching definition"):
        function(2j)
    assert len(saved) == 2


def test_of_several_signatures_those_that_are_asked_for_are_compiled():
    written = types.Array(int64, 1, "C")
    read = types.Array(int64, 1, "C", readonly=True)
    function = compiled.njit([int64(written, int64), int64(read, int64)])(pick)
    assert function.signatures == []
    values = np.arange(3)
    assert function(values, 1) == 1
    assert function.signatures == [(written, int64)]
    fixed = values.copy()
    fixed.flags.writeable = False
    assert function(fixed, 2) == 2
    assert function.signatures == [(written, int64), (read, int64)]
    # An argument that has to be converted, and arguments that cannot be.
    other = compiled.njit([int64(written, int64), int64(read, int64)])(pick)
    assert other(values, np.int8(2)) == 2
    for wrong in ([0, 1], values.astype(float), values[::2], None):
        with pytest.raises(TypeError):
            other(wrong, 0)
    assert len(other.signatures) == 2


def test_threads_may_ask_for_a_function_of_fixed_signatures_at_the_same_time():
    written = types.Array(int64, 1, "C")
    function = compiled.njit([int64(written, int64)])(pick)
    values, barrier = np.arange(3), threading.Barrier(4)

    def ask(k):  # every other one with a type that is converted, so that all are compiled
        barrier.wait()
        return function(values, np.int8(k) if k % 2 else k)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, (0, 1, 2, 1))) == [0, 1, 2, 1]


def test_without_a_folder_for_them_functions_work_with_one_warning(monkeypatch):
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as warned:
        functions = [compiled.njit(cache=True)(function) for function in (twice, thrice)]
    assert len(warned) == 1
    assert [function(2) for function in functions] == [4, 6]


def test_a_full_disk_does_not_end_a_call(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    monkeypatch.setattr(FunctionCache, "load_overload", lambda *_: None)
    function = compiled.njit(cache=True, boundscheck=True)(twice)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        assert function(2) == 4
    assert function(3) == 6


def test_garbage_is_collected_after_a_function_is_compiled():
    """While it is compiled nothing is collected, whether or not that succeeds."""
    collects = []

    class Watch(event.Listener):
        def on_start(self, _):
            collects.append(gc.isenabled())

        def on_end(self, _):
            collects.append(gc.isenabled())

    inner = compiled.njit(**compiled.INNER)(twice)

    def calls(x):
        return inner(x)

    def fails(x):
        return x.nothing

    with event.install_listener("numba:compile", Watch()):
        assert compiled.njit()(calls)(2) == 4
        assert gc.isenabled()
        assert len(collects) == 4  # both begin before either ends
        assert not any(collects[:3])
        with pytest.raises(numba.TypingError):
            compiled.njit()(fails)(2)
        assert gc.isenabled()
        gc.disable()
        try:
            assert compiled.njit()(thrice)(2) == 6
            assert not gc.isenabled()  # whoever has turned it off turns it on
        finally:
            gc.enable()
        del collects[:]
        assert numba.njit(lambda x: x + 1)(2) == 3
        assert collects == [True, True]  # functions of other projects are left alone
