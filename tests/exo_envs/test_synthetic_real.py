"""ExoSyntheticReal: the right mask is right, and variables do what the documentation says."""

from collections import Counter

import gymnasium as gym
import numpy as np
import pytest

from exo_envs import State
from exo_envs.domains.synthetic import (
    RealSyntheticEnv,
    RealSyntheticMDP,
    RealSyntheticParameters,
    RealSyntheticVectorEnv,
)
from exo_envs.domains.synthetic.real import LatentEncoding, height
from exo_envs.testing import check_mdp

STRUCTURES = [
    {},
    {"instance": 1, "parents_per_paying": 2, "unbounded_share": 0.5},
    {"generations": 1, "num_moving": 2, "num_pairs": 3, "instance": 5},
    {"generations": 3, "num_sign_pairs": 0, "num_paying": 1},
    {"generations": 0, "persistence": 0.9, "num_pairs": 1},
    {"num_paying": 2, "num_sign_pairs": 2, "num_moving": 2, "whole_share": 0.0},
    {"parents_per_paying": 3, "generations": 1, "num_moving": 0, "unbounded_share": 1.0},
    {"whole_share": 1.0, "smallest_size": 10_000, "largest_size": 10_000, "num_pairs": 2},
    {"whole_share": 1.0, "largest_size": 2, "instance": 2},
]
each_structure = pytest.mark.parametrize("parameters", STRUCTURES, ids=str)


def make(**parameters):
    return RealSyntheticMDP(RealSyntheticParameters(**parameters))


def node(mdp, name):
    return mdp.nodes[mdp.exogenous_names.index(name)]


def pairs_of_steps(mdp, size, seed=0):
    """Latent values now and a step later, by name."""
    rng = np.random.default_rng(seed)
    x = mdp.sample_initial(size, rng).exogenous
    now, later = mdp.latent(x), mdp.latent(mdp.sample_exogenous(x, rng))
    names = mdp.exogenous_names
    return dict(zip(names, now.T, strict=True)), dict(zip(names, later.T, strict=True))


# --- what was planted ---------------------------------------------------------------------


def test_the_default_is_thirty_variables_of_which_eleven_matter():
    mdp = make()
    assert Counter(mdp.roles.values()) == {
        "pays": 3, "parent": 3, "grandparent": 2, "sign": 2, "moves": 1,
        "copy": 5, "noise": 8, "correlated": 6,
    }  # fmt: skip
    assert len(mdp.required_mask) == 11
    assert mdp.dtype_of("exogenous") == np.float64
    kinds = {v.is_real for v in mdp.exogenous_variables}
    assert kinds == {True, False}


@each_structure
def test_the_contract(parameters):
    check_mdp(make(**parameters))


@each_structure
def test_the_required_mask_is_what_the_behaviour_calls_for(parameters):
    """Found again by changing one variable at a time, with no look at the roles or the net."""
    mdp = make(**parameters)
    rng = np.random.default_rng(0)
    state = mdp.sample_uniform(3000, rng)
    x = mdp.sample_initial(3000, rng).exogenous
    state = State(state.endogenous, x)
    action = rng.integers(mdp.num_actions, size=3000)
    before = mdp.endogenous_outcomes(state, action)[2]
    terms = mdp.reward_terms(state, action)
    after = mdp.sample_exogenous(x, np.random.default_rng(1))
    wanted, drives = set(), {}
    for j, name in enumerate(mdp.exogenous_names):
        other = x.copy()
        other[:, j] = rng.permutation(other[:, j])
        changed = State(state.endogenous, other)
        if (mdp.reward_terms(changed, action) != terms).any():
            wanted.add(name)
        if (mdp.endogenous_outcomes(changed, action)[2] != before).any():
            wanted.add(name)
        acted = (mdp.sample_exogenous(other, np.random.default_rng(1)) != after).any(axis=0)
        drives[name] = {mdp.exogenous_names[i] for i in np.flatnonzero(acted)}
    assert {n: {p for p in drives if n in drives[p]} for n in drives} == {
        name: set(parents) for name, parents in mdp.parents.items()
    }
    while True:
        more = {parent for parent, driven in drives.items() if driven & wanted} - wanted
        if not more:
            break
        wanted |= more
    assert mdp.required_mask == tuple(n for n in mdp.exogenous_names if n in wanted)


def test_distractors_are_outside_and_drive_nothing_inside():
    mdp = make(num_copies=20, num_correlated=12)
    required = set(mdp.required_mask)
    assert not any(mdp.roles[n] in {"copy", "noise", "correlated"} for n in required)
    for name, parents in mdp.parents.items():
        match mdp.roles[name]:
            case "copy":
                assert required.issuperset(parents)
            case "noise":
                assert parents == (name,)
            case "correlated":
                assert all(mdp.roles[parent] == "correlated" for parent in parents)
            case _:
                assert required.issuperset(parents)


