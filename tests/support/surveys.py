"""Models whose n moves as a function says, and surveys of them, for the tests of reduction."""

import numpy as np

from exo_envs import ExoMDP, State, Variable
from planners.reduced.ignored_rewards import masked_rewards
from planners.reduced.marginals import Informants, reduce_lists
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import DecisionLists


class MoveMDP(ExoMDP):
    """Fair coins or dice, thrown anew each step; the agent goes where a function says."""

    num_actions = 1
    discount = 0.9
    horizon = 10

    def __init__(self, sizes, move, *, positions=2, wasteful=False):
        self.endogenous_variables = (Variable("n", positions),)
        self.exogenous_variables = tuple(Variable(f"x{i}", size) for i, size in enumerate(sizes))
        self.move = move
        self.wasteful = wasteful

    def sample_initial(self, size, rng):
        return State(np.zeros((size, 1), dtype=np.int64), self._throw(size, rng))

    def sample_exogenous(self, exogenous, rng):
        lanes = exogenous.shape[:-1]
        return self._throw(int(np.prod(lanes)), rng).reshape(exogenous.shape)

    def sample_endogenous(self, state, action, rng):
        if self.wasteful:  # the amount of noise depends on the states
            rng.random(int(state.exogenous.sum()))
        u = rng.random(state.endogenous.shape[:-1])
        return self.move(state.endogenous[..., 0], state.exogenous, u)[..., None].astype(np.int64)

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)

    def _throw(self, size, rng):
        return rng.integers(self.exogenous_sizes, size=(size, len(self.exogenous_sizes)))


def survey_of(mdp, *, seed=0, rollouts=300, **settings):
    rng = np.random.default_rng(seed)
    data = ExogenousData.collect(mdp, rollouts, rng)
    return EndogenousSurvey.collect(mdp, data, rng, **settings)


def rewards_of(survey, columns, memory=None):
    informants = Informants(survey.backgrounds, columns, memory=memory)
    return masked_rewards(survey, informants, "average")


def moves_of(survey, mdp, columns=None):
    columns = range(len(survey.names)) if columns is None else columns
    sizes = mdp.exogenous_sizes[list(columns)]
    lists = reduce_lists(survey, Informants(survey.backgrounds, columns))
    return DecisionLists.from_lists(lists, mdp.num_actions, sizes)


def everything(mdp):
    """All (n, a, x) of a small model, flat."""
    xs = np.indices(mdp.exogenous_sizes).reshape(len(mdp.exogenous_sizes), -1).T
    states = int(np.prod(mdp.endogenous_sizes))
    n, a, x = np.indices((states, mdp.num_actions, len(xs))).reshape(3, -1)
    return n, a, xs[x]
