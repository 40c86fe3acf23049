"""A battery on recorded prices, made by a stated generator; tests of records share it."""

import numpy as np

from exo_envs import TraceMDP, Variable


def price_table(rows=600, seed=0, num_noise=4):
    """price' follows load and wind, load' follows temp; beside them columns of noise."""
    rng = np.random.default_rng(seed)
    columns = {name: np.zeros(rows, dtype=np.int64) for name in ("price", "wind", "load", "temp")}
    steps = rng.integers(-1, 2, size=(rows, 4))
    for t in range(1, rows):
        wind, load, temp = (columns[name][t - 1] for name in ("wind", "load", "temp"))
        columns["price"][t] = np.clip(2 + load - wind + steps[t, 0], 0, 5)
        columns["wind"][t] = np.clip(wind + steps[t, 1], 0, 4)
        columns["load"][t] = np.clip(load + (temp > 1) - (temp < 1) + steps[t, 2], 0, 4)
        columns["temp"][t] = np.clip(temp + steps[t, 3], 0, 2)
    noise = {f"noise_{k}": rng.integers(2 + k % 3, size=rows) for k in range(num_noise)}
    return {**columns, **noise}


def step(n, a, x):
    return np.clip(n.charge + a, 0, 4)


def reward(n, a, x):
    return -x.price * (np.clip(n.charge + a, 0, 4) - n.charge) - 0.2 * (a > 0)


def battery(table=None, **settings):
    given = {
        "endogenous": [Variable("charge", 5)],
        "actions": [-1, 0, 1],
        "step": step,
        "reward": reward,
        "horizon": 12,
        "discount": 0.97,
    }
    return TraceMDP.from_frame(price_table() if table is None else table, **(given | settings))
