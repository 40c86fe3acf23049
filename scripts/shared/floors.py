"""The lowest versions that pyproject.toml allows, of dependencies and of extras, for pip.

    python scripts/shared/floors.py real rddl     # constraints, one a line: scipy==1.11.1
    python scripts/shared/floors.py --needs test  # what an extra needs besides other extras

``scripts/lowest.sh`` tests with these.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # an environment that was just made has nothing but pip
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
#: ``name[extra] >= floor, < ceiling; marker``, of which extra, ceiling and marker may be missing.
REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?>=(?P<floor>[\w.]+)(?:,[^;]*)?(?:;(?P<marker>.*))?"
)


def read_project(path: Path = PROJECT) -> dict[str, Any]:
    """The table ``project``."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def floors(project: dict[str, Any], extras: Sequence[str]) -> dict[str, str]:
    """Name and marker -> floor, of the dependencies and of some extras: the highest of several."""
    requirements = list(project["dependencies"])
    for extra in extras:
        requirements += needs(project, extra)
    found: dict[str, str] = {}
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no floor, as in 'scipy>=1.11.1'")
        marker = f"; {match['marker'].strip()}" if match["marker"] else ""
        name = match["name"].lower() + marker
        found[name] = max(found.get(name, "0"), match["floor"], key=_numbers)
    return found


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def constraints(project: dict[str, Any], extras: Sequence[str]) -> list[str]:
    """The floors as pip takes them."""
    pinned = []
    for key, floor in sorted(floors(project, extras).items()):
        name, _, marker = key.partition(";")
        pinned.append(f"{name}=={floor}" + (f";{marker}" if marker else ""))
    return pinned


def needs(project: dict[str, Any], extra: str) -> list[str]:
    """The requirements of an extra, but for other extras."""
    own = f"{project['name']}["
    return [one for one in project["optional-dependencies"][extra] if not one.startswith(own)]


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extras", nargs="*", help="those whose floors count, too")
    parser.add_argument("--needs", metavar="EXTRA", help="its requirements instead")
    arguments = parser.parse_args()
    project = read_project()
    for extra in (*arguments.extras, *([arguments.needs] if arguments.needs else ())):
        if extra not in project["optional-dependencies"]:
            parser.error(f"unknown extra {extra!r}")
    lines = needs(project, arguments.needs) if arguments.needs else None
    print("\n".join(constraints(project, arguments.extras) if lines is None else lines))


if __name__ == "__main__":
    main()
