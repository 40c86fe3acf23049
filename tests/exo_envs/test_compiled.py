"""Compiled functions where nothing can be written: containers, full disks."""

import gc

import numba
import pytest
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


def test_without_a_folder_for_them_functions_work_with_one_warning(monkeypatch):
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR") as warned:
        functions = [compiled.njit(cache=True)(function) for function in (twice, thrice)]
    assert len(warned) == 1
    assert [function(2) for function in functions] == [4, 6]


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
