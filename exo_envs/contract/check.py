"""All rules of the contract one after the other, or the exact ones in a little time."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from exo_envs.contract.answers import check_declaration
from exo_envs.contract.checked_mdp import CountedMDP, unchecked
from exo_envs.contract.memory import MAX_CALLS, check_memory
from exo_envs.contract.original import HasOriginal, HasOwnSteps
from exo_envs.contract.own_steps import check_exogeneity, check_mean_payment, check_payment
from exo_envs.contract.rules import (
    BATCH_SHAPES,
    Probe,
    check_batching,
    check_distribution,
    check_finite,
    check_given,
    check_neighbours,
    check_purity_and_determinism,
    check_scopes,
    check_shapes,
    check_single_states,
    collect_states,
    draw_initial,
    gives_distribution,
    shares_noise,
)
from exo_envs.core.arguments import as_generator, check_flag, check_level, check_real, check_whole
from exo_envs.core.clock import Clock, OutOfTimeError, tick
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP

#: Samples of a state, if lanes seem to depend on each other.
SAMPLES = 300
#: The probability that a good model fails by chance.
ERROR_PROBABILITY = 1e-9
#: Seconds that the rules may take in all; a question that was asked is waited for.
SECONDS = 1.0


class _Effort(NamedTuple):
    """How much the exact rules ask of a model."""

    first_states: int  # initial states, before anything else is looked at
    states: int
    first_calls: int  # calls between two questions, for the rule `memory`
    calls: int
    rounds: int
    batch_shapes: tuple[tuple[int, ...], ...]  # of the first states
    later_shapes: tuple[tuple[int, ...], ...]
    repeats: int  # how often the range of everything is looked at


_QUICKLY = _Effort(2, 64, 4, 8, 2, ((), (1,), (2, 3)), (), 1)
#: Each state is a step of somebody's simulator.
_ONE_BY_ONE = _QUICKLY._replace(states=4, batch_shapes=((), (2,)))


def check_rules(
    mdp: ExoMDP,
    *,
    rng: np.random.Generator | int | None,
    num_states: int,
    num_samples: int,
    error_probability: float,
    any_state: bool | None,
    reward_range: float | None,
) -> float:
    """Look at every rule of :func:`exo_envs.testing.check_mdp` but the audit.

    Returns:
        The share of ``error_probability`` that is left for the audit of a model with own steps.
    """
    rng = as_generator("rng", rng, default=0)
    num_states = check_whole("num_states", num_states, 1)
    num_samples = check_whole("num_samples", num_samples, 1)
    error_probability = check_level("error_probability", error_probability)
    if any_state is not None:
        any_state = check_flag("any_state", any_state)
    if reward_range is not None and check_real("reward_range", reward_range) <= 0:
        raise ArgumentError(f"reward_range is a positive number or None, not {reward_range!r}")
    if isinstance(mdp, ExoMDP):
        mdp = unchecked(mdp)
    check_declaration(mdp)
    own = mdp if isinstance(mdp, HasOwnSteps) else None
    if any_state is None:
        any_state = own is None
    effort = _Effort(8, num_states, MAX_CALLS, MAX_CALLS, 3, BATCH_SHAPES, BATCH_SHAPES, 4)
    probe = _check_exactly(mdp, effort, any_state, rng)
    share = error_probability / (3 if own is None else 4)
    if own is None and mdp.is_batched:
        check_neighbours(probe.strict(), num_samples, share)
    check_batching(probe, num_samples, share)
    if own is not None:
        if reward_range is None:
            check_payment(probe, own)
        else:
            check_mean_payment(probe, own, num_samples, reward_range, share)
        check_exogeneity(probe, own, num_samples, share)
    elif gives_distribution(probe):
        check_distribution(probe, num_samples, share)
    return share


def _check_exactly(
    mdp: ExoMDP, effort: _Effort, any_state: bool, rng: np.random.Generator
) -> Probe:
    """Look at the rules that hold or do not, and return the states at which they were tried."""
    for size in (1, 5):
        draw_initial(mdp, size, rng)
    first = Probe.of(mdp, draw_initial(mdp, effort.first_states, rng), rng)
    # First, because what it remembers may not fit other shapes.
    check_memory(first, rounds=1, max_calls=effort.first_calls)
    check_shapes(first, effort.batch_shapes, effort.repeats)  # before walking on from them
    probe = Probe.of(mdp, collect_states(mdp, effort.states, any_state, rng), rng)
    check_shapes(probe, effort.later_shapes, effort.repeats)
    check_memory(probe, rounds=effort.rounds, max_calls=effort.calls)
    check_purity_and_determinism(probe)
    check_finite(probe)
    check_scopes(probe.strict())
    check_single_states(probe.strict())
    return probe


def check_quickly(mdp: ExoMDP, *, seconds: float = SECONDS) -> None:
    """Check the rules of :func:`check_mdp` that hold or do not, at a few states.

    Those are ``declaration``, ``shapes``, ``memory``, ``purity``, ``determinism``, ``reward``,
    ``terms``, ``batching`` of what is certain and the form of a ``distribution``. Learners and
    :func:`planners.estimate_objective` do this before anything else, unless they are told not to:
    a mask that was learned on a broken model is wrong and does not look it. What takes a
    statistical test is left to :func:`check_mdp`. An adapted environment is also played
    (:meth:`exo_envs.contract.original.HasOriginal.check_claims`), once.

    Args:
        mdp: the model; one that counts its questions counts these, too.
        seconds: no question is asked after that time; compiling does not count. (The rules
            take a few milliseconds in a model that is written for batches; playing an environment
            takes its own time.)

    Raises:
        ContractError: names the rule and shows the state that breaks it.
    """
    check_declaration(mdp)
    model = unchecked(mdp)
    asked = CountedMDP(model, check=False)
    try:
        with suppress(OutOfTimeError), Clock(seconds).above():
            effort = _QUICKLY if model.is_batched else _ONE_BY_ONE
            probe = _check_exactly(asked, effort, model.is_batched, np.random.default_rng(0))
            if model.is_batched:
                check_neighbours(probe.strict(), SAMPLES, ERROR_PROBABILITY / 2)
                if shares_noise(probe.strict()):
                    check_batching(probe, SAMPLES, ERROR_PROBABILITY / 2)
            if gives_distribution(probe):
                check_given(probe)
    finally:
        if isinstance(mdp, CountedMDP):
            mdp.add(asked)
    tick()  # the time of a clock above may be up
    if isinstance(model, HasOriginal):
        model.check_claims()
