"""All rules of the contract, one after the other."""

from __future__ import annotations

import numpy as np

from exo_envs.contract.checked_mdp import unchecked
from exo_envs.contract.declaration import check_declaration
from exo_envs.contract.distribution import check_distribution, gives_distribution
from exo_envs.contract.exact import (
    check_lanes,
    check_purity_and_determinism,
    check_reward,
    check_terms,
)
from exo_envs.contract.form import check_initial, check_shapes, collect_states, draw_initial
from exo_envs.contract.lanes import check_neighbours
from exo_envs.contract.memory import check_memory
from exo_envs.contract.own_steps import check_exogeneity, check_mean_payment, check_payment
from exo_envs.contract.probe import Probe
from exo_envs.contract.statistical import check_batching
from exo_envs.core.arguments import as_generator, check_flag, check_level, check_real, check_whole
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP
from exo_envs.core.original import HasOwnSteps


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
    check_initial(mdp, rng)
    first = Probe.of(mdp, draw_initial(mdp, 8, rng), rng)
    check_memory(first, rounds=1)  # first, because what it remembers may not fit other shapes
    check_shapes(first)  # before walking on from them
    own = mdp if isinstance(mdp, HasOwnSteps) else None
    if any_state is None:
        any_state = own is None
    probe = Probe.of(mdp, collect_states(mdp, num_states, any_state, rng), rng)
    check_shapes(probe)
    check_memory(probe)
    check_purity_and_determinism(probe)
    check_reward(probe)
    check_terms(probe.strict())
    check_lanes(probe.strict())
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
