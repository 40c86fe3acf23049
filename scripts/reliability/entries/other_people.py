"""What other people wrote: environments that are adapted, RDDL descriptions, audits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from exo_envs import AdaptedMDP, ExoMDP, carry_end, from_rddl
from exo_envs.core.ends import CarriedEnd
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.sources.simulators.played import Agreement
from exo_envs.testing import Audit, Finding, Problem, audit
from planners import estimate_objective
from reliability import subjects
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import Moody

DOMAIN = """
domain walk {
    pvariables {
        at : { state-fluent, bool, default = false };
        rain : { state-fluent, bool, default = false };
        go : { action-fluent, bool, default = false };
    };
    cpfs {
        at' = if (go ^ ~rain) then ~at else at;
        rain' = Bernoulli(if (rain) then 0.7 else 0.2);
    };
    reward = if (at ^ rain) then 1.0 else 0.0 - 0.1 * go;
}
"""
INSTANCE = """
non-fluents walk_nf { domain = walk; }
instance walk_1 {
    domain = walk;
    non-fluents = walk_nf;
    init-state { at = false; };
    max-nondef-actions = 1;
    horizon = 6;
    discount = 0.9;
}
"""


@cache
def walker() -> Any:
    """A small description, imported."""
    return from_rddl(DOMAIN, INSTANCE)


@entry("other/rddl", weight=0.5, limit=60.0)
def rddl(odd: Odd) -> None:
    """A description that was imported, and its methods."""
    mdp, rng = walker(), np.random.default_rng(0)
    kind = odd.below(4)
    state = odd.must_work(mdp.sample_initial, 3, rng)
    if kind == 0:
        odd.must_work(lambda: (mdp.connected_mask, mdp.fluents(state), mdp.action_fluents(1)))
    elif kind == 1:
        action = np.zeros(3, dtype=np.int64)
        odd.must_work(mdp.transition, state, action, rng)
        odd.must_work(mdp.endogenous_distribution, state, action)
        odd.must_work(lambda: (mdp.reward(state, action), mdp.is_terminal(state)))
        odd.must_work(lambda: (mdp.endogenous_reward(state.endogenous, action), repr(mdp)))
    elif kind == 2:
        odd.call(from_rddl, DOMAIN, INSTANCE, horizon=odd.sound_or(3), discount=0.9)
    else:
        odd.must_work(RDDLRefusedError, "unbounded", "no bounds")


@entry("other/environments", weight=0.5, limit=60.0)
def environments(odd: Odd) -> None:
    """Environments whose state is found, and that are played."""
    mdp: AdaptedMDP = subjects.model("adapted")
    kind = odd.below(5)
    if kind == 0:
        odd.must_work(AdaptedMDP.from_env, FrozenLakeEnv(), horizon=20)
    elif kind == 1:
        odd.must_work(mdp.play, lambda state: np.zeros(np.shape(state[0])[:-1], int), 2)
    elif kind == 2:
        odd.must_fail(estimate_objective, AdaptedMDP(Moody(), horizon=5), (), rng=0, n_rollouts=6)
    elif kind == 3:
        state, action = mdp.sample_initial(2, np.random.default_rng(0)), np.zeros(2, dtype=np.int64)
        odd.must_work(mdp.sample_outcome, state, action, np.random.default_rng(0))
        odd.must_work(mdp.check_claims)
        odd.must_work(mdp.why_different, lambda state: np.zeros(np.shape(state[0])[:-1], int))
        returns = odd.altered(np.arange(5.0), 9)
        found = odd.call(Agreement.of, returns, np.ones(5), odd.sound_or_real(1e-3))
        odd.must_work(lambda: (found.agrees, str(found)))
    else:
        model: ExoMDP = subjects.model("market")
        odd.call(carry_end, odd.sound_or(model), looks_at=odd.sound_or(()))
        odd.must_work(carry_end, model)


@entry("other/ends", weight=0.5, limit=60.0)
def ends(odd: Odd) -> None:
    """A model with the end of its episodes in n, and its methods."""
    model, rng = subjects.model("market"), np.random.default_rng(0)
    name = model.exogenous_names[0]
    mdp: CarriedEnd = odd.must_work(carry_end, model, looks_at=(name,))
    odd.must_work(CarriedEnd, model, (name,))
    odd.call(CarriedEnd, model, odd.sound_or((name,)))
    state, _ = odd.must_work(mdp.trajectories, 3, 2, rng)
    state = odd.must_work(mdp.sample_initial, 3, rng)
    action = np.zeros(3, dtype=np.int64)
    odd.must_work(mdp.transition, state, action, rng)
    odd.must_work(mdp.endogenous_distribution, state, action)
    odd.must_work(lambda: (mdp.without_end(state), mdp.held_out, mdp.is_terminal(state)))
    odd.call(mdp.without_end, odd.sound_or(state))
    odd.call(mdp.transition, odd.sound_or(state), odd.sound_or(action), rng)


@entry("other/audits", weight=0.3, limit=60.0)
def audits(odd: Odd) -> None:
    """Which variables actions move."""
    kind = odd.below(3)
    if kind == 0:
        odd.call(audit, odd.sound_or(subjects.model("market")), num_states=4, rng=odd.sound_or(0))
    elif kind == 1:
        names, level = odd.sound_or(None), odd.sound_or(1e-6)
        odd.call(
            audit, subjects.model("market"), num_states=4, names=names, error_probability=level
        )
    found: Audit = odd.must_work(audit, subjects.model("market"), num_states=8)
    odd.must_work(Audit, found.endogenous, found.exogenous, found.findings)
    odd.must_work(lambda: (str(found), found.hidden, found.constant))
    problem: Problem = odd.must_work(Problem, "hidden state", "price", "it depends on the past")
    odd.must_work(lambda: problem.is_hidden)
    if found.findings:
        first = found.findings[0]
        odd.must_work(Finding, **{name: getattr(first, name) for name in Finding.__annotations__})
