"""The packages as packages: version, public names, and what importing them does and does not do."""

import importlib
import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]

PACKAGES = ("exo_envs", "planners", "wrappers")


def run_python(code):
    """Run code in a fresh interpreter that treats every warning as an error."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_statement_of_the_version_agrees():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert importlib.import_module("exo_envs").__version__ == project["version"]
    assert version("exo-envs") == project["version"], "run scripts/setup.sh again"
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == project["version"]
    assert re.search(r"^## \[(\d.*?)\]", changelog, re.MULTILINE)[1] == project["version"]


def test_the_command_is_where_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["scripts"]["exo-mask"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_exist_and_the_package_is_typed(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(module, name)] == []
    assert (ROOT / package / "py.typed").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_exported_is_documented(package):
    module = importlib.import_module(package)
    bare = []
    for name in getattr(module, "__all__", []):
        thing = getattr(module, name)
        if not callable(thing):
            continue
        members = {name: thing}
        if isinstance(thing, type):
            members |= {
                f"{name}.{key}": value for key, value in vars(thing).items() if key[0] != "_"
            }
        bare += [
            key
            for key, value in members.items()
            if (callable(value) or isinstance(value, property)) and not inspect.getdoc(value)
        ]
    assert bare == []


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_is_light(package):
    """What only some users need is imported on first use; nothing is printed."""
    heavy = {"matplotlib", "moviepy", "pybullet", "pygame", "quantecon", "sklearn", "torch"}
    output = run_python(f"import sys, {package}; assert not {heavy} & sys.modules.keys()")
    assert output == ""


def test_pybullet_does_not_tell_when_it_was_built():
    pytest.importorskip("pybullet")
    code = (
        "import os; from exo_envs.rendering.scene import has_bullet; "
        "assert has_bullet(); os.write(2, b'!')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"!")


def test_importing_again_registers_nothing_again():
    run_python(
        """
import importlib
import gymnasium as gym
import exo_envs

before = {name: id(spec) for name, spec in gym.registry.items()}
assert any(name.startswith("Exo") for name in before)
importlib.reload(exo_envs)
gym.make("exo_envs:ExoGrid-v0").close()
assert before == {name: id(spec) for name, spec in gym.registry.items()}
"""
    )


OWN = "LearnedMask = 'of the user'\n"


def in_a_folder_of_own_names(folder, *arguments):
    """Python in a folder where somebody's own modules have the names of our packages."""
    for name in ("planners", "wrappers"):
        (folder / f"{name}.py").write_text(OWN, encoding="utf-8")
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_the_command_runs_where_somebody_has_a_wrappers_py(tmp_path):
    assert "usage: exo-mask" in in_a_folder_of_own_names(tmp_path, "-m", "exo_envs", "--help")


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_our_packages_are_found_where_somebody_has_their_names(tmp_path, first):
    ours = """
from exo_envs.wrappers import GreedyMaskLearner, LearnedMask
import exo_envs, gymnasium as gym
assert exo_envs.planners.ValueIteration().plan and exo_envs.wrappers.LearnedMask is LearnedMask
learner = GreedyMaskLearner(n_rollouts=10, n_data_rollouts=20)
env = LearnedMask(gym.make("ExoGrid-v0"), learner=learner, rng=0)
env.learner.explain()
print(env.policy(env.reset(seed=0)[0]))
"""
    theirs = "import wrappers\nassert wrappers.LearnedMask == 'of the user'\n"
    code = ours if first == "ours" else f"{theirs}{ours}{theirs}"
    assert in_a_folder_of_own_names(tmp_path, "-W", "ignore", "-c", code).strip().isdigit()


def test_our_packages_have_two_names_and_are_one():
    run_python("import exo_envs, planners; assert exo_envs.planners is planners")
    run_python("import exo_envs.wrappers, wrappers; assert exo_envs.wrappers is wrappers")
