"""Small models with rough data: slow chains, clocks, rare alarms, doubles."""

import numpy as np

from exo_envs import ExoMDP, State, Variable

SIZES = (2, 2, 2, 3, 3, 4, 5, 8, 16, 32)


class Errand(ExoMDP):
    """An agent that is in or out; what is out there is written by a subclass.

    The first variables pay an agent that is out, 1 each if they are 1, else -1. The others have
    nothing to do with it unless a subclass says so.
    """

    num_actions, discount, horizon = 2, 0.9, 50
    endogenous_variables = (Variable("out", 2),)

    def sample_initial(self, size, rng):
        x = rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))
        return State(np.zeros((size, 1), np.int64), x)

    def sample_endogenous(self, state, action, rng):
        return np.broadcast_to(action, state.endogenous.shape[:-1])[..., None].astype(np.int64)

    num_paying = 1

    def reward_terms(self, state, action):
        terms = np.zeros(state.exogenous.shape)
        good = np.where(state.exogenous[..., : self.num_paying] == 1, 1.0, -1.0)
        terms[..., : self.num_paying] = good * state.endogenous[..., :1]
        return terms


class SlowChains(Errand):
    """Independent chains that keep their value with probability ``stay``: nothing predicts any.

    Args:
        stay: the probability to keep a value.
        sizes: of the chains, that of what pays first.
        same_start: whether all begin at 0, far from where they end up.
        horizon: the length of an episode.
        num_paying: how many of them pay.
    """

    def __init__(self, stay=0.99, sizes=SIZES, *, same_start=False, horizon=50, num_paying=1):
        self.stay, self.same_start, self.horizon = stay, same_start, horizon
        self.num_paying = num_paying
        self.exogenous_variables = tuple(
            Variable(f"chain_{k}", size) for k, size in enumerate(sizes)
        )

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        return State(state.endogenous, state.exogenous * (not self.same_start))

    def sample_exogenous(self, exogenous, rng):
        other = (rng.random(exogenous.shape) * self.exogenous_sizes).astype(np.int64)
        return np.where(rng.random(exogenous.shape) < self.stay, exogenous, other)


class Clocks(Errand):
    """What pays changes at one hour of the day mostly; a week and a tide go round and say nothing.

    Args:
        same_start: whether every episode begins at the same hour, so that all clocks are functions
            of the step.
        hours: of a day.
        effect: what the hour does to the probability that demand changes, early or late.
    """

    horizon = 47

    def __init__(self, *, same_start=True, hours=24, effect=0.1):
        self.same_start, self.effect = same_start, effect
        self.exogenous_variables = (
            Variable("demand", 2),
            Variable("hour", hours),
            Variable("day", 7),
            Variable("tide", 5),
        )

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        x = state.exogenous
        x[:, 1:] *= not self.same_start
        return State(state.endogenous, x)

    def sample_exogenous(self, exogenous, rng):
        following = (exogenous + 1) % self.exogenous_sizes
        is_late = 2 * exogenous[..., 1] >= self.exogenous_sizes[1]
        change = 0.2 + np.where(is_late, self.effect, -self.effect)
        changes = rng.random(exogenous.shape[:-1]) < change
        following[..., 0] = exogenous[..., 0] ^ changes
        return following


class Alarms(Errand):
    """A storm costs who is out a fortune, and an alarm comes a step before it.

    Being out pays the demand as ever. The alarm sounds with probability ``rate``; the storm follows
    it for sure, and comes with nothing else. A flag that is up as seldom announces nothing.
    """

    horizon = 20
    exogenous_variables = (
        Variable("demand", 2),
        Variable("storm", 2),
        Variable("alarm", 2),
        Variable("flag", 2),
        Variable("noise", 3),
    )

    def __init__(self, rate=1e-4, loss=10_000.0):
        self.rate, self.loss = rate, loss

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        state.exogenous[:, 1:4] = 0
        return state

    def sample_exogenous(self, exogenous, rng):
        uniform = rng.random(exogenous.shape)
        following = np.where(uniform < 0.8, exogenous, (exogenous + 1) % self.exogenous_sizes)
        following[..., 1] = exogenous[..., 2]
        following[..., 2:4] = uniform[..., 2:4] < self.rate
        return following

    def reward_terms(self, state, action):
        terms = super().reward_terms(state, action)
        terms[..., 1] = -self.loss * state.exogenous[..., 1] * state.endogenous[..., 0]
        return terms


