"""A study whose masks are worth what the test says, and models that count what they are asked."""

from collections import Counter
from types import SimpleNamespace

import numpy as np

from exo_envs import ExoMDP, State, Variable
from planners import Estimate, Objective
from planners.worth import MaskComparison
from wrappers import Study


class ScriptedStudy(Study):
    """``worth(mask)`` is the mean return of a mask; ``estimates`` lists the masks looked at.

    Plans with at most ``exact_up_to`` variables are exact.
    """

    def __init__(self, mdp, worth, seed=0, *, error=0.0, n_data_rollouts=40, exact_up_to=0):
        super().__init__(mdp, seed, n_rollouts=4, n_data_rollouts=n_data_rollouts)
        self.evaluator = ScriptedEvaluator(mdp, worth, error, exact_up_to)

    @property
    def estimates(self):
        return self.evaluator.estimates


class ScriptedEvaluator:
    """An evaluator that plans and plays nothing."""

    time_limit = None

    def __init__(self, mdp, worth, error, exact_up_to=0):
        self.exact_up_to = exact_up_to
        self.mdp = mdp
        self.cut_short = ()  # masks whose plans run out of time
        self.worth = worth
        self.error = error
        self.estimates = []
        self.trials = {}  # nothing was played

    def objective(self, mask, **settings):
        self.estimates.append(tuple(mask))
        return self._worth(tuple(mask), settings.get("cost_weight", 0.0))

    def _worth(self, mask, cost_weight):
        mean = float(self.worth(mask))
        return Objective(
            value=mean - cost_weight * len(mask),
            mean_return=mean,
            standard_error=self.error,
            cost=float(len(mask)),
            plan=SimpleNamespace(
                seconds=0.0,
                policy=SimpleNamespace(mask=mask),
                converged=mask not in self.cut_short,
                out_of_time=mask in self.cut_short,
                values=np.zeros(1) if len(mask) <= self.exact_up_to else None,
            ),
            returns=np.full(4, mean),
            cost_weight=cost_weight,
            reduced=SimpleNamespace(mask=mask),
        )

    def compare(self, mask, other, **settings):
        objective = self.objective(mask, **settings)
        rival = self._worth(tuple(other), settings.get("cost_weight", 0.0))
        returns = objective.mean_return - rival.mean_return
        gain = objective.value - rival.value
        estimates = Estimate(gain, self.error), Estimate(returns, self.error)
        return MaskComparison(objective, *estimates, rival)

    def knows(self, mask):
        return mask in self.estimates

    def keeps(self, plan):
        return True

    def visits(self, mask):
        return np.ones(int(np.prod(self.mdp.endogenous_sizes)) * self.mdp.num_actions)

    def fresh_scenarios(self):
        return None

    def independent_scenarios(self, number):
        return None


class Watched(ExoMDP):
    """Another model, and how often and about what it was asked."""

    def __init__(self, mdp):
        self.mdp = mdp
        self.calls = Counter()
        self.states = Counter()  # in all calls
        self.asked = {}  # the last arguments of each method
        self.moves = []  # all (n, x, a) that n' was drawn for
        for name in ("endogenous_variables", "exogenous_variables", "num_actions"):
            setattr(self, name, getattr(mdp, name))
        self.discount, self.horizon = mdp.discount, mdp.horizon

    def sample_initial(self, size, rng):
        self.calls["initial"] += 1
        self.states["exogenous"] += size
        return self.mdp.sample_initial(size, rng)

    def sample_exogenous(self, exogenous, rng):
        self.calls["exogenous"] += 1
        self.states["exogenous"] += exogenous[..., 0].size
        return self.mdp.sample_exogenous(exogenous, rng)

    def sample_endogenous(self, state, action, rng):
        self.calls["endogenous"] += 1
        self.states["endogenous"] += state.endogenous[..., 0].size
        rows = [np.reshape(part, (-1, part.shape[-1])) for part in state]
        self.moves.append(np.column_stack([*rows, np.reshape(action, -1)]))
        following = self.mdp.sample_endogenous(state, action, rng)
        self.asked["endogenous"] = state, action, following
        return following

    def reward_terms(self, state, action):
        self.calls["reward"] += 1
        self.states["reward"] += state.endogenous[..., 0].size
        self.asked.setdefault("rewards", []).append((state, np.asarray(action)))
        return self.mdp.reward_terms(state, action)

    def endogenous_reward(self, endogenous, action):
        return self.mdp.endogenous_reward(endogenous, action)

    def is_terminal(self, state):
        return self.mdp.is_terminal(state)


class Sites(ExoMDP):
    """The agent passes sites in turn and guesses the coin of each; it can do nothing about rain.

    A right guess pays 3, a wrong one costs 3; rain pays 100 whatever the agent does.
    """

    num_actions = 2
    discount = 0.99

    def __init__(self, coins=3, rain=True, horizon=24):
        self.coins, self.horizon = coins, horizon
        self.endogenous_variables = (Variable("site", coins),)
        names = [f"coin_{i}" for i in range(coins)] + ["rain"] * rain
        self.exogenous_variables = tuple(Variable(name, 2) for name in names)

    def sample_initial(self, size, rng):
        x = rng.integers(2, size=(size, len(self.exogenous_variables)))
        return State(rng.integers(self.coins, size=(size, 1)), x)

    def sample_exogenous(self, exogenous, rng):
        thrown = rng.integers(2, size=exogenous.shape)
        return np.where(rng.random(exogenous.shape) < 0.3, thrown, exogenous)

    def sample_endogenous(self, state, action, rng):
        return (state.endogenous + 1) % self.coins

    def reward_terms(self, state, action):
        terms = 100.0 * state.exogenous
        coins = state.exogenous[..., : self.coins]
        won = np.where(coins == np.asarray(action)[..., None], 3.0, -3.0)
        terms[..., : self.coins] = np.where(np.arange(self.coins) == state.endogenous, won, 0.0)
        return terms
