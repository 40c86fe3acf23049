"""ExoSynthetic: its values are exact."""

import functools
import itertools

import numpy as np
import pytest
from planted import SMALL, make, reference_outcomes, reference_reward, without

from exo_envs import State
from exo_envs.domains.synthetic import exact, exact_return


def expectimax(mdp, n, x, steps):
    """The optimal value, in the plainest way: over all n' and all joint x'."""

    @functools.cache
    def joint(x):
        chances = {}
        for following in itertools.product(*(range(v.size) for v in mdp.exogenous_variables)):
            chances[following] = 1.0
            for name, value in zip(mdp.exogenous_names, following, strict=True):
                parents = (x[mdp.exogenous_names.index(parent)] for parent in mdp.parents[name])
                chances[following] *= mdp.table(name)[(*parents, value)]
        return chances

    @functools.cache
    def value(n, x, steps):
        if steps == 0:
            return 0.0
        return max(
            reference_reward(mdp, n, x, action)
            + mdp.discount
            * sum(
                chance_n * chance_x * value(next_n, next_x, steps - 1)
                for next_n, chance_n in reference_outcomes(mdp, n, x, action).items()
                for next_x, chance_x in joint(x).items()
            )
            for action in range(mdp.num_actions)
        )

    return value(n, x, steps)


def test_the_optimal_value_is_that_of_expectimax():
    mdp = make(
        num_paying=1, num_xor_pairs=0, generations=1, num_copies=0, num_noise=0,
        num_correlated=0, horizon=6,
    )  # fmt: skip
    for x in itertools.product(range(2), repeat=3):
        value = exact_return(mdp, state=State(np.array([0, 1, 0]), np.array(x))).actual
        assert value == pytest.approx(expectimax(mdp, (0, 1, 0), x, 6), abs=1e-9)


def xor_bet(mdp, exogenous):
    """The action that bets on what the XOR pair of a one-site problem calls for."""
    table = mdp.table("pays_0")
    a, b = (exogenous[:, mdp.exogenous_names.index(name)] for name in mdp.parents["pays_0"])
    return 1 + table[a, b].argmax(axis=-1)


def test_the_optimal_value_of_an_xor_pair_is_known_and_earned():
    """In closed form; then by rollouts of that policy, within 5 standard errors."""
    mdp = make(num_paying=1, num_xor_pairs=1, num_moving=0)
    p, stake, right = mdp.parameters, mdp.sites[0].stake, mdp.table("pays_0").max()
    gain = stake * (2 * right - 1) * (1 - 2 * p.slip)
    visits = mdp.discount ** np.arange(0, mdp.horizon, 2)
    value = (visits * (mdp.discount * gain - p.fee * stake)).sum()
    assert exact_return(mdp).actual == pytest.approx(value, abs=1e-9)

    rng = np.random.default_rng(6)
    state = mdp.sample_initial(4000, rng)
    returns = np.zeros(4000)
    for t in range(mdp.horizon):
        state, reward, _ = mdp.transition(state, xor_bet(mdp, state.exogenous), rng)
        returns += mdp.discount**t * reward
    assert abs(returns.mean() - value) < 5 * returns.std() / np.sqrt(len(returns))


def test_what_a_mask_leaves_out_is_marginalised(planted):
    """The reduced model of an open mask against frequencies, within 5.5 standard errors."""
    process = exact._joint_process(planted, planted.closure(planted.sites[0].variables))
    mask = ("grandparent_0_0", "parent_moves_0", "pays_0")
    enumerated = exact._enumerate(planted, process, [0], mask)
    reduced, _ = exact._reduce(enumerated, process, mask)

    rng = np.random.default_rng(8)
    state = planted.sample_initial(100_000, rng)
    following = planted.sample_exogenous(state.exogenous, rng)
    now, then = (
        exact._codes(x[:, planted.exogenous_indices(mask)], np.full(3, 2))
        for x in (state.exogenous, following)
    )
    crossing = exact._codes(np.array([0, 1, 1]), planted.endogenous_sizes)
    on = state.exogenous[:, planted.exogenous_names.index("moves_0")]
    slip = planted.parameters.slip
    for code in range(8):
        error = 5.5 * 0.5 / np.sqrt((now == code).sum())
        frequencies = np.bincount(then[now == code], minlength=8) / (now == code).sum()
        assert np.abs(reduced.transitions[code] - frequencies).max() < error
        turned = slip + (1 - 2 * slip) * on[now == code].mean()
        assert abs(reduced.turn[1, crossing, code] - turned) < error
    assert np.ptp(reduced.turn[1, crossing]) > 0.2  # the parent tells something about the switch


def test_site_by_site_is_all_at_once():
    mdp = make(**SMALL)
    names = mdp.required_mask
    masks = [None, (), names[:3], names[2:], without(mdp, "moves_0"), mdp.exogenous_names]
    for mask in masks:
        once = exact_return(mdp, mask, by_site=False)
        assert exact_return(mdp, mask) == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize("by_site", [True, False])
def test_distractors_change_nothing(by_site):
    mdp = make(**SMALL)
    best = exact_return(mdp, by_site=by_site)
    assert best.actual == pytest.approx(best.believed, abs=1e-9)  # Theorem 1
    for extra in set(mdp.exogenous_names) - set(mdp.required_mask):
        wider = exact_return(mdp, [*mdp.required_mask, extra], by_site=by_site)
        assert wider == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("parameters", "share"),
    [
        ({}, 0.06),
        ({"instance": 1}, 0.06),
        ({"instance": 2, "num_moving": 2}, 0.05),
        ({"parents_per_paying": 2}, 0.04),
        ({"generations": 1, "num_moving": 3}, 0.1),
        ({"generations": 0}, 0.1),
        ({"num_xor_pairs": 3, "num_moving": 3}, 0.1),
        ({"generations": 3}, 0.005),  # neighbours stand in for the middle of a long chain
    ],
    ids=str,
)
def test_every_required_variable_is_worth_something(parameters, share):
    mdp = make(**parameters)
    best = exact_return(mdp).actual
    for name in mdp.required_mask:
        worth = best - exact_return(mdp, without(mdp, name)).actual
        assert worth > share * best, name


def test_the_figures_of_the_documentation(planted):
    def value(*roles):
        return exact_return(
            planted, [n for n in planted.required_mask if planted.roles[n] in roles]
        )

    assert value().actual == 0
    ladder = [("pays",), ("pays", "moves"), ("pays", "moves", "parent")]
    ladder += [(*ladder[-1], "grandparent"), (*ladder[-1], "grandparent", "xor")]
    assert [round(value(*roles).actual, 1) for roles in ladder] == [1.7, 1.7, 22.7, 33.7, 58.9]


def test_too_much_to_enumerate_is_refused(planted):
    with pytest.raises(ValueError, match=r"joint values; at most 4096"):
        exact_return(planted, planted.exogenous_names, by_site=False)
    many = make(num_paying=12, num_noise=300)  # but not site by site
    assert exact_return(many).actual > 0
    one = make(num_paying=1, num_moving=0, num_copies=0, num_noise=2000)
    assert exact_return(one, one.exogenous_names) == pytest.approx(exact_return(one), abs=1e-9)
