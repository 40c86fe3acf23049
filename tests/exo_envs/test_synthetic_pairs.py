"""ExoSynthetic with sites that pay by two variables together."""

import itertools

import numpy as np
import pytest
from planted import make, reference_reward, without

from exo_envs import State
from exo_envs.domains.synthetic import SyntheticEnv, exact_return
from exo_envs.testing import check_mdp

BOTH_KINDS = [{"num_pairs": 3, "instance": i} for i in range(6)]


def pairs(mdp):
    return [site for site in mdp.sites if site.partner is not None]


def test_without_pairs_every_variable_has_its_own_term(planted):
    assert planted.reward_scopes == tuple((name,) for name in planted.exogenous_names)
    assert [planted.reward_scopes[i] for i in planted.reward_columns] == [
        site.scope for site in planted.sites
    ]


def test_a_pair_has_a_term_of_its_own():
    mdp = make(num_pairs=2)
    m = len(mdp.exogenous_names)
    assert mdp.reward_scopes[:m] == tuple((name,) for name in mdp.exogenous_names)
    assert mdp.reward_scopes[m:] == (("pays_0", "partner_0"), ("pays_1", "partner_1"))
    assert mdp.roles["partner_0"] == "pays"
    assert {"pays_0", "partner_0", "parent_partner_0", "grandparent_partner_0"} <= {
        *mdp.required_mask
    }
    # The second variable of a pair adds three to the eleven.
    assert len(mdp.required_mask) == 11 + 2 * 3


def test_the_contract_with_pairs():
    check_mdp(make(num_pairs=3, instance=1, num_noise=2, num_correlated=2))


def test_both_kinds_of_pairs_occur():
    found = {site.outcomes for p in BOTH_KINDS for site in pairs(make(**p))}
    assert ((0, 1), (1, 0)) in found  # XOR
    both = {o for o in found if sum(map(sum, o)) == 1}  # both on, with any polarity
    assert len(both) > 1
    assert found == both | {((0, 1), (1, 0))}


@pytest.mark.parametrize("parameters", BOTH_KINDS, ids=str)
def test_a_bet_on_a_pair_is_fair(parameters):
    """As likely to be won as lost: by the stationary frequencies, within 5 standard errors."""
    mdp = make(**parameters, num_xor_pairs=0)
    x = mdp.sample_initial(20_000, np.random.default_rng(0)).exogenous
    for site in pairs(mdp):
        first, second = x[:, mdp.exogenous_indices(site.scope)].T
        assert abs(np.array(site.outcomes)[first, second].mean() - 0.5) < 5 * 0.5 / 20_000**0.5


def test_rewards_are_those_of_the_documentation():
    mdp = make(num_pairs=2, num_noise=0, num_copies=0, num_correlated=0, generations=1)
    rng = np.random.default_rng(1)
    state = mdp.sample_uniform(3000, rng)
    action = rng.integers(3, size=3000)
    expected = [
        reference_reward(mdp, tuple(n), x, a)
        for n, x, a in zip(state.endogenous.tolist(), state.exogenous, action.tolist(), strict=True)
    ]
    np.testing.assert_allclose(mdp.reward(state, action), expected)


def test_the_value_of_a_pair_is_known_in_closed_form():
    """One site, no ancestors: the two bits are foreseen from themselves."""
    mdp = make(
        num_paying=1, num_xor_pairs=0, num_pairs=1, num_moving=0, generations=0, instance=0,
        num_copies=0, num_noise=0, num_correlated=0, horizon=2,
    )  # fmt: skip
    p, (site,) = mdp.parameters, mdp.sites
    for x in itertools.product(range(2), repeat=2):
        state = State(np.array([0, 1, 0]), np.array(x))
        first, second = mdp.exogenous_indices(site.scope)
        chances = np.outer(mdp.table(site.pays)[x[first]], mdp.table(site.partner)[x[second]])
        won = float((chances * np.array(site.outcomes)).sum())
        gain = site.stake * abs(2 * won - 1) * (1 - 2 * p.slip)
        value = max(0.0, p.discount * gain - p.fee * site.stake)
        assert exact_return(mdp, state=state).actual == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("parameters", BOTH_KINDS, ids=str)
def test_every_variable_of_a_pair_and_its_ancestors_is_worth_something(parameters):
    mdp = make(**parameters)
    best = exact_return(mdp)
    assert best.actual == pytest.approx(best.believed, abs=1e-9)  # Theorem 1
    for name in mdp.required_mask:
        assert best.actual - exact_return(mdp, without(mdp, name)).actual > 0.01 * best.actual, name


def test_site_by_site_is_all_at_once_with_pairs():
    mdp = make(
        num_paying=2, num_xor_pairs=0, num_pairs=1, generations=1, num_copies=1, num_noise=1,
        noise_size=2, num_correlated=1, horizon=12,
    )  # fmt: skip
    for mask in (None, (), without(mdp, "partner_0"), without(mdp, "parent_partner_0")):
        once = exact_return(mdp, mask, by_site=False)
        assert exact_return(mdp, mask) == pytest.approx(once, abs=1e-9)


def test_more_pairs_than_sites_are_refused():
    with pytest.raises(ValueError, match=r"num_pairs counts sites, of which there are num_pay"):
        SyntheticEnv(num_pairs=4)
