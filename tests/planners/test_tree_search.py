"""Tree search, against what is known exactly."""

import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP

from exo_envs import State
from planners.evaluation import Scenarios, evaluate, paired_difference
from planners.tree_search import UCT, UCTPolicy


def optimal_first_actions(mdp, depth, n, x):
    """Q at the root by enumeration of a small model over ``depth`` steps."""
    sizes = [int(size) for size in mdp.exogenous_sizes]
    joint = np.array(np.unravel_index(np.arange(np.prod(sizes)), sizes)).T
    states, actions = mdp.num_endogenous_states, mdp.num_actions
    exogenous = np.ones((len(joint), len(joint)))
    for i, factor in enumerate(mdp.factors):
        rows = np.zeros(len(joint), dtype=int)
        for parent in factor.parents:
            rows = rows * sizes[parent] + joint[:, parent]
        exogenous *= factor.to_table(sizes[i])[rows][:, joint[:, i]]
    value = np.zeros((states, len(joint)))
    for _ in range(depth):
        ahead = value @ exogenous.T
        q = np.zeros((states, len(joint), actions))
        for state in range(states):
            for a in range(actions):
                pair = np.full(len(joint), state), np.full(len(joint), a)
                reward = mdp.base_reward[state, a] + sum(
                    table[joint[:, i], state, a] for i, table in mdp.terms.items()
                )
                move = mdp.decision_lists.distribution(*pair, joint)
                q[state, :, a] = reward + mdp.discount * (move * ahead.T).sum(axis=1)
        q[mdp.terminal] = 0.0
        value = q.max(axis=-1)
    index = np.ravel_multi_index(tuple(x.T), sizes)
    return q[n, index]


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_nearly_optimal_actions(seed):
    """The mean loss of its first actions is below a tenth of that of random ones."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, sizes=(2, 2), num_terminal=seed % 2, discount=0.9)
    depth = 4
    state = mdp.sample_initial(60, rng)
    q = optimal_first_actions(mdp, depth, mdp.endogenous_index(state.endogenous), state.exogenous)
    policy = UCT(simulations=600, depth=depth).plan(mdp, rng=rng).policy
    chosen = q[np.arange(60), policy(state)]
    loss, random_loss = (q.max(axis=1) - chosen).mean(), (q.max(axis=1) - q.mean(axis=1)).mean()
    assert loss < 0.1 * random_loss


def test_it_plays_a_model_without_tables():
    """It names the side a coin shows, and so earns what can be earned; random play half of it."""
    mdp = CoinMDP()
    scenarios = Scenarios.sample(mdp, 50, np.random.default_rng(0), horizon=5)
    policy = UCT(simulations=60, depth=2).plan(mdp, rng=np.random.default_rng(1)).policy
    returns = evaluate(policy, mdp, scenarios=scenarios)
    ones = scenarios.exogenous.sum(axis=2)
    np.testing.assert_allclose(returns, np.maximum(ones, 2 - ones).sum(axis=0))
    idle = evaluate(lambda s: np.zeros(len(s.endogenous), int), mdp, scenarios=scenarios)
    assert paired_difference(returns, idle).mean > 1.0


def test_terminal_roots_and_values_out_of_range_get_an_answer():
    policy = UCT(simulations=5).plan(CounterMDP()).policy
    assert policy(State(np.array([5, 0]), np.array([0, 0]))) in range(3)
    assert policy(State(np.array([99, -1]), np.array([9, 9]))) in range(3)


def test_the_same_question_gets_the_same_answer():
    mdp = CoinMDP()
    policy = UCT(simulations=8).plan(mdp, rng=np.random.default_rng(3)).policy
    state = mdp.sample_initial(30, np.random.default_rng(0))
    np.testing.assert_array_equal(policy(state), policy(state))


def test_settings_are_saved_and_the_model_is_given_again(tmp_path):
    mdp, path = CoinMDP(), tmp_path / "uct.npz"
    policy = UCT(simulations=8).plan(mdp, rng=np.random.default_rng(3)).policy
    policy.save(path)
    state = mdp.sample_initial(30, np.random.default_rng(0))
    np.testing.assert_array_equal(UCTPolicy.load(path, mdp)(state), policy(state))
    with pytest.raises(ValueError, match="other variables"):
        UCTPolicy.load(path, CounterMDP())


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="simulations is a whole number, at least 1, not 0"):
        UCT(simulations=0)


class NaNs(CoinMDP):
    """Rewards that are none."""

    def reward_terms(self, state, action):
        return super().reward_terms(state, action) * np.nan


def test_a_model_is_checked_when_it_is_searched():
    with pytest.raises(TypeError, match="mdp is a ExoMDP, not int"):
        UCTPolicy(3, simulations=2, depth=2, exploration=1.0, seed=0)
    policy = UCT(simulations=2, depth=2).plan(NaNs(), rng=0).policy
    with pytest.raises(ValueError, match="reward_terms returned nan"):
        policy(CoinMDP().sample_initial(2, np.random.default_rng(0)))
    nowhere = CoinMDP()
    nowhere.discount = "0.9"
    with pytest.raises((TypeError, ValueError), match="discount"):
        UCT().plan(nowhere)
