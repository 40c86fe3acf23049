"""What a model declares: its variables, its actions, its discount and its horizon."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs.core.errors import ArgumentTypeError, ContractError, unknown_name
from exo_envs.core.mdp import ExoMDP, Variable

#: The methods that follow from others, and where what they would say belongs.
COMPOSED = {
    "reward": "put it into reward_terms, in a column for each of its reward_scopes "
    '(variables that pay only together share one: reward_scopes = (("price", "load"), ...)), '
    "and what depends on no exogenous variable into endogenous_reward",
    "sample_next": "put it into sample_endogenous and sample_exogenous",
    "transition": "put it into sample_endogenous, sample_exogenous and reward_terms",
}


def check_declaration(mdp: Any) -> None:
    """Rule ``declaration`` of the contract.

    Raises:
        TypeError: it is no model.
        ContractError: an attribute is missing or makes no sense.
    """
    if not isinstance(mdp, ExoMDP):
        what = f"the class {mdp.__name__}" if isinstance(mdp, type) else type(mdp).__name__
        raise ArgumentTypeError(f"needed: an ExoMDP, not {what}")
    _check_composed(mdp)
    for attribute in ("endogenous_variables", "exogenous_variables"):
        variables = getattr(mdp, attribute, None)
        if not isinstance(variables, tuple) or not all(isinstance(v, Variable) for v in variables):
            _fail(f"{attribute} should be a tuple of Variable, not {variables!r}")
    names = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        _fail(f"two variables are called {twice!r}")
    _check_scopes(mdp)
    for attribute, valid, wanted in (
        ("num_actions", _is_count, "a whole number, at least 1"),
        ("horizon", _is_count, "a whole number, at least 1"),
        ("discount", _is_discount, "in (0, 1]"),
    ):
        value = getattr(mdp, attribute, None)
        if not valid(value):
            _fail(f"{attribute} should be {wanted}, not {value!r}")


def _check_composed(mdp: ExoMDP) -> None:
    """Refuse a method that nobody would ask: learners and planners compose it themselves."""
    for name, advice in COMPOSED.items():
        if getattr(getattr(mdp, name), "__func__", None) is not getattr(ExoMDP, name):
            _fail(
                f"{type(mdp).__name__} has a method {name!r} of its own, which would be ignored: "
                f"ExoMDP.{name} follows from other methods; {advice}"
            )


def _check_scopes(mdp: ExoMDP) -> None:
    known, scopes = {v.name for v in mdp.exogenous_variables}, mdp.reward_scopes
    if not isinstance(scopes, tuple) or not all(isinstance(scope, tuple) for scope in scopes):
        _fail(f"reward_scopes should be a tuple of tuples of names, not {scopes!r}")
    for scope in scopes:
        if not scope or len(set(scope)) < len(scope):
            _fail(f"a scope of the reward has one name at least, and none twice, not {scope!r}")
        for name in scope:
            if name not in known:
                _fail(f"reward_scopes: {unknown_name('exogenous variable', name, sorted(known))}")


def _fail(message: str) -> None:
    raise ContractError("declaration", message)


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def _is_discount(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and not isinstance(value, bool) and bool(0 < value <= 1)
