"""The backward induction on single trajectories, against plain Python."""

import numpy as np
import pytest

from exo_envs import State
from exo_envs.testing import check_mdp
from planners import Scenarios, evaluate
from planners.bounds.penalty import ExactValues
from planners.bounds.relaxation import BoundDraws, relax
from planners.core.arrays import joint_index
from planners.core.evaluation import play

DRAWS = BoundDraws(num_fresh=8, num_successors=4, seed=0)
NO_PENALTY = np.zeros(1)


def hindsight(mdp, exogenous, start):
    """The best return with the trajectory known, by plain recursion over n."""
    states = [tuple(n) for n in np.ndindex(*mdp.endogenous_sizes)]
    later = dict.fromkeys(states, 0.0)
    for x in exogenous[::-1]:
        now = {}
        for n in states:
            state = State(np.array(n), x.astype(int))
            options = []
            for a in range(mdp.num_actions):
                found = mdp.endogenous_distribution(state, np.array(a))
                pairs = zip(found.endogenous.tolist(), found.probabilities, strict=True)
                mean = sum(p * later[tuple(following)] for following, p in pairs)
                options.append(float(mdp.reward(state, np.array(a))) + mdp.discount * mean)
            now[n] = 0.0 if mdp.is_terminal(state) else max(options)
        later = now
    return later[tuple(start)]


@pytest.mark.parametrize("seed", range(6))
def test_without_a_penalty_it_is_plain_hindsight(small, seed):
    mdp = small.make(seed, endogenous=(2, 2), certain=seed % 3 == 0)
    scenarios = Scenarios.sample(mdp, 7, seed)
    found = relax(mdp, small.anything, scenarios, None, NO_PENALTY, DRAWS)
    expected = [
        hindsight(mdp, scenarios.exogenous[:, b], scenarios.endogenous[b]) for b in range(7)
    ]
    np.testing.assert_allclose(found.values[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_if_x_is_certain_it_is_the_best_value_on_every_trajectory(small, seed):
    mdp = small.make(seed, clockwork=True)
    scenarios = Scenarios.sample(mdp, 20, seed)
    found = relax(
        mdp, small.anything, scenarios, ExactValues(mdp), np.array([0.0, 1.0, 7.0]), DRAWS
    )
    for column in range(3):  # nothing can be known in advance, so no penalty is ever charged
        np.testing.assert_allclose(
            found.values[:, column], small.best_of(mdp, scenarios), atol=1e-5
        )


@pytest.mark.parametrize("seed", range(6))
def test_exact_values_close_it_on_every_trajectory(small, seed):
    """Up to the noise of the mean over fresh x'."""
    mdp = small.make(seed)
    scenarios = Scenarios.sample(mdp, 20, seed)
    draws = DRAWS._replace(num_fresh=20_000)
    found = relax(mdp, small.anything, scenarios, ExactValues(mdp), np.ones(1), draws)
    np.testing.assert_allclose(found.values[:, 0], small.best_of(mdp, scenarios), atol=0.15)


def test_it_is_convex_in_the_weights_on_every_trajectory(small):
    mdp = small.make(5)
    scenarios = Scenarios.sample(mdp, 100, 0)
    weights = np.linspace(0.0, 2.0, 9)
    found = relax(mdp, small.anything, scenarios, ExactValues(mdp), weights, DRAWS).values
    assert (found[:, 1:-1] <= (found[:, :-2] + found[:, 2:]) / 2 + 1e-12).all()
    assert np.ptp(found, axis=1).max() > 0.1


@pytest.mark.parametrize("certain", [False, True])
def test_what_is_given_away_leads_to_the_value_of_the_policy(small, certain):
    mdp = small.make(5, certain=certain)
    scenarios = Scenarios.sample(mdp, 4000, 0)
    weights = np.array([0.0, 1.0])
    found = relax(mdp, small.anything, scenarios, ExactValues(mdp), weights, DRAWS)
    returns = evaluate(small.anything, mdp, scenarios=scenarios)
    assert (found.given_away >= 0).all()
    for column in range(2):
        luck = (found.values - found.given_away)[:, column] - returns
        error = luck.std() / len(luck) ** 0.5
        assert abs(luck.mean()) <= 5 * error + 1e-12
    if certain:  # without a penalty there is no luck
        np.testing.assert_allclose((found.values - found.given_away)[:, 0], returns, atol=1e-12)


def test_drawn_successors_only_loosen_the_bound(small):
    mdp = small.make(5)
    scenarios = Scenarios.sample(mdp, 1000, 0)
    exact = relax(mdp, small.anything, scenarios, None, NO_PENALTY, DRAWS)
    drawn = relax(small.Silent(mdp), small.anything, scenarios, None, NO_PENALTY, DRAWS)
    assert exact.given
    assert not drawn.given
    assert drawn.differed
    for above, below in ((drawn.values, exact.values), (drawn.halved, drawn.values)):
        more = (above - below)[:, 0]
        assert more.mean() > 5 * more.std() / len(more) ** 0.5
    many = relax(
        small.Silent(mdp),
        small.anything,
        scenarios,
        None,
        NO_PENALTY,
        DRAWS._replace(num_successors=64),
    )
    assert abs((many.values - exact.values).mean()) < (drawn.values - exact.values).mean() / 4


@pytest.mark.parametrize("seed", range(4))
def test_tables_give_the_probabilities_that_they_draw_from(small, seed):
    mdp = small.make(seed, endogenous=(2, 3), certain=seed == 3)
    check_mdp(mdp, rng=seed)
    state = mdp.sample_uniform(50, np.random.default_rng(seed))
    action = np.arange(50) % mdp.num_actions
    found = mdp.endogenous_distribution(state, action)
    dense = np.zeros((50, 6))
    targets = joint_index(found.endogenous, (2, 3))
    np.add.at(dense, (np.arange(50)[:, None], targets), found.probabilities)
    n = joint_index(state.endogenous, (2, 3))
    expected = mdp.decision_lists.distribution(n, action, state.exogenous)
    np.testing.assert_allclose(dense, expected, atol=1e-12)


def test_the_model_is_asked_once_for_each_pair_and_step(small):
    mdp = small.make(5)
    scenarios = Scenarios.sample(mdp, 30, 0)
    counted = type("Counted", (small.Silent.__base__,), {})(mdp)
    relax(counted, small.anything, scenarios, ExactValues(mdp), np.ones(3), DRAWS)
    pairs = 30 * mdp.horizon * mdp.num_endogenous_states * mdp.num_actions
    assert counted.reward_samples == pairs
    played = sum(len(step.lanes) for step in play(small.anything, mdp, scenarios))
    # One to find out whether it gives them.
    assert counted.endogenous_samples == pairs + played + 1
    assert counted.exogenous_samples == 30 * (mdp.horizon - 1) * DRAWS.num_fresh + 1
