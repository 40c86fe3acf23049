"""Explain the masks of our environments, and draw their price curves.

    python scripts/explain.py
    python scripts/explain.py factory --output outputs

Learns a mask of ExoFactory (λ = 1) and of ExoCrowd (λ = 3), holds every row of learner.explain()
against the code of the domain, and writes the tables and pictures of docs/explaining.md. With
ExoCrowd it takes some minutes. "grid" is ExoGrid (λ = 1), in no time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym

import exo_envs  # noqa: F401 - registers the environments
from learning.truth import contradictions
from shared.plotting import bytes_of, new_figure
from wrappers import CalibratedMaskLearner, Explanation, MaskPath
from wrappers.cli.arguments import Parser, add_seed
from wrappers.cli.console import FAILED, run, write
from wrappers.cli.progress import ProgressBar, plain_warnings

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


class Case(NamedTuple):
    """A domain, its price, and whether each variable is tried alone."""

    env_id: str
    cost_weight: float
    try_alone: bool


CASES = {
    "grid": Case("ExoGrid-v0", 1.0, True),
    "factory": Case("ExoFactory-v0", 1.0, True),
    "crowd": Case("ExoCrowd-v0", 3.0, False),
}


#: Those of docs/explaining.md.
DOCUMENTED = ("factory", "crowd")


def main(argv: Sequence[str] | None = None) -> int:
    return run(lambda: explain(parse(argv)))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(__doc__)
    parser.add_argument(
        "case", nargs="?", choices=tuple(CASES), help="by default those of the documentation"
    )
    parser.add_argument(
        "--output", type=Path, default=FOLDER, metavar="FOLDER", help="docs/pictures"
    )
    add_seed(parser)
    return parser.parse_args(argv)


def explain(arguments: argparse.Namespace) -> int:
    arguments.output.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    for name in [arguments.case] if arguments.case else DOCUMENTED:
        wrong += explain_case(name, CASES[name], arguments)
    for line in wrong:
        write(f"the code says otherwise: {line}", stream=sys.stderr)
    return FAILED if wrong else 0


def explain_case(name: str, case: Case, arguments: argparse.Namespace) -> list[str]:
    """Write the tables and pictures of one domain; what its code contradicts."""
    env = gym.make(case.env_id)
    with ProgressBar() as bar, plain_warnings(bar.warn):
        learner = CalibratedMaskLearner(cost_weight=case.cost_weight, callback=bar)
        learner.fit(env, arguments.seed)
        bar.stage("explaining")
        explanation = learner.explain(try_alone=case.try_alone)
        path = learner.path()
    wrong = contradictions(explanation, learner.study_.mdp)
    checked = "every row agrees with the code" if not wrong else f"{len(wrong)} rows do not agree"
    write(f"{case.env_id}: {len(explanation)} rows, {checked}")
    tables = {"explained": explanation.to_markdown(), "path": path.to_markdown()}
    for kind, table in tables.items():
        save(arguments.output / f"{name}_{kind}.md", table.encode())
    save(arguments.output / f"{name}_explained.svg", picture(explanation))
    save(arguments.output / f"{name}_path.svg", picture(path))
    return wrong


def picture(drawn: Explanation | MaskPath) -> bytes:
    """A plot as the bytes of a file."""
    with new_figure() as figure:
        ax = figure.add_subplot()
        drawn.plot(ax)
        lines = len(ax.get_yticks()) if isinstance(drawn, Explanation) else 12
        figure.set_size_inches(8.0, 1.0 + 0.24 * lines)
        return bytes_of(figure, "svg")


def save(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    write(str(path))


if __name__ == "__main__":
    sys.exit(main())
