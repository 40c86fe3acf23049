"""Certificates: what they say of masks that are right, and of masks that are not."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from factored import random_mdp

from exo_envs import ExoMDP, State, Variable, as_mdp
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from wrappers import CalibratedMaskLearner, Study, certify

each_way = pytest.mark.parametrize("exact", [True, False], ids=["tables", "draws"])


def named(certificate):
    return {check.variable for check in certificate.violations}


def without(mask, name):
    return [other for other in mask if other != name]


@each_way
@pytest.mark.parametrize("instance", range(2))
def test_planted_problems(instance, exact):
    mdp = SyntheticMDP(SyntheticParameters(instance=instance, num_xor_pairs=1))
    study = Study(mdp, 0)
    right = certify(study, mdp.required_mask, rng=1, n_samples=4_000, exact=exact)
    assert right.holds
    assert right.violations == ()
    assert right.mask == mdp.required_mask
    assert set(right.mask) | set(right.ignored) == set(mdp.exogenous_names)
    for name in mdp.required_mask:
        fewer = certify(study, without(right.mask, name), rng=1, n_samples=4_000, exact=exact)
        assert named(fewer) == {name}
        conditions = {check.condition for check in fewer.violations}
        direct = {"pays": "reward", "moves": "endogenous"}.get(mdp.roles[name], "exogenous")
        assert direct in conditions


@pytest.mark.parametrize("instance", range(2))
def test_planted_problems_with_real_variables(instance):
    mdp = as_mdp(gym.make("ExoSyntheticReal-v0", instance=instance))
    assert certify(mdp, mdp.required_mask, rng=0, n_samples=3_000).holds
    pays = next(name for name in mdp.required_mask if mdp.roles[name] == "pays")
    assert pays in named(certify(mdp, without(mdp.required_mask, pays), rng=0, n_samples=3_000))


def test_what_is_kept_may_act_on_what_is_ignored():
    """A copy of a variable that pays is predicted by it, and ignoring it loses nothing."""
    mdp = SyntheticMDP()
    copies = [name for name, role in mdp.roles.items() if role == "copy"]
    assert copies
    assert not set(copies) & named(certify(mdp, mdp.required_mask, n_samples=2_000, exact=False))


def test_tables_are_taken_at_their_word():
    mdp = SyntheticMDP()
    certificate = certify(mdp, mdp.required_mask)
    assert {c.method for c in certificate.checks if c.condition == "exogenous"} == {"exact"}
    assert {c.method for c in certificate.checks if c.condition == "reward"} == {"exact"}
    drawn = certify(mdp, mdp.required_mask, exact=False)
    assert {c.method for c in drawn.checks if c.condition == "exogenous"} == {"interventional"}


def test_effects_by_tables_are_those_of_the_tables():
    mdp = random_mdp(np.random.default_rng(0), sizes=(2, 3, 2))
    for target, factor in zip(mdp.exogenous_names, mdp.factors, strict=True):
        parents, table = mdp.exogenous_table(target)
        assert parents == tuple(mdp.exogenous_names[j] for j in factor.parents)
        np.testing.assert_allclose(table.sum(axis=-1), 1.0)
        certificate = certify(mdp, [target], n_samples=50)
        expected = {p for p in parents if p != target and _varies(table, parents.index(p))}
        assert {c.variable for c in certificate.violations if c.target == target} == expected


def _varies(table, axis):
    return bool((np.ptp(table, axis=axis) > 1e-9).any())


@each_way
def test_the_factory(exact):
    """Technicians act on machines; the ten lights never matter."""
    mdp = FactoryMDP()
    right = ["order_*", "clock", "machine_*", "technician_*"]
    certificate = certify(mdp, right, rng=0, n_samples=6_000, exact=exact)
    assert certificate.holds
    assert 0 < certificate.detectable < 0.05
    assert "an effect above 0.0" in str(certificate)
    broken = certify(mdp, right[:-1], rng=0, n_samples=6_000, exact=exact)
    assert named(broken) == {"technician_0", "technician_1"}
    assert {check.target for check in broken.violations} == {f"machine_{k}" for k in range(5)}
    assert all(0.03 < check.effect < 0.2 for check in broken.violations)
    assert "technician_0: changes P(machine_" in str(broken)


def test_rewards_and_moves_of_the_grid():
    mdp = GridMDP()
    nothing = certify(mdp, [], rng=0, n_samples=3_000)
    found = {(check.variable, check.target) for check in nothing.violations}
    assert ("object", "reward") in found
    assert any(variable == "guard" and target != "reward" for variable, target in found)
    assert "weather" not in named(nothing)
    assert nothing.violations[0].condition == "reward"  # these come first
    everything = certify(mdp, mdp.exogenous_names)
    assert everything.holds
    assert everything.checks == ()
    assert "by ignoring 0 variables" in str(everything)


def test_what_it_costs_is_a_bound_in_return():
    mdp = GridMDP()
    low, high = certify(mdp, ["object"], rng=0, n_samples=1_000).cost_of_ignoring
    assert 0 <= low < high < 20
    best, most = certify(mdp, mdp.exogenous_names, rng=0).cost_of_ignoring
    assert best == 0
    assert most < high


def test_the_study_of_a_learner_serves_again():
    learner = CalibratedMaskLearner(n_rollouts=50).fit(GridMDP(), rng=0)
    before = learner.study_.memory.data
    certificate = certify(learner.study_, learner.mask_, rng=0, n_samples=3_000)
    assert certificate.holds
    assert learner.study_.memory.data is before
    observed = certify(learner.study_, ["guard"], rng=0, n_samples=3_000)
    (by_intent,) = [c for c in observed.violations if c.variable == "guard_intent"]
    assert by_intent.observed_p < 1e-6  # rollouts that nobody disturbed say so, too


def test_the_same_seed_gives_the_same_certificate():
    one, again = (certify(GridMDP(), ["object"], rng=7, n_samples=500) for _ in range(2))
    assert one.checks == again.checks
    assert one.checks != certify(GridMDP(), ["object"], rng=8, n_samples=500).checks


def test_tables_for_people():
    pytest.importorskip("pandas")
    certificate = certify(GridMDP(), ["object", "carrier", "guard"], rng=0, n_samples=2_000)
    frame = certificate.to_pandas()
    assert len(frame) == len(certificate.checks) == 2 * (1 + 1 + 3)
    assert list(frame.columns[:2]) == ["variable", "target"]
    lines = certificate.to_markdown().splitlines()
    assert lines[0].startswith("| variable | target |")
    assert "guard_intent" in lines[2]
    assert "<td>guard_intent</td>" in certificate.to_html()
    assert any(line.startswith("| weather |") for line in lines)
    assert copy.deepcopy(certificate.checks) == certificate.checks


class Recorded(ExoMDP):
    """A record: x can be watched, and not changed."""

    endogenous_variables = (Variable("bet", 2),)
    exogenous_variables = (Variable("coin", 2), Variable("omen", 2), Variable("moon", 3))
    num_actions, discount, horizon = 2, 0.9, 20
    is_recorded = True

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), int), rng.integers([2, 2, 3], size=(size, 3)))

    def sample_exogenous(self, exogenous, rng):
        following = rng.integers([2, 2, 3], size=exogenous.shape)
        seen = rng.random(exogenous.shape[:-1]) < 0.6
        following[..., 0] = np.where(seen, exogenous[..., 1], following[..., 0])
        return following

    def sample_endogenous(self, state, action, rng):
        return np.array(action)[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = state.exogenous[..., 0] == state.endogenous[..., 0]
        return terms


def test_a_record_is_only_watched():
    certificate = certify(Recorded(), ["coin"], rng=0, n_samples=500)
    (violation,) = certificate.violations
    assert (violation.variable, violation.target) == ("omen", "coin")
    assert (violation.method, violation.unit) == ("observational", "nats")
    assert 0 < violation.detectable < 0.001
    assert "omen: tells 0.19 nats about coin" in str(certificate)
    assert certify(Recorded(), ["coin", "omen"], rng=0, n_samples=500).holds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask": ["gard"]}, "did you mean 'guard'"),
        ({"level": 0.0}, "level"),
        ({"level": "x"}, "level"),
        ({"power": 1.0}, "power"),
        ({"n_samples": 2}, "n_samples"),
        ({"rng": "seed"}, "rng"),
        ({"exact": "no"}, "exact"),
    ],
)
def test_odd_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        certify(GridMDP(), **{"mask": [], **arguments})
