"""What is checked in little time is also checked if the model has to be compiled first."""

import time

import pytest
from compiled import COMPILING, slow_to_compile

from exo_envs.contract.check import check_quickly
from exo_envs.core.clock import working_time
from exo_envs.domains.grid import GridMDP


class Compiled(GridMDP):
    """Pays twice as much when it is asked again."""

    def __init__(self):
        super().__init__()
        self.function, _ = slow_to_compile()
        self.times = 1

    def sample_initial(self, size, rng):
        self.function(1)
        return super().sample_initial(size, rng)

    def reward_terms(self, state, action):
        self.times *= 2
        return super().reward_terms(state, action) * self.times


def test_the_time_of_a_check_is_not_used_up_by_compiling():
    model = Compiled()
    began, working = time.perf_counter(), working_time()
    with pytest.raises(ValueError, match="determinism"):
        check_quickly(model, seconds=COMPILING)
    assert time.perf_counter() - began > COMPILING > working_time() - working
