"""The adapter to Stable-Baselines3, against SB3's own DummyVecEnv."""

import copy
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from models import CoinMDP, CounterMDP

from exo_envs import ExoEnv, ExoVectorEnv, State
from exo_envs.domains.grid import GridMDP
from wrappers import MaskedObservation, MaskedVectorObservation

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from wrappers.sb3 import SB3VecEnv

LANES = 6
# The counter ends at position 5 and is cut off after 7 steps: a lane that only ends, one that is
# only cut off, one to which both happen in the same step, and some that do as they like.
SCRIPT = np.array([[2] * 35, [0] * 35, [0, 0, 0, 0, 1, 2, 2] * 5]).T
ACTIONS = np.column_stack([SCRIPT, np.random.default_rng(0).integers(3, size=(35, LANES - 3))])


def counters(mask=None):
    """The adapter and SB3's own, over a model without noise."""
    lanes = ExoVectorEnv(CounterMDP(), LANES, autoreset_mode="SameStep", reward_terms=True)
    if mask is None:
        return SB3VecEnv(lanes), DummyVecEnv([lambda: ExoEnv(CounterMDP())] * LANES)
    make = [lambda: MaskedObservation(ExoEnv(CounterMDP()), mask)] * LANES
    return SB3VecEnv(MaskedVectorObservation(lanes, mask)), DummyVecEnv(make)


def grid(num_envs=LANES, **arguments):
    return ExoVectorEnv(GridMDP(), num_envs, autoreset_mode="SameStep", **arguments)


def same(ours, theirs):
    assert data_equivalence(plain(ours), plain(theirs), exact=True), f"{ours}\n{theirs}"


def plain(data):
    """Without the order that DummyVecEnv's dictionaries have."""
    if isinstance(data, dict):
        return {key: plain(data[key]) for key in sorted(data)}
    return type(data)(map(plain, data)) if isinstance(data, (tuple, list)) else data


def same_run(ours, theirs, actions):
    """Steps both, compares everything, and returns the infos."""
    assert ours.num_envs == theirs.num_envs
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    same(ours.reset(), theirs.reset())
    same(ours.reset_infos, theirs.reset_infos)
    infos = []
    for action in actions:
        step = ours.step(action)
        same(step, theirs.step(action))
        same(ours.reset_infos, theirs.reset_infos)
        infos += step[3]
    return infos


# --- what SB3 sees ----------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [None, [], ["die"]], ids=["full", "empty", "die"])
def test_every_output_is_that_of_dummy_vec_env(mask):
    infos = same_run(*counters(mask), ACTIONS)
    ends = [info["TimeLimit.truncated"] for info in infos if "terminal_observation" in info]
    assert ends.count(True) >= 5
    assert ends.count(False) > 15
    _, cut_off, both = infos[6 * LANES :][:3]  # after the seventh step
    assert (cut_off["TimeLimit.truncated"], both["TimeLimit.truncated"]) == (True, False)
    assert both["terminal_observation"]["endogenous"].tolist() == [5, 2]
    assert both["reward_terms"].shape == (2,)


def test_lanes_with_generators_of_their_own_meet_the_same_noise():
    ours = SB3VecEnv(SyncVectorEnv([lambda: ExoEnv(GridMDP())] * LANES, autoreset_mode="SameStep"))
    theirs = DummyVecEnv([lambda: ExoEnv(GridMDP())] * LANES)
    assert ours.seed(3) == theirs.seed(3)
    actions = np.random.default_rng(0).integers(5, size=(100, LANES))
    infos = same_run(ours, theirs, actions)
    assert sum("terminal_observation" in info for info in infos) > LANES


class Talkative(gym.Env):
    """Observes an array, and says all sorts of things about a step and about a reset."""

    observation_space = spaces.Box(0, 100, (2,), np.float32)
    action_space = spaces.Discrete(3)
    total = count = 0

    def reset(self, *, seed=None, options=None):
        self.total = 0
        return self._observe(), {"start": self.count, "nested": {"old": True}}

    def step(self, action):
        self.total += int(action)
        self.count += 1
        info = {"count": self.count, "half": self.total / 2, "nested": {"a": {"b": self.total}}}
        info |= {"text": "even", "row": np.arange(3)} if self.total % 2 == 0 else {"odd": True}
        return self._observe(), 0.1 * self.total, self.total > 5, self.count % 4 == 0, info

    def _observe(self):
        return np.array([self.total, self.count], dtype=np.float32)


