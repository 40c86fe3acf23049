"""The lowest versions that are tested with are those that pyproject.toml names."""

import re

import pytest

from shared.floors import constraints, floors, needs, read_project

PROJECT = read_project()
#: Pinned on purpose, or only there to build.
WITHOUT_FLOORS = "dev"


def test_every_dependency_and_every_extra_has_floors():
    extras = [name for name in PROJECT["optional-dependencies"] if name != WITHOUT_FLOORS]
    found = floors(PROJECT, extras)
    named = {key.partition(";")[0] for key in found}
    asked = [*PROJECT["dependencies"], *(one for name in extras for one in needs(PROJECT, name))]
    assert named == {re.match(r"[\w.-]+", one)[0].lower() for one in asked}
    assert {"numpy", "scipy", "torch", "dask", "pyrddlgym", "polars", "pandas"} <= named


def test_markers_are_kept_and_ceilings_are_not():
    pinned = constraints(PROJECT, ["rl", "cluster"])
    assert "torch==2.12.1" in pinned
    assert "dask==2024.8" in pinned
    assert any(re.fullmatch(r"pillow==[\d.]+; python_version >= '3\.11'", one) for one in pinned)


def test_the_highest_of_several_floors_counts():
    project = {
        "name": "ours",
        "dependencies": ["a>=1.9", "b>=2"],
        "optional-dependencies": {"more": ["a>=1.10", "ours[less]"], "less": ["b>=1"]},
    }
    assert constraints(project, []) == ["a==1.9", "b==2"]
    assert constraints(project, ["more", "less"]) == ["a==1.10", "b==2"]


def test_a_requirement_without_a_floor_is_refused():
    project = {"name": "ours", "dependencies": ["a"], "optional-dependencies": {}}
    with pytest.raises(ValueError, match="'a' has no floor"):
        floors(project, [])
