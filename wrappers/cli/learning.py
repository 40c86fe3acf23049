"""Learning with a bar, and what is said if it was stopped."""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym

import exo_envs
from wrappers.cli.arguments import ignored_rewards, make_learner
from wrappers.cli.console import say
from wrappers.cli.explanation import Storyteller
from wrappers.cli.progress import ProgressBar, plain_warnings
from wrappers.fitting.study import Study
from wrappers.learners.base import MaskLearner


def describe_env(env: gym.Env[Any, Any], name: str, options: list[str]) -> str:
    """What is learned on, for the first line of a command."""
    mdp = exo_envs.as_mdp(env)
    told = f"{name.rpartition(':')[2]} {' '.join(options)}".strip()
    count = len(mdp.exogenous_names)
    what = f"{count} exogenous variable{'' if count == 1 else 's'}"
    return f"exo-envs {exo_envs.__version__}: {told} has {what}"


def storyteller(arguments: argparse.Namespace) -> Storyteller:
    """Who puts the steps of the learner into words."""
    return Storyteller(arguments.cost_weight)


def learn(env: gym.Env[Any, Any], arguments: argparse.Namespace) -> MaskLearner | None:
    """Learn with a bar; None if Ctrl-C came before there was a mask.

    Args:
        env: what to learn on.
        arguments: those of :func:`~wrappers.cli.add_learning`; with ``quiet`` there is no
            bar.
    """
    learner = make_learner(arguments)
    study = Study(
        env,
        arguments.seed,
        n_rollouts=arguments.rollouts,
        n_data_rollouts=arguments.data,
        ignored_rewards=ignored_rewards(arguments),
    )
    story = storyteller(arguments)
    try:
        with ProgressBar(story.step, hidden=getattr(arguments, "quiet", False)) as bar:
            fit(learner, study, bar)
    except KeyboardInterrupt:
        return None
    return learner


def fit(learner: MaskLearner, study: Study, bar: ProgressBar) -> None:
    """Learn, and let the bar show what goes on and what there is to warn of."""
    learner.callback = bar
    with plain_warnings(bar.warn):
        learner.fit(study)
    learner.callback = None


def say_if_stopped(learner: MaskLearner) -> None:
    """A line if the mask is only the best one so far, or some plans were not ready."""
    if learner.status_ == "plans cut short":
        say("some plans ran out of time: their masks may be better than they look")
    elif learner.status_ != "finished":
        say(f"stopped ({learner.status_}): this is the best mask so far")
