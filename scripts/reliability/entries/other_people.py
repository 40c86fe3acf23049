"""What other people wrote: environments that are adapted, RDDL descriptions, audits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from exo_envs import AdaptedMDP, ExoMDP, RDDLRefusedError, carry_end, from_rddl
from exo_envs.testing import Audit, Finding, audit
from reliability import subjects
from reliability.odd import Odd
from reliability.registry import entry

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
    kind = odd.below(4)
    if kind == 0:
        odd.must_work(AdaptedMDP.from_env, FrozenLakeEnv(), horizon=20)
    elif kind == 1:
        odd.must_work(mdp.play, lambda state: np.zeros(np.shape(state[0])[:-1], int), 2)
        odd.must_work(mdp.record, 5)
    elif kind == 2:
        rows = np.zeros((2, 3), dtype=np.int64)
        odd.must_work(mdp.as_state, rows, np.zeros(2, dtype=np.bool_), (2,))
    else:
        model: ExoMDP = subjects.model("market")
        odd.must_work(carry_end, model)


@entry("other/audits", weight=0.3, limit=60.0)
def audits(odd: Odd) -> None:
    """Which variables actions move."""
    found: Audit = odd.must_work(audit, subjects.model("market"), num_states=8)
    odd.must_work(Audit, found.endogenous, found.exogenous, found.findings)
    if found.findings:
        first = found.findings[0]
        odd.must_work(Finding, **{name: getattr(first, name) for name in Finding.__annotations__})