@pytest.mark.parametrize("copies", [True, False])
def test_infos_and_observations_of_any_kind_are_told_lane_by_lane(copies):
    lanes = SyncVectorEnv([Talkative] * LANES, autoreset_mode="SameStep", copy=copies)
    ours = SB3VecEnv(lanes)
    infos = same_run(ours, DummyVecEnv([Talkative] * LANES), ACTIONS)
    assert {"start", "nested"} == ours.reset_infos[0].keys()
    assert any("text" in info for info in infos)
    assert all(type(info["count"]) is int for info in infos)
    first = ours.reset()
    before = first.copy()
    ours.step(ACTIONS[0])
    same(first, before)  # also where the vector environment writes over its own


def test_what_is_said_of_the_whole_batch_is_told_to_every_lane():
    env = grid(3)
    step = env.step
    env.step = lambda actions: (*(result := step(actions))[:4], result[4] | {"tide": "high"})
    venv = SB3VecEnv(env)
    venv.reset()
    assert [info["tide"] for info in venv.step([0, 0, 0])[3]] == ["high"] * 3


@pytest.mark.skipif(
    tuple(map(int, gym.__version__.split(".")[:2])) < (1, 4),
    reason="before, Gymnasium's wrapper did not count the steps of SameStep episodes right",
)
def test_statistics_of_episodes_are_those_of_vec_monitor():
    lanes = ExoVectorEnv(CounterMDP(), LANES, autoreset_mode="SameStep", reward_terms=True)
    ours, theirs = SB3VecEnv(RecordEpisodeStatistics(lanes)), VecMonitor(counters()[0])
    ours.reset()
    theirs.reset()
    num_episodes = 0
    for actions in ACTIONS:
        steps = ours.step(actions)[3], theirs.step(actions)[3]
        for one, other in zip(*steps, strict=True):
            assert one.keys() == other.keys()
            if "episode" in one:
                num_episodes += 1
                assert one["episode"]["l"] == other["episode"]["l"]
                assert one["episode"]["r"] == pytest.approx(other["episode"]["r"], rel=1e-6)
    assert num_episodes > 20


# --- training ---------------------------------------------------------------------------------

# Steps so large that what is learned from different data is far apart.
SMALL = {"policy_kwargs": {"net_arch": [8]}, "learning_rate": 0.01, "device": "cpu"}
ALGORITHMS = {
    PPO: {"n_steps": 10, "batch_size": 30, "n_epochs": 2},
    A2C: {"n_steps": 5},
    DQN: {"learning_starts": 60, "train_freq": 2, "batch_size": 16, "buffer_size": 600},
}
WRAPPED = {
    "bare": lambda venv: venv,
    "monitored": VecMonitor,
    "normalized": lambda venv: VecNormalize(VecMonitor(venv), norm_obs=False),
}


