"""The command ``exo-mask``, and its parts that scripts share: learn, save, say what it earns."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym

import exo_envs
from planners.core.evaluation import Estimate
from planners.core.planner import Plan
from wrappers.cli.arguments import (
    Parser,
    add_learning,
    add_model,
    check_writable,
    ignored_rewards,
    make_learner,
)
from wrappers.cli.console import FAILED, INTERRUPTED, run, say, wrap, write
from wrappers.cli.explanation import explanation_in_words, patterns, step_in_words
from wrappers.cli.models import make_env
from wrappers.cli.progress import ProgressBar, plain_warnings
from wrappers.fitting.study import Study
from wrappers.learners.base import MaskLearner
from wrappers.reports.tables import variables

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
        help="for wrappers.LearnedMask.load: the mask, and the policy too if the name ends in "
        ".safetensors",
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
    show_explanation(learner, every=arguments.every)
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


def describe_env(env: gym.Env[Any, Any], name: str, options: list[str]) -> str:
    """What is learned on, for the first line of a command."""
    told = f"{name.rpartition(':')[2]} {' '.join(options)}".strip()
    what = variables(len(exo_envs.as_mdp(env).exogenous_names))
    return f"exo-envs {exo_envs.__version__}: {told} has {what.replace(' ', ' exogenous ')}"


def learn(env: gym.Env[Any, Any], arguments: argparse.Namespace) -> MaskLearner | None:
    """Learn with a bar; None if Ctrl-C came before there was a mask.

    Args:
        env: what to learn on.
        arguments: those of :func:`~wrappers.cli.arguments.add_learning`; with ``quiet`` there is
            no bar.
    """
    learner = make_learner(arguments)
    study = Study(
        env,
        arguments.seed,
        n_rollouts=arguments.rollouts,
        n_data_rollouts=arguments.data,
        ignored_rewards=ignored_rewards(arguments),
    )
    describe = partial(step_in_words, cost_weight=arguments.cost_weight)
    try:
        with ProgressBar(describe, hidden=getattr(arguments, "quiet", False)) as bar:
            fit(learner, study, bar)
    except KeyboardInterrupt:
        return None
    return learner


def fit(learner: MaskLearner, study: Study, bar: ProgressBar) -> None:
    """Learn, and let the bar show progress and warnings."""
    learner.callback = bar
    with plain_warnings(bar.warn):
        learner.fit(study)
    learner.callback = None


def save(learner: MaskLearner, path: Path | None) -> str | None:
    """Write the mask to a file, if there is one to write to; what went wrong, if something did.

    A file whose name ends in ``.safetensors``, or ``.zip`` as before, has the policy, too.
    """
    if path is None:
        return None
    try:
        learner.save(path, with_policy=_with_policy(path))
    except OSError as error:
        return f"could not save {path}: {error.strerror or error}"
    return None


def _with_policy(path: Path) -> bool:
    return path.suffix.lower() in {".safetensors", ".zip"}


def show_explanation(learner: MaskLearner, *, every: bool) -> None:
    """Why variables were kept or dropped, and whether the mask is only the best one so far."""
    write("")
    if learner.status_ == "plans cut short":
        say("some plans ran out of time: their masks may be better than they look")
    elif learner.status_ != "finished":
        say(f"stopped ({learner.status_}): this is the best mask so far")
    write(*explanation_in_words(learner.explain(), every=every))


def describe_worth(learner: MaskLearner) -> Iterator[str]:
    """Sentences about what the mask earns, what no policy can exceed, and how it was planned.

    This plans with all variables, which may take a while.
    """
    objective = learner.objective_
    if objective is None:
        yield "That is not known: learning was stopped before there was a policy."
        return
    cost = f"; J, the return less λ for each variable, is {objective.value:.1f}"
    yield (
        f"With these variables the agent earns {objective.estimate} in {len(objective.returns)} "
        f"episodes (95 %){cost if learner.cost_weight else ''}."
    )
    if objective.caution is not None:
        yield f"Mind that {objective.caution}."
    given_up, bracket = learner.cost_of_ignoring_, objective.bracket
    if bracket is None:
        yield "What any policy could earn is not known: too much would have to be asked."
    else:
        yield f"It {bracket}."
        if len(bracket.upper_values) < len(objective.returns):
            yield f"(That is on the first {len(bracket.upper_values)} of the trajectories.)"
        elif str(bracket.lower) != str(Estimate.of(objective.returns)):
            yield "(Luck that is zero on average was taken out of the second figure.)"
    yield f"What it gives up by ignoring the rest: {given_up}."
    yield from describe_plan(objective.plan)


def describe_plan(plan: Plan) -> list[str]:
    """How a policy was found, and what else was tried for it."""
    if not plan.method and not plan.candidates:
        return []
    first = f"The policy was found by {plan.method or 'a planner that does not say how'}."
    several = plan.candidates if len(plan.candidates) > 1 else ()
    return [first, *(f"- {candidate}" for candidate in several)]


if __name__ == "__main__":
    sys.exit(main())
