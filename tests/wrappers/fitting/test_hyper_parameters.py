"""Hyper-parameters of planners and learners are Python's numbers once they are used."""

import numpy as np
import pytest

from exo_envs.domains.grid import GridMDP
from planners import UCT, ForecastPlanner, Scenarios, ValueIteration, evaluate
from wrappers import CalibratedMaskLearner, CorrelationalMaskLearner, GreedyMaskLearner


@pytest.mark.parametrize(
    ("cls", "given"),
    [
        (UCT, {"simulations": 200, "depth": 100}),
        (ForecastPlanner, {"num_rollouts": 200, "horizon": 200, "max_parents": 2}),
        (ValueIteration, {"inner_sweeps": 200, "max_iterations": 250}),
    ],
)
def test_hyper_parameters_of_planners_are_pythons_numbers(cls, given):
    planner = cls(**{name: np.uint8(number) for name, number in given.items()})
    for name, number in given.items():
        assert (getattr(planner, name), type(getattr(planner, name))) == (number, int)
        for wrong in (True, 2.5, "2", np.array([2])):
            with pytest.raises(ValueError, match=f"{name} is a whole number"):
                cls(**{name: wrong})


@pytest.mark.parametrize(
    ("cls", "given"),
    [
        (CalibratedMaskLearner, {"n_rollouts": 200, "n_data_rollouts": 200, "patience": 3}),
        (CorrelationalMaskLearner, {"n_rollouts": 200, "n1": 250, "n2": 5, "patience": 1}),
        (GreedyMaskLearner, {"n_rollouts": 200, "trials": 1}),
    ],
)
def test_hyper_parameters_of_learners_may_be_numpys(cls, given):
    """uint8(250) * uint8(5) would be 226 samples."""
    own = cls(**given, planning_time_limit=5.0).fit(GridMDP(), rng=0)
    small = {name: np.uint8(number) for name, number in given.items()}
    learner = cls(**small, planning_time_limit=np.int8(5)).fit(GridMDP(), rng=0)
    assert (learner.mask_, learner.objective_.value) == (own.mask_, own.objective_.value)
    assert learner.get_params() == own.get_params()
    assert learner.saved().learner == own.saved().learner


def test_rollouts_are_counted_in_pythons_numbers():
    mdp = GridMDP()
    scenarios = Scenarios.sample(mdp, np.uint8(200), 0, horizon=np.uint8(200))
    assert len(scenarios) == len(scenarios.exogenous) == 200
    policy = UCT(simulations=1, depth=1).plan(mdp).policy
    assert len(evaluate(policy, mdp, np.uint8(3), 0)) == 3
