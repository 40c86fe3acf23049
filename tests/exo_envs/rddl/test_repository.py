"""Domains of rddlrepository, imported with one line each.

Agreement with pyRDDLGym's simulator is tested on states of random walks: distributions of a right
import fail with a probability of at most 1e-6 a domain, mean rewards at six standard errors, and
seeds are fixed.
"""

import numpy as np
import pytest
from rddl_simulator import Simulator, disagreements

from benchmarks.rddl import EXAMPLES
from exo_envs import from_rddl
from exo_envs.sources.rddl.loading import RDDLRefusedError
from exo_envs.testing import check_mdp
from wrappers import CalibratedMaskLearner

#: Endogenous and exogenous variables, columns of the reward that look at x, constants.
SHAPES = {
    "CrossingTraffic_MDP_ippc2011": (1, 15, 0, 10),
    "Intruders_Discrete": (2, 3, 3, 0),
    "PowerGen_Discrete": (3, 1, 1, 0),
    "SupplyChain_or": (4, 7, 4, 0),
    "Workforce_rddlsim": (4, 4, 2, 0),
    "HVAC_ippc2023": (5, 2, 2, 1),
    "EarthObservation_ippc2018": (2, 16, 0, 15),
    "Manufacturer_ippc2018": (2, 4, 2, 15),
    "Knapsack_or": (2, 2, 0, 0),
    "BinPacking_or": (6, 1, 0, 0),
    "Tetris_arcade": (25, 1, 1, 0),
}
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.domain)


@each_example
def test_what_becomes_of_it(example):
    mdp = from_rddl(example.domain, example.instance, **example.arguments)
    state = mdp.sample_initial(1, np.random.default_rng(0))
    paying = sum(len(scope) > 0 for scope in paying_scopes(mdp))
    shape = (len(mdp.endogenous_variables), len(mdp.exogenous_variables), paying)
    assert (*shape, len(mdp.constants)) == SHAPES[example.domain]
    initial = Simulator(example.domain, example.instance).simulator.init_values
    for name, values in mdp.fluents(state).items():
        fluent, _, objects = name.partition("___")
        lifted = np.asarray(initial[fluent])
        assert not objects or lifted.ndim
        assert values[0] in lifted


def paying_scopes(mdp):
    """The scopes of the columns that are not always zero, on many states."""
    rng = np.random.default_rng(0)
    state = mdp.sample_uniform(2000, rng)
    terms = mdp.reward_terms(state, rng.integers(mdp.num_actions, size=2000))
    return [s for s, pays in zip(mdp.reward_scopes, (terms != 0).any(axis=0), strict=True) if pays]


@each_example
def test_steps_are_distributed_as_those_of_pyrddlgym(example):
    arguments = {**example.arguments, "preconditions": "ignore"}  # as the simulator does
    mdp = from_rddl(example.domain, example.instance, **arguments)
    simulator = Simulator(example.domain, example.instance)
    assert disagreements(mdp, simulator, states=6, samples=150) == []


@each_example
def test_the_contract(example):
    mdp = from_rddl(example.domain, example.instance, **example.arguments)
    check_mdp(mdp, num_states=24, num_samples=100)


@pytest.mark.parametrize(
    ("domain", "instance", "arguments", "ignored"),
    [
        ("CrossingTraffic_MDP_ippc2011", 1, {}, 0),
        ("EarthObservation_ippc2018", 1, {}, 15),
        ("Manufacturer_ippc2018", 1, {"max_concurrent": 1}, 0),
    ],
)
def test_learned_masks_are_those_of_the_dependency_graph(domain, instance, arguments, ignored):
    mdp = from_rddl(domain, instance, **arguments)
    learner = CalibratedMaskLearner(cost_weight=0.0).fit(mdp, rng=0)
    assert learner.mask_ == mdp.connected_mask
    assert len(mdp.exogenous_names) - len(learner.mask_) == ignored


@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        ("CrossingTraffic_POMDP_ippc2011", "partially-observable"),
        ("Option_or", "unsupported-operation"),
        ("PowerGen_ippc2023", "real-actions"),
        ("Zombies_arcade", "real-actions"),
    ],
)
def test_refused_by_name(domain, reason):
    with pytest.raises(RDDLRefusedError) as caught:
        from_rddl(domain, 1)
    assert caught.value.reason == reason
