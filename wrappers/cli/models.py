"""What a command line names: a registered id, or somebody's own ``module:Class``."""

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

from exo_envs.core.errors import unknown_name
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP
from exo_envs.domains import ENVIRONMENTS
from exo_envs.shells.env import ExoEnv
from exo_envs.sources.simulators.conversion import as_mdp
from wrappers.cli.running import CommandError, is_told

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
    try:
        found = _find_own(name)
        env = gym.make(name, **arguments) if found is None else _called(name, found, arguments)
        if isinstance(env, ExoMDP):
            env = ExoEnv(env)
        as_mdp(env)
    except gym.error.NameNotFound as error:
        raise CommandError(f"{name}: {str(error).rstrip('.')}{_hint(error)}") from error
    except Exception as error:
        if is_told(error):
            raise CommandError(f"{name}: {error}") from error
        raise
    return env


def parse_mask(mdp: ExoMDP, patterns: str) -> tuple[str, ...]:
    """The mask of comma-separated names and patterns."""
    try:
        return as_mask(mdp, [part.strip() for part in patterns.split(",") if part.strip()])
    except ValueError as error:
        raise CommandError(error) from error


def _find_own(name: str) -> Any:
    """What ``module:Class`` stands for; None if the name is an id, of that module or of any."""
    module_name, colon, attribute = name.partition(":")
    if not colon:
        return None
    module = _import(module_name)
    if name.count(":") == 1 and hasattr(module, attribute):
        return getattr(module, attribute)
    if attribute in gym.registry:
        return None
    raise CommandError(unknown_name(f"name in {module_name}", attribute, _offers(module)))


def _import(name: str) -> ModuleType:
    here = os.getcwd()  # noqa: PTH109 sys.path holds strings
    if here not in sys.path:
        sys.path.insert(0, here)
    if name.endswith(".py"):
        raise CommandError(f"a module is imported by its name: write {name[:-3]!r}, not {name!r}")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise CommandError(
                f"there is no module {name!r}, neither in this directory nor installed"
            ) from error
        raise


def _called(name: str, found: Any, arguments: dict[str, Any]) -> Any:
    """A model or an environment, made if need be."""
    if not isinstance(found, (ExoMDP, gym.Env)):
        if not callable(found):
            raise CommandError(
                f"{name} is neither a model or an environment nor a function that makes one, "
                f"but {type(found).__name__}"
            )
        try:
            found = found(**arguments)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise CommandError(f"{name}: {error}") from error  # it does not take these
            raise
    elif arguments:
        raise CommandError(f"{name} is made already, so it takes no options")
    if not isinstance(found, (ExoMDP, gym.Env)):
        raise CommandError(f"{name} makes {type(found).__name__}, not an ExoMDP or a gymnasium.Env")
    return found


def _offers(module: ModuleType) -> list[str]:
    """The models and environments of a module."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, (ExoMDP, gym.Env))
        or (inspect.isclass(value) and issubclass(value, (ExoMDP, gym.Env)))
    ]


def _hint(error: gym.error.Error) -> str:
    if "Did you mean" in str(error):
        return ""
    return f"; choose from {', '.join(ENVIRONMENTS)}, or give your own module:Class"
