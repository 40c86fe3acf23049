"""check_mdp finds each broken rule, and says which."""

import gymnasium as gym
import numpy as np
import pytest
from models import CoinMDP, CounterMDP

from exo_envs import AdaptedMDP, ExoEnv, State, Successors, Variable
from exo_envs.core.statistics import find_difference
from exo_envs.domains.grid import GridMDP
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


def leaves_its_range_now_and_then(self, state, action, rng):
    following = np.minimum(state.endogenous + rng.integers(2, size=state.endogenous.shape), 6)
    return np.where(state.endogenous == 5, following, 0)


def gives_all_lanes_the_first(self, state, action, rng):
    following = (state.endogenous + rng.integers(2, size=state.endogenous.shape)) % 6
    return np.broadcast_to(following.reshape(-1)[0], following.shape).copy()


def pays_all_lanes_the_first(self, endogenous, action):
    return np.full(endogenous.shape[:-1], float(endogenous.reshape(-1)[0]))


def pays_no_number(self, state, action):
    return np.where(state.exogenous == 1, np.nan, 0.0)


def pays_infinity(self, endogenous, action):
    return np.where(endogenous[..., 0] == 3, np.inf, 0.0)


def says(*probabilities):
    """Gives the die's values these probabilities, whatever the action."""

    def endogenous_distribution(self, state, action):
        shape = state.endogenous.shape[:-1]
        faces = np.arange(len(probabilities))[:, None]
        return Successors(
            np.broadcast_to(faces, (*shape, *faces.shape)).copy(),
            np.broadcast_to(np.array(probabilities), (*shape, len(probabilities))).copy(),
        )

    return endogenous_distribution


def knows_the_first_lane_only(self, state, action):
    found = says(*[1 / 6] * 6)(self, state, action)
    first = (np.arange(6) == 0).astype(float)
    found.probabilities.reshape(-1, 6)[1:] = first
    return found


@pytest.mark.parametrize(
    ("rule", "mdp"),
    [
        broken("distribution", endogenous_distribution=says(*[1 / 6] * 6)),  # action 1 throws twice
        broken("distribution", endogenous_distribution=says(*[0.1] * 5, 0.4)),
        broken("distribution", endogenous_distribution=says(*[0.2] * 5)),
        broken("distribution", endogenous_distribution=says(*[0.1] * 6)),
        broken("distribution", endogenous_distribution=says(*[0.3] * 5, -0.5)),
        broken("distribution", endogenous_distribution=knows_the_first_lane_only),
        broken("shapes", endogenous_distribution=says(*[1 / 7] * 7)),
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
        broken("declaration", reward=lambda self, s, a: np.ones(s.endogenous.shape[:-1])),
        broken("declaration", sample_next=lambda self, s, a, rng, *, exogenous_rng=None: s),
        broken("declaration", transition=lambda self, s, a, rng, **kwargs: (s, 0.0, [0.0])),
        broken("batching", sample_exogenous=shares_its_noise),
        broken("batching", sample_endogenous=gives_all_lanes_the_first),
        broken("batching", endogenous_reward=pays_all_lanes_the_first),
        broken("shapes", sample_endogenous=leaves_its_range_now_and_then),
        broken("reward", reward_terms=pays_no_number),
    ],
)
def test_broken_models_are_found_out(rule, mdp):
    with pytest.raises(ContractError, match=f"rule '{rule}' is broken") as caught:
        check_mdp(mdp)
    assert caught.value.rule == rule


def test_the_error_shows_the_state():
    class Wrong(CoinMDP):
        def endogenous_reward(self, endogenous, action):
            return pays_infinity(self, endogenous, action)

    message = r"returned inf, for n = \(die=3\), action \d; rewards are finite"
    with pytest.raises(ContractError, match=message):
        check_mdp(Wrong())


def test_only_models_are_checked():
    check_mdp(ExoEnv(CoinMDP()))  # an environment over one will do
    with pytest.raises(TypeError, match="not the class CoinMDP"):
        check_mdp(CoinMDP)
    with pytest.raises(TypeError, match="not of the class CoinMDP"):
        ExoEnv(CoinMDP)


# --- environments that somebody else wrote ------------------------------------------------------


class Crowd(gym.Env):
    """An agent on a ring of four cells, a crowd on the same ring, and a coin.

    Everything is as the contract wants it: the subclasses break one rule each, or do something
    that only looks like it.
    """

    observation_space = gym.spaces.Dict(
        endogenous=gym.spaces.MultiDiscrete([4]), exogenous=gym.spaces.MultiDiscrete([4, 2])
    )
    action_space = gym.spaces.Discrete(2)

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

    def pay(self):
        return float(self.crowd + self.coin)

    def move_crowd(self):
        self.crowd = (self.crowd + int(self.np_random.integers(2))) % 4
        self.coin = int(self.np_random.integers(2))

    def move_agent(self, action):
        self.agent = (self.agent + int(action)) % 4

    def step(self, action):
        reward = self.pay()
        self.move_crowd()
        self.move_agent(action)
        return self.observe(), reward, False, False, {}


