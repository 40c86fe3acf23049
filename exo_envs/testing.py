"""Checks that users run on their own models and environments.

>>> import numpy as np
>>> from exo_envs.domains.grid import GridMDP
>>> check_mdp(GridMDP(), rng=np.random.default_rng(0))
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs.audit.audit import audit
from exo_envs.audit.results import Audit, Finding, Problem
from exo_envs.contract.check import check_rules
from exo_envs.contract.checked_mdp import unchecked
from exo_envs.contract.original import HasOwnSteps
from exo_envs.core.errors import ContractError
from exo_envs.core.mdp import ExoMDP
from exo_envs.sources.simulators.conversion import as_mdp

__all__ = ["Audit", "ContractError", "Finding", "Problem", "audit", "check_mdp"]

#: States in which two actions of an adapted environment are compared.
NUM_AUDITED_STATES = 30


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
    - ``memory``: an answer does not depend on what was asked before.
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
    model = as_mdp(mdp) if isinstance(mdp, gym.Env) else mdp
    share = check_rules(
        model,
        rng=rng,
        num_states=num_states,
        num_samples=num_samples,
        error_probability=error_probability,
        any_state=any_state,
        reward_range=reward_range,
    )
    own = unchecked(model)
    if isinstance(own, HasOwnSteps) and own.differences == "refuse":
        found = audit(own, num_states=NUM_AUDITED_STATES, error_probability=share)
        for problem in found.problems:
            rule = "memory" if problem.is_hidden else "exogeneity"
            raise ContractError(rule, f"{problem.message} ({problem.kind})")
