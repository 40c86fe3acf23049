"""Nothing grows while the same things are done again and again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reliability.soak import NOISE, Held, Soaked

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
#: In a process of its own: what other tests left behind is none of its business.
SOAK = f"""
import json, sys
sys.path.insert(0, {str(SCRIPTS)!r})
from reliability.soak import soak
soaked = soak(rounds=30)
print(json.dumps([soaked.rounds, *soaked.growth]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_descriptors_and_threads_do_not_grow():
    """30 rounds after 5: a leak of 1 MB in a round would be 30 MB; 12 MB are allowed."""
    done = subprocess.run([sys.executable, "-c", SOAK], capture_output=True, text=True, check=True)
    rounds, resident, descriptors, threads = json.loads(done.stdout.splitlines()[-1])
    assert rounds == 30
    assert descriptors <= 0
    assert threads <= 0
    assert resident < 3 * NOISE


def test_growth_is_noticed():
    before = Held(10 * NOISE, 5, 2)
    assert Soaked(9, before, before).problem() is None
    assert Soaked(9, before, before._replace(resident=11 * NOISE)).problem() is None
    assert "MB more" in Soaked(9, before, before._replace(resident=12 * NOISE)).problem()
    assert "1 more descriptors" in Soaked(9, before, before._replace(descriptors=6)).problem()
    assert "1 more threads" in Soaked(9, before, before._replace(threads=3)).problem()


def test_what_is_held_is_read_off():
    held = Held.now()
    assert held.threads >= 1
    if sys.platform.startswith("linux"):
        with Path(__file__).open("rb"):
            assert Held.now().descriptors == held.descriptors + 1
        assert held.resident > 10**7