class KeepsAway(Crowd):
    """The crowd makes room for the agent."""

    def move_crowd(self):
        super().move_crowd()
        if self.crowd == self.agent:
            self.crowd = (self.crowd + 1) % 4


class PaysTogether(Crowd):
    def pay(self):
        return float(self.crowd * self.coin)


class StopsWithTheAgent(Crowd):
    """The agent's last step, from cell 2 or of any other kind, is not followed by the crowd's."""

    def step(self, action):
        if self.agent == 2 or self.np_random.random() < 0.2 * self.agent:
            return self.observe(), self.pay(), True, False, {}
        return super().step(action)


class LooksAhead(Crowd):
    """The agent follows the coin that has just been thrown."""

    def move_agent(self, action):
        if self.coin:
            super().move_agent(action)


class EndsAhead(Crowd):
    """The episode ends when the coin has just fallen on 1."""

    def step(self, action):
        observation, reward, *_ = super().step(action)
        return observation, reward, bool(self.coin), False, {}


class Lottery(Crowd):
    """It pays a prize on top, or none."""

    def pay(self):
        return super().pay() + float(self.np_random.random() < 0.25)


class LotteryTogether(Crowd):
    """The coin says who wins: neither it nor the crowd pays by itself."""

    def pay(self):
        return float((self.crowd >= 2) == self.coin) + float(self.np_random.random() < 0.25)


def adapt(env, **kwargs):
    return AdaptedMDP(env, discount=0.9, horizon=20, **kwargs)


APART = [["exogenous_0"], ["exogenous_1"]]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("env", [Crowd(), StopsWithTheAgent()], ids=type)
def test_good_environments_pass(env, seed):
    check_mdp(adapt(env), rng=seed, num_samples=150)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (KeepsAway(), "'exogeneity' is broken: with the same x, 'exogenous_0' becomes"),
        (EndsAhead(), "'exogeneity' is broken: .* 'exogenous_1' becomes (0 in 100|1 in 0)%"),
        (LooksAhead(), "'exogeneity' is broken: 'endogenous_0' looks at the next x"),
        (Lottery(), "'reward' is broken: the environment pays .* give AdaptedMDP reward_samples"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_environments_that_break_a_rule_are_found_out(env, message):
    with pytest.raises(ContractError, match=message):
        check_mdp(adapt(env))


def test_terms_that_are_declared_apart_but_pay_together_are_found_out():
    check_mdp(adapt(PaysTogether()))  # by default they get a term together
    with pytest.raises(ContractError, match=r"'reward' is broken: the environment pays .* one var"):
        check_mdp(adapt(PaysTogether(), reward_scopes=APART))


def test_rewards_that_depend_on_chance_are_compared_on_average():
    kwargs = {"num_states": 8, "num_samples": 100}
    check_mdp(adapt(Lottery(), reward_samples=20), reward_range=5.0, **kwargs)
    apart = {"reference": ([0], [0, 0]), "reward_samples": 100, "reward_scopes": APART}
    together = adapt(LotteryTogether(), **apart)
    with pytest.raises(ContractError, match=r"'reward' is broken: .* on average over 300 steps"):
        check_mdp(together, reward_range=2.0, num_states=8, num_samples=300)
    with pytest.raises(ContractError, match=r"further apart than reward_range=0.5"):
        check_mdp(adapt(Lottery(), reward_samples=2), reward_range=0.5, **kwargs)
    with pytest.raises(ValueError, match="reward_range is a positive number or None, not -1"):
        check_mdp(adapt(Lottery()), reward_range=-1)


# --- the comparison -----------------------------------------------------------------------------


def test_samples_of_one_distribution_seldom_differ():
    rng, error_probability, repeats = np.random.default_rng(0), 0.2, 2000
    found = 0
    for _ in range(repeats):
        samples = rng.integers(2, size=30), rng.integers(2, size=60)
        found += find_difference(*samples, error_probability) is not None
    assert 0 < found / repeats < error_probability


def test_a_difference_may_be_spread_over_many_values():
    rng = np.random.default_rng(0)
    even, any_ = 2 * rng.integers(10, size=300), rng.integers(20, size=300)
    difference = find_difference(even, any_, 1e-6)
    assert difference is not None
    assert difference.first == np.mean(even == difference.value)
    assert difference.second == np.mean(any_ == difference.value)
    assert abs(difference.first - difference.second) < 0.15  # no single value says much


@pytest.mark.parametrize("size", [0, 1, 2])
def test_samples_too_small_to_tell(size):
    assert find_difference(np.zeros(size, dtype=int), np.ones(300, dtype=int), 1e-6) is None