def test_more_distractors_leave_the_problem_alone():
    few, many = make(instance=5), make(instance=5, num_noise=100, num_copies=9, num_correlated=0)
    assert few.sites == many.sites
    assert [node(few, name) for name in sorted(few.required_mask)] == [
        node(many, name) for name in sorted(many.required_mask)
    ]


# --- latent values --------------------------------------------------------------------------


def test_latent_values_are_standard_normal_in_the_long_run():
    """Means and variances within 5 standard errors, at the start and after 30 steps."""
    mdp = make(whole_share=0.0, unbounded_share=0.5, num_pairs=2, parents_per_paying=2)
    rng, size = np.random.default_rng(0), 20_000
    x = mdp.sample_initial(size, rng).exogenous
    for _ in range(2):
        z = mdp.latent(x)
        assert np.abs(z.mean(axis=0)).max() < 5 / size**0.5
        assert np.abs(z.var(axis=0) - 1).max() < 5 * (2 / size) ** 0.5
        for _ in range(30):
            x = mdp.sample_exogenous(x, rng)


def test_values_and_latent_values_are_the_same_thing():
    mdp = make(whole_share=0.3, unbounded_share=0.3, num_noise=40)
    encoding, rng = LatentEncoding(mdp.nodes), np.random.default_rng(0)
    z = np.clip(rng.standard_normal((500, len(mdp.nodes))), -4, 4)
    x = encoding.values(z)
    real = ~mdp.exogenous_ranges.whole
    np.testing.assert_allclose(encoding.latent(x)[:, real], z[:, real], atol=1e-6)
    # The latent value of a whole number is one that it is shown for.
    shown = encoding.values(encoding.latent(x) / encoding.stretch)
    np.testing.assert_array_equal(shown[:, ~real], x[:, ~real])
    order = np.argsort(z, axis=0)
    assert (np.diff(np.take_along_axis(x, order, axis=0), axis=0) >= 0).all()


def test_values_at_the_bounds_are_taken():
    mdp = make(unbounded_share=0.2)
    low, high = mdp.exogenous_ranges.low, mdp.exogenous_ranges.high
    x = np.where(np.isfinite([low, high]), [low, high], [[-1e300], [1e300]])
    assert np.isfinite(mdp.latent(x)).all()
    assert np.isfinite(mdp.sample_exogenous(x, np.random.default_rng(0))).all()


@pytest.mark.parametrize("instance", range(4))
def test_every_variable_follows_its_parents_as_its_rule_says(instance):
    """Frequencies and correlations within 5 standard errors."""
    mdp = make(
        instance=instance, whole_share=0.0, num_paying=6, num_sign_pairs=3, parents_per_paying=2,
        generations=1,
    )  # fmt: skip
    size = 40_000
    now, later = pairs_of_steps(mdp, size)
    found = set()
    for own in mdp.nodes:
        found.add(own.rule)
        z = [w * now[parent] for w, parent in zip(own.weights, own.parents, strict=True)]
        after, b = later[own.name], own.strength
        if own.rule == "sum":
            rest = after - b * np.sum(z, axis=0)
        elif own.rule == "size and sign":
            rest = after - b * np.abs(z[0]) * np.sign(z[1])
            assert abs(np.corrcoef(z[0], after)[0, 1]) < 5 * 1.5 / size**0.5  # unseen by a line
            assert np.corrcoef(np.abs(z[0]), np.abs(after))[0, 1] > 0.3
        else:
            cut = -0.5449521356 if own.rule == "all high" else 0.0
            high = np.all([v > cut for v in z], axis=0)
            if own.rule == "signs":
                high = z[0] * z[1] > 0
                for one in z:  # alone it says nothing
                    assert abs((after[one > 0] > 0).mean() - 0.5) < 5 * 0.5 / (size / 2) ** 0.5
            agree = ((after > 0) == high).mean()
            assert abs(agree - (b + (1 - b) / 2)) < 5 * 0.5 / size**0.5
            continue
        assert abs(rest.var() - (1 - b**2)) < 5 * (1 - b**2) * (2 / size) ** 0.5
        assert all(abs(np.corrcoef(rest, v)[0, 1]) < 5 / size**0.5 for v in z)
    assert found >= {"sum"}


# --- what is paid, and what moves -----------------------------------------------------------


def reference_win(mdp, site, z):
    """What a bet on a high outcome wins, in stakes, as the documentation says it."""
    first, second = (z[mdp.exogenous_names.index(name)] for name in (site.pays, site.scope[-1]))
    tilt, other = 2 * height(first) - 1, 2 * height(second) - 1
    match site.payoff:
        case "high":
            return 1.0 if first > 0 else -1.0
        case "height":
            return 1.5 * tilt
        case "both high":
            return 1.0 if min(first, second) > -0.5449521356 else -1.0
        case "same side":
            return 1.0 if first * second > 0 else -1.0
        case "product":
            return 2.25 * tilt * other


