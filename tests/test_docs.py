"""What the pages say is so: files, names, links, examples, and the drawn picture."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import gymnasium as gym
import pytest

import exo_envs  # noqa: F401 - its ids stay registered, whichever example comes first

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("exo_envs", "planners", "wrappers")
PAGES = [
    str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/*.md")))
]
MAP = "docs/architecture.md"
EXTENDING = "docs/extending.md"
#: The paper's, by its own names.
PROCEDURES = (
    *("Estimate-Objective", "Mask-Learning-Brute-Force", "Mask-Learning-Greedy"),
    *("Mask-Learning-Correlational", "Estimate-Reward-Variables"),
)
#: What is set in ``__init__``, or is a field.
ATTRIBUTES = {"Plan.values", "MaskEvaluator.trials", "LearnedMask.learner"}
#: What Python, Gymnasium and Stable-Baselines3 define.
OF_OTHERS = {"False", "FlattenObservation", "SyncVectorEnv", "RecordVideo", "DummyVecEnv"}
each_page = pytest.mark.parametrize("page", PAGES)


@cache
def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def quoted(page):
    """What stands between backticks outside of blocks of code."""
    prose = re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


def anchors(page):
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", read(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def defined_in(path):
    """The names that a file defines at its top, and "Class.method" for what is in classes."""
    names = set()
    for node in ast.parse(read(path)).body:
        if isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names.update(
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef)
            )
    return names


def test_there_are_pages_to_look_at():
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", MAP} <= set(PAGES)


@each_page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if link.startswith("http"):
            continue
        target, _, anchor = link.partition("#")
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), link
        if anchor:
            assert anchor in anchors(str(path.resolve().relative_to(ROOT))), link


@each_page
def test_files_that_are_named_exist(page):
    folders = "|".join((*PACKAGES, "scripts", "tests", "docs"))
    for name in re.findall(rf"\b(?:{folders})/[\w/.]*\w", read(page)):
        assert (ROOT / name).exists(), name


@each_page
def test_dotted_names_can_be_imported(page):
    pattern = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
    for text in quoted(page):
        for name in pattern.findall(text):
            found = importlib.import_module(name.partition(".")[0])
            for part in name.split(".")[1:]:
                if not hasattr(found, part):
                    importlib.import_module(f"{found.__name__}.{part}")
                found = getattr(found, part)


def test_the_map_names_the_files_where_things_are_defined():
    """The map writes "`file`: `name`, `name`"."""
    entry = re.compile(r"`([\w/]+\.py)`: (`[\w.]+`(?:, `[\w.]+`)*)")
    entries = entry.findall(read(MAP))
    assert entries
    wrong = [
        f"{path}: {name}"
        for path, names in entries
        for name in re.findall(r"[\w.]+", names)
        if name not in defined_in(path)
    ]
    assert wrong == []


@cache
def defined_anywhere():
    files = [path for folder in (*PACKAGES, "scripts") for path in (ROOT / folder).rglob("*.py")]
    return set().union(*(defined_in(str(path.relative_to(ROOT))) for path in files))


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_classes_that_are_mentioned_exist(page):
    """With their methods, and without their arguments; the changelog also names what is gone."""
    name = re.compile(r"((?:[A-Z]\w*[a-z]\w*|UCT)(?:\.[a-z]\w*)?)(?:\(.*)?")
    wanted = {match[1] for text in quoted(page) if (match := name.fullmatch(text))}
    assert sorted(wanted - defined_anywhere() - ATTRIBUTES - OF_OTHERS) == []


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_the_map_says_where_each_procedure_is_and_that_file_says_so_too(procedure):
    row = next(line for line in read(MAP).splitlines() if line.startswith(f"| *{procedure}*"))
    path, name = re.search(r"`([\w/]+\.py)`: `(\w+)`", row).groups()
    definition = next(
        node for node in ast.parse(read(path)).body if getattr(node, "name", "") == name
    )
    assert procedure in ast.get_docstring(definition)


BLOCKS = re.findall(r"```python\n(.*?)```", read(EXTENDING), flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=("domain", "planner", "learner"))
def test_the_examples_of_extending_are_complete(block):
    registered = set(gym.registry)
    namespace = {}
    try:
        exec(compile(block, EXTENDING, "exec"), namespace)
    finally:
        for env_id in set(gym.registry) - registered:
            del gym.registry[env_id]
    if "planned" in namespace:
        assert namespace["planned"].mean_return > namespace["myopic"].mean_return
    if "learner" in namespace:
        (said,) = re.findall(r"env\.mask  # (.*)", block)
        assert str(namespace["env"].mask) == said


def test_the_picture_of_the_map_is_the_one_that_is_drawn():
    from pictures import architecture

    assert read("docs/pictures/architecture.svg") == architecture()
    assert "pictures/architecture.svg" in read(MAP)
