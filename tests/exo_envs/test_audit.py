"""The audit finds which variables actions move, and says how it knows."""

import gymnasium as gym
import numpy as np
import pytest
from broken import CELLS, LeaksThroughNEnv, ReactsLateEnv, RingEnv, RingMDP
from gymnasium.envs.toy_text.taxi import TaxiEnv
from models import CoinMDP, CounterMDP

import exo_envs  # noqa: F401 - registers ExoGrid
from exo_envs import AdaptedMDP, ExoMDP, State, Variable
from exo_envs.audit.trials import Trials
from exo_envs.testing import Audit, Finding, Problem, audit
from wrappers import MaskedObservation


@pytest.mark.parametrize("seed", range(4))
def test_the_partition_of_taxi_is_exact(seed):
    found = audit(TaxiEnv(), rng=seed)
    assert found.endogenous == ("taxi_row", "taxi_col", "pass_loc")
    assert found.exogenous == ("dest_idx",)
    assert found.problems == found.remarks == ()


def test_the_evidence_of_each_finding():
    """A ball is thrown by the action; it passes three hands, and a wind blows meanwhile."""
    found = audit(Hands(), rng=0)
    assert found.endogenous == ("ball", "first", "second", "third")
    assert found.exogenous == ("wind",)
    assert found.constant == ("wall",)
    ball, first, _, third, wind, wall = found.findings
    assert [f.steps for f in found.findings] == [1, 2, 3, 4, 0, 0]
    assert [f.way for f in found.findings] == ["directly", *["through others"] * 3, "", ""]
    assert [f.through for f in found.findings] == [(), ("ball",), ("first",), ("second",), (), ()]
    assert ball.is_moved
    assert ball.share > 0.9
    assert ball.p_value == first.p_value == 0.0  # under the same random numbers nothing else can be
    assert "through second" in third.reason
    assert "after 4 steps" in third.reason
    assert wind.p_value == 1.0
    assert "in 120 states (95 %: it is moved in fewer than 2.5%" in wind.reason
    assert wall.reason == "never changed"
    assert all(f.num_states == 120 for f in found.findings)
    assert "actions move: ball, first, second, third" in str(found)
    assert "no problem was found" in str(found)


class Hands(ExoMDP):
    """Passes a ball on; only the first hand is told what to do."""

    endogenous_variables = tuple(Variable(name, 4) for name in ("ball", "first", "second", "third"))
    exogenous_variables = (Variable("wind", 3), Variable("wall", 2))
    num_actions, discount, horizon = 4, 0.9, 50

    def sample_initial(self, size, rng):
        x = np.stack([rng.integers(3, size=size), np.ones(size, dtype=int)], axis=-1)
        return State(np.zeros((size, 4), dtype=int), x)

    def sample_exogenous(self, exogenous, rng):
        following = exogenous.copy()
        following[..., 0] = rng.integers(3, size=exogenous.shape[:-1])
        return following

    def sample_endogenous(self, state, action, rng):
        passed = np.roll(state.endogenous, 1, axis=-1)
        passed[..., 0] = action
        return passed

    def reward_terms(self, state, action):
        return np.zeros(state.exogenous.shape)


@pytest.mark.parametrize("mdp", [CoinMDP(), CounterMDP(), RingMDP()], ids=repr)
def test_good_models_have_no_problem(mdp):
    found = audit(mdp, rng=1, num_states=40)
    assert found.problems == ()


# --- noise --------------------------------------------------------------------------------------


class UsesMoreNumbers(RingEnv):
    """Going right takes more random numbers, so that nothing is the same afterwards."""

    def step(self, action):
        if int(action) == 2:
            self.np_random.random(5)
        return super().step(action)


SECRET = np.random.default_rng(0)


class OwnNoise(RingEnv):
    """Its random numbers come from a generator that nobody can seed."""

    def step(self, action):
        self.np_random = np.random.default_rng(int(SECRET.integers(2**31)))
        return super().step(action)


