"""Small models whose best value is known, and models that say less than they know."""

from types import SimpleNamespace

import numpy as np
import pytest
from factored import random_mdp, state_index, to_arrays

from exo_envs import State
from exo_envs.contract.checked_mdp import CountedMDP
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factors import Factor


class Silent(CountedMDP):
    """Draws n', but does not give its probabilities."""

    def endogenous_distribution(self, state, action):
        return None


def make(seed, *, certain=False, clockwork=False, **settings):
    """A random model of few states; n' or x' can be made certain."""
    rng = np.random.default_rng(seed)
    settings = {"horizon": 1 + seed % 6, "num_terminal": seed % 2, **settings}
    mdp = random_mdp(rng, **settings)
    n_states, sizes = mdp.num_endogenous_states, mdp.exogenous_sizes
    if certain:
        rules = {}
        for n in range(n_states):
            for a in range(mdp.num_actions):
                targets = rng.integers(n_states, size=sizes[0])
                table = np.eye(n_states)[np.where(mdp.terminal[n], n, targets)]
                rules[n, a] = [Rule.from_table((0,), table), Rule.certain(n)]
        mdp.decision_lists = DecisionLists.from_lists([*rules.values()], mdp.num_actions, sizes)
    if clockwork:
        tables = [np.eye(size)[rng.permutation(size)] for size in sizes]
        factors = tuple(Factor.from_table((i,), table) for i, table in enumerate(tables))
        mdp.__dict__["factors"] = factors
        mdp.__dict__.pop("all_factors", None)
    return mdp


def best_values(mdp, horizon=None):
    """The best values with the whole horizon left, by dense matrices: shape (states,)."""
    transitions, rewards = to_arrays(mdp)
    values = np.zeros(len(rewards))
    for _ in range(mdp.horizon if horizon is None else horizon):
        following = np.einsum("ast,t->sa", transitions, values)
        values = (rewards + mdp.discount * following).max(axis=1)
    return values


def best_value(mdp):
    """V*: the mean over the states in which episodes start."""
    return best_values(mdp)[state_index(mdp, mdp.initial)].mean()


def best_of(mdp, scenarios):
    """The best value of the state in which each trajectory starts."""
    starts = State(scenarios.endogenous, scenarios.exogenous[0].astype(int))
    return best_values(mdp, len(scenarios.exogenous))[state_index(mdp, starts)]


def anything(state):
    """A policy: some function of the state."""
    return (state.endogenous.sum(axis=-1) + state.exogenous.sum(axis=-1)) % 3


@pytest.fixture
def small():
    """What the tests of this folder share."""
    return SimpleNamespace(
        make=make, Silent=Silent, best_value=best_value, best_of=best_of, anything=anything
    )
