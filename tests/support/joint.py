"""Models in which several exogenous variables pay together, and plain enumerations of them."""

import itertools

import numpy as np
from factored import random_mdp

from exo_envs import ExoMDP, State, Variable


def random_scopes(rng, num_variables):
    """One to three different scopes of two or three variables each."""
    possible = [
        scope for length in (2, 3) for scope in itertools.combinations(range(num_variables), length)
    ]
    chosen = rng.choice(len(possible), size=min(len(possible), rng.integers(1, 4)), replace=False)
    return tuple(possible[k] for k in sorted(chosen))


def any_joint_mdp(seed, **changes):
    """Variables with cross parents, some of which pay alone, and some with others."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(s) for s in rng.integers(1, 4, size=rng.integers(2, 5)))
    alone = tuple(i for i in range(len(sizes)) if rng.random() < 0.4)
    given = {
        "sizes": sizes,
        "endogenous": (3,),
        "num_actions": int(rng.integers(1, 4)),
        "discount": float(rng.uniform(0.5, 0.95)),
        "paying": alone,
        "num_terminal": int(rng.integers(2)),
        "joint": random_scopes(rng, len(sizes)),
    }
    return random_mdp(rng, **given | changes)


def full_rewards(mdp):
    """R(x, n, a) of a FactoredMDP, shape (X, N, A), one joint value of x at a time."""
    rewards = []
    for x in itertools.product(*(range(int(size)) for size in mdp.exogenous_sizes)):
        paid = mdp.base_reward.copy()
        for i, table in mdp.terms.items():
            paid += table[x[i]]
        for scope, table in mdp.joint_terms.items():
            shape = [int(mdp.exogenous_sizes[i]) for i in scope]
            paid += table.reshape(*shape, *table.shape[1:])[tuple(x[i] for i in scope)]
        paid[mdp.terminal] = 0.0
        rewards.append(paid)
    return np.array(rewards)


def full_values(mdp, steps=None):
    """V of a FactoredMDP, shape (X, N), in its full joint matrix: V*, or that of so many steps."""
    xs = np.array(list(itertools.product(*(range(int(size)) for size in mdp.exogenous_sizes))))
    count, states = len(xs), mdp.num_endogenous_states
    exogenous = np.ones((count, count))  # P(x' | x)
    for i, factor in enumerate(mdp.factors):
        table = factor.to_table(int(mdp.exogenous_sizes[i]))
        shape = [int(mdp.exogenous_sizes[j]) for j in factor.parents]
        table = table.reshape(*shape, -1)
        exogenous *= np.array([table[tuple(x[list(factor.parents)])][xs[:, i]] for x in xs])
    n, a, k = np.indices((states, mdp.num_actions, count)).reshape(3, -1)
    moves = mdp.decision_lists.distribution(n, a, xs[k])
    moves = moves.reshape(states, mdp.num_actions, count, states).transpose(2, 0, 1, 3)
    rewards, values = full_rewards(mdp), np.zeros((count, states))
    for _ in range(2000 if steps is None else steps):
        later = exogenous @ values  # E V(x', n')
        q = rewards + mdp.discount * np.einsum("xnam,xm->xna", moves, later)
        values = q.max(axis=2)
        values[:, mdp.terminal] = 0.0
    return values


class Match(ExoMDP):
    """Two coins that keep their side for a while; to bet pays if they match, and costs if not.

    So neither of them pays by itself: whoever knows one coin alone expects nothing. Each coin is
    driven by a weather of its own, and there is noise. A third term declares a scope of which it
    looks at one variable only.
    """

    endogenous_variables = (Variable("n", 2),)
    exogenous_variables = tuple(
        Variable(name, 2) for name in ("first", "second", "tax", "idle", "noise")
    )
    num_actions, discount, horizon = 2, 0.9, 20  # wait, bet
    reward_scopes = (("second", "first"), ("tax", "idle"))

    def __init__(self, stake=10.0, tax=1.0, stays=0.8):
        self.stake, self.tax, self.stays = stake, tax, stays

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), rng.integers(2, size=(size, 5)))

    def sample_exogenous(self, exogenous, rng):
        turns = rng.random(exogenous.shape) >= self.stays
        return np.asarray(exogenous ^ turns, dtype=np.int64)

    def sample_endogenous(self, state, action, rng):
        return np.broadcast_to(np.asarray(action)[..., None], state.endogenous.shape).copy()

    def reward_terms(self, state, action):
        x, bet = state.exogenous, np.asarray(action)
        match = np.where(x[..., 0] == x[..., 1], self.stake, -self.stake) * bet
        return np.stack([match, -self.tax * x[..., 2] * bet], axis=-1)


class Sales(ExoMDP):
    """Selling pays price times demand; holding stock costs by the weather, which drives demand.

    x is drawn anew in every step, so that averages are known: price is one of three; the weather
    is one of two; demand is one of three and depends on the weather.
    """

    endogenous_variables = (Variable("stock", 3),)
    exogenous_variables = (
        Variable("price", 3),
        Variable("demand", 3),
        Variable("weather", 2),
        Variable("noise", 2),
    )
    num_actions, discount, horizon = 2, 0.9, 10
    reward_scopes = (("demand", "price"), ("weather",), ("price", "demand"))
    chances = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])  # of demand, by the weather

    def sample_initial(self, size, rng):
        return State(rng.integers(3, size=(size, 1)), self._draw((size,), rng))

    def sample_exogenous(self, exogenous, rng):
        return self._draw(exogenous.shape[:-1], rng)

    def sample_endogenous(self, state, action, rng):
        sold = np.asarray(action) * (state.exogenous[..., 1] > 0)
        return np.asarray((state.endogenous - sold[..., None]) % 3, dtype=np.int64)

    def reward_terms(self, state, action):
        n, x, sell = state.endogenous[..., 0], state.exogenous, np.asarray(action)
        income = x[..., 0] * x[..., 1] * (n > 0) * sell
        cost = -0.5 * x[..., 2] * n
        fee = -0.25 * (x[..., 0] == 2) * (x[..., 1] == 0) * sell
        return np.stack([income, cost, fee], axis=-1).astype(float)

    def endogenous_reward(self, endogenous, action):
        return 0.1 * endogenous[..., 0]

    def _draw(self, lanes, rng):
        x = rng.integers(self.exogenous_sizes, size=(*lanes, 4))
        steps = self.chances.cumsum(axis=1)[x[..., 2]]
        x[..., 1] = (rng.random(lanes)[..., None] >= steps[..., :2]).sum(axis=-1)
        return x