@pytest.mark.parametrize("env", [UsesMoreNumbers(), OwnNoise()], ids=type)
def test_distributions_are_compared_where_random_numbers_cannot_be_held(env):
    found = audit(env, rng=0, num_states=60)
    assert found.endogenous == ("endogenous_0",)
    assert found.problems == ()
    crowd = found.findings[2]
    assert "no action changes its distribution" in crowd.reason
    assert "a small effect may have been missed" in crowd.reason


class OwnNoiseAndLeak(OwnNoise):
    def stroll(self, action):
        return 0.9 if self.robot < 2 else 0.1


def test_a_change_of_distribution_has_a_p_value():
    found = audit(OwnNoiseAndLeak(), rng=0, num_states=60)
    assert found.endogenous == ("endogenous_0", "exogenous_0")
    crowd = found.findings[2]
    assert 0.0 < crowd.p_value < 5e-7
    assert f"p = {crowd.p_value:.1g}" in crowd.reason


def test_what_is_played_again_is_not_always_the_same():
    from exo_envs.audit.subject import as_subject

    for env, repeats in ((RingEnv(), True), (OwnNoise(), False)):
        rng = np.random.default_rng(0)
        trials = Trials.play(as_subject(env, rng), rng, 10)
        assert trials.repeats is repeats
        assert not trials.is_carried


def test_an_action_that_ends_every_episode_is_still_compared():
    found = audit(gym.make("Blackjack-v1", sab=True), rng=0)
    assert "observation_0" in found.endogenous  # the sum of the cards
    assert found.exogenous == ("observation_1",)  # the dealer's card
    assert len(found.remarks) == 1


# --- what is audited ----------------------------------------------------------------------------


class Flat(gym.ObservationWrapper):
    """Shows real numbers in one array; nobody says how to set them."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-1.0, CELLS, (4,), np.float32)

    def observation(self, observation):
        return np.concatenate([*observation.values()]).astype(np.float32)


def test_boxes_and_the_state_in_attributes():
    found = audit(Flat(LeaksThroughNEnv()), rng=0)
    assert found.endogenous == ("observation_0", "observation_2")
    assert found.exogenous == ("observation_1", "observation_3")
    crowd = found.findings[2]
    assert crowd.through == ("observation_0",)
    assert crowd.steps == 2
    assert found.problems == ()  # nobody says that the crowd is exogenous
    late = audit(Flat(ReactsLateEnv()), rng=0)
    assert late.hidden == ("observation_0",)


def test_real_actions_and_states():
    pendulum = audit(gym.make("Pendulum-v1"), rng=0, num_states=40)
    assert pendulum.endogenous == ("state_0", "state_1")
    assert pendulum.problems == pendulum.remarks == ()
    cart = audit(gym.make("CartPole-v1"), rng=0, num_states=40)
    position = cart.findings[0]
    assert position.through == ("observation_1",)  # the velocity
    assert cart.problems == ()


def test_an_adapted_model_is_audited_by_its_own_variables():
    mdp = AdaptedMDP(
        LeaksThroughNEnv(),
        endogenous_variables=["robot", "battery"],
        exogenous_variables=["crowd", "weather"],
        horizon=20,
    )
    found = audit(mdp, rng=0)
    assert found.endogenous == ("robot", "crowd")
    assert found.exogenous == ("battery", "weather")
    (problem,) = found.problems
    assert (problem.kind, problem.variable) == ("leaks through n", "crowd")
    assert problem.steps == 2
    taxi = AdaptedMDP.from_env(TaxiEnv(), horizon=50)
    assert audit(taxi, rng=0, num_states=60).exogenous == taxi.exogenous_names == ("dest_idx",)


def test_wrappers_stay_in_effect_whatever_they_show():
    env = MaskedObservation(gym.make("ExoGrid-v0"), ["guard"])
    found = audit(env, rng=0, num_states=20)
    assert found.endogenous == ("robot",)
    assert len(found.findings) == 6
    stuck = audit(gym.wrappers.TransformAction(env, lambda _: 0, env.action_space), num_states=20)
    assert stuck.endogenous == ()


def test_functions_that_read_and_write_a_state():
    def read(env, _):
        own = env.unwrapped
        return np.array([own.robot, own.battery, own.crowd, own.weather])

    def set_state(own, numbers):
        own.robot, own.battery, own.crowd, own.weather = map(int, numbers)

    names = ["robot", "battery", "crowd", "weather"]
    env = Flat(LeaksThroughNEnv())
    found = audit(env, rng=0, read=read, names=names, set_state=set_state)
    assert found.endogenous == ("robot", "crowd")
    assert found.findings[2].through == ("robot",)
    assert found.problems == ()
    renamed = audit(env, rng=0, names=names, num_states=30)
    assert renamed.endogenous == ("robot", "crowd")


class GoesElsewhere(RingEnv):
    """Takes a state, and begins somewhere else."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