class Doubles(Errand):
    """Two variables that are the same in every step, and a third that is the same turned round.

    Args:
        role: what the first of them does: "pays" itself, "predicts" what pays, or "moves" the
            agent, who cannot go out while it is 1. With "pays twice" its double pays, too.
    """

    horizon = 20

    def __init__(self, role):
        self.role = role
        first = ("demand",) if role in ("predicts", "moves") else ()
        names = (*first, "rain", "wet", "dry", "noise")
        self.exogenous_variables = tuple(Variable(name, 2) for name in names)
        self.num_paying = 2 if role == "pays twice" else 1

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        return State(state.endogenous, self._double(state.exogenous))

    def _double(self, x):
        rain = self.exogenous_names.index("rain")
        x[..., rain + 1] = x[..., rain]
        x[..., rain + 2] = 1 - x[..., rain]
        return x

    def sample_exogenous(self, exogenous, rng):
        following = exogenous ^ (rng.random(exogenous.shape) < 0.2)
        if self.role == "predicts":
            following[..., 0] = exogenous[..., 1] ^ (rng.random(exogenous.shape[:-1]) < 0.1)
        return self._double(following)

    def sample_endogenous(self, state, action, rng):
        out = super().sample_endogenous(state, action, rng)
        return out * (1 - state.exogenous[..., 1:2]) if self.role == "moves" else out


class Dial(Errand):
    """A dial of many values moves the probability that demand is high, from 30 to 70 %.

    Args:
        size: how many values the dial has.
        kind: how it moves. "thrown" anew in each step, and half of its values, here and there, are
            good ones; "slow", it stays with probability 0.99, and high values are good; a "walk"
            of small steps; or "heavy", thrown with a heavy tail, so that the highest values are
            rare.
    """

    def __init__(self, size, kind="thrown"):
        self.size, self.kind = size, kind
        self.exogenous_variables = (
            Variable("demand", 2),
            Variable("dial", size),
            Variable("other", size),
        )
        self.is_good = np.random.default_rng(0).permutation(size) % 2 == 1

    def sample_initial(self, size, rng):
        state = super().sample_initial(size, rng)
        if self.kind == "heavy":
            state.exogenous[:, 1:] = self._heavy((size, 2), rng)
        return state

    def _heavy(self, shape, rng):
        return np.minimum(rng.pareto(0.5, size=shape), self.size - 1).astype(np.int64)

    def sample_exogenous(self, exogenous, rng):
        dials, following = exogenous[..., 1:], np.empty_like(exogenous)
        anew = (rng.random(dials.shape) * self.size).astype(np.int64)
        if self.kind == "thrown":
            following[..., 1:], good = anew, self.is_good[dials[..., 0]]
        elif self.kind == "slow":
            following[..., 1:] = np.where(rng.random(dials.shape) < 0.99, dials, anew)
            good = 2 * dials[..., 0] >= self.size
        elif self.kind == "walk":
            reach = max(1, self.size // 100)
            steps = np.rint((2 * rng.random(dials.shape) - 1) * reach).astype(np.int64)
            following[..., 1:] = np.clip(dials + steps, 0, self.size - 1)
            good = 2 * dials[..., 0] >= self.size
        else:
            following[..., 1:] = self._heavy(dials.shape, rng)
            good = dials[..., 0] >= 3  # half of the time
        following[..., 0] = rng.random(good.shape) < np.where(good, 0.7, 0.3)
        return following
