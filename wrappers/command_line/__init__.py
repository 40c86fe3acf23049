"""The command ``exo-mask``, and what the commands in ``scripts/`` share with it.

==================  ================================================================
``command.py``      ``exo-mask`` itself
``arguments.py``    arguments that commands share, checked before any work
``models.py``       what is named on the command line: an id or ``module:Class``
``learning.py``     learning with a bar
``explanation.py``  what was kept and dropped, and why
``worth.py``        what the mask earns, and what it gives up
``progress.py``     what goes on, for who waits
``console.py``      text and tables as wide as the terminal
``running.py``      how a command ends: errors, Ctrl-C, a closed pipe
==================  ================================================================
"""

from wrappers.command_line.arguments import (
    Parser,
    add_ignored_rewards,
    add_learning,
    add_model,
    add_seed,
    check_writable,
    ignored_rewards,
    make_learner,
    real,
    whole,
)
from wrappers.command_line.command import main, save
from wrappers.command_line.console import Columns, columns, say, table, wrap, write
from wrappers.command_line.explanation import Storyteller, family, patterns, summary
from wrappers.command_line.learning import (
    describe_env,
    fit,
    learn,
    say_if_stopped,
    storyteller,
)
from wrappers.command_line.models import make_env, parse_mask, parse_option
from wrappers.command_line.progress import ProgressBar, plain_warnings
from wrappers.command_line.running import FAILED, INTERRUPTED, REFUSED, CommandError, run
from wrappers.command_line.worth import describe_plan, describe_worth

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "REFUSED",
    "Columns",
    "CommandError",
    "Parser",
    "ProgressBar",
    "Storyteller",
    "add_ignored_rewards",
    "add_learning",
    "add_model",
    "add_seed",
    "check_writable",
    "columns",
    "describe_env",
    "describe_plan",
    "describe_worth",
    "family",
    "fit",
    "ignored_rewards",
    "learn",
    "main",
    "make_env",
    "make_learner",
    "parse_mask",
    "parse_option",
    "patterns",
    "plain_warnings",
    "real",
    "run",
    "save",
    "say",
    "say_if_stopped",
    "storyteller",
    "summary",
    "table",
    "whole",
    "wrap",
    "write",
]