def test_an_environment_that_does_not_go_where_it_is_put():
    found = audit(GoesElsewhere(), rng=0, num_states=20)
    assert found.endogenous == ("endogenous_0",)
    (remark,) = found.remarks
    assert "does not go where reset" in remark
    assert "remark: " in str(found)


def test_the_same_seed_gives_the_same_audit():
    one, two = (audit(RingEnv(), rng=np.random.default_rng(3), num_states=20) for _ in range(2))
    assert one == two
    assert isinstance(one, Audit)
    assert all(isinstance(finding, Finding) for finding in one.findings)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_states": 0}, ValueError, "num_states"),
        ({"num_states": 2.5}, ValueError, "num_states"),
        ({"rng": "seed"}, TypeError, "rng"),
        ({"error_probability": 0.0}, ValueError, "error_probability"),
        ({"read": 3}, TypeError, "read"),
        ({"set_state": "x"}, TypeError, "set_state"),
        ({"read": lambda env, shown: np.zeros(2)}, TypeError, "with read, names says"),
        ({"read": lambda env, _: np.zeros(2), "names": ["a"]}, ValueError, "2 numbers .* 1 names"),
        ({"names": ["a", "b"]}, ValueError, "names has 2 names; needed: 4"),
        ({"names": ["a", "a", "b", "c"]}, ValueError, "all different, unlike 'a'"),
        ({"names": "robot"}, TypeError, "names"),
    ],
)
def test_odd_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        audit(RingEnv(), **arguments)


@pytest.mark.parametrize("thing", [None, RingMDP, "ExoGrid-v0", 7])
def test_only_environments_and_models_are_audited(thing):
    with pytest.raises(TypeError, match=r"needed: a gymnasium.Env or an ExoMDP"):
        audit(thing)


def test_nothing_is_printed(capsys):
    audit(ReactsLateEnv(), rng=0, num_states=20)
    assert capsys.readouterr() == ("", "")


def test_results_are_values():
    problem = Problem("hidden state", "x", "words")
    audit_ = Audit(("n",), ("x",), (Finding("n", True, "seen"),), (problem,))
    assert audit_.hidden == ("x",)
    assert "problem (hidden state): words" in str(audit_)
    assert hash(problem) == hash(Problem("hidden state", "x", "words"))


def test_random_numbers_that_fall_back_into_step_by_chance_say_nothing():
    """Sales are Poisson: they use as many random numbers as they like before fares are drawn."""
    from airline import Airline

    found = audit(Airline(), rng=0, names=["seats", "fare", "demand", "weather"])
    assert found.endogenous == ("seats",)
    assert found.problems == ()


class OneByOne(RingMDP):
    """Takes one state at a time."""

    def sample_endogenous(self, state, action, rng):
        int(np.reshape(action, -1).item())
        return super().sample_endogenous(state, action, rng)


def test_a_model_that_takes_no_batches_is_audited_as_far_as_it_goes():
    found = audit(OneByOne(), num_states=20)
    assert found.endogenous == ("robot",)
    (remark,) = found.remarks
    assert "check_mdp says more" in remark


class Screen(gym.Env):
    observation_space = gym.spaces.Box(0, 255, (210, 160, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((210, 160, 3), np.uint8), {}

    def step(self, action):
        return np.zeros((210, 160, 3), np.uint8), 0.0, False, False, {}


def test_more_numbers_than_can_be_kept_are_refused():
    with pytest.raises(ValueError, match=r"100800 numbers in each of num_states=120 .* give read"):
        audit(Screen(), read=lambda _, shown: shown.ravel(), names=[str(i) for i in range(100800)])
