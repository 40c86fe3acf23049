"""What a script's command line names, and what its tables say about the rules for rewards."""

from __future__ import annotations

from exo_envs import ExoMDP
from exo_envs.core.batches import as_mask
from wrappers.cli.arguments import add_ignored_rewards
from wrappers.cli.models import make_env, parse_option

__all__ = [
    "BLIND",
    "EVERYTHING",
    "add_ignored_rewards",
    "describe_ignored_rewards",
    "make_env",
    "parse_mask",
    "parse_option",
]

#: Rows of every table that compares masks.
BLIND, EVERYTHING = "nothing, blind", "everything"


def parse_mask(mdp: ExoMDP, patterns: str) -> tuple[str, ...]:
    """The mask of comma-separated names and patterns."""
    return as_mask(mdp, [part.strip() for part in patterns.split(",") if part.strip()])


def describe_ignored_rewards(rule: str) -> str:
    """Which rule a table used, and what its first row is."""
    if rule == "average":
        return "What a mask ignores pays its average in the reduced model."
    return (
        "What a mask ignores pays nothing in the reduced model, as in the paper; "
        f'only "{BLIND}" plans with averages.'
    )
