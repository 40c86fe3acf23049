"""Learn which exogenous variables of an environment are worth knowing, and see why.

    python scripts/learn_mask.py ExoFactory-v0 --cost-weight 1
    python scripts/learn_mask.py ExoCrowd-v0 --option goal=fixed --cost-weight 3

It prints what the mask keeps and why, and what the agent earns with it; the mask goes to a JSON
file (wrappers.SavedMask.load, wrappers.LearnedMask.load), with a picture and a film of an episode
where the environment draws pictures, and a picture of what each mask earns between knowing nothing
and what no policy can exceed. Ctrl-C keeps the best mask so far.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from learning.bounds import draw_bracket
from learning.film import draws_pictures, picture_settings, save_film, save_picture
from planners import Estimate, Objective, estimate_objective
from shared.arguments import BLIND, EVERYTHING, describe_ignored_rewards, make_env
from shared.console import INTERRUPTED, print_table
from wrappers import (
    GreedyMaskLearner,
    MaskedObservation,
    MaskLearner,
    RewardVariableMaskLearner,
    Study,
)
from wrappers.cli.arguments import Parser, add_learning, add_model, check_writable, whole
from wrappers.cli.command import (
    describe_env,
    describe_worth,
    fit,
    learn,
    save,
    show_explanation,
)
from wrappers.cli.console import FAILED, run, say, wrap, write
from wrappers.cli.explanation import patterns
from wrappers.cli.progress import ProgressBar, plain_warnings


class Row(NamedTuple):
    """A line of the table."""

    name: str
    size: int
    objective: Objective | None  # None if the mask was not planned with
    seconds: float | None = None
    remark: str = ""

    def cells(self) -> tuple[str, ...]:
        earned = value = ""
        if self.objective is not None:
            earned = str(Estimate(self.objective.mean_return, self.objective.standard_error))
            value = f"{self.objective.value:.1f}"
        seconds = "" if self.seconds is None else f"{self.seconds:.1f}"
        return self.name, str(self.size), earned, value, seconds, self.remark


def main(argv: Sequence[str] | None = None) -> int:
    return run(lambda: show_mask(parse(argv)))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(__doc__)
    flag = argparse.BooleanOptionalAction
    add_model(parser)
    add_learning(parser, cost_weight=1.0)
    parser.add_argument(
        "--compare",
        action=flag,
        default=True,
        help="with nothing, greedy, phase one and everything",
    )
    parser.add_argument(
        "--bracket",
        action=flag,
        default=None,
        help="what no policy can exceed, and a picture of it: as --compare",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("outputs"), metavar="FOLDER", help="outputs"
    )
    parser.add_argument("--film", action=flag, default=True, help="of one episode")
    parser.add_argument(
        "--frames", type=whole(1), default=50, metavar="N", help="of the film, at most: 50"
    )
    arguments = parser.parse_args(argv)
    if arguments.bracket is None:
        arguments.bracket = arguments.compare
    return arguments


def show_mask(arguments: argparse.Namespace) -> int:
    """Learn, explain, compare, draw."""
    start = time.perf_counter()
    file = arguments.output / f"{arguments.env_id.rpartition(':')[2]}.json"
    check_writable(file)
    env = make_env(arguments.env_id, arguments.option)
    say(describe_env(env, arguments.env_id, arguments.option))
    learner = learn(env, arguments)
    if learner is None:
        say("interrupted before there was a mask; nothing was saved")
        return INTERRUPTED
    lost = save(learner, file)
    show_explanation(learner, every=arguments.every)
    if learner.status_ != "interrupted" and (arguments.compare or arguments.bracket):
        show_worth(learner, arguments, file)
    if lost is not None:
        write("", "The mask", *wrap(patterns(learner.mask_, learner.feature_names_in_), indent=2))
        write(f"error: {lost}; the mask is the one shown above", stream=sys.stderr)
        return FAILED
    write("", f"mask     {file}")
    if learner.status_ == "interrupted":
        return INTERRUPTED
    show_episode(learner, arguments, file)
    say(f"All of it took {time.perf_counter() - start:.0f} s.")
    return 0


def show_worth(learner: MaskLearner, arguments: argparse.Namespace, file: Path) -> None:
    """What other masks earn, and what no policy can exceed."""
    with ProgressBar() as bar, plain_warnings(bar.warn):
        bar.stage("planning without any variable, for comparison")
        blind = estimate_blind(learner.study_, arguments)
        rows = compare(learner, blind, arguments, bar) if arguments.compare else []
    if rows:
        show_returns(rows, arguments.rollouts, learner.study_.ignored_rewards)
    if arguments.bracket:
        with ProgressBar() as bar, plain_warnings(bar.warn):
            bar.stage("asking what any policy could earn")
            sentences = list(describe_worth(learner))
        write("", "How good is that?")
        for sentence in sentences:
            say(sentence, indent=2)
        picture = file.with_suffix(".bracket.svg")
        if draw_bracket(learner, blind, picture):
            say("A picture of all masks that were tried:", indent=2)
            write(f"  {picture}")


def compare(
    learner: MaskLearner, blind: Objective, arguments: argparse.Namespace, bar: ProgressBar
) -> list[Row]:
    """Other masks, on trajectories that had no part in the choice of any."""
    study = learner.study_
    settings = {"cost_weight": arguments.cost_weight, "time_limit": arguments.time_limit}
    others: dict[str, MaskLearner] = {
        "greedy: one by one at random": GreedyMaskLearner(**settings),
        "phase one: what was found to pay": RewardVariableMaskLearner(**settings),
    }
    rows = [Row(BLIND, 0, blind)]
    for name, other in others.items():
        fit(other, study, bar)
        if other.status_ == "interrupted":
            raise KeyboardInterrupt
        rows.append(row(name, other, arguments))
    names = study.mdp.exogenous_names
    bar.stage(f"planning with all {len(names)} variables")
    rows.append(Row(EVERYTHING, len(names), estimate(study, names, arguments)))
    return [*rows, row("learned", learner, arguments)]


def row(name: str, learner: MaskLearner, arguments: argparse.Namespace) -> Row:
    """A learner that was stopped did not get to the trajectories of the table."""
    objective, remark = learner.objective_, ""
    if learner.status_ in ("time limit", "interrupted"):
        known = learner.study_.evaluator.knows(learner.mask_)
        objective = estimate(learner.study_, learner.mask_, arguments) if known else None
    if learner.status_ != "finished":
        remark = f"({learner.status_})"
    return Row(name, len(learner.mask_), objective, learner.seconds_, remark)


def estimate(study: Study, mask: tuple[str, ...], arguments: argparse.Namespace) -> Objective:
    """J on the trajectories of the table, planned as well as can be."""
    fresh, weight = study.evaluator.fresh_scenarios(), arguments.cost_weight
    return study.evaluator.objective(mask, cost_weight=weight, scenarios=fresh, thorough=True)


def estimate_blind(study: Study, arguments: argparse.Namespace) -> Objective:
    """What is earned without any variable, planned with the averages of all that pays."""
    if study.ignored_rewards == "average":
        return estimate(study, (), arguments)
    return estimate_objective(
        study.counted,
        (),
        rng=study.seed,
        cost_weight=arguments.cost_weight,
        planner=study.evaluator.planner(thorough=True),
        scenarios=study.evaluator.fresh_scenarios(),
        data=study.data(),
        survey=study.survey(),
        memory=study.memory,
        ignored_rewards="average",
    )


def show_returns(rows: list[Row], episodes: int, ignored_rewards: str) -> None:
    """A table: what each mask earns."""
    write("")
    say(f"What an agent earns that knows only these variables ({episodes} episodes, 95 %)")
    header = ("mask", "variables", "return", "J", "seconds", "")
    print_table(header, [entry.cells() for entry in rows], "<>>>><")
    say(describe_ignored_rewards(ignored_rewards), indent=2)
    say("J is the return less λ for each variable.", indent=2)
    say('Learners share what they estimate: "learned" came first, and left them little.', indent=2)


def show_episode(learner: MaskLearner, arguments: argparse.Namespace, mask_file: Path) -> None:
    """A picture of the masked scene, and a film of an agent that sees no more than the mask."""
    env, policy = make_env(arguments.env_id, arguments.option), learner.policy_
    if not draws_pictures(env):
        write(f"picture  none: {arguments.env_id} draws text only")
        return
    env = make_env(arguments.env_id, arguments.option, **picture_settings(env))
    with MaskedObservation(env, learner.get_support()) as masked:
        picture = mask_file.with_suffix(".png")
        save_picture(masked, picture, arguments.seed)
        write(f"picture  {picture}")
        if not arguments.film:
            return
        if policy is None:
            write("film     none: learning was stopped before there was a policy")
            return
        film = mask_file.with_suffix(".gif")
        told = save_film(masked, policy, film, arguments.seed, arguments.frames)
        write(f"film     {film}", f"         {told}")


if __name__ == "__main__":
    sys.exit(main())
