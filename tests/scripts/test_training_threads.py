"""Threads for parts of a batch, the precision of products, and memory that is kept."""

import ctypes
import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from training import threads
from training.threads import keep_memory, products_are_exact, side_by_side

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_torch_is_left_as_it_was():
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(2)
    try:
        with side_by_side(2) as in_parts:
            assert torch.get_num_threads() == 1
            assert {*in_parts(lambda _: torch.get_num_threads(), "ab")} == {1}
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError), side_by_side(2) as in_parts:
            list(in_parts(lambda number: 1 // number, [1, 0]))
        assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (2, before[1])
    finally:
        torch.set_num_threads(before[0])


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("parts", [0, 1, 2, 5])
def test_a_map_in_threads_is_a_map(number, parts):
    with side_by_side(number) as in_parts:
        given = range(parts), "abcde"
        assert [*in_parts(lambda k, word: (k, word), *given)] == [*zip(*given, strict=False)]


def test_two_threads_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=60)
    with side_by_side(2) as in_parts:
        assert {*in_parts(lambda _: meeting.wait(), "ab")} == {0, 1}


# --- the precision of products ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "exact"),
    [
        ({"architecture": "x86_64", "amx_bf16": False}, True),
        ({"architecture": "x86_64", "amx_bf16": True}, False),
        ({"architecture": "x86_64"}, False),  # nobody knows
        ({"architecture": "aarch64", "amx_bf16": False}, False),
        ({}, False),
    ],
)
def test_products_are_rounded_on_processors_with_matrix_units_only(found, exact, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    assert products_are_exact() is exact
    before = torch.get_float32_matmul_precision()
    with side_by_side(1):
        assert torch.get_float32_matmul_precision() == ("medium" if exact else before)
    assert torch.get_float32_matmul_precision() == before


def test_a_torch_that_does_not_know_its_processor_keeps_its_precision(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not products_are_exact()


def test_products_are_those_of_float32_on_this_machine():
    """With numbers of 24 bits: bfloat16, which has 8, would be wrong in the third digit."""
    torch.manual_seed(0)
    a, b = torch.rand(512, 256), torch.rand(256, 128)
    with side_by_side(1):
        found = a @ b
    torch.testing.assert_close(found.double(), a.double() @ b.double(), rtol=1e-5, atol=0)


# --- memory that is kept ----------------------------------------------------------------------


class Library:
    """A C library, and what was asked of it."""

    def __init__(self):
        self.asked = {}

    def mallopt(self, option, value):
        self.asked[option] = value


def test_freed_memory_is_kept(monkeypatch):
    library = Library()
    monkeypatch.setattr(threads.ctypes, "CDLL", lambda _: library)
    keep_memory()
    assert library.asked == {-1: 2**28, -3: 2**25}


@pytest.mark.parametrize("error", [OSError, TypeError])
def test_without_a_c_library_nothing_happens(error, monkeypatch):
    def load(_):
        raise error

    monkeypatch.setattr(threads.ctypes, "CDLL", load)
    keep_memory()


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(threads.ctypes, "CDLL", lambda _: object())
    keep_memory()


FAULTS = """
import ctypes, resource, sys
sys.path[0] = sys.argv[1]
from training.threads import keep_memory
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
size = 2**20

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        blocks = [library.malloc(size) for _ in range(16)]
        for block in blocks:
            ctypes.memset(block, 1, size)
        for block in blocks:
            library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_memory()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only GNU's C library has mallopt")
def test_kept_memory_is_not_asked_for_again():
    assert hasattr(ctypes.CDLL(None), "mallopt")
    command = [sys.executable, "-c", FAULTS, str(SCRIPTS)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    before, after = map(int, ended.stdout.split())
    assert before > 1000  # pages
    assert after < before / 20
