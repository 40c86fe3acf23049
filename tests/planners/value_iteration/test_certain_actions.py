"""Sweeps that leave out actions which cannot have become the best: the same plans, to the byte."""

import numpy as np
import pytest
from factored import random_mdp
from hypothesis import given
from hypothesis import strategies as st

from planners import ValueIteration
from planners.value_iteration import run
from planners.value_iteration.sweeps import Drift


class Unknown(Drift):
    """So far a drift that no action is certain to outlast."""

    def __new__(cls, now, _):
        return super().__new__(cls, now, np.inf)


@given(seed=st.integers(0, 2**32), single=st.booleans())
def test_plans_are_those_of_looking_at_every_action(seed, single):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(
        rng, sizes=(3, 2, 2), num_actions=4, num_rules=2, num_terminal=int(rng.integers(2))
    )
    planner = ValueIteration(tolerance=1e-6, dtype=np.float32 if single else np.float64)
    plan = planner.plan(mdp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Drift", Unknown)
        every = planner.plan(mdp)
    assert plan.values.tobytes() == every.values.tobytes()
    assert plan.policy.actions.tobytes() == every.policy.actions.tobytes()
    assert (plan.residual, plan.iterations) == (every.residual, every.iterations)


def test_most_states_are_certain_in_the_end(monkeypatch):
    kept = []
    monkeypatch.setattr(run.Run, "finish", lambda self: kept.append(self) or finish(self))
    mdp = random_mdp(np.random.default_rng(0), sizes=(3, 4), num_actions=4)
    ValueIteration().plan(mdp)
    (done,) = kept
    assert (done.kept.certain > done.drift).mean() > 0.5


finish = run.Run.finish
