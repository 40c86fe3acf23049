"""The door for contributors: what CONTRIBUTING.md, the workflow and the commit hooks say is so."""

import re
import sys
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


GUIDE = read("CONTRIBUTING.md")
PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
WORKFLOW = yaml.safe_load(read(".github/workflows/tests.yml"))
HOOKS = yaml.safe_load(read(".pre-commit-config.yaml"))


def bash_commands(text):
    """The commands of the first bash block, without comments."""
    block = re.search(r"```bash\n(.*?)```", text, flags=re.DOTALL)[1]
    return [command for line in block.splitlines() if (command := line.partition("#")[0].strip())]


def test_the_workflow_runs_the_two_commands_of_the_readme():
    (job,) = WORKFLOW["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == bash_commands(read("README.md").partition("## Two commands")[2])
    assert len(commands) == 2


def test_the_workflow_runs_on_every_python_that_is_supported():
    (job,) = WORKFLOW["jobs"].values()
    versions = job["strategy"]["matrix"]["python"]
    classifiers = [
        match[1]
        for classifier in PROJECT["classifiers"]
        if (match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier))
    ]
    assert versions == classifiers
    assert PROJECT["requires-python"] == f">={versions[0]}"
    (setup,) = (step for step in job["steps"] if "setup-python" in step.get("uses", ""))
    assert setup["with"]["python-version"] == "${{ matrix.python }}"
    assert job["env"]["PYTHON"] == "python${{ matrix.python }}"
    assert "${PYTHON:-}" in read("scripts/setup.sh")


def test_the_workflow_starts_with_every_change():
    assert set(WORKFLOW[True]) == {"push", "pull_request"}  # YAML reads "on" as True


def test_the_hooks_are_the_linters_of_the_tests_at_the_same_versions():
    """They are run from .venv, where pyproject.toml's versions are: nothing else can be pinned."""
    assert [repository["repo"] for repository in HOOKS["repos"]] == ["local"]
    entries = [hook["entry"] for hook in HOOKS["repos"][0]["hooks"]]
    linters = re.findall(r'(?m)^ *"\$python" -m ((?:ruff|mypy).*)$', read("scripts/test.sh"))
    # What the tests only check is mended before a commit.
    expected = [f".venv/bin/python -m {linter.removesuffix(' --check')}" for linter in linters]
    assert entries == expected
    for entry in entries:
        tool = entry.split()[2]
        pins = [one for one in PROJECT["optional-dependencies"]["dev"] if one.startswith(tool)]
        assert [re.fullmatch(rf"{tool}~=\d+\.\d+\.\d+", pin) is not None for pin in pins] == [True]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"[\w/.]*/[\w/.]+\.(?:py|sh|md)\b", GUIDE))))
def test_files_that_the_guide_names_exist(name):
    assert (ROOT / name).exists()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", GUIDE))
def test_files_that_the_guide_points_to_exist(link):
    assert link.startswith("http") or (ROOT / link).exists()
