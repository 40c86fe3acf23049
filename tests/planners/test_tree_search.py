"""Tree search, against what is known exactly."""

import time

import numpy as np
import pytest
from factored import random_mdp
from models import CoinMDP, CounterMDP

from exo_envs import ExoMDP, State, Variable
from planners.core.evaluation import Scenarios, evaluate, paired_difference
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


class Valve(ExoMDP):
    """A valve has a thousand positions. An action sets the one of the next step.

    It pays 1 if that is near the demand of the next step, which the forecast tells. So what an
    action pays at once says nothing, and a random one is right in about 1 of 100 times.
    """

    endogenous_variables = (Variable("position", 1000),)
    exogenous_variables = (Variable("demand", 1000), Variable("forecast", 1000))
    num_actions, discount, horizon = 1000, 0.9, 6

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), rng.integers(1000, size=(size, 2)))

    def sample_exogenous(self, exogenous, rng):
        following = rng.integers(1000, size=exogenous.shape)
        following[..., 0] = exogenous[..., 1]
        return following

    def sample_endogenous(self, state, action, rng):
        return np.array(action)[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = np.abs(state.endogenous[..., 0] - state.exogenous[..., 0]) <= 5
        return terms


def test_of_a_thousand_actions_those_are_searched_that_do_well():
    mdp = Valve()
    scenarios = Scenarios.sample(mdp, 40, np.random.default_rng(0))
    plan = UCT(simulations=60, depth=3).plan(mdp, rng=np.random.default_rng(1))
    earned = evaluate(plan.policy, mdp, scenarios=scenarios)
    best = sum(0.9**t for t in range(1, 6))  # the first position is given
    assert earned.mean() > 0.9 * best
    state = State(scenarios.endogenous, scenarios.exogenous[0])
    np.testing.assert_array_equal(plan.policy(state), plan.policy(state))


def test_where_a_thousand_actions_pay_the_same_some_are_tried_all_the_same():
    class Idle(Valve):
        def reward_terms(self, state, action):
            return np.zeros(state.exogenous.shape)

        def is_terminal(self, state):
            return state.endogenous[..., 0] >= 500

    mdp = Idle()
    actions = (
        UCT(simulations=5, depth=4)
        .plan(mdp)
        .policy(mdp.sample_initial(50, np.random.default_rng(0)))
    )
    assert ((actions >= 0) & (actions < 1000)).all()


class Slow(CoinMDP):
    """Ten milliseconds a step; an episode has forty."""

    horizon = 40

    def sample_exogenous(self, exogenous, rng):
        time.sleep(0.01)
        return super().sample_exogenous(exogenous, rng)


@pytest.mark.parametrize(
    ("limit", "simulations", "depth"),
    # A decision may take half of the limit / 40, and a simulation of depth d takes d / 100 s.
    [(None, 100, 20), (1e5, 100, 20), (800, (50, 100), (8, 10)), (80, 32, (1, 3)), (1, 32, 1)],
)
def test_a_time_limit_is_kept_by_searching_less(limit, simulations, depth):
    planner = UCT(simulations=100, depth=20)
    plan = planner.plan(Slow(), rng=np.random.default_rng(0), time_limit=limit)
    policy = plan.policy
    low, high = simulations if isinstance(simulations, tuple) else (simulations, simulations)
    assert low <= policy.simulations <= high
    low, high = depth if isinstance(depth, tuple) else (depth, depth)
    assert low <= policy.depth <= high
    assert plan.out_of_time == ((policy.simulations, policy.depth) != (100, 20))
    said = f"{policy.simulations} of 100 simulations, {policy.depth} of 20 steps ahead"
    assert plan.method == "tree search" + f" with {said}" * plan.out_of_time
    assert (planner.simulations, planner.depth) == (100, 20)


def test_it_never_claims_to_have_converged():
    plan = UCT(simulations=1000).plan(CoinMDP())
    assert not plan.converged
    assert plan.loss_bound == plan.residual == float("inf")
    assert not plan.out_of_time
