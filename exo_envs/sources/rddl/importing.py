"""From a description to a model, step by step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exo_envs.core.arguments import check_choice, check_flag, check_whole, shown
from exo_envs.core.errors import ArgumentError, unknown_name
from exo_envs.sources.rddl.actions import limits_of, state_dependent_preconditions, tabulate_actions
from exo_envs.sources.rddl.deferring import defer
from exo_envs.sources.rddl.errors import NoExogenousFluentsWarning, RDDLRefusedError
from exo_envs.sources.rddl.grounding import Grounded, ground
from exo_envs.sources.rddl.intervals import Interval, intervals
from exo_envs.sources.rddl.loading import load
from exo_envs.sources.rddl.merging import merge_exclusive
from exo_envs.sources.rddl.model import RDDLMDP, Design, model_of
from exo_envs.sources.rddl.nodes import Node
from exo_envs.sources.rddl.operations import DISTRIBUTIONS
from exo_envs.sources.rddl.partition import check_shared_draws, find_exogenous, parents_of
from exo_envs.sources.rddl.process import Process
from exo_envs.sources.rddl.reachability import by_values, drop_constants, find_bounds
from exo_envs.sources.rddl.rewards import split_reward

#: Actions that a model may have at most, unless the user says otherwise.
MAX_ACTIONS = 10_000
#: Values of a whole variable, beyond which it counts as unbounded.
MOST_VALUES = 2**31


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
    grounded = ground(model)
    horizon = check_whole("horizon", model.horizon if horizon is None else horizon, 1)
    actions = tabulate_actions(
        grounded,
        action_values=action_values or {},
        most_at_once=_most_at_once(model, max_concurrent),
        most_actions=check_whole("max_actions", max_actions, 1),
    )
    process = _begin(grounded, preconditions)
    stated = _stated_bounds(grounded, bounds or {})
    constants: tuple[str, ...] = ()
    while True:  # without those that never change, others may turn out not to change either
        find_bounds(process, actions, stated, horizon)
        more = drop_constants(process)
        constants += more
        if not more:
            break
    chosen = actions.intervals()
    _keep_within_bounds(process, chosen)
    values = {n: grounded.domain_of[n] for n in process.kinds if n in grounded.domain_of}
    if merge:
        values |= merge_exclusive(process, actions, grounded.lifted)
    exogenous = find_exogenous(process)
    check_shared_draws(process, exogenous)
    defer(process, exogenous, process.box() | chosen)
    _check_bounds(process, exogenous, grounded)
    _keep_draws_valid(process, process.box() | chosen)
    (reward,) = process.settled([process.reward])
    terms = split_reward(process.graph, reward, exogenous)
    if process.draws([reward]):
        process.notes.append("the reward looks at what is drawn in the step; its mean is paid")
    if not exogenous:
        warnings.warn(
            f"actions reach every fluent of {model.domain_name!r} that changes"
            f"{_unchanging(constants)}: the model has no exogenous variable, and nothing to mask",
            NoExogenousFluentsWarning,
            stacklevel=2,
        )
    return model_of(
        Design(
            process=process,
            exogenous=exogenous,
            actions=actions,
            terms=terms,
            parents=parents_of(process, exogenous),
            values={name: names for name, names in values.items() if name in process.kinds},
            constants=constants,
            name=f"{model.domain_name}, {model.instance_name}",
            discount=float(model.discount if discount is None else discount),
            horizon=horizon,
        )
    )


def _unchanging(constants: tuple[str, ...]) -> str:
    """The fluents that never change, for people."""
    if not constants:
        return ""
    more = f" and {len(constants) - 3} more" if len(constants) > 3 else ""
    return f" ({', '.join(constants[:3])}{more} never do)"


def _most_at_once(model: Any, max_concurrent: int | None) -> int:
    count = len(model.ground_vars_with_values(model.action_fluents))
    allowed = min(int(model.max_allowed_actions), count)
    if max_concurrent is None:
        return allowed
    return min(allowed, check_whole("max_concurrent", max_concurrent, 0))


def _begin(grounded: Grounded, preconditions: str) -> Process:
    graph = grounded.graph
    process = Process(
        graph=graph,
        kinds=dict(grounded.state),
        bounds={},
        initial=dict(grounded.initial),
        following=dict(grounded.following),
        reward=grounded.reward,
        terminal=graph.any(grounded.terminations),
        fluents={},
    )
    process.fluents = {name: process.leaf(name) for name in process.kinds}
    needed = graph.all(state_dependent_preconditions(grounded))
    if not needed.is_constant and preconditions == "enforce":
        process.replace(
            {
                leaf: graph.choose(needed, leaf, graph.constant(grounded.default[name], kind))
                for name, kind in grounded.action.items()
                for leaf in [graph.leaf("action", name, kind)]
            }
        )
        process.notes.append(
            "an action whose precondition does not hold does what the default action does"
        )
    return process


def _stated_bounds(
    grounded: Grounded, given: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """The bounds that the user gives or an invariant states, and those of the types."""
    known = {*grounded.state, *(grounded.lifted[name][0] for name in grounded.state)}
    for name, pair in given.items():
        if name not in known:
            raise unknown_name("state fluent", name, sorted(known))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not pair[0] < pair[1]:
            raise ArgumentError(f"bounds of {name!r} are a pair (low, high), not {shown(pair)}")
    together = grounded.graph.all(grounded.invariants)
    conjuncts = list(together.args) if together.op == "and" else [together]
    invariant = limits_of(conjuncts, "state")
    stated: dict[str, tuple[float, float]] = {}
    for name, kind in grounded.state.items():
        lifted = grounded.lifted[name][0]
        if kind == "bool":
            stated[name] = (0, 1)
        elif name in grounded.domain_of:
            stated[name] = (0, len(grounded.domain_of[name]) - 1)
        elif name in given or lifted in given:
            low, high = given.get(name, given.get(lifted, (0, 0)))
            stated[name] = (float(low), float(high))
            if not low <= grounded.initial[name] <= high:
                raise ArgumentError(
                    f"{name!r} begins with {grounded.initial[name]}, which is outside its bounds "
                    f"{low} and {high}"
                )
        elif name in invariant:
            stated[name] = invariant[name]
    return stated


def _keep_within_bounds(process: Process, chosen: Mapping[Node, Interval]) -> None:
    """Let values that a step would carry beyond their bounds stay there."""
    names = [name for name, kind in process.kinds.items() if kind != "bool"]
    roots = process.settled([process.following[name] for name in names])
    clipped = []
    known = process.box() | dict(chosen)
    for name, root in zip(names, roots, strict=True):
        low, high = process.bounds[name]
        found = by_values(process, root, name, known)
        if np.min(found.low) < low or np.max(found.high) > high:
            process.following[name] = process.graph.clip(process.following[name], low, high)
            clipped.append(name)
    if clipped:
        process.notes.append(
            "values that a step would carry beyond their bounds stay there (from the initial "
            "state and within the horizon, only at bounds that the user or an invariant gives): "
            + ", ".join(clipped)
        )


def _check_bounds(process: Process, exogenous: tuple[str, ...], grounded: Grounded) -> None:
    for name, kind in process.kinds.items():
        low, high = process.bounds[name]
        wide = not math.isfinite(high - low) or (kind == "int" and high - low >= MOST_VALUES)
        if wide and not (kind == "real" and name in exogenous):
            part = "exogenous" if name in exogenous else "endogenous"
            fluent = grounded.lifted[name][0] if name in grounded.lifted else name
            what = "whole" if kind == "int" else "real"
            raise RDDLRefusedError(
                "unbounded",
                f"the {part} {what} fluent {name!r} has no bounds that follow from the "
                f"description; give bounds={{{fluent!r}: (low, high)}}",
            )


def _keep_draws_valid(process: Process, known: Mapping[Node, Interval]) -> None:
    """Keep chances between 0 and 1, variances from being negative, and so on, where needed."""
    names = list(process.following)
    draws = process.draws([*process.following.values(), process.reward]).values()
    guarded: dict[Node, list[Node]] = {}
    for draw in draws:
        ranges = DISTRIBUTIONS[draw.value[0]].ranges
        args = process.settled(list(draw.args))
        found = intervals(args, known)
        for arg, (low, high), interval in zip(draw.args, ranges, found, strict=False):
            if np.min(interval.low) < low or np.max(interval.high) > high:
                guarded.setdefault(draw, list(draw.args))
                position = draw.args.index(arg)
                guarded[draw][position] = process.graph.clip(arg, low, high)
    if not guarded:
        return
    values = {draw: process.graph.rebuild(draw, args) for draw, args in guarded.items()}
    process.replace(values)
    assert list(process.following) == names
    process.notes.append(
        "in states where a distribution would have an impossible argument (a negative variance, "
        "say), it has the nearest possible one: "
        + ", ".join(sorted({draw.value[0] for draw in guarded}))
    )
