"""The rules of the house, read off the source: who may import what, and how large things may be."""

import ast
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("exo_envs", "planners", "wrappers", "scripts", "tests")

#: Each package and those of the suite that it may import: wrappers -> planners -> exo_envs.
LAYERS = {
    "exo_envs": {"exo_envs"},
    "planners": {"exo_envs", "planners"},
    "wrappers": {"exo_envs", "planners", "wrappers"},
}
MOST_LINES = 600
#: Files of a folder, at most.
MOST_FILES = 12
#: Positional arguments of a function, at most, of a compiled one as well.
MOST_ARGUMENTS = 12
#: Says nothing; ``__init__`` needs no docstring. (In two parts, or this file would break the rule.)
EMPTY_WORDS = "See the " + "class."


def files(*folders):
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found
    return found


@cache
def source(path):
    return path.read_text(encoding="utf-8")


@cache
def tree(path):
    return ast.parse(source(path), filename=str(path))


def name_of(path):
    """The module that a file of a package is."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path) for path in files(*LAYERS)}


def imports(path):
    """The line, module and name of every import, at any depth; a module that is one has no name."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = whole in MODULES
                yield node.lineno, *((whole, None) if is_module else (node.module, alias.name))


def check(offences):
    """Fail with all of them, one line each."""
    listed = [f"{path.relative_to(ROOT)}: {what}" for path, what in offences]
    assert not listed, f"{len(listed)} offences:\n" + "\n".join(listed)


@pytest.mark.parametrize("package", LAYERS)
def test_imports_point_one_way(package):
    forbidden = LAYERS.keys() - LAYERS[package] | {"tests", "scripts"}
    check(
        (path, f"line {line} imports {module}")
        for path in files(package)
        for line, module, _ in imports(path)
        if module.partition(".")[0] in forbidden
    )


def test_rooms_import_from_modules_and_only_the_outside_from_the_packages():
    """Inside the three packages a name is imported from the module that defines it."""
    check(
        (path, f"line {line} imports {name} from {module}")
        for path in files(*LAYERS)
        for line, module, name in imports(path)
        if module in LAYERS and name not in {None, "__version__"}
        if path.parent.name != module or path.name != "__init__.py"
    )


def test_functions_are_compiled_in_a_way_that_needs_no_writable_folder():
    check(
        (path, f"line {line} imports numba's njit; take that of exo_envs.compiled.functions")
        for path in files(*LAYERS)
        for line, module, name in imports(path)
        if (module, name) == ("numba", "njit")
    )


def test_no_private_name_crosses_a_file():
    check(
        (path, f"line {line} imports {module}{'' if name is None else '.' + name}")
        for path in files(*FOLDERS)
        for line, module, name in imports(path)
        if any(is_private(part) for part in (name or module).split("."))
    )


def test_no_private_attribute_of_another_file_is_read():
    """A private attribute is one of ``self``, or is made in the same file."""
    check(
        (path, f"line {node.lineno} reads {ast.unparse(node)}")
        for path in files(*LAYERS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and node.attr not in {"_asdict", "_fields", "_replace"}  # of named tuples
        and ast.unparse(node.value) not in {"self", "cls"}
        and node.attr not in names_made_in(path)
    )


def names_made_in(path):
    """Functions, classes, variables and attributes that a file defines or assigns."""
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            yield getattr(node, "attr", None) or node.id


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def test_no_file_is_too_long():
    check(
        (path, f"{lines} lines")
        for path in files(*FOLDERS)
        if (lines := source(path).count("\n")) > MOST_LINES
    )


def test_no_folder_has_too_many_files():
    folders = defaultdict(list)
    for path in files(*LAYERS):
        folders[path.parent].append(path.name)
    check((folder, f"{len(f)} files") for folder, f in folders.items() if len(f) > MOST_FILES)


def test_no_function_takes_too_many_positional_arguments():
    check(
        (path, f"{node.name} takes {taken}")
        for path in files(*LAYERS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
        if (taken := len(node.args.posonlyargs) + len(node.args.args)) > MOST_ARGUMENTS
    )


@pytest.mark.parametrize("unit", ["module", "room"])
def test_nothing_imports_what_imports_it(unit):
    """Imports for annotations and on first use count; packages only gather what they export."""
    paths = {name_of(path): path for path in files(*LAYERS)}
    graph = defaultdict(set)
    for me, path in paths.items():
        for _, other, _ in imports(path):
            if other not in paths or (unit == "module" and paths[other].name == "__init__.py"):
                continue
            one, two = (me, other) if unit == "module" else (path.parent, paths[other].parent)
            graph[one] |= {two} - {one}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(map(str, reversed(error.args[1]))))


def test_every_module_says_what_it_is():
    check((path, "no docstring") for path in files(*FOLDERS) if not ast.get_docstring(tree(path)))


def test_no_docstring_is_empty_words():
    check((path, EMPTY_WORDS) for path in files(*FOLDERS) if EMPTY_WORDS in source(path))
