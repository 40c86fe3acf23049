"""ExoSynthetic: the right mask is the right one, the tables are the dynamics, the values exact."""

import functools
import itertools
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chi2

from exo_envs import State
from exo_envs.synthetic import (
    SyntheticEnv,
    SyntheticMDP,
    SyntheticParameters,
    SyntheticVectorEnv,
    exact,
    exact_return,
)
from exo_envs.testing import check_mdp

PASS = 0
STRUCTURES = [
    {},
    {"instance": 1, "parents_per_paying": 2},
    {"generations": 1, "num_moving": 2},
    {"generations": 3, "num_xor_pairs": 0, "num_paying": 1},
    {"generations": 0, "persistence": 0.7},
    {"num_paying": 2, "num_xor_pairs": 2, "num_moving": 2},
    {"parents_per_paying": 3, "generations": 1, "num_moving": 0},
    {"persistence": 0.0},
]
# Two sites with one distractor of each kind: small enough to enumerate all at once.
SMALL = {
    "num_paying": 2,
    "generations": 1,
    "num_copies": 1,
    "num_noise": 1,
    "noise_size": 2,
    "num_correlated": 1,
    "horizon": 12,
}


def make(**parameters):
    return SyntheticMDP(SyntheticParameters(**parameters))


def without(mdp, name):
    return [other for other in mdp.required_mask if other != name]


@pytest.fixture(scope="module")
def default():
    return make()


# --- what was planted ---------------------------------------------------------------------


def test_the_default_is_thirty_variables_of_which_eleven_matter(default):
    assert Counter(default.roles.values()) == {
        "pays": 3, "parent": 3, "grandparent": 2, "xor": 2, "moves": 1,
        "copy": 5, "noise": 8, "correlated": 6,
    }  # fmt: skip
    assert len(default.required_mask) == 11
    assert default.num_actions <= 5
    assert np.prod(default.endogenous_sizes) <= 27


def test_sizes_are_as_asked():
    mdp = make(
        num_paying=5, num_xor_pairs=2, parents_per_paying=2, generations=3, num_moving=4,
        num_copies=40, num_noise=7, noise_size=100, num_correlated=12,
    )  # fmt: skip
    # Three sites with 2 parents, 2 grandparents, 2 great-grandparents each; three of the four
    # switches are there, with an ancestry of two, and one on a site with an XOR pair, with none.
    assert Counter(mdp.roles.values()) == {
        "pays": 5, "parent": 6 + 3, "grandparent": 12 + 3, "xor": 4, "moves": 4,
        "copy": 40, "noise": 7, "correlated": 12,
    }  # fmt: skip
    sizes = {v.name: v.size for v in mdp.exogenous_variables}
    assert [sizes[f"noise_{i}"] for i in range(7)] == [2, 4, 7, 14, 27, 52, 100]
    assert {sizes[name] for name in mdp.required_mask} == {2}
    assert {site.delay for site in mdp.sites} == {1, 3}


@pytest.mark.parametrize("parameters", STRUCTURES, ids=str)
def test_the_required_mask_is_what_the_behaviour_calls_for(parameters):
    """Found again from the rewards, the transitions and the tables, with no look at the roles."""
    mdp = make(**parameters)
    rng = np.random.default_rng(0)
    state = mdp.sample_uniform(2000, rng)
    action = rng.integers(mdp.num_actions, size=2000)
    wanted = set()
    before = mdp.endogenous_outcomes(state, action)[2]
    for i, name in enumerate(mdp.exogenous_names):
        other = state.exogenous.copy()
        other[:, i] = (other[:, i] + 1) % mdp.exogenous_sizes[i]
        changed = State(state.endogenous, other)
        if (mdp.reward_terms(changed, action) != mdp.reward_terms(state, action)).any():
            wanted.add(name)
        if (mdp.endogenous_outcomes(changed, action)[2] != before).any():
            wanted.add(name)
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        table = mdp.table(name)
        assert table.shape[:-1] == tuple(mdp.node(p).size for p in mdp.parents[name])
        for axis, parent in enumerate(mdp.parents[name]):
            assert np.ptp(table, axis=axis).max() > 0.1  # a parent in more than name
            if parent not in wanted:
                wanted.add(parent)
                waiting.append(parent)
    assert mdp.required_mask == tuple(n for n in mdp.exogenous_names if n in wanted)