def test_rewards_are_those_of_the_documentation():
    met = set()
    for instance in range(4):
        mdp = make(num_pairs=2, num_paying=4, instance=instance, unbounded_share=0.3)
        rng = np.random.default_rng(instance)
        state = mdp.sample_uniform(400, rng)
        action = rng.integers(3, size=400)
        reward, z = mdp.reward(state, action), mdp.latent(state.exogenous)
        for lane, (i, left, bet) in enumerate(state.endogenous.tolist()):
            site = mdp.sites[i]
            held = action[lane] if left == site.delay else bet if action[lane] and left else 0
            expected = -mdp.parameters.fee * site.stake if held else 0.0
            if left == 0 and bet:
                met.add(site.payoff)
                win = reference_win(mdp, site, z[lane])
                expected = site.stake * (win if bet == 2 else -win)
            assert reward[lane] == pytest.approx(expected)
    assert met == {"high", "height", "both high", "same side", "product"}


@pytest.mark.parametrize("instance", range(6))
def test_a_bet_is_fair(instance):
    """Who knows nothing wins as much as he loses: within 5 standard errors."""
    mdp = make(instance=instance, num_pairs=2, num_sign_pairs=0, whole_share=0.0)
    z = mdp.latent(mdp.sample_initial(4000, np.random.default_rng(0)).exogenous)
    for site in mdp.sites:
        wins = np.array([reference_win(mdp, site, row) for row in z])
        assert abs(wins.mean()) < 5 * wins.std() / len(z) ** 0.5
        assert wins.std() > 0.5


def test_a_switch_turns_bets_round_above_its_threshold():
    mdp = make(num_moving=2, num_pairs=1)
    rng = np.random.default_rng(0)
    x = mdp.sample_initial(500, rng).exogenous
    z = mdp.latent(x)
    for i, site in enumerate(mdp.sites):
        n = np.tile([i, 1, 2], (500, 1))
        turn = mdp.endogenous_outcomes(State(n, x), np.full(500, 2))[2]
        on = np.zeros(500, bool)
        if site.switch:
            on = z[:, mdp.exogenous_names.index(site.switch)] > site.threshold
            assert 0.2 < on.mean() < 0.8
        np.testing.assert_allclose(turn, np.where(on, 0.95, 0.05))


def test_a_pair_has_a_term_of_its_own():
    mdp = make(num_pairs=2)
    assert mdp.reward_scopes[30 + 6 :] == (("pays_0", "partner_0"), ("pays_1", "partner_1"))
    assert {"partner_0", "parent_partner_0", "grandparent_partner_0"} <= {*mdp.required_mask}


# --- shells and errors ----------------------------------------------------------------------


def test_the_shells_take_the_parameters():
    env = gym.make("ExoSyntheticReal-v0", instance=3, num_noise=20, horizon=7).unwrapped
    assert isinstance(env, RealSyntheticEnv)
    observation, _ = env.reset(seed=0)
    assert isinstance(env.observation_space["exogenous"], gym.spaces.Box)
    assert env.observation_space.contains(observation)
    assert len(env.mdp.nodes) == 42
    assert [env.step(1)[3] for _ in range(7)] == [False] * 6 + [True]
    lanes = gym.make_vec("ExoSyntheticReal-v0", num_envs=3, instance=3, num_noise=20)
    assert isinstance(lanes, RealSyntheticVectorEnv)
    assert lanes.reset(seed=0)[0]["exogenous"].shape == (3, 42)
    whole = gym.make("ExoSyntheticReal-v0", whole_share=1.0).unwrapped
    assert isinstance(whole.observation_space["exogenous"], gym.spaces.MultiDiscrete)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"instance": -1}, r"instance is a whole number, at least 0, not -1"),
        ({"num_paying": 0}, r"num_paying is a whole number, at least 1, not 0"),
        ({"num_pairs": 4}, r"num_pairs counts sites, of which there are num_paying=3, not 4"),
        ({"num_sign_pairs": 4}, r"num_sign_pairs counts sites"),
        ({"smallest_size": 20}, r"smallest_size is at most largest_size=16, not 20"),
        ({"whole_share": 1.5}, r"whole_share is a number from 0 to 1, not 1.5"),
        ({"persistence": 1.0}, r"persistence is a number from 0 to 0.95, not 1.0"),
        ({"strength": float("nan")}, r"strength is a finite number, not nan"),
        ({"stake": 0}, r"stake is a number above 0"),
        ({"discount": 1.1}, r"discount is in \(0, 1\], not 1.1"),
        ({"num_noise": 10**9}, r"variables; at most"),
        ({"num_payin": 2}, r"unknown parameter of RealSyntheticParameters 'num_payin'"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RealSyntheticEnv(**parameters)


def test_values_out_of_range_are_refused():
    mdp = make()
    x = mdp.sample_initial(2, np.random.default_rng(0)).exogenous
    x[1, 3] = np.nan
    with pytest.raises(ValueError, match=r"exogenous variable .* cannot be nan"):
        mdp.sample_exogenous(x, np.random.default_rng(0))
