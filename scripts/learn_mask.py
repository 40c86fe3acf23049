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
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym

import exo_envs
from learning.bounds import show_bounds
from learning.explanation import Storyteller
from learning.film import draws_pictures, picture_settings, save_film, save_picture
from planners import Estimate, Objective, estimate_objective
from shared.arguments import (
    BLIND,
    EVERYTHING,
    add_ignored_rewards,
    describe_ignored_rewards,
    make_env,
)
from shared.console import INTERRUPTED, ProgressBar, print_table
from wrappers import (
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    LearningStoppedWarning,
    MaskedObservation,
    MaskLearner,
    RewardVariableMaskLearner,
    Study,
)

#: What is said of a variable that nothing speaks for, by the rule.
SILENCE = {
    "calibrated": "no sign that it matters (tests at level {level:g})",
    "paper": "other variables had higher scores when the search ended",
}


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
    arguments = parse(argv)
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("\ninterrupted; what was saved before is complete")
        return INTERRUPTED


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flag = argparse.BooleanOptionalAction
    parser.add_argument("env_id")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the environment"
    )
    parser.add_argument(
        "--cost-weight",
        type=float,
        default=1.0,
        help="the price of a variable, in return (the paper's lambda): 1",
    )
    parser.add_argument("--rule", choices=tuple(SILENCE), default="calibrated")
    add_ignored_rewards(parser, default=None, note="; zero with --rule paper")
    parser.add_argument("--rollouts", type=int, default=500, help="played with each mask: 500")
    parser.add_argument("--data", type=int, help="rollouts that models are estimated from")
    parser.add_argument("--level", type=float, default=0.05, help="of the tests: 0.05")
    parser.add_argument("--time-limit", type=float, help="for each learner, in seconds")
    parser.add_argument("--seed", type=int, default=0)
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
    parser.add_argument("--output", type=Path, default=Path("outputs"), help="folder: outputs")
    parser.add_argument("--film", action=flag, default=True, help="of one episode")
    parser.add_argument("--frames", type=int, default=50, help="of the film, at most: 50")
    arguments = parser.parse_args(argv)
    if arguments.ignored_rewards is None:
        arguments.ignored_rewards = "zero" if arguments.rule == "paper" else "average"
    if arguments.bracket is None:
        arguments.bracket = arguments.compare
    return arguments


def run(arguments: argparse.Namespace) -> int:
    """Learn, explain, compare, draw."""
    start = time.perf_counter()
    silence = SILENCE[arguments.rule].format(level=arguments.level)
    story = Storyteller(arguments.cost_weight, silence)
    learner = learn(arguments, story)
    if learner is None:
        print("interrupted before there was a mask; nothing was saved")
        return INTERRUPTED
    file = arguments.output / f"{arguments.env_id.rpartition(':')[2]}.json"
    learner.save(file)
    if learner.status_ != "finished":
        print(f"stopped ({learner.status_}): this is the best mask so far")
    story.explain(learner)
    if learner.status_ != "interrupted" and (arguments.compare or arguments.bracket):
        blind = estimate_blind(learner.study_, arguments)
        if arguments.compare:
            rows = compare(learner, blind, arguments)
            show_returns(rows, arguments.rollouts, arguments.ignored_rewards)
        if arguments.bracket:
            show_bounds(learner, blind, file.with_suffix(".bracket.svg"))
    print(f"\nmask     {file}")
    if learner.status_ == "interrupted":
        return INTERRUPTED
    show_episode(learner, arguments, file)
    print(f"All of it took {time.perf_counter() - start:.0f} s.")
    return 0


def learn(arguments: argparse.Namespace, story: Storyteller) -> MaskLearner | None:
    """Learn with a bar; None if there was no time for anything."""
    env = make_env(arguments.env_id, arguments.option)
    print(f"exo-envs {exo_envs.__version__}: {describe(env, arguments.option)}", flush=True)
    learner = make_learner(arguments)
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
        study = Study(
            env,
            arguments.seed,
            n_rollouts=arguments.rollouts,
            n_data_rollouts=arguments.data,
            ignored_rewards=arguments.ignored_rewards,
        )
        with ProgressBar(story.step) as bar:
            fit(learner, study, bar)
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from error
    except KeyboardInterrupt:
        return None
    return learner


def make_learner(arguments: argparse.Namespace) -> MaskLearner:
    """The learner of the rule that was asked for."""
    if arguments.rule == "paper":
        return CorrelationalMaskLearner(**prices(arguments))
    return CalibratedMaskLearner(**prices(arguments), level=arguments.level)


