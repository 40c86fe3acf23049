"""A model with more n than anybody enumerates, for the tests of what is done then."""

import numpy as np

from exo_envs import ExoMDP, State, Variable


class Workshop(ExoMDP):
    """A robot fills four bins of 40 places, and is paid for filling the one that is in demand.

    2.56 million n, and six exogenous variables: the ``demand`` pays one for the bin that it names,
    unless that bin is full; the ``belt`` moves n, since it doubles what goes into a bin while it
    runs; the ``forecast`` is the demand of the next step; the other three are noise. Each part in
    the bins costs a hundredth as it is added.
    """

    endogenous_variables = tuple(Variable(f"bin_{i}", 40) for i in range(4))
    exogenous_variables = (
        Variable("demand", 4),
        Variable("belt", 2),
        Variable("forecast", 4),
        *(Variable(f"noise_{i}", 3) for i in range(3)),
    )
    num_actions = 4
    discount = 0.95
    horizon = 6

    def sample_initial(self, size, rng):
        """Up to ten parts in each bin."""
        return State(
            rng.integers(10, size=(size, len(self.endogenous_variables))), self._draw((size,), rng)
        )

    def sample_exogenous(self, exogenous, rng):
        """All thrown anew, except that what was forecast comes true."""
        following = self._draw(exogenous.shape[:-1], rng)
        following[..., 0] = exogenous[..., 2]
        return following

    def sample_endogenous(self, state, action, rng):
        """One part more, or two, in the bin that the action names."""
        parts = 1 + state.exogenous[..., 1, None]
        chosen = np.arange(len(self.endogenous_variables)) == np.asarray(action)[..., None]
        return np.minimum(state.endogenous + parts * chosen, 39)

    def reward_terms(self, state, action):
        """The demand pays."""
        terms = np.zeros(state.exogenous.shape)
        action = np.asarray(action)
        full = np.take_along_axis(state.endogenous, action[..., None], axis=-1)[..., 0] == 39
        terms[..., 0] = (state.exogenous[..., 0] == action) & ~full
        return terms

    def endogenous_reward(self, endogenous, action):
        """A part costs something."""
        return np.full(endogenous.shape[:-1], -0.01)

    def is_terminal(self, state):
        """Over once all bins are full."""
        return (state.endogenous == 39).all(axis=-1)

    def _draw(self, lanes, rng):
        return rng.integers(self.exogenous_sizes, size=(*lanes, len(self.exogenous_sizes)))
