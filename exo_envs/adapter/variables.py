"""The variables of an environment that somebody else wrote."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from exo_envs.mdp import Variable
from exo_envs.spaces import Variables, Wanted, num_shown


def check_all_shown(env: gym.Env[Any, Any]) -> None:
    """Refuse observations without some variables of the state that ``reset`` is to be given.

    An observation wrapper changes what is shown and nothing else, so the state is what the
    environment underneath shows.
    """
    layer = env
    while isinstance(layer, gym.Wrapper):
        shown, all_of_them = num_shown(layer), num_shown(layer.env)
        if isinstance(layer, gym.ObservationWrapper) and shown < all_of_them:
            raise ValueError(
                f"{layer} shows {shown} of {all_of_them} variables, so the state cannot be read; "
                f"give the environment underneath, {layer.env}"
            )
        layer = layer.env


def declared_variables(part: str, wanted: Wanted) -> Variables:
    """The variables in one part of what split or get_state return, as the user says."""
    variables = tuple(entry for entry in wanted or () if isinstance(entry, Variable))
    if wanted is None or len(variables) < len(wanted):
        raise TypeError(
            f"with split or get_state, {part}_variables is a sequence of Variable(name, size) "
            f"that says what they return, not {wanted!r}"
        )
    return variables


def check_names(variables: Variables) -> None:
    """Refuse two variables of one name."""
    names = [variable.name for variable in variables]
    for name in names:
        if names.count(name) > 1:
            hint = " (one of them is the adapter's own)" if name == "done" else ""
            raise ValueError(f"there are two variables named {name!r}{hint}")
