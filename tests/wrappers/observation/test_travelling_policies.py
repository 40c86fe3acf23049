"""Masks that travel with their policies: files, copies, and environments that were adapted."""

import copy
import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
from forgery import forge
from gymnasium.envs.registration import EnvSpec
from gymnasium.envs.toy_text.taxi import TaxiEnv
from harbour import HARBOUR_VARIABLES, Harbour, Hidden, get_hidden, set_hidden
from safetensors import safe_open
from traces import record

from exo_envs import AdaptedMDP, ExoEnv, Variable
from exo_envs.domains.grid import GridMDP
from planners import UCT, ForecastPlanner, Policy, Scenarios, evaluate
from planners.forecasting.planner import ForecastPolicy
from planners.value_iteration.tabular_policy import TabularPolicy
from wrappers import CalibratedMaskLearner, LearnedMask, RewardVariableMaskLearner
from wrappers.fitting.saved import SavedMask

SMALL = {"n_rollouts": 20, "n_data_rollouts": 40}
MASK = ("object", "guard")


def make(**arguments):
    return gym.make("exo_envs:ExoGrid-v0", **arguments)


def learn(**settings):
    return LearnedMask(make(), learner=RewardVariableMaskLearner(**SMALL, **settings), rng=1)


@pytest.fixture(scope="module")
def learned():
    return learn()


def states(number=200):
    return make().unwrapped.mdp.sample_uniform(number, np.random.default_rng(0))


def same_policy(one, other):
    assert type(one) is type(other)
    assert (one.mask, one.full, one.variables) == (other.mask, other.full, other.variables)
    np.testing.assert_array_equal(one(states()), other(states()))


@pytest.mark.parametrize(
    "name", ["mask.json", "mask.zip", "mask.safetensors", "mask", "mask.tar.gz"]
)
def test_one_file_holds_mask_and_policy(learned, tmp_path, name):
    learned.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    loaded = LearnedMask.load(make(), tmp_path / name)
    assert loaded.mask == learned.mask == MASK
    same_policy(loaded.policy, learned.policy)
    observation, _ = loaded.reset(seed=0)
    assert loaded.action_space.contains(loaded.policy(observation))
    assert SavedMask.load(tmp_path / name) == learned.learner.saved()
    same_policy(Policy.load(tmp_path / name), learned.policy)


def test_the_file_of_forecasts(tmp_path):
    env = learn(planner=ForecastPlanner(horizon=4))
    env.save(tmp_path / "mask")
    loaded = LearnedMask.load(make(), tmp_path / "mask")
    assert isinstance(loaded.policy, ForecastPolicy)
    same_policy(loaded.policy, env.policy)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        learn().save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_people_can_read_the_mask(learned, tmp_path):
    learned.save(tmp_path / "mask")
    with safe_open(tmp_path / "mask", "numpy") as file:
        head = json.loads(file.metadata()["exo-envs"].partition(" ")[2])
    text = head["texts"]["mask.json"]
    assert '\n  "mask": [\n    "object",' in text
    assert {"spec", "seed", "versions"} < set(json.loads(text))


def test_a_learner_saves_its_policy_if_asked(learned, tmp_path):
    learned.learner.save(tmp_path / "alone.json")
    assert json.loads((tmp_path / "alone.json").read_text())["mask"] == list(MASK)
    learned.learner.save(tmp_path / "both", with_policy=True)
    same_policy(Policy.load(tmp_path / "both"), learned.policy)


def test_files_from_before_have_the_mask_alone(learned, tmp_path):
    learned.learner.saved().save(tmp_path / "mask.json")
    loaded = LearnedMask.load(make(), tmp_path / "mask.json")
    assert loaded.mask == MASK
    assert loaded.policy is None
    with pytest.raises(ValueError, match="not a file of exo-envs"):
        Policy.load(tmp_path / "mask.json")


def test_a_policy_that_no_file_can_hold(tmp_path):
    env = learn(planner=UCT(simulations=3, depth=2))
    with pytest.warns(UserWarning, match="holds the mask alone: a UCTPolicy cannot be saved"):
        env.save(tmp_path / "mask")
    loaded = LearnedMask.load(make(), tmp_path / "mask")
    assert loaded.mask == env.mask
    assert loaded.policy is None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("source", ["learned", "loaded"])
def test_copies_have_the_policy(learned, tmp_path, duplicate, source):
    env = learned
    if source == "loaded":
        learned.save(tmp_path / "mask")
        env = LearnedMask.load(make(), tmp_path / "mask")
    env.reset(seed=0)
    record(env, 5, 0)
    twin = duplicate(env)
    assert twin.learner is None
    assert twin.policy is not env.policy
    same_policy(twin.policy, learned.policy)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_they_travel_on(learned, tmp_path, duplicate):
    """What was loaded or copied is saved again, to the same bytes."""
    learned.save(tmp_path / "first")
    loaded = LearnedMask.load(make(), tmp_path / "first")
    for number, env in enumerate((loaded, duplicate(learned), duplicate(loaded))):
        env.save(tmp_path / str(number))
        assert (tmp_path / str(number)).read_bytes() == (tmp_path / "first").read_bytes()
    learned.learner.save(tmp_path / "alone")
    LearnedMask.load(make(), tmp_path / "alone").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "alone").read_bytes()


def test_policies_of_other_models_are_refused(learned, tmp_path):
    learned.save(tmp_path / "mask")

    wide = GridMDP()
    wide.endogenous_variables = (Variable("robot", 40),)
    with pytest.raises(ValueError, match=r"endogenous variables of sizes \[13\], not .* \[40\]"):
        LearnedMask.load(ExoEnv(wide), tmp_path / "mask")


