"""The audit finds the exact partition of every domain of the suite."""

import gymnasium as gym
import numpy as np
import pytest

import exo_envs  # noqa: F401 - registers the domains
from exo_envs import State
from exo_envs.domains import ENVIRONMENTS
from exo_envs.testing import audit


def truly_moved(mdp, num_states=300):
    """The endogenous variables that actions move, by the probabilities of n' that the model gives.

    Directly: the marginal distribution depends on the action in some state. Or through others: it
    depends on one of those that are moved.
    """
    rng = np.random.default_rng(0)
    states = mdp.sample_uniform(num_states, rng)
    k = len(mdp.endogenous_variables)

    def marginals(n, action):
        """P(n'_i = v), shape (k, num_states, values)."""
        found = mdp.endogenous_distribution(State(n, states.exogenous), np.full(len(n), action))
        values = np.arange(max(v.size for v in mdp.endogenous_variables))
        is_value = found.endogenous[:, :, :, None] == values
        return np.einsum("sa,sakv->ksv", found.probabilities, is_value)

    base = [marginals(states.endogenous, action) for action in range(mdp.num_actions)]
    differ = ~np.isclose(base, base[0]).all(axis=(2, 3))
    moved = set(np.flatnonzero(differ.any(axis=0)).tolist())
    while True:
        more = set()
        for j in moved:
            n = states.endogenous.copy()
            n[:, j] = rng.permutation(n[:, j])
            for action in range(mdp.num_actions):
                apart = ~np.isclose(marginals(n, action), base[action]).all(axis=(1, 2))
                more |= set(np.flatnonzero(apart).tolist())
        if more <= moved:
            return tuple(mdp.endogenous_variables[i].name for i in range(k) if i in moved)
        moved |= more


def never_changing(mdp):
    """The variables with one value in all states of many episodes."""
    rng = np.random.default_rng(0)
    state = mdp.sample_initial(512, rng)
    met = []
    for _ in range(30):
        met.append(np.concatenate(state, axis=1))
        state = mdp.sample_next(state, rng.integers(mdp.num_actions, size=512), rng)
    names = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    constant = np.ptp(np.concatenate(met), axis=0) == 0
    return tuple(name for name, is_constant in zip(names, constant, strict=True) if is_constant)


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        *((env_id, {}) for env_id in ENVIRONMENTS),
        ("ExoCrowd-v0", {"goal": "fixed"}),
        ("ExoSynthetic-v0", {"instance": 3, "num_pairs": 2, "generations": 1}),
    ],
)
def test_the_partition_of_our_domains_is_exact(env_id, arguments):
    env = gym.make(env_id, **arguments)
    mdp = env.unwrapped.mdp
    found = audit(env, rng=0)
    assert found.endogenous == truly_moved(mdp)
    assert found.constant == never_changing(mdp)
    assert found.problems == found.remarks == found.hidden == ()
    everything = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    assert sorted((*found.endogenous, *found.exogenous, *found.constant)) == sorted(everything)
    assert [f.variable for f in found.findings] == everything


def test_what_a_model_has_in_n_need_not_be_moved():
    """In ExoSynthetic the agent is led from site to site; all that it decides are its bets."""
    mdp = gym.make("ExoSynthetic-v0").unwrapped.mdp
    found = audit(mdp, rng=0, num_states=40)
    assert found.endogenous == ("bet",) == truly_moved(mdp)
    assert {"site", "steps_left"} < set(found.exogenous)
    (site,) = (f for f in found.findings if f.variable == "site")
    assert site.reason.endswith("it is said to be endogenous, as it may be")
