"""All rules of the contract, one after the other."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.contract.declaration import check_declaration
from exo_envs.contract.distribution import check_distribution, gives_distribution
from exo_envs.contract.exact import (
    check_lanes,
    check_payment,
    check_purity_and_determinism,
    check_reward,
    check_terms,
)
from exo_envs.contract.form import check_initial, check_shapes, collect_states, draw_initial
from exo_envs.contract.lanes import check_neighbours
from exo_envs.contract.memory import check_memory, check_state
from exo_envs.contract.probe import Probe
from exo_envs.contract.statistical import check_batching, check_exogeneity, check_mean_payment
from exo_envs.core.errors import ArgumentError
from exo_envs.core.inputs import as_generator, check_flag, check_level, check_real, check_whole
from exo_envs.core.mdp import ExoMDP
from exo_envs.sources.simulators.conversion import as_mdp
from exo_envs.sources.simulators.mdp import AdaptedMDP


def check_mdp(
    mdp: ExoMDP | gym.Env[Any, Any],
    *,
    rng: np.random.Generator | int | None = None,
    num_states: int = 64,
    num_samples: int = 300,
    error_probability: float = 1e-6,
    any_state: bool | None = None,
    reward_range: float | None = None,
) -> None:
    """Check that ``mdp`` keeps the contract of :class:`ExoMDP`.

    The rules, in the order they are checked:

    - ``declaration``: variables, actions, discount and horizon make sense, and no method is
      overridden that follows from others (``reward``, ``sample_next``, ``transition``).
    - ``shapes``: every method takes any leading dimensions and returns arrays of the right shape,
      kind and range.
    - ``purity``: arguments are not written to, and what is returned is the caller's to write to.
    - ``memory``: an answer does not depend on what was asked before. The message says what the
      model remembers: actions, n, x, its own draws, or how often it was asked.
    - ``determinism``: the same seed gives the same result, whatever was called in between.
    - ``reward``: the reward is finite.
    - ``terms``: reward term i depends on no x^j but x^i.
    - ``batching``: a batch has the distribution of as many single calls, and a lane does not
      depend on the others (statistical).
    - ``distribution``: if ``endogenous_distribution`` gives probabilities of n', they sum to 1 and
      ``sample_endogenous`` draws from them (statistical).

    An adapted environment need not do what its model claims, so its own steps are looked at too:

    - ``reward``: they pay the sum of the terms, each of them or, with ``reward_range``, on average
      (then statistical).
    - ``exogeneity``: they have the distribution P(n'|n,a,x) P(x'|x). So x' depends neither
      on n nor on the action, and n' and the end of the episode look at x, not at x'
      (statistical). What x' is after the end of an episode does not matter.
    - ``memory``: the same state and action have the same future after different pasts, also if
      the state is set (:func:`exo_envs.testing.audit`; statistical). That is not looked at in a
      model that takes ``differences`` for granted.

    A model that keeps the contract fails a statistical rule with at most ``error_probability``
    in all (Hoeffding's inequality, divided among all comparisons).

    Args:
        mdp: the model, or an environment over it.
        rng: a generator or a seed; by default the same one each time.
        num_states: how many states the exact rules look at.
        num_samples: how many samples of each state the statistical rules compare.
        error_probability: of a statistical rule failing by chance.
        any_state: whether to include states drawn uniformly from the whole space, reachable or
            not; by default yes, except for adapted environments.
        reward_range: how far apart two rewards of an adapted environment (or two sums of the
            terms that it tells) can be, if they depend on chance: means can be compared only
            within known bounds. The larger the model's ``reward_samples``, the more is found.

    Raises:
        ContractError: names the rule and shows the state that breaks it.
    """
    rng = as_generator("rng", rng, default=0)
    num_states = check_whole("num_states", num_states, 1)
    num_samples = check_whole("num_samples", num_samples, 1)
    error_probability = check_level("error_probability", error_probability)
    if any_state is not None:
        any_state = check_flag("any_state", any_state)
    if reward_range is not None and check_real("reward_range", reward_range) <= 0:
        raise ArgumentError(f"reward_range is a positive number or None, not {reward_range!r}")
    if isinstance(mdp, gym.Env):
        mdp = as_mdp(mdp)
    if isinstance(mdp, ExoMDP):
        mdp = unchecked(mdp)
    check_declaration(mdp)
    check_initial(mdp, rng)
    first = Probe.of(mdp, draw_initial(mdp, 8, rng), rng)
    check_memory(first, rounds=1)  # first, because what it remembers may not fit other shapes
    check_shapes(first)  # before walking on from them
    if any_state is None:
        any_state = not isinstance(mdp, AdaptedMDP)
    probe = Probe.of(mdp, collect_states(mdp, num_states, any_state, rng), rng)
    check_shapes(probe)
    check_memory(probe)
    check_purity_and_determinism(probe)
    check_reward(probe)
    check_terms(probe.strict())
    check_lanes(probe.strict())
    if not isinstance(mdp, AdaptedMDP):
        share = error_probability / 3
        if mdp.is_batched:
            check_neighbours(probe.strict(), num_samples, share)
        check_batching(probe, num_samples, share)
        if gives_distribution(probe):
            check_distribution(probe, num_samples, share)
        return
    share = error_probability / 4
    check_batching(probe, num_samples, share)
    if reward_range is None:
        check_payment(probe, mdp)
    else:
        check_mean_payment(probe, mdp, num_samples, reward_range, share)
    check_exogeneity(probe, mdp, num_samples, share)
    check_state(mdp, share)