@pytest.mark.parametrize("parameters", STRUCTURES, ids=str)
def test_distractors_are_outside_and_drive_nothing_inside(parameters):
    mdp = make(**parameters)
    required = set(mdp.required_mask)
    inside = {"pays", "parent", "grandparent", "xor", "moves"}
    assert required == {name for name, role in mdp.roles.items() if role in inside}
    for name, parents in mdp.parents.items():
        match mdp.roles[name]:
            case "copy":
                assert len(parents) == 1
                assert required.issuperset(parents)
            case "noise":
                assert set(parents) <= {name}
            case "correlated":
                assert all(mdp.roles[parent] == "correlated" for parent in parents)
            case _:
                assert required.issuperset(parents)
    assert any(p != (n,) for n, p in mdp.parents.items() if mdp.roles[n] == "correlated")


def information(joint):
    """I(first; second) in bits of a joint distribution, shape (first, second)."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float((joint * np.log2(joint / independent)).sum())


def test_one_of_an_xor_pair_says_nothing_and_both_say_much(default):
    process = exact._joint_process(default, default.closure(["pays_2"]))
    pays, a, b = (process.names.index(name) for name in ("pays_2", "xor_2_a", "xor_2_b"))
    x = process.values
    pairs = process.stationary[:, None] * process.transitions  # P(x, x')

    def told_by(code, given=None):
        joint = np.zeros((code.max() + 1, 2))
        chosen = np.ones(len(x), dtype=bool) if given is None else given
        np.add.at(
            joint,
            code[chosen],
            np.stack([pairs[chosen][:, x[:, pays] == v].sum(1) for v in (0, 1)], 1),
        )
        return information(joint / joint.sum())

    for bit in (a, b):
        assert abs(told_by(x[:, bit])) < 1e-12
        for value in (0, 1):  # nor does it if one knows what the paying variable is now
            assert abs(told_by(x[:, bit], given=x[:, pays] == value)) < 1e-12
    assert told_by(2 * x[:, a] + x[:, b]) > 0.4
    parent = default.table("pays_0")  # a parent does say something by itself
    assert information(parent / 2) > 0.4


def test_the_instance_is_the_problem():
    same, again, other = make(instance=3), make(instance=3), make(instance=4)
    assert same.exogenous_variables == again.exogenous_variables
    assert same.sites == again.sites
    assert all((same.table(n) == again.table(n)).all() for n in same.exogenous_names)
    assert same.exogenous_names != other.exogenous_names
    assert same.sites != other.sites
    assert any((same.table(n) != other.table(n)).any() for n in same.required_mask)


def test_more_distractors_leave_the_problem_alone():
    few, many = make(instance=5), make(instance=5, num_noise=100, num_copies=9, num_correlated=0)
    assert few.sites == many.sites
    assert set(few.required_mask) == set(many.required_mask)
    assert all((few.table(name) == many.table(name)).all() for name in few.required_mask)
    assert exact_return(few) == pytest.approx(exact_return(many), abs=1e-12)


def test_the_order_tells_nothing():
    # The mean position of the required variables: 15 to within 5 standard errors.
    positions = [
        make(instance=i).exogenous_indices(make(instance=i).required_mask) for i in range(40)
    ]
    assert abs(np.mean(positions) - 14.5) < 5 * 30 / np.sqrt(12 * 11 * 40)


# --- the dynamics -------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", STRUCTURES, ids=str)
def test_the_contract(parameters):
    check_mdp(make(**parameters), rng=np.random.default_rng(0))


@pytest.mark.parametrize("parameters", STRUCTURES[:3] + STRUCTURES[-1:], ids=str)
def test_frequencies_match_the_tables(parameters):
    """Chi-square per state and variable; all pass with probability over 1 - 1e-4 a structure."""
    mdp = make(**parameters)
    rng = np.random.default_rng(1)
    size, states = 20_000, mdp.sample_uniform(4, rng).exogenous
    for x in states:
        following = mdp.sample_exogenous(np.broadcast_to(x, (size, len(x))), rng)
        for i, name in enumerate(mdp.exogenous_names):
            expected = size * mdp.table(name)[tuple(x[mdp.exogenous_indices(mdp.parents[name])])]
            counts = np.bincount(following[:, i], minlength=len(expected))
            statistic = ((counts - expected) ** 2 / expected).sum()
            assert chi2.sf(statistic, len(expected) - 1) > 1e-4 / (len(states) * len(x)), name


def test_variables_are_drawn_independently():
    """Every correlation within 5.5 standard errors: fails by chance with probability 2e-5."""
    mdp = make()
    rng = np.random.default_rng(2)
    size = 20_000
    x = np.broadcast_to(mdp.sample_uniform(1, rng).exogenous, (size, len(mdp.nodes)))
    correlations = np.corrcoef(mdp.sample_exogenous(x, rng).T)
    np.fill_diagonal(correlations, 0)
    assert np.abs(correlations).max() < 5.5 / np.sqrt(size)


@pytest.mark.parametrize("parameters", STRUCTURES, ids=str)
def test_episodes_start_stationary(parameters):
    """Chi-square on the joint values around one site; fails by chance with probability 1e-6."""
    mdp = make(**parameters)
    names = mdp.closure(mdp.sites[0].variables)
    process = exact._joint_process(mdp, names)
    np.testing.assert_allclose(
        process.stationary @ process.transitions, process.stationary, atol=1e-14
    )
    size = 20_000
    state = mdp.sample_initial(size, np.random.default_rng(3))
    codes = exact._codes(state.exogenous[:, mdp.exogenous_indices(names)], np.full(len(names), 2))
    counts = np.bincount(codes, minlength=len(process.stationary))
    likely = size * process.stationary >= 5
    expected = np.append(
        size * process.stationary[likely], size * process.stationary[~likely].sum()
    )
    seen = np.append(counts[likely], counts[~likely].sum())
    used = expected > 0
    statistic = ((seen - expected)[used] ** 2 / expected[used]).sum()
    assert chi2.sf(statistic, used.sum() - 1) > 1e-6
    assert set(map(tuple, state.endogenous)) == set(map(tuple, mdp.initial_endogenous))


def reference_outcomes(mdp, n, x, action):
    """P(n'|n,a,x) as the documentation says it: a dict of n' -> probability."""
    site, left, bet = n
    if left == 0:
        following = (site + 1) % len(mdp.sites)
        return {(following, mdp.sites[following].delay, 0): 1.0}
    if left == mdp.sites[site].delay:
        bet = action
    elif action == PASS:
        bet = 0
    if left > 1 or bet == 0:
        return {(site, left - 1, bet): 1.0}
    switch = mdp.sites[site].switch
    slip = mdp.parameters.slip
    on = switch is not None and x[mdp.exogenous_names.index(switch)] == 1
    turned = 1 - slip if on else slip
    return {(site, 0, bet): 1 - turned, (site, 0, {1: 2, 2: 1}[bet]): turned}


def reference_reward(mdp, n, x, action):
    site, left, bet = n
    stake = mdp.sites[site].stake
    if left == 0:
        if bet == 0:
            return 0.0
        won = x[mdp.exogenous_names.index(mdp.sites[site].pays)] == bet - 1
        return stake if won else -stake
    deciding = left == mdp.sites[site].delay
    held = action if deciding else (0 if action == PASS else bet)
    return -mdp.parameters.fee * stake if held else 0.0


@pytest.mark.parametrize("parameters", [{}, {"generations": 3, "num_moving": 3}], ids=str)
def test_bets_follow_the_rules(parameters):
    """Every n and action, reachable or not, with several x."""
    mdp = make(**parameters)
    rng = np.random.default_rng(4)
    for n in itertools.product(*(range(size) for size in mdp.endogenous_sizes)):
        for action in range(mdp.num_actions):
            for x in mdp.sample_uniform(3, rng).exogenous:
                state = State(np.array(n), x)
                expected = reference_outcomes(mdp, n, x, action)
                straight, turned, turn = mdp.endogenous_outcomes(state, np.array(action))
                outcomes = Counter({tuple(straight): 1 - turn})
                outcomes[tuple(turned)] += turn
                assert {k: v for k, v in outcomes.items() if v} == pytest.approx(expected)
                reward = mdp.reward(state, np.array(action))
                assert reward == pytest.approx(reference_reward(mdp, n, x, action))


def test_a_bet_is_turned_as_often_as_stated():
    """Both values of the switch, within 5 standard errors."""
    mdp = make(slip=0.2)
    size = 20_000
    n = np.tile([0, 1, 1], (size, 1))
    for on in (0, 1):
        x = np.zeros((size, len(mdp.nodes)), dtype=int)
        x[:, mdp.exogenous_names.index("moves_0")] = on
        following = mdp.sample_endogenous(State(n, x), np.ones(size, int), np.random.default_rng(5))
        assert (following[:, :2] == [0, 0]).all()
        turned = (following[:, 2] == 2).mean()
        assert abs(turned - (0.8 if on else 0.2)) < 5 * 0.4 / np.sqrt(size)


def test_the_noise_used_depends_on_shapes_only(default):
    left = []
    for seed in (0, 1):
        rng = np.random.default_rng(9)
        state = default.sample_uniform(6, np.random.default_rng(seed))
        default.sample_next(state, np.full(6, seed), rng)
        left.append(rng.random())
    assert left[0] == left[1]


def test_the_agent_cannot_change_what_happens():
    trajectories = []
    for action in (0, 1):
        env = SyntheticVectorEnv(4, instance=2)
        observations = [env.reset(seed=7)[0]]
        observations += [env.step(np.full(4, action))[0] for _ in range(60)]
        trajectories.append(np.array([observation["exogenous"] for observation in observations]))
    assert (trajectories[0] == trajectories[1]).all()


# --- exact values -------------------------------------------------------------------------


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


def test_what_a_mask_leaves_out_is_marginalised(default):
    """The reduced model of an open mask against frequencies, within 5.5 standard errors."""
    process = exact._joint_process(default, default.closure(default.sites[0].variables))
    mask = ("grandparent_0_0", "parent_moves_0", "pays_0")
    enumerated = exact._enumerate(default, process, [0], mask)
    reduced, _ = exact._reduce(enumerated, process, mask)

    rng = np.random.default_rng(8)
    state = default.sample_initial(100_000, rng)
    following = default.sample_exogenous(state.exogenous, rng)
    now, then = (
        exact._codes(x[:, default.exogenous_indices(mask)], np.full(3, 2))
        for x in (state.exogenous, following)
    )
    crossing = exact._codes(np.array([0, 1, 1]), default.endogenous_sizes)
    on = state.exogenous[:, default.exogenous_names.index("moves_0")]
    slip = default.parameters.slip
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


def test_the_figures_of_the_documentation(default):
    def value(*roles):
        return exact_return(
            default, [n for n in default.required_mask if default.roles[n] in roles]
        )

    assert value().actual == 0
    ladder = [("pays",), ("pays", "moves"), ("pays", "moves", "parent")]
    ladder += [(*ladder[-1], "grandparent"), (*ladder[-1], "grandparent", "xor")]
    assert [round(value(*roles).actual, 1) for roles in ladder] == [1.7, 1.7, 22.7, 33.7, 58.9]


def test_too_much_to_enumerate_is_refused(default):
    with pytest.raises(ValueError, match=r"joint values; at most 4096"):
        exact_return(default, default.exogenous_names, by_site=False)
    many = make(num_paying=12, num_noise=300)  # but not site by site
    assert exact_return(many).actual > 0
    one = make(num_paying=1, num_moving=0, num_copies=0, num_noise=2000)
    assert exact_return(one, one.exogenous_names) == pytest.approx(exact_return(one), abs=1e-9)


# --- sizes, shells and errors ---------------------------------------------------------------


def test_ten_thousand_variables():
    mdp = make(num_noise=5000, num_copies=2000, num_correlated=2989)
    assert len(mdp.nodes) == 10_000
    rng = np.random.default_rng(0)
    state = mdp.sample_next(mdp.sample_initial(2, rng), np.array([1, 2]), rng)
    assert (state.exogenous < mdp.exogenous_sizes).all()
    assert len(mdp.required_mask) == 11
    assert exact_return(mdp) == pytest.approx(exact_return(make()))


def test_the_shells_take_the_parameters():
    made = gym.make("ExoSynthetic-v0", instance=3, num_noise=20, horizon=7, render_mode="ansi")
    env = made.unwrapped
    assert isinstance(env, SyntheticEnv)
    env.reset(seed=0)
    assert len(env.mdp.nodes) == 42
    assert [env.step(1)[3] for _ in range(7)] == [False] * 6 + [True]
    assert "noise_19 = " in env.render()
    lanes = gym.make_vec("ExoSynthetic-v0", num_envs=3, instance=3, num_noise=20)
    assert isinstance(lanes, SyntheticVectorEnv)
    assert lanes.reset(seed=0)[0]["exogenous"].shape == (3, 42)
    assert lanes.mdp.required_mask == env.mdp.required_mask


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"instance": -1}, r"instance is a whole number, at least 0, not -1"),
        ({"num_paying": 0}, r"num_paying is a whole number, at least 1, not 0"),
        ({"num_paying": 2.5}, r"num_paying is a whole number, at least 1, not 2.5"),
        ({"num_noise": True}, r"num_noise is a whole number, at least 0, not True"),
        ({"generations": 4}, r"generations is a whole number, from 0 to 3, not 4"),
        ({"parents_per_paying": 0}, r"parents_per_paying is a whole number, from 1 to 3, not 0"),
        (
            {"num_xor_pairs": 4},
            r"num_xor_pairs counts sites, of which there are num_paying=3, not 4",
        ),
        ({"num_moving": 4}, r"num_moving counts sites"),
        ({"noise_size": 1}, r"noise_size is a whole number, at least 2"),
        ({"persistence": 1.0}, r"persistence is a number at least 0 and below 1, not 1.0"),
        ({"noise": 0.6}, r"noise is a number from 0 to 0.5, not 0.6"),
        ({"copy_noise": float("nan")}, r"copy_noise is a number from 0 to 0.5, not nan"),
        ({"slip": -0.1}, r"slip is a number from 0 to 0.5"),
        ({"stake": 0}, r"stake is a number positive"),
        ({"fee": float("inf")}, r"fee is a number not negative"),
        ({"discount": 1.1}, r"discount is a number above 0 and at most 1, not 1.1"),
        ({"horizon": 0}, r"horizon is a whole number, at least 1"),
        ({"num_payin": 2}, r"unknown parameter of SyntheticParameters 'num_payin'; did you mean"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SyntheticEnv(**parameters)


def test_unknown_variables(default):
    with pytest.raises(ValueError, match=r"unknown exogenous variable 'pays_9'; did you mean"):
        default.table("pays_9")
    with pytest.raises(ValueError, match=r"unknown exogenous variable 'nois_0'"):
        exact_return(default, ["nois_0"])
