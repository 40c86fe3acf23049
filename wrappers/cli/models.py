"""Models that a command line names: a registered id, or somebody's own ``module:Class``."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import gymnasium as gym

from exo_envs.core.errors import ExoError, unknown_name
from exo_envs.core.mdp import ExoMDP
from exo_envs.domains import ENVIRONMENTS
from exo_envs.shells.env import ExoEnv
from exo_envs.sources.simulators.conversion import as_mdp
from wrappers.cli.console import CommandError

Env = gym.Env[Any, Any]


def parse_option(option: str) -> tuple[str, Any]:
    """``goal=fixed`` or ``num_agents=64``."""
    name, equals, value = option.partition("=")
    if not (name.isidentifier() and equals):
        raise CommandError(f"an option is name=value, not {option!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def make_env(name: str, options: Sequence[str] = (), **settings: Any) -> Env:
    """The environment of a command line.

    Args:
        name: a registered id, also with the module that registers it (``exo_envs:ExoGrid-v0``), or
            ``module:Class``: a model, an environment, or a function that makes one. The current
            directory can be imported from.
        options: keyword arguments of it, ``name=value``.
        **settings: further ones.

    Raises:
        CommandError: if it cannot be made; one line says why.
    """
    arguments = {**dict(map(parse_option, options)), **settings}
    module, _, attribute = name.partition(":")
    try:
        found = _attribute(module, attribute) if attribute else None
        env = gym.make(name, **arguments) if found is None else _called(name, found, arguments)
        if isinstance(env, ExoMDP):
            env = ExoEnv(env)
        as_mdp(env)
    except CommandError:
        raise
    except gym.error.NameNotFound as error:
        hint = f"; choose from {', '.join(ENVIRONMENTS)}, or give your own module:Class"
        told = str(error).rstrip(".")
        raise CommandError(f"{name}: {told}{hint * ('Did you mean' not in told)}") from error
    except (ExoError, gym.error.Error) as error:
        raise CommandError(f"{name}: {error}") from error
    return env


def _attribute(module_name: str, attribute: str) -> Any:
    """What a module has under a name; None if that is a registered id."""
    here = os.getcwd()  # noqa: PTH109 sys.path holds strings
    if here not in sys.path:
        sys.path.insert(0, here)
    if module_name.endswith(".py"):
        stem = module_name[:-3]
        raise CommandError(f"a module is imported by its name: write {stem!r}, not {module_name!r}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise CommandError(
                f"there is no module {module_name!r}, neither in this directory nor installed"
            ) from error
        raise
    if not hasattr(module, attribute) and attribute not in gym.registry:
        raise CommandError(str(unknown_name(f"name in {module_name}", attribute, _offers(module))))
    return getattr(module, attribute, None)


def _offers(module: ModuleType) -> list[str]:
    kinds = (ExoMDP, gym.Env)
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, kinds) or (inspect.isclass(value) and issubclass(value, kinds))
    ]


def _called(name: str, found: Any, arguments: dict[str, Any]) -> Any:
    kinds = (ExoMDP, gym.Env)
    if isinstance(found, kinds):
        if arguments:
            raise CommandError(f"{name} is made already, so it takes no options")
        return found
    if not callable(found):
        raise CommandError(
            f"{name} is neither a model or an environment nor a function that makes one, "
            f"but {type(found).__name__}"
        )
    try:
        inspect.signature(found).bind(**arguments)
    except TypeError as error:
        raise CommandError(f"{name}: {error}") from error
    made = found(**arguments)
    if not isinstance(made, kinds):
        raise CommandError(f"{name} makes {type(made).__name__}, not an ExoMDP or a gymnasium.Env")
    return made
