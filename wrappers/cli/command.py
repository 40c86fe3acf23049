"""The command ``exo-mask``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from wrappers.cli.arguments import Parser, add_learning, add_model, check_writable
from wrappers.cli.console import say, wrap, write
from wrappers.cli.explanation import patterns
from wrappers.cli.learning import describe_env, learn, say_if_stopped, storyteller
from wrappers.cli.models import make_env
from wrappers.cli.progress import ProgressBar, plain_warnings
from wrappers.cli.running import FAILED, INTERRUPTED, run
from wrappers.cli.worth import describe_worth
from wrappers.learners.base import MaskLearner

DESCRIPTION = """
What can my agent ignore, and what does it cost me?

    exo-mask ExoFactory-v0 --cost-weight 1
    exo-mask ExoCrowd-v0 --set goal=fixed --cost-weight 3 --save mask.json
    exo-mask my_module:MyModel --set horizon=40

Learns which exogenous variables of an environment are worth knowing, and shows which ones it
keeps and why, what the agent earns with them, and what it gives up by ignoring the rest. MODEL is
an id that Gymnasium knows, or your own module:Class: an ExoMDP, an environment, or a function that
makes one; modules in the current directory can be imported. Results go to standard output and
progress to standard error. Ctrl-C keeps the best mask so far.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the number for the shell."""
    return run(lambda: _mask(_parse(argv)))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(DESCRIPTION, prog="exo-mask")
    add_model(parser)
    add_learning(parser, cost_weight=0.0)
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="for wrappers.LearnedMask.load: the mask, and the policy too if FILE ends in .zip",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="only the names of the variables to keep, one a line"
    )
    return parser.parse_args(argv)


def _mask(arguments: argparse.Namespace) -> int:
    if arguments.save is not None:
        check_writable(arguments.save)
    with plain_warnings(lambda message: write(f"warning: {message}", stream=sys.stderr)):
        env = make_env(arguments.env_id, arguments.option)
    if not arguments.quiet:
        say(describe_env(env, arguments.env_id, arguments.option))
    learner = learn(env, arguments)
    if learner is None:
        say("interrupted before there was a mask; nothing was saved", stream=sys.stderr)
        return INTERRUPTED
    with plain_warnings(lambda message: write(f"warning: {message}", stream=sys.stderr)):
        lost = save(learner, arguments.save)
    if arguments.quiet:
        write(*learner.mask_)
    else:
        _show(learner, arguments)
    if lost is not None:
        write(f"error: {lost}; the mask is the one shown above", stream=sys.stderr)
        return FAILED
    return INTERRUPTED if learner.status_ == "interrupted" else 0


def _show(learner: MaskLearner, arguments: argparse.Namespace) -> None:
    """The mask, why, and what it costs."""
    write("")
    say_if_stopped(learner)
    write(*storyteller(arguments).explain(learner.explain(), every=arguments.every))
    if learner.status_ != "interrupted":
        write("", "What does that cost?")
        with ProgressBar() as bar, plain_warnings(bar.warn):
            bar.stage("comparing with all variables")
            sentences = list(describe_worth(learner))
        for sentence in sentences:
            say(sentence, indent=2)
    write("", "The mask")
    empty = "(empty: all can be ignored)" if learner.status_ == "finished" else "(empty)"
    write(*wrap(patterns(learner.mask_, learner.feature_names_in_) or empty, indent=2))
    if arguments.save is not None and arguments.save.exists():
        alone = learner.policy_ is None and _with_policy(arguments.save)
        write(f"saved in {arguments.save}{' (the mask alone: there is no policy)' * alone}")


def save(learner: MaskLearner, path: Path | None) -> str | None:
    """Write the mask to a file, if there is one to write to; what went wrong, if something did.

    A file whose name ends in ``.zip`` has the policy, too.
    """
    if path is None:
        return None
    try:
        learner.save(path, with_policy=_with_policy(path))
    except OSError as error:
        return f"could not save {path}: {error.strerror or error}"
    return None


def _with_policy(path: Path) -> bool:
    return path.suffix.lower() == ".zip"
