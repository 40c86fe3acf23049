"""Rollouts that would not fit into memory are refused before any is taken, by the right name."""

import pytest

from exo_envs.domains.grid import GridMDP
from planners import Scenarios, estimate_objective
from planners.samples.rollouts import ExogenousData
from wrappers import CalibratedMaskLearner, Study

MANY = 10**9


class Endless(GridMDP):
    """Somebody who does not want to end episodes."""

    def __init__(self):
        super().__init__()
        self.horizon = 10**9


@pytest.mark.parametrize(
    "call",
    [
        lambda: CalibratedMaskLearner().fit(Endless(), 0),
        lambda: CalibratedMaskLearner(n_data_rollouts=50).fit(Endless(), 0),
        lambda: estimate_objective(Endless(), ["object"], n_rollouts=10),
        lambda: ExogenousData.collect(Endless()),
        lambda: Scenarios.sample(Endless(), 1, 0),
    ],
)
def test_a_horizon_that_is_too_long_is_named(call):
    wanted = r"rollouts of 1,000,000,00[01] steps of 5 variables .*; take a shorter horizon$"
    with pytest.raises(ValueError, match=wanted):
        call()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("n_data_rollouts", lambda: CalibratedMaskLearner(n_data_rollouts=MANY).fit(GridMDP(), 0)),
        ("n_rollouts", lambda: CalibratedMaskLearner(n_rollouts=MANY).fit(GridMDP(), 0)),
        ("n_data_rollouts", lambda: Study(GridMDP(), n_data_rollouts=MANY)),
        ("num_rollouts", lambda: estimate_objective(GridMDP(), [], num_rollouts=MANY)),
        ("n_rollouts", lambda: Scenarios.sample(GridMDP(), MANY, 0)),
        ("num_rollouts", lambda: ExogenousData.collect(GridMDP(), MANY)),
    ],
)
def test_too_many_rollouts_are_called_as_the_caller_calls_them(name, call):
    with pytest.raises(ValueError, match=f"^{name}=1000000000: rollouts of .*; take fewer, or a"):
        call()


def test_long_episodes_are_taken_in_smaller_numbers(monkeypatch):
    """Of a horizon for which the usual 200 are too many, there are as many as fit."""

    def stop(mdp, num_rollouts, num_steps, *_):
        raise StopIteration(num_rollouts, num_steps)

    monkeypatch.setattr("planners.samples.rollouts._roll_out", stop)
    model = GridMDP()
    model.horizon = 2_000_000
    with pytest.raises(StopIteration) as caught:
        ExogenousData.collect(model)
    assert caught.value.args == (2**30 // (2_000_001 * 5), 2_000_000)
