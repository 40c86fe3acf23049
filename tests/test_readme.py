"""What the README shows works when it is pasted."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore:x was recorded")  # and so some things cannot be found out
def test_the_python_blocks_run_one_after_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them saves a file
    namespace = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), namespace)
    assert BLOCKS


def test_the_first_block_needs_nothing_before_it():
    assert len(BLOCKS[0].strip().splitlines()) <= 6
    exec(compile(BLOCKS[0], "README.md", "exec"), {})


def test_the_own_world_is_complete_and_short():
    block = next(block for block in BLOCKS if "(ExoMDP)" in block)
    assert len(block.strip().splitlines()) < 35
    code = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) < 30
    exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_files_that_it_points_to_exist(link):
    if not link.startswith("http"):
        assert (ROOT / link).exists(), link


def test_it_names_every_environment():
    from exo_envs.domains import ENVIRONMENTS

    assert [env_id for env_id in ENVIRONMENTS if env_id not in README] == []


def test_it_names_the_two_commands():
    for command in ("bash scripts/demo.sh", "bash scripts/test.sh"):
        assert command in README
        assert (ROOT / command.split()[1]).exists()
