"""Models with real variables, in n and in x: a battery that trades, and a door with thresholds."""

import numpy as np

from exo_envs import ExoMDP, State, Variable


class BatteryMDP(ExoMDP):
    """Charge, wait or discharge; the price is paid for what is taken, and earned for what is given.

    Wind lowers the next price; a signal without bounds and the day of the week do nothing.

    Args:
        step: what one action moves.
        losses: the share of a charge that is lost by chance, so that n' is real for good.
    """

    endogenous_variables = (Variable("charge", low=0.0, high=10.0),)
    exogenous_variables = (
        Variable("price", low=0.0, high=200.0),
        Variable("wind", low=-10.0, high=10.0),
        Variable("signal", low=-np.inf, high=np.inf),
        Variable("day", 7),
    )
    num_actions, discount, horizon = 3, 0.97, 48

    def __init__(self, step=1.0, losses=0.0):
        self.step, self.losses = step, losses

    def sample_initial(self, size, rng):
        x = [
            rng.uniform(20, 120, size),
            rng.normal(0, 2, size).clip(-10, 10),
            rng.normal(size=size),
            rng.integers(7, size=size),
        ]
        return State(rng.integers(0, 11, size=(size, 1)).astype(float), np.column_stack(x))

    def sample_exogenous(self, exogenous, rng):
        price, wind, signal, day = np.moveaxis(exogenous, -1, 0)
        noise = rng.normal(size=exogenous.shape)
        return np.stack(
            [
                (70 + 0.5 * (price - 70) - 8 * wind + 5 * noise[..., 0]).clip(0, 200),
                (0.9 * wind + noise[..., 1]).clip(-10, 10),
                0.5 * signal + noise[..., 2],
                (day + 1) % 7,
            ],
            axis=-1,
        )

    def _taken(self, endogenous, action):
        charge = endogenous[..., 0]
        return (charge + self.step * (np.asarray(action) - 1)).clip(0, 10) - charge

    def sample_endogenous(self, state, action, rng):
        charge = state.endogenous[..., 0] + self._taken(state.endogenous, action)
        lost = self.losses * rng.random(charge.shape)
        return (charge * (1 - lost))[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = -self._taken(state.endogenous, action) * state.exogenous[..., 0]
        return terms


class DoorMDP(ExoMDP):
    """Going pays 1 if the price is above a threshold; the door lets nobody in below another one."""

    endogenous_variables = (Variable("inside", 2),)
    exogenous_variables = (
        Variable("price", low=0.0, high=1.0),
        Variable("level", low=0.0, high=1.0),
        Variable("signal", low=0.0, high=1.0),
    )
    num_actions, discount, horizon = 2, 0.9, 20
    pays_from, opens_from = 0.237, 0.911

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), np.int64), rng.random((size, 3)))

    def sample_exogenous(self, exogenous, rng):
        kept = rng.random(exogenous.shape) < 0.7
        return np.where(kept, exogenous, rng.random(exogenous.shape))

    def sample_endogenous(self, state, action, rng):
        opened = state.exogenous[..., 1] >= self.opens_from
        return (opened & (np.asarray(action) == 1)).astype(np.int64)[..., None]

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        sign = np.where(state.exogenous[..., 0] >= self.pays_from, 1.0, -5.0)
        terms[..., 0] = np.where(np.asarray(action) == 1, sign, 0.0)
        return terms