@pytest.fixture(autouse=True)
def one_thread():
    """The networks are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def weights(model):
    return torch.cat([part.detach().flatten() for part in model.policy.parameters()]).numpy()


def assert_learned_the_same(weights, others):
    """Up to rounding, which depends on where in memory torch puts things."""
    np.testing.assert_allclose(weights, others, rtol=0, atol=1e-4)


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_learns_the_same_weights_as_on_dummy_vec_env(algorithm, wrap):
    models = []
    for venv in counters():
        model = algorithm("MultiInputPolicy", wrap(venv), seed=1, **ALGORITHMS[algorithm], **SMALL)
        first = weights(model)
        models.append(model.learn(240))
        assert np.abs(weights(model) - first).max() > 0.01
    assert_learned_the_same(*map(weights, models))
    episodes = [[(e["r"], e["l"]) for e in model.ep_info_buffer] for model in models]
    assert episodes[0] == episodes[1]
    assert len(episodes[0]) >= 20 or wrap is WRAPPED["bare"]
    scores = [evaluate_policy(model, VecMonitor(counters()[i])) for i, model in enumerate(models)]
    assert scores[0] == scores[1]


def test_training_resumes_exactly(tmp_path):
    venv = SB3VecEnv(grid())
    model = A2C("MultiInputPolicy", venv, n_steps=5, **SMALL).learn(90)
    model.save(tmp_path / "model")
    snapshot = pickle.dumps(venv.get_state())
    torch.manual_seed(0)
    expected = weights(model.learn(90, reset_num_timesteps=False))

    venv = SB3VecEnv(MaskedVectorObservation(grid(), range(5)))  # all of them
    model = A2C.load(tmp_path / "model", env=venv, force_reset=False, device="cpu")
    venv.set_state(pickle.loads(snapshot))
    assert np.abs(weights(model) - expected).max() > 0.01
    torch.manual_seed(0)
    assert_learned_the_same(weights(model.learn(90, reset_num_timesteps=False)), expected)


def test_snapshots_and_copies_continue_identically():
    venv = SB3VecEnv(grid())
    venv.seed(7)
    venv.reset()
    rng = np.random.default_rng(0)
    for actions in rng.integers(5, size=(20, LANES)):
        venv.step(actions)
    other = SB3VecEnv(grid())
    other.set_state(pickle.loads(pickle.dumps(venv.get_state())))
    twins = [other, copy.deepcopy(venv), pickle.loads(pickle.dumps(venv))]
    num_ended = 0
    for actions in rng.integers(5, size=(60, LANES)):
        step = venv.step(actions)
        num_ended += step[2].sum()
        for twin in twins:
            same(twin.step(actions), step)
    assert num_ended >= LANES


# --- seeds and options ------------------------------------------------------------------------


def test_the_first_seed_is_that_of_the_next_reset_and_of_no_other():
    env = ExoVectorEnv(CoinMDP(), 64, autoreset_mode="SameStep")
    expected = [env.reset(seed=5)[0], env.reset()[0]]
    venv = SB3VecEnv(ExoVectorEnv(CoinMDP(), 64, autoreset_mode="SameStep"))
    for _ in range(2):
        assert venv.seed(5) == list(range(5, 69))
        same([venv.reset(), venv.reset()], expected)
    assert (expected[0]["exogenous"] != expected[1]["exogenous"]).any()
    with pytest.raises(ValueError, match="seed is a whole number, at least 0, not 'x'"):
        venv.seed("x")


def test_options_are_those_of_the_next_reset_for_all_lanes_or_for_each():
    venv = SB3VecEnv(MaskedVectorObservation(grid(3), ["object", "weather"]))
    one = {"state": State(np.array([4]), np.array([1, 0, 1, 0, 1]))}
    venv.set_options(one)
    one["state"].endogenous[:] = 9  # no longer ours
    observations = venv.reset()
    assert observations["endogenous"].tolist() == [[4]] * 3
    assert observations["exogenous"].tolist() == [[1, 1]] * 3

    each = [{"endogenous": [n], "exogenous": [n % 3, 0, 0, 0, 1]} for n in (3, 7, 8)]
    venv.set_options([{"state": state} for state in each])
    observations = venv.reset()
    assert observations["endogenous"].tolist() == [[3], [7], [8]]
    assert observations["exogenous"].tolist() == [[0, 1], [1, 1], [2, 1]]
    venv.set_options([{"state": each[1]}] * 3)
    assert venv.reset()["endogenous"].tolist() == [[7]] * 3
    venv.seed(1)
    same(venv.reset(), venv.env.reset(seed=1)[0])  # used once
    for nothing in (None, {}, [{}] * 3):
        venv.set_options({"state": each[1]})
        venv.set_options(nothing)
        venv.seed(1)
        same(venv.reset(), venv.env.reset(seed=1)[0])


STATES = [{"endogenous": [n], "exogenous": [0] * 5} for n in range(3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([{}] * 2, "2 dictionaries of options for 3 lanes"),
        ([{"state": STATES[0]}, {}, {}], r"of lane 1 are \[\], those of lane 0 are \['state'\]"),
        ([{"speed": lane} for lane in range(3)], "option 'speed' cannot differ from lane to lane"),
        ([{"state": {**s, "exogenous": [0] * 4}} for s in STATES], r"shape \(4,\)"),
        ([{"state": s} for s in STATES[:2]] + [{"state": ([99], [0] * 5)}], "cannot be 99"),
    ],
)
def test_options_that_cannot_be_those_of_one_reset_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SB3VecEnv(grid(3)).set_options(options)
    lanes = SyncVectorEnv([lambda: ExoEnv(GridMDP())] * 3, autoreset_mode="SameStep")
    with pytest.raises(ValueError, match="lane"):
        SB3VecEnv(lanes).set_options(options)


# --- attributes, pictures, errors -------------------------------------------------------------


def test_attributes_are_looked_for_through_the_wrappers():
    masked = MaskedVectorObservation(grid(3), ["object"])
    venv = SB3VecEnv(RecordEpisodeStatistics(masked))
    assert venv.get_attr("mask") == [("object",)] * 3
    assert venv.get_attr("mdp", [0, -1]) == [masked.unwrapped.mdp] * 2
    assert VecMonitor(venv).get_attr("episode_count", 1) == [0]
    assert venv.has_attr("viewer")
    assert not venv.has_attr("speed")
    venv.set_attr("speed", 3)  # new, so of the outermost
    assert venv.env.speed == 3
    venv.set_attr("mask", ("guard",), range(3))
    assert masked.mask == ("guard",)
    assert not hasattr(venv.env, "mask")
    calls = []
    masked.unwrapped.ring = lambda *args, **kwargs: calls.append((args, kwargs)) or len(calls)
    assert venv.env_method("ring", 1, indices=[0, 2], loud=True) == [1, 1]
    assert venv.env_method("ring", indices=[]) == []
    assert calls == [((1,), {"loud": True})]
    with pytest.raises(AttributeError, match="has no attribute 'sped'"):
        venv.get_attr("sped")
    with pytest.raises(ValueError, match=r"'speed' is set for all .* in lanes \[1, 2\]"):
        venv.set_attr("speed", 4, 0)
    with pytest.raises(IndexError):
        venv.get_attr("mdp", 3)


def test_wrappers_are_those_of_the_vector_environment():
    venv = SB3VecEnv(RecordEpisodeStatistics(MaskedVectorObservation(grid(3), [])))
    assert venv.env_is_wrapped(MaskedVectorObservation) == [True] * 3
    assert venv.env_is_wrapped(RecordEpisodeStatistics, [1, 2]) == [True] * 2
    assert venv.env_is_wrapped(Monitor) == [False] * 3
    assert venv.env_is_wrapped(ExoVectorEnv) == [False] * 3
    assert SB3VecEnv(grid(3)).env_is_wrapped(MaskedVectorObservation, 0) == [False]


def test_pictures_are_tiled():
    env = gym.make_vec("ExoGrid-v0", 3, autoreset_mode="SameStep", render_mode="rgb_array")
    venv = SB3VecEnv(env)
    venv.reset()
    assert (venv.render_mode, venv.spec.id) == ("rgb_array", "ExoGrid-v0")
    assert venv.metadata["render_fps"] == env.metadata["render_fps"]
    images, frames = venv.get_images(), env.render()
    assert len(images) == 3
    same(tuple(images), frames)
    height, width, _ = frames[0].shape
    assert venv.render().shape == (2 * height, 2 * width, 3)
    same(np.ascontiguousarray(venv.render()[:height, width:]), frames[1])
    venv.close()
    assert env.closed
    with pytest.warns(UserWarning, match="render_mode='rgb_array', not None"):
        assert SB3VecEnv(grid(2)).get_images() == [None, None]


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_other_autoreset_modes_are_refused(mode):
    env = gym.make_vec("ExoGrid-v0", num_envs=2, autoreset_mode=mode)
    with pytest.raises(ValueError, match=f"is '{mode}', .*make_vec.*autoreset_mode=\"SameStep\""):
        SB3VecEnv(MaskedVectorObservation(env, []))


def test_only_vector_environments_are_taken():
    for other in (gym.make("ExoGrid-v0"), GridMDP(), ExoVectorEnv, counters()[1]):
        with pytest.raises(TypeError, match="takes a gymnasium VectorEnv"):
            SB3VecEnv(other)


def test_without_sb3_the_import_says_what_to_install():
    """And nothing else needs it."""
    code = "import sys; sys.modules['stable_baselines3'] = None; import wrappers; "
    code += "print('fine'); import wrappers.sb3"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "fine\n"
    assert (
        'NotInstalledError: wrappers.sb3 needs Stable-Baselines3: pip install "exo-envs[rl]"'
        in (done.stderr)
    )
