"""``estimate_objective(time_limit=...)`` holds for everything: samples, plan and rollouts."""

import time

import numpy as np
import pytest

from exo_envs.core.clock import OutOfTimeError
from exo_envs.domains.grid import GridMDP
from planners import Scenarios, ValueIteration, estimate_objective

#: Seconds that may pass beyond a limit: one question, and whatever else goes on on the machine.
SLACK = 1.0


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Kernels are compiled by the first call of a machine, which takes its time."""
    estimate_objective(GridMDP(), ["object"], rng=0, num_rollouts=50)
    estimate_objective(GridMDP(), ["object"], rng=0, num_rollouts=50, planner=ValueIteration())


class Slow(GridMDP):
    """A model that takes its time for each answer of one method."""

    is_batched = False
    slow = "sample_exogenous"
    answer_seconds = 0.05

    def _wait(self, method):
        if method == self.slow:
            time.sleep(self.answer_seconds)

    def sample_exogenous(self, exogenous, rng):
        self._wait("sample_exogenous")
        return super().sample_exogenous(exogenous, rng)

    def sample_endogenous(self, state, action, rng):
        self._wait("sample_endogenous")
        return super().sample_endogenous(state, action, rng)

    def reward_terms(self, state, action):
        self._wait("reward_terms")
        return super().reward_terms(state, action)


def out_of_time(model, limit, **settings):
    """The error, and whether it came in time."""
    start = time.perf_counter()
    with pytest.raises(OutOfTimeError) as caught:
        estimate_objective(model, ["object"], rng=0, time_limit=limit, **settings)
    assert time.perf_counter() - start < limit + SLACK
    return str(caught.value)


@pytest.mark.parametrize("slow", ["sample_exogenous", "sample_endogenous", "reward_terms"])
def test_a_slow_model_is_left_in_time(slow):
    model = Slow()
    model.slow = slow
    message = out_of_time(model, 0.5, n_rollouts=20, num_rollouts=20, check=False)
    assert message.startswith("time_limit=0.5 seconds passed while ")
    assert "so J is not known" in message


def test_it_says_how_far_it_came():
    model = Slow()
    model.answer_seconds = 0.3
    assert "looking if the model keeps its contract" in out_of_time(model, 0.2)
    message = out_of_time(model, 0.2, check=False, num_rollouts=50)
    assert "estimating the reduced model" in message
    assert "had been asked for 100 samples" in message  # 50 states to begin with, one step

    class Sleepy:
        def plan(self, mdp, *, rng=None, time_limit=None):
            plan = ValueIteration().plan(mdp, rng=rng, time_limit=0)
            time.sleep(time_limit)
            return plan

    message = out_of_time(GridMDP(), 0.5, num_rollouts=50, planner=Sleepy())
    assert "while planning (planning_time_limit leaves time to play" in message


def test_playing_takes_time_too():
    model, rng = Slow(), np.random.default_rng(0)
    scenarios = Scenarios.sample(GridMDP(), 5, rng)

    class Wakes:
        """Plans while the model is quick."""

        def plan(self, mdp, *, rng=None, time_limit=None):
            model.slow = "sample_endogenous"
            return ValueIteration().plan(mdp, rng=rng, time_limit=time_limit)

    model.slow = None
    settings = {"planner": Wakes(), "num_rollouts": 20, "check": False}
    assert "while playing the policy" in out_of_time(model, 1.0, scenarios=scenarios, **settings)


def test_it_is_a_timeout_for_python():
    with pytest.raises(TimeoutError, match="time_limit=1e-06 seconds"):
        estimate_objective(GridMDP(), [], time_limit=1e-6)


def test_with_enough_time_the_limit_changes_nothing():
    settings = {"rng": 0, "n_rollouts": 20, "num_rollouts": 50}
    free, limited = (
        estimate_objective(GridMDP(), ["object"], time_limit=limit, **settings)
        for limit in (None, 60.0)
    )
    assert free.value == limited.value
    assert (free.returns == limited.returns).all()


def test_the_limit_is_over_when_the_estimate_is_there():
    model = GridMDP()
    objective = estimate_objective(model, ["object"], rng=0, n_rollouts=20, time_limit=2.0)
    time.sleep(2.0)
    assert objective.bracket.upper.mean >= objective.bracket.lower.mean - 1e-6
