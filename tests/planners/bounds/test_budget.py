"""Models that answer one state at a time are asked no more than they can answer in a while."""

import re

import numpy as np
import pytest
from harbour import adapt

from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.domains.grid import GridMDP
from planners import bracket
from planners.bounds import bracketing
from planners.bounds.bracketing import TRAINING_ROLLOUTS, Budget


def stay(state):
    return np.zeros(len(state.endogenous), int)


class Slow(CountedMDP):
    """Says that it answers one state at a time, and only draws n'."""

    def __init__(self, model):
        super().__init__(model)
        self.is_batched = False

    def endogenous_distribution(self, state, action):
        return None


class Telling(Slow):
    """The same, but gives the probabilities of n'."""

    def endogenous_distribution(self, state, action):
        return self.model.endogenous_distribution(state, action)


@pytest.mark.parametrize("kind", [Slow, Telling])
@pytest.mark.parametrize("settings", [{"values": ()}, {}])
def test_the_questions_are_as_many_as_were_estimated(small, kind, settings, monkeypatch):
    for name, value in (("TRAINING_ROLLOUTS", 7), ("NUM_FRESH", 5), ("FEW_SUCCESSORS", 3)):
        monkeypatch.setattr(bracketing, name, value)
    mdp = small.make(5)
    slow = kind(mdp)
    penalty = settings or {"model": mdp}
    bracket(slow, small.anything, 11, **penalty)
    functions = 0 if settings else 1
    budget = Budget.of(slow, mdp.horizon, penalty=not settings)
    # Scenarios and the policy's own steps are not counted in; they are few.
    few = 4 * (11 + 7) * (mdp.horizon + 1)
    told = kind is Telling
    asked = slow.samples
    if told:  # what Telling passes on is not counted by anybody
        pairs = mdp.num_endogenous_states * mdp.num_actions
        asked += (11 + 7 * functions) * mdp.horizon * pairs
    assert abs(asked - budget.questions(11)) <= few


def test_few_successors_are_drawn_by_default(small):
    mdp = small.make(5)
    fast, slow = small.Silent(mdp), Slow(mdp)
    for model in (fast, slow):
        bracket(model, small.anything, 11, values=())
    assert slow.endogenous_samples < fast.endogenous_samples / 5


def test_too_many_questions_are_refused_before_any_is_asked():
    slow = Slow(GridMDP())
    with pytest.raises(ValueError, match="one state at a time") as refused:
        bracket(slow, stay)
    assert slow.samples <= 2  # to find out whether it gives the probabilities
    with_penalty, without = map(
        int, re.search(r"(\d+) rollouts, or for (\d+)", str(refused.value)).groups()
    )
    assert with_penalty == 0
    assert without >= 10
    assert len(bracket(slow, stay, without, values=()).upper_values) == without
    with pytest.raises(ValueError, match="max_questions"):
        bracket(slow, stay, without + 1, values=())
    bracket(slow, stay, without + 1, values=(), max_questions=1e9)


def test_the_penalty_is_fitted_on_the_training_trajectories(small):
    none, one = (Budget.of(small.make(5), 5, penalty=k) for k in (0, 1))
    assert none.fitting == 0
    assert one.fitting == TRAINING_ROLLOUTS * one.each
    assert one.affordable(one.fitting - 1) == 0
    assert one.affordable(one.questions(3)) == 3


def test_adapted_environments_have_a_bracket():
    found = bracket(adapt(), stay, 10, values=())
    assert found.successors == "sampled"
    assert found.lower.mean <= found.upper.mean
