"""What a command line names: environments with their options, variables, rules for rewards."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import gymnasium as gym

import exo_envs

#: Rows of every table that compares masks.
BLIND, EVERYTHING = "nothing, blind", "everything"


def parse_option(option: str) -> tuple[str, object]:
    """``goal=fixed`` or ``num_agents=64``."""
    name, equals, value = option.partition("=")
    if not (name and equals):
        raise SystemExit(f"error: an option is name=value, not {option!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def make_env(env_id: str, options: Sequence[str], **settings: Any) -> gym.Env:
    """The environment of a command line; what is wrong with it ends the script with one line."""
    parsed = dict(parse_option(option) for option in options)
    try:
        env = gym.make(env_id, **{**parsed, **settings})
        exo_envs.as_mdp(env)
    except (gym.error.Error, ImportError, TypeError, ValueError) as error:
        raise SystemExit(f"error: {env_id}: {error}") from error
    return env


def matching(names: tuple[str, ...], patterns: str) -> list[str]:
    """The names that match one of the comma-separated patterns."""
    wanted = [pattern for pattern in patterns.split(",") if pattern]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise SystemExit(f"no exogenous variable matches {pattern!r}; there are: {names}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]


def add_ignored_rewards(
    parser: argparse.ArgumentParser, *, default: str | None, note: str = ""
) -> None:
    """The option for what variables outside a mask pay."""
    parser.add_argument(
        "--ignored-rewards",
        choices=("average", "zero"),
        default=default,
        help=f"what variables outside a mask pay in its reduced model: average{note}",
    )


def describe_ignored_rewards(rule: str) -> str:
    """Which rule a table used, and what its first row is."""
    if rule == "average":
        return "What a mask ignores pays its average in the reduced model."
    return (
        "What a mask ignores pays nothing in the reduced model, as in the paper; "
        f'only "{BLIND}" plans with averages.'
    )
