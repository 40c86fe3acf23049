"""From a description to a model, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from exo_envs.core.arguments import check_choice, check_flag, check_whole, shown
from exo_envs.core.errors import ArgumentError, unknown_name
from exo_envs.sources.rddl.actions import enforce_preconditions, limits_of, tabulate_actions
from exo_envs.sources.rddl.description import Description, check_shared_draws, find_exogenous
from exo_envs.sources.rddl.grounding import ground
from exo_envs.sources.rddl.intervals import (
    check_bounds,
    drop_constants,
    find_bounds,
    keep_draws_valid,
    keep_within_bounds,
)
from exo_envs.sources.rddl.loading import NoExogenousFluentsWarning, RDDLRefusedError, load
from exo_envs.sources.rddl.model import RDDLMDP, CarriedRDDLMDP
from exo_envs.sources.rddl.rewards import split_reward
from exo_envs.sources.rddl.variables import defer, merge_exclusive

#: Actions that a model may have at most, unless the user says otherwise.
MAX_ACTIONS = 10_000


def from_rddl(
    domain: Any,
    instance: Any,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    action_values: Mapping[str, Sequence[Any]] | None = None,
    max_concurrent: int | None = None,
    max_actions: int = MAX_ACTIONS,
    preconditions: str = "enforce",
    merge: bool = True,
    horizon: int | None = None,
    discount: float | None = None,
) -> RDDLMDP:
    """Import an RDDL description as a batched model.

    A state fluent is exogenous if no action reaches it, directly or through other fluents. What
    cannot be represented exactly is refused by name; nothing is approximated. See docs/rddl.md.

    Args:
        domain: a name of rddlrepository, the path of a domain file, or its text.
        instance: the number of an instance, the path of an instance file, or its text.
        bounds: the smallest and the largest value of fluents (of all objects, ``"stock"``, or of
            some, ``"stock___w1"``), where neither an invariant nor what can be reached from the
            initial state says so, or too generously. A value that would leave them stays at the
            bound.
        action_values: a finite choice of values for action fluents.
        max_concurrent: the number of action fluents that may be set at once, if fewer than the
            instance allows.
        max_actions: refuse more actions than this.
        preconditions: with ``"enforce"``, an action whose precondition does not hold in a state
            does there what the default action does; with ``"ignore"`` it is taken all the same, as
            pyRDDLGym does by default.
        merge: whether fluents of which at most one can hold, as is proved, become one variable.
        horizon: the length of an episode, if not the instance's.
        discount: the weight of the next step's reward, if not the instance's.

    Raises:
        ImportError: pyRDDLGym (or rddlrepository) is missing.
        RDDLRefusedError: the description cannot be represented; a ``ValueError``.

    Warns:
        NoExogenousFluentsWarning: actions reach every fluent. The model has no exogenous variable.
    """
    check_choice("treatment of preconditions", preconditions, ("enforce", "ignore"))
    merge = check_flag("merge", merge)
    model = load(domain, instance)
    if model.observ_fluents:
        raise RDDLRefusedError(
            "partially-observable",
            f"{model.domain_name!r} shows observations ({', '.join(model.observ_fluents)}) instead "
            "of its state; import the MDP version of it",
        )
    given = Description(
        name=f"{model.domain_name}, {model.instance_name}",
        horizon=check_whole("horizon", model.horizon if horizon is None else horizon, 1),
        discount=float(model.discount if discount is None else discount),
    )
    ground(model, given)
    most = min(int(model.max_allowed_actions), len(given.action_kinds))
    if max_concurrent is not None:
        most = min(most, check_whole("max_concurrent", max_concurrent, 0))
    given.actions = tabulate_actions(
        given,
        action_values=action_values or {},
        most_at_once=most,
        most_actions=check_whole("max_actions", max_actions, 1),
    )
    stated = _stated_bounds(given, bounds or {})
    if preconditions == "enforce":
        enforce_preconditions(given)
    find_bounds(given, stated)
    while drop_constants(given):  # without these, others may turn out not to change either
        find_bounds(given, stated)
    keep_within_bounds(given)
    if merge:
        merge_exclusive(given)
    given.exogenous = find_exogenous(given)
    check_shared_draws(given)
    defer(given)
    check_bounds(given)
    keep_draws_valid(given)
    split_reward(given)
    if not given.exogenous:
        constants = given.constants
        more = f" and {len(constants) - 3} more" if len(constants) > 3 else ""
        unchanging = f" ({', '.join(constants[:3])}{more} never do)" if constants else ""
        warnings.warn(
            f"actions reach every fluent of {model.domain_name!r} that changes{unchanging}: the "
            "model has no exogenous variable, and nothing to mask",
            NoExogenousFluentsWarning,
            stacklevel=2,
        )
    ends_by_x = not given.looks_at(given.terminal).isdisjoint(given.exogenous)
    return (CarriedRDDLMDP if ends_by_x else RDDLMDP)(given)


def _stated_bounds(
    given: Description, bounds: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """The bounds that the user gives or an invariant states, and those of the types."""
    known = {*given.kinds, *(given.lifted[name][0] for name in given.kinds)}
    for name, pair in bounds.items():
        if name not in known:
            raise unknown_name("state fluent", name, sorted(known))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not pair[0] < pair[1]:
            raise ArgumentError(f"bounds of {name!r} are a pair (low, high), not {shown(pair)}")
    together = given.graph.all(given.invariants)
    stated = limits_of(together.args if together.op == "and" else (together,), "state")
    for name, kind in given.kinds.items():
        lifted = given.lifted[name][0]
        if kind == "bool":
            stated[name] = (0, 1)
        elif name in given.values:
            stated[name] = (0, len(given.values[name]) - 1)
        elif name in bounds or lifted in bounds:
            low, high = bounds.get(name, bounds.get(lifted, (0, 0)))
            stated[name] = (float(low), float(high))
            if not low <= given.initial[name] <= high:
                raise ArgumentError(
                    f"{name!r} begins with {given.initial[name]}, which is outside its bounds "
                    f"{low} and {high}"
                )
    return stated
