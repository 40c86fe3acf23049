"""The arguments that commands share; each is checked before anything is computed."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypeVar

from planners.core.files import replacing
from planners.reduced.ignored_rewards import IgnoredRewards
from wrappers.cli.console import CommandError, columns
from wrappers.learners.base import MaskLearner
from wrappers.learners.calibrated import CalibratedMaskLearner
from wrappers.learners.correlational import CorrelationalMaskLearner

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """A parser whose help fits the terminal, and that ends with one line if something is wrong.

    Args:
        doc: paragraphs of text, and commands, which are indented.
        prog: the name of the command; by default the script's.
    """

    def __init__(self, doc: str | None, prog: str | None = None) -> None:
        parts = textwrap.dedent(doc or "").strip().split("\n\n")
        filled = (p if p.startswith(" ") else textwrap.fill(p, columns() - 2) for p in parts)
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=prog, description="\n\n".join(filled), formatter_class=raw)

    def error(self, message: str) -> NoReturn:
        """One line, where to read more included."""
        raise CommandError(f"{message} ({self.prog} --help says more)")


def add_model(parser: argparse.ArgumentParser) -> None:
    """What to learn on: ``env_id`` and ``option``."""
    parser.add_argument(
        "env_id", metavar="MODEL", help="a registered id, or module:Class for your own"
    )
    parser.add_argument(
        *("--set", "--option"),
        dest="option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the environment; may be given several times",
    )


def add_learning(parser: argparse.ArgumentParser, *, cost_weight: float) -> None:
    """How to learn; :func:`make_learner` and :func:`wrappers.cli.command.learn` read them."""
    add = parser.add_argument
    add(
        "--cost-weight",
        type=real_type(0.0),
        default=cost_weight,
        metavar="λ",
        help=f"what each variable has to earn: {cost_weight:g} (with 0, all that matters is kept)",
    )
    add(
        "--rule",
        choices=("calibrated", "paper"),
        default="calibrated",
        help="tests at a stated level, or the paper's algorithm: calibrated",
    )
    add_ignored_rewards(parser, default=None, note="; zero with --rule paper")
    add(
        "--rollouts",
        type=whole_type(1),
        default=500,
        metavar="N",
        help="played with each mask: 500",
    )
    add("--data", type=whole_type(1), metavar="N", help="rollouts that models are estimated from")
    add("--level", type=_level, default=0.05, metavar="P", help="of the tests: 0.05")
    add(
        "--time-limit",
        type=real_type(0.0, positive=True),
        metavar="SECONDS",
        help="then the best mask so far is kept",
    )
    add(
        *("--all-variables", "--every"),
        dest="every",
        action="store_true",
        help="say of each variable, and not by families, why it was kept or dropped",
    )
    add_seed(parser)


def add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=whole_type(0), default=0, metavar="N", help="of all randomness: 0"
    )


def add_ignored_rewards(
    parser: argparse.ArgumentParser, *, default: str | None, note: str = ""
) -> None:
    parser.add_argument(
        "--ignored-rewards",
        choices=("average", "zero"),
        default=default,
        help=f"what variables outside a mask pay in its reduced model: average{note}",
    )


def ignored_rewards(arguments: argparse.Namespace) -> IgnoredRewards:
    """The rule that was asked for, or the default of the learner."""
    given: IgnoredRewards | None = arguments.ignored_rewards
    return given or ("zero" if arguments.rule == "paper" else "average")


def make_learner(arguments: argparse.Namespace) -> MaskLearner:
    settings = {"cost_weight": arguments.cost_weight, "time_limit": arguments.time_limit}
    if arguments.rule == "paper":
        return CorrelationalMaskLearner(**settings)
    return CalibratedMaskLearner(**settings, level=arguments.level)


class _Tried(Exception):  # noqa: N818 - nothing went wrong
    """Writing works, and nothing is to be replaced yet."""


def check_writable(path: Path) -> None:
    """Make the folder of a file, and see whether the file can be written there.

    Raises:
        CommandError: if not: it is read-only, say, a device, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(_Tried), replacing(path) as probe:
            probe.write_bytes(bytes(64 * 1024))  # more than a mask takes
            raise _Tried
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def whole_type(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number, at least ``least``."""
    return _type(int, lambda n: n >= least, f"a whole number, at least {least}")


def real_type(least: float, *, positive: bool = False) -> Callable[[str], float]:
    """The type of an argument that is a finite number, at least ``least`` or greater than it."""
    if positive:
        return _type(float, lambda x: least < x < math.inf, f"a number, greater than {least:g}")
    return _type(float, lambda x: least <= x < math.inf, f"a number, at least {least:g}")


def _type(
    convert: Callable[[str], T], fits: Callable[[T], bool], wanted: str
) -> Callable[[str], T]:
    def parse(text: str) -> T:
        with suppress(ValueError):
            if fits(value := convert(text)):
                return value
        raise argparse.ArgumentTypeError(f"{wanted}, not {text!r}")

    return parse


_level = _type(float, lambda p: 0 < p < 1, "a probability between 0 and 1")
