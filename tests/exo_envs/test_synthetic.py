"""ExoSynthetic: the right mask is the right one; sizes, shells and errors."""

from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from planted import STRUCTURES, make

from exo_envs import State
from exo_envs.domains.synthetic import SyntheticEnv, SyntheticVectorEnv, exact, exact_return

# --- what was planted ---------------------------------------------------------------------


def test_the_default_is_thirty_variables_of_which_eleven_matter(planted):
    assert Counter(planted.roles.values()) == {
        "pays": 3, "parent": 3, "grandparent": 2, "xor": 2, "moves": 1,
        "copy": 5, "noise": 8, "correlated": 6,
    }  # fmt: skip
    assert len(planted.required_mask) == 11
    assert planted.num_actions <= 5
    assert np.prod(planted.endogenous_sizes) <= 27


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


def test_one_of_an_xor_pair_says_nothing_and_both_say_much(planted):
    process = exact._joint_process(planted, planted.closure(["pays_2"]))
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
    parent = planted.table("pays_0")  # a parent does say something by itself
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
        ({"copy_noise": float("nan")}, r"copy_noise is a finite number, not nan"),
        ({"slip": -0.1}, r"slip is a number from 0 to 0.5"),
        ({"stake": 0}, r"stake is a number above 0"),
        ({"fee": float("inf")}, r"fee is a finite number, not inf"),
        ({"discount": 1.1}, r"discount is in \(0, 1\], not 1.1"),
        ({"horizon": 0}, r"horizon is a whole number, at least 1"),
        ({"num_payin": 2}, r"unknown parameter of SyntheticParameters 'num_payin'; did you mean"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SyntheticEnv(**parameters)


def test_unknown_variables(planted):
    with pytest.raises(ValueError, match=r"unknown exogenous variable 'pays_9'; did you mean"):
        planted.table("pays_9")
    with pytest.raises(ValueError, match=r"unknown exogenous variable 'nois_0'"):
        exact_return(planted, ["nois_0"])
