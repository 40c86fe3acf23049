"""Models that remember are caught, and so is what they remember."""

import numpy as np
import pytest
from broken import (
    CountsCalls,
    CountsSteps,
    CrowdReactsLate,
    HasAMood,
    LeaksThroughN,
    ReactsLate,
    RemembersTheAction,
    RingMDP,
)
from models import CoinMDP, CounterMDP

from exo_envs.contract.check import check_quickly
from exo_envs.contract.memory import find_memory
from exo_envs.domains.grid import GridMDP
from exo_envs.testing import ContractError, audit, check_mdp

#: The variable in which each goes wrong.
MODELS = {
    RemembersTheAction: "robot",
    HasAMood: "crowd",
    LeaksThroughN: "crowd",
    ReactsLate: "robot",
    CrowdReactsLate: "crowd",
    CountsSteps: "weather",
    CountsCalls: "crowd",
}


@pytest.mark.parametrize("broken", MODELS)
def test_a_broken_model_is_caught(broken):
    found = audit(broken(), rng=0, num_states=60)
    variable = MODELS[broken]
    (problem,) = found.problems
    assert (problem.kind, problem.variable) == ("hidden state", variable)
    assert f"of {variable!r} for the same state, action and seed" in problem.message
    assert found.hidden == (variable,)
    moves_the_crowd = broken in (LeaksThroughN, CrowdReactsLate)
    assert found.endogenous == (("robot", "crowd") if moves_the_crowd else ("robot",))
    assert "problem (hidden state): " in str(found)


@pytest.mark.parametrize("look", [check_mdp, check_quickly])
@pytest.mark.parametrize("broken", MODELS)
def test_the_contract_check_refuses_models_that_remember(broken, look):
    with pytest.raises(ContractError) as caught:
        look(broken())
    if broken is HasAMood:  # its mood changes while a question is repeated
        assert caught.value.rule in ("memory", "determinism")
        return
    assert caught.value.rule == "memory"
    variable = MODELS[broken]
    assert f"of {variable!r} for the same state, action and seed" in str(caught.value)
    assert "at n: robot=" in str(caught.value)


# --- no false alarms ----------------------------------------------------------------------------


@pytest.mark.parametrize("mdp", [CoinMDP(), CounterMDP(), RingMDP(), GridMDP()], ids=repr)
def test_no_model_is_said_to_remember_that_does_not(mdp):
    """Nothing is left to chance: the same question has the same answer."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        states = mdp.sample_uniform(16, rng)
        assert not [*find_memory(mdp, states, rng, rounds=1, max_calls=10)]


# --- what a model may keep ----------------------------------------------------------------------


class Caches(RingMDP):
    """Keeps what it computed, which changes nothing."""

    def __init__(self):
        self.table = {}

    def stroll(self, exogenous):
        key = exogenous.tobytes()
        return self.table.setdefault(key, super().stroll(exogenous)).copy()


def test_a_model_may_keep_what_it_computed():
    check_mdp(Caches())
    assert audit(Caches(), num_states=20).problems == ()


class CannotBeCopied(RemembersTheAction):
    def __deepcopy__(self, memo):
        raise TypeError("not this one")


def test_a_model_that_cannot_be_copied_is_caught_all_the_same():
    (problem,) = audit(CannotBeCopied(), num_states=20).problems
    assert (problem.kind, problem.variable) == ("hidden state", "robot")
    assert "something is stored between calls" in problem.message


class IgnoresTheSeed(RingMDP):
    def stroll(self, exogenous):
        return np.random.default_rng().random(exogenous.shape[:-1])


def test_a_model_that_ignores_the_seed_is_said_to():
    problem = audit(IgnoresTheSeed(), num_states=20).problems[0]
    assert (problem.kind, problem.variable) == ("ignores the seed", "crowd")
