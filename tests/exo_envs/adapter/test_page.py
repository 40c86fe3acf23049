"""The examples of docs/adapting.md run, and are as short as they are said to be."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/adapting.md").read_text(encoding="utf-8"), re.DOTALL
)
OF_OTHERS = ("minigrid", "gym_invmgmt")


def name_of(block):
    names = ("FrozenLake", "Taxi", "Trading", "MiniGrid", "gym_invmgmt")
    return next(name for name in names if name in block)


def statements(block):
    """How many there are, imports aside; the formatter breaks long ones into several lines."""
    imports = (ast.Import, ast.ImportFrom)
    nodes = ast.walk(ast.parse(block))
    return sum(isinstance(node, ast.stmt) and not isinstance(node, imports) for node in nodes)


def test_there_are_five_of_ten_statements_at_most():
    assert len({name_of(block) for block in BLOCKS}) == len(BLOCKS) == 5
    assert max(map(statements, BLOCKS)) <= 10


@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_it_runs(block, monkeypatch, tmp_path):
    for package in OF_OTHERS:
        if f"{package}" in block.splitlines()[0]:
            pytest.importorskip(package)
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    monkeypatch.chdir(tmp_path)
    made = {}
    exec(compile(block, "docs/adapting.md", "exec"), made)
    learner = made.get("learner")
    if learner is not None:
        assert learner.mask_ == ("price", "mood")
        assert learner.objective_.agreement.agrees
