"""Environments that break the split are caught, with the variable and the way."""

import re

import pytest
from broken import (
    CountsCallsEnv,
    CountsStepsEnv,
    CrowdReactsLateEnv,
    HasAChangingMoodEnv,
    HasAMoodEnv,
    LeaksThroughNEnv,
    MovesTheCrowdEnv,
    ReactsLateEnv,
    RemembersTheActionEnv,
    RingEnv,
)

from exo_envs import AdaptedMDP
from exo_envs.testing import ContractError, audit, check_mdp

PAST = "the same state and action give another future after another past: from .* was set"
#: What is wrong with each, in which variable, and words of the message.
ENVIRONMENTS = {
    RemembersTheActionEnv: ("hidden state", "robot", PAST),
    HasAMoodEnv: ("hidden state", "crowd", PAST),
    HasAChangingMoodEnv: ("hidden state", "crowd", PAST),
    LeaksThroughNEnv: ("leaks through n", "crowd", "its next value depends on robot"),
    MovesTheCrowdEnv: ("moved", "crowd", "said to be exogenous, but actions move it"),
    ReactsLateEnv: ("hidden state", "robot", "robot reacts to an action 1 step late"),
    CrowdReactsLateEnv: ("hidden state", "crowd", "crowd reacts to an action 1 step late"),
    CountsStepsEnv: ("hidden state", "crowd", PAST),
    CountsCallsEnv: ("hidden state", "crowd", "differs if another one was played before"),
}
NAMES = ["robot", "battery", "crowd", "weather"]
#: After how many steps an action shows.
STEPS = dict.fromkeys((LeaksThroughNEnv, ReactsLateEnv, CrowdReactsLateEnv), 2)
STEPS[MovesTheCrowdEnv] = 1
#: The robot is moved by actions, and so is the crowd if it looks at them.
MOVED = dict.fromkeys((LeaksThroughNEnv, MovesTheCrowdEnv, CrowdReactsLateEnv), ("robot", "crowd"))


def check_caught(found, broken, expected):
    kind, variable, words = expected
    (problem,) = found.problems
    assert (problem.kind, problem.variable) == (kind, variable)
    assert problem.p_value < 1e-6
    assert found.hidden == (() if kind in ("moved", "leaks through n") else (variable,))
    assert found.endogenous == MOVED.get(broken, ("robot",))
    assert re.search(words, problem.message), problem.message
    return problem


@pytest.mark.parametrize("broken", ENVIRONMENTS)
def test_a_broken_environment_is_caught(broken):
    found = audit(broken(), rng=0, names=NAMES)
    problem = check_caught(found, broken, ENVIRONMENTS[broken])
    assert problem.steps == STEPS.get(broken, 0)
    assert problem.share > 0.1 or broken is CountsCallsEnv


@pytest.mark.parametrize("broken", [RemembersTheActionEnv, CountsStepsEnv, ReactsLateEnv])
def test_other_seeds_say_the_same(broken):
    expected = ENVIRONMENTS[broken]
    for seed in range(1, 4):
        check_caught(audit(broken(), rng=seed, names=NAMES), broken, expected)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (RemembersTheActionEnv, "memory"),
        (HasAChangingMoodEnv, "memory"),
        (ReactsLateEnv, "memory"),
        (CrowdReactsLateEnv, "memory"),
        (CountsStepsEnv, "memory"),
        (LeaksThroughNEnv, "exogeneity"),
        (MovesTheCrowdEnv, "exogeneity"),
    ],
)
def test_the_contract_check_refuses_environments_with_more_than_their_state(broken, rule):
    mdp = AdaptedMDP(
        broken(), endogenous_variables=NAMES[:2], exogenous_variables=NAMES[2:], horizon=30
    )
    with pytest.raises(ContractError) as caught:
        check_mdp(mdp, num_states=8, num_samples=60)
    assert caught.value.rule == rule


def test_an_approximation_is_not_refused_for_what_it_leaves_out():
    check_mdp(AdaptedMDP(CountsStepsEnv(), horizon=30, differences="warn"), num_states=8)


# --- no false alarms ----------------------------------------------------------------------------


def test_good_environments_are_not_refused():
    for seed in range(3):
        check_mdp(AdaptedMDP(RingEnv(), horizon=30), rng=seed, num_states=8, num_samples=60)


class PaysForThePast(RingEnv):
    """Pays for an action that is not repeated."""

    def begin(self):
        self.last = None

    def step(self, action):
        new, self.last = self.last != int(action), int(action)
        observation, reward, *rest = super().step(action)
        return observation, reward + float(new), *rest


class EndsAfterAWhile(RingEnv):
    """Ends after nine steps, which nobody counts."""

    def begin(self):
        self.left = 9

    def step(self, action):
        self.left -= 1
        observation, reward, _, truncated, info = super().step(action)
        return observation, reward, self.left == 0, truncated, info


@pytest.mark.parametrize(
    ("env", "variable"),
    [(PaysForThePast(), "the reward"), (EndsAfterAWhile(), "the end of the episode")],
    ids=["reward", "end"],
)
def test_rewards_and_ends_may_depend_on_the_past_as_well(env, variable):
    (problem,) = audit(env, rng=0).problems
    assert (problem.kind, problem.variable) == ("hidden state", variable)
