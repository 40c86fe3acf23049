"""What an environment did, to be compared."""

import numpy as np
from gymnasium.utils.env_checker import data_equivalence


def record(env, num_steps, rng):
    """A run of ``num_steps`` steps, resets included; ``rng`` is a generator or a seed."""
    rng, trace = np.random.default_rng(rng), []
    for _ in range(num_steps):
        step = env.step(int(rng.integers(env.action_space.n)))
        trace.append(step)
        if step[2] or step[3]:
            trace.append(env.reset())
    return trace


def same(first, second):
    assert data_equivalence(first, second, exact=True), f"{first}\n{second}"
