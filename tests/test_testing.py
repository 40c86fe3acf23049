"""check_mdp finds each broken rule, and says which."""

import gymnasium as gym
import numpy as np
import pytest
from models import CoinMDP, CounterMDP

from exo_envs import AdaptedMDP, ExoEnv, State, Variable
from exo_envs.grid import GridMDP
from exo_envs.testing import ContractError, check_mdp


@pytest.mark.parametrize("mdp", [CounterMDP(), CoinMDP(), GridMDP()], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_good_models_pass(mdp, seed):
    check_mdp(mdp, rng=np.random.default_rng(seed))


def broken(rule, **methods):
    """A CoinMDP with some methods or attributes replaced, and the rule that this breaks."""
    return pytest.param(
        rule, type("Broken", (CoinMDP,), methods)(), id=f"{rule}-{next(iter(methods))}"
    )


def writes_to_its_argument(self, exogenous, rng):
    exogenous[..., 0] = 0
    return rng.integers(2, size=exogenous.shape)


def keeps_a_generator(self, exogenous, rng):
    if not hasattr(self, "_rng"):
        self._rng = np.random.default_rng(0)
    return self._rng.integers(2, size=exogenous.shape)


def returns_what_it_keeps(self, state, action):
    shape = state.exogenous.shape
    if getattr(self, "_kept", np.zeros(0)).shape != shape:
        self._kept = np.ones(shape)
    return self._kept


def shares_its_noise(self, exogenous, rng):
    return np.broadcast_to(rng.integers(2, size=exogenous.shape[-1:]), exogenous.shape).copy()


def ignores_the_seed(self, state, action, rng):
    return np.random.default_rng().integers(6, size=state.endogenous.shape)


def looks_at_the_other_coin(self, state, action):
    return state.exogenous[..., ::-1].astype(float)


def pays_infinity(self, endogenous, action):
    return np.where(endogenous[..., 0] == 3, np.inf, 0.0)


@pytest.mark.parametrize(
    ("rule", "mdp"),
    [
        broken("declaration", num_actions=0),
        broken("declaration", num_actions=True),
        broken("declaration", discount=1.5),
        broken("declaration", horizon=None),
        broken("declaration", exogenous_variables=["a", "b"]),
        broken("declaration", exogenous_variables=(Variable("a", 2), Variable("a", 2))),
        broken("shapes", sample_initial=lambda self, size, rng: (np.zeros((size, 1), int),) * 2),
        broken(
            "shapes",
            sample_initial=lambda self, size, rng: State(
                np.zeros((size, 1), int), np.zeros((size, 3), int)
            ),
        ),
        broken("shapes", sample_exogenous=lambda self, x, rng: rng.integers(2, size=x.shape) + 1),
        broken("shapes", sample_exogenous=lambda self, x, rng: x.astype(float)),
        broken("shapes", sample_endogenous=lambda self, s, a, rng: s.endogenous[..., 0]),
        broken("shapes", reward_terms=lambda self, s, a: s.exogenous.sum(-1) * 1.0),
        broken("shapes", reward_terms=lambda self, s, a: s.exogenous.tolist()),
        broken("shapes", endogenous_reward=lambda self, n, a: np.zeros(n.shape)),
        broken("shapes", is_terminal=lambda self, s: np.zeros(s.endogenous.shape[:-1])),
        broken("purity", sample_exogenous=writes_to_its_argument),
        broken("determinism", sample_exogenous=keeps_a_generator),
        broken("determinism", sample_endogenous=ignores_the_seed),
        broken("determinism", reward_terms=returns_what_it_keeps),
        broken("terms", reward_terms=looks_at_the_other_coin),
        broken("reward", endogenous_reward=pays_infinity),
        broken("reward", reward=lambda self, s, a: np.ones(s.endogenous.shape[:-1])),
        broken("batching", sample_exogenous=shares_its_noise),
    ],
)
def test_broken_models_are_found_out(rule, mdp):
    with pytest.raises(ContractError, match=f"rule '{rule}' is broken") as caught:
        check_mdp(mdp)
    assert caught.value.rule == rule


def test_a_terminal_state_that_moves_on_is_found_out():
    class Restless(CounterMDP):
        def sample_next(self, state, action, rng, *, exogenous_rng=None):
            return State(
                self.sample_endogenous(state, action, rng),
                self.sample_exogenous(state.exogenous, rng),
            )

    with pytest.raises(ContractError, match="terminal state moves on at n: position=5"):
        check_mdp(Restless())


def test_the_error_shows_the_state():
    class Wrong(CoinMDP):
        def endogenous_reward(self, endogenous, action):
            return pays_infinity(self, endogenous, action)

    with pytest.raises(ContractError, match=r"at n: die=3; x: coin_a=\d, coin_b=\d; action \d"):
        check_mdp(Wrong())


def test_only_models_are_checked():
    with pytest.raises(TypeError, match="ExoMDP, not ExoEnv"):
        check_mdp(ExoEnv(CoinMDP()))


class Reacting(gym.Env):
    """The crowd keeps away from the agent, so it is not exogenous; the reward may not be a sum."""

    observation_space = gym.spaces.Dict(
        endogenous=gym.spaces.MultiDiscrete([4]), exogenous=gym.spaces.MultiDiscrete([4, 2])
    )
    action_space = gym.spaces.Discrete(2)

    def __init__(self, *, reacts=False, coupled=False):
        self.reacts, self.coupled = reacts, coupled

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        given = (options or {}).get("state")
        self.agent = int(given["endogenous"][0]) if given else 0
        self.crowd, self.coin = (int(x) for x in given["exogenous"]) if given else (2, 0)
        return self.observe(), {}

    def observe(self):
        return {
            "endogenous": np.array([self.agent]),
            "exogenous": np.array([self.crowd, self.coin]),
        }

    def step(self, action):
        crowd, coin = self.crowd, self.coin
        reward = float(crowd * coin if self.coupled else crowd + coin)
        self.crowd = (crowd + int(self.np_random.integers(2))) % 4
        if self.reacts and self.crowd == self.agent:
            self.crowd = (self.crowd + 1) % 4
        self.coin = int(self.np_random.integers(2))
        self.agent = (self.agent + int(action)) % 4
        return self.observe(), reward, False, False, {}


def test_adapted_environments_are_held_to_exogeneity_and_a_sum():
    check_mdp(AdaptedMDP(Reacting(), discount=0.9, horizon=20))
    with pytest.raises(ContractError, match="'exogeneity' is broken: with the same x"):
        check_mdp(AdaptedMDP(Reacting(reacts=True), discount=0.9, horizon=20))
    with pytest.raises(ContractError, match="'reward' is broken: the environment pays"):
        check_mdp(AdaptedMDP(Reacting(coupled=True), discount=0.9, horizon=20))