def test_a_policy_of_another_mask_in_the_file_is_refused(learned, tmp_path):
    saved = learned.learner.saved()
    policy = TabularPolicy(
        np.zeros((2, 13), int), exogenous_sizes=[2], endogenous_sizes=[13], mask=("ghost",)
    )
    saved.save(tmp_path / "mask", policy=policy)
    with pytest.raises(ValueError, match=r"does not hold a whole mask: its policy looks at \('gh"):
        LearnedMask.load(make(), tmp_path / "mask")
    policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match=r"does not hold a mask: there is no mask\.json"):
        LearnedMask.load(make(), tmp_path / "policy")


@pytest.mark.parametrize("alone", [True, False])
def test_forged_masks_are_refused_or_harmless(learned, tmp_path, alone):
    learned.learner.save(tmp_path / "good", with_policy=not alone)
    content, path = (tmp_path / "good").read_bytes(), tmp_path / "forged"
    env, messages = make(), []
    for seed in range(150):
        path.write_bytes(forge(content, np.random.default_rng(seed)))
        try:
            loaded = LearnedMask.load(env, path)
        except ValueError as error:
            messages.append(str(error))
        else:
            assert loaded.policy is None or loaded.policy(states()).shape == (200,)
    strange = [said for said in messages if repr(str(path)) not in said]
    assert all("the mask was learned on" in said for said in strange), strange  # by another model
    assert len(messages) > 50


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "9" * 5_000, " " * 2**23 + "{}", '"\\ud8"'])
def test_texts_that_are_no_masks(tmp_path, text):
    (tmp_path / "mask.json").write_text(text)
    with pytest.raises(ValueError, match=r"mask\.json' does not hold a mask"):
        SavedMask.load(tmp_path / "mask.json")


# --- environments that somebody else wrote ----------------------------------------------------


def test_a_policy_takes_the_observations_of_an_adapted_environment(tmp_path):
    """They do not show the model's variable ``done``."""
    env, again = Harbour(), Harbour()
    env.spec = again.spec = EnvSpec("Harbour-v0", max_episode_steps=10)
    settings = {"n_rollouts": 3, "n_data_rollouts": 30, "n1": 40}
    env = LearnedMask(env, learner=RewardVariableMaskLearner(**settings), rng=0)
    env.save(tmp_path / "mask")
    for one in (env, copy.deepcopy(env), LearnedMask.load(again, tmp_path / "mask")):
        observation, _ = one.reset(seed=0)
        assert observation["endogenous"].shape == (1,)
        for _ in range(8):
            observation, _, ended, *_ = one.step(one.policy(observation))
            if ended:
                observation, _ = one.reset()
        full = one.unwrapped.observe()
        assert one.policy(full) == one.policy(one.observation(full))
        assert one.policy({**full, "endogenous": [*full["endogenous"], 0]}) == one.policy(full)
        batch = {"endogenous": [[0], [3]], "exogenous": [[0, 0], [1, 1]]}
        assert one.policy(batch).shape == (2,)
        with pytest.raises(ValueError, match="should be 2"):
            one.policy({**full, "endogenous": []})


def test_what_an_observation_shows():
    mdp = AdaptedMDP(Harbour(), horizon=20)
    state = mdp.state_of({"endogenous": [2], "exogenous": [1, 0]})
    assert [part.tolist() for part in state] == [[2, 0], [1, 0]]
    with pytest.raises(ValueError, match="'exogenous_0' cannot be 9"):
        mdp.state_of({"endogenous": [2], "exogenous": [9, 0]})
    functions = {"get_state": get_hidden, "set_state": set_hidden}
    hidden, played = Hidden(), Hidden()
    mdp = AdaptedMDP(hidden, horizon=20, **functions, **HARBOUR_VARIABLES)
    observation, _ = played.reset(seed=3)
    played.n[0] = 3
    state = mdp.state_of(observation, played)
    assert state.endogenous.tolist() == [3, 0]
    np.testing.assert_array_equal(state.exogenous, played.x)


def split(observation):
    row, column, passenger, goal = TaxiEnv.decode(None, int(observation))
    return [row, column, passenger], [goal]


def put(env, endogenous, exogenous):
    env.s = env.encode(*endogenous, *exogenous)


def test_a_policy_drives_the_real_taxi(tmp_path):
    """From the same states it earns there what it earns in the model."""
    taxi = AdaptedMDP(
        TaxiEnv(),
        split=split,
        set_state=put,
        endogenous_variables=[Variable("row", 5), Variable("column", 5), Variable("passenger", 5)],
        exogenous_variables=[Variable("goal", 4)],
        horizon=200,
    )
    learner = CalibratedMaskLearner(n_rollouts=20, n_data_rollouts=50).fit(taxi, rng=0)
    assert learner.mask_ == ("goal",)
    learner.save(tmp_path / "taxi", with_policy=True)
    policy, env, returns, starts = Policy.load(tmp_path / "taxi"), TaxiEnv(), [], []
    for seed in range(10):
        observation, _ = env.reset(seed=seed)
        starts.append(taxi.state_of(observation))
        earned, terminated, step = 0.0, False, 0
        while not terminated:
            action = policy(taxi.state_of(observation))
            observation, reward, terminated, *_ = env.step(action)
            earned, step = earned + taxi.discount**step * reward, step + 1
            assert step < 20
        returns.append(earned)
    n, x = (np.array(part) for part in zip(*starts, strict=True))
    scenarios = Scenarios(n, np.broadcast_to(x, (200, *x.shape)).astype(np.uint8), 0)
    np.testing.assert_allclose(evaluate(policy, taxi, scenarios=scenarios), returns)