def describe(env: gym.Env, options: Sequence[str]) -> str:
    mdp = exo_envs.as_mdp(env)
    name = env.spec.id if env.spec is not None else type(mdp).__name__
    return " ".join([name, *options, f"has {len(mdp.exogenous_names)} exogenous variables"])


def prices(arguments: argparse.Namespace) -> dict[str, float | None]:
    return {"cost_weight": arguments.cost_weight, "time_limit": arguments.time_limit}


def fit(learner: MaskLearner, study: Study, bar: ProgressBar) -> None:
    """Learn; this script says by itself if learning was stopped."""
    learner.callback = bar
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningStoppedWarning)
        learner.fit(study)


def compare(learner: MaskLearner, blind: Objective, arguments: argparse.Namespace) -> list[Row]:
    """Other masks, on trajectories that had no part in the choice of any."""
    study = learner.study_
    others: dict[str, MaskLearner] = {
        "greedy: one by one at random": GreedyMaskLearner(**prices(arguments)),
        "phase one: what was found to pay": RewardVariableMaskLearner(**prices(arguments)),
    }
    print("\nOther masks, for comparison", flush=True)
    with ProgressBar(lambda _: "") as bar:
        rows = [Row(BLIND, 0, blind)]
        for name, other in others.items():
            fit(other, study, bar)
            if other.status_ == "interrupted":
                raise KeyboardInterrupt
            rows.append(row(name, other, arguments))
        names = study.mdp.exogenous_names
        rows.append(Row(EVERYTHING, len(names), estimate(study, names, arguments)))
    return [*rows, row("learned", learner, arguments)]


def row(name: str, learner: MaskLearner, arguments: argparse.Namespace) -> Row:
    """A learner that was stopped did not get to the trajectories of the table."""
    objective, remark = learner.objective_, ""
    if learner.status_ != "finished":
        known = learner.study_.evaluator.knows(learner.mask_)
        objective = estimate(learner.study_, learner.mask_, arguments) if known else None
        remark = f"({learner.status_})"
    return Row(name, len(learner.mask_), objective, learner.seconds_, remark)


def estimate(study: Study, mask: tuple[str, ...], arguments: argparse.Namespace) -> Objective:
    """J on the trajectories of the table, planned as well as can be."""
    fresh, price = study.evaluator.fresh_scenarios(), arguments.cost_weight
    return study.evaluator.objective(mask, cost_weight=price, scenarios=fresh, thorough=True)


def estimate_blind(study: Study, arguments: argparse.Namespace) -> Objective:
    """What is earned without any variable, planned with the averages of all that pays."""
    if study.ignored_rewards == "average":
        return estimate(study, (), arguments)
    return estimate_objective(
        study.counted,
        (),
        rng=study.seed,
        cost_weight=arguments.cost_weight,
        planner=study.planner(thorough=True),
        scenarios=study.evaluator.fresh_scenarios(),
        data=study.data(),
        survey=study.survey(),
        memory=study.memory,
        ignored_rewards="average",
    )


def show_returns(rows: list[Row], episodes: int, ignored_rewards: str) -> None:
    """A table: what each mask earns."""
    print("\nWhat an agent earns that knows only these variables", end=" ")
    print(f"({episodes} episodes, 95 % intervals)")
    header = ("mask", "variables", "return", "J", "seconds", "")
    print_table(header, [entry.cells() for entry in rows], "<>>>><")
    print(f"  {describe_ignored_rewards(ignored_rewards)}")
    print("  J is the return less the price of the variables. Learners share what they estimate:")
    print('  "learned" came first, and left little to do for the others.')


def show_episode(learner: MaskLearner, arguments: argparse.Namespace, mask_file: Path) -> None:
    """A picture of the masked scene, and a film of an agent that sees no more than the mask."""
    env, policy = make_env(arguments.env_id, arguments.option), learner.policy_
    if not draws_pictures(env):
        print(f"picture  none: {arguments.env_id} draws text only")
        return
    env = make_env(arguments.env_id, arguments.option, **picture_settings(env))
    with MaskedObservation(env, learner.get_support()) as masked:
        picture = mask_file.with_suffix(".png")
        save_picture(masked, picture, arguments.seed)
        print(f"picture  {picture}", flush=True)
        if not arguments.film:
            return
        if policy is None:
            print("film     none: learning was stopped before there was a policy")
            return
        film = mask_file.with_suffix(".gif")
        told = save_film(masked, policy, film, arguments.seed, arguments.frames)
        print(f"film     {film} ({told})")


if __name__ == "__main__":
    sys.exit(main())
