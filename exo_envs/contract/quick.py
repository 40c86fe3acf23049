"""The exact rules of the contract in a few states and little time: what every ``fit`` looks at."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.contract.declaration import check_declaration
from exo_envs.contract.distribution import check_given, gives_distribution
from exo_envs.contract.exact import (
    check_lanes,
    check_purity_and_determinism,
    check_reward,
    check_terms,
)
from exo_envs.contract.form import check_initial, check_shapes, collect_states, draw_initial
from exo_envs.contract.lanes import check_neighbours, shares_noise
from exo_envs.contract.memory import check_memory
from exo_envs.contract.probe import Probe
from exo_envs.contract.statistical import check_batching
from exo_envs.core.clock import working_time
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, IntArray, State, Successors
from exo_envs.core.original import HasOriginal

#: Samples of a state, if lanes seem to depend on each other.
SAMPLES = 300
#: The probability that a good model fails by chance.
ERROR_PROBABILITY = 1e-9
#: Seconds that the rules may take in all; a question that was asked is waited for.
SECONDS = 1.0


class _Effort(NamedTuple):
    """How much a model is asked."""

    num_states: int
    batch_shapes: tuple[tuple[int, ...], ...]


_BATCHED = _Effort(64, ((), (1,), (2, 3)))
_ONE_BY_ONE = _Effort(4, ((), (2,)))  # each state is a step of somebody's simulator


def check_quickly(mdp: ExoMDP, *, seconds: float = SECONDS) -> None:
    """Check the rules of :func:`check_mdp` that hold or do not, at a few states.

    Those are ``declaration``, ``shapes``, ``memory``, ``purity``, ``determinism``, ``reward``,
    ``terms``, ``batching`` of what is certain and the form of a ``distribution``. Learners and
    :func:`planners.estimate_objective` do this before anything else, unless they are told not to:
    a mask that was learned on a broken model is wrong and does not look it. What takes a
    statistical test is left to :func:`check_mdp`. An adapted environment is also played
    (:meth:`exo_envs.core.original.HasOriginal.check_claims`), once.

    Args:
        mdp: the model.
        seconds: no rule is begun, and nothing asked, after that time; compiling does not count.
            (The rules take a few milliseconds in a model that is written for batches; playing an
            environment takes its own time.)

    Raises:
        ContractError: names the rule and shows the state that breaks it.
    """
    check_declaration(mdp)
    model = unchecked(mdp)
    with suppress(_OutOfTimeError):
        _check(_TimedMDP(mdp, working_time() + seconds), model)
    if isinstance(model, HasOriginal):
        model.check_claims()


def _check(timed: _TimedMDP, mdp: ExoMDP) -> None:
    rng = np.random.default_rng(0)
    effort = _BATCHED if mdp.is_batched else _ONE_BY_ONE
    check_initial(timed, rng)
    probe = Probe.of(timed, draw_initial(timed, 2, rng), rng)
    check_memory(probe, rounds=1, max_calls=4)
    check_shapes(probe, effort.batch_shapes, repeats=1)  # before walking on from them
    states = collect_states(timed, effort.num_states, mdp.is_batched, rng)
    probe = Probe.of(timed, states, rng)
    check_shapes(probe, (), repeats=1)
    check_memory(probe, rounds=2, max_calls=8)
    check_purity_and_determinism(probe)
    check_reward(probe)
    check_terms(probe.strict())
    check_lanes(probe.strict())
    if mdp.is_batched:
        check_neighbours(probe.strict(), SAMPLES, ERROR_PROBABILITY / 2)
        if shares_noise(probe.strict()):
            check_batching(probe, SAMPLES, ERROR_PROBABILITY / 2)
    if gives_distribution(probe):
        check_given(probe)


class _OutOfTimeError(Exception):
    """The time for the check is over."""


class _TimedMDP(ExoMDP):
    """A model that is asked nothing any more once the time is over; its answers are not touched."""

    def __init__(self, model: ExoMDP, end: float) -> None:
        self._model = model
        self._end = end
        self.declare_as(model)

    def _ask(self, method: str, *arguments: Any) -> Any:
        if working_time() > self._end:
            raise _OutOfTimeError
        return getattr(self._model, method)(*arguments)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        return self._ask("sample_initial", size, rng)

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        return self._ask("sample_exogenous", exogenous, rng)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        return self._ask("sample_endogenous", state, action, rng)

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        return self._ask("reward_terms", state, action)

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        return self._ask("endogenous_reward", endogenous, action)

    def is_terminal(self, state: State) -> BoolArray:
        return self._ask("is_terminal", state)

    def endogenous_distribution(self, state: State, action: IntArray) -> Successors | None:
        return self._ask("endogenous_distribution", state, action)
