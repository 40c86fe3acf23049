"""Masks that change with the task, from one episode to the next."""

import copy
import pickle
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from harbour import Harbour
from real_models import BatteryMDP
from traces import record, same

from exo_envs import ExoEnv
from exo_envs.domains.grid import GridMDP, GridParameters
from planners import evaluate
from wrappers import (
    CalibratedMaskLearner,
    FlatObservation,
    MaskedObservation,
    RemaskingObservation,
    RewardVariableMaskLearner,
)

TASKS = {"careful": {}, "padded": {"crash_cost": 0.0}}
MASKS = {"careful": ("object", "guard"), "padded": ("object",)}
STATE = ([0], [2, 1, 1, 0, 1])
pytestmark = pytest.mark.filterwarnings("ignore::wrappers.UndecidedWarning")


def make(**arguments):
    return gym.make("exo_envs:ExoGrid-v0", **arguments)


@pytest.fixture(scope="module")
def learner():
    return CalibratedMaskLearner(cost_weight=2.0, n_rollouts=200).fit(make(), rng=0)


@pytest.fixture
def env(learner):
    return RemaskingObservation(make(), TASKS, learner)


@pytest.fixture
def given():
    return RemaskingObservation(make(), TASKS, masks=MASKS)


def test_it_learns_each_task_once(learner):
    told = []
    own = learner.clone().set_params(callback=told.append)
    env = RemaskingObservation(make(), TASKS, own, rng=0)
    assert env.masks == MASKS
    assert list(env.learners) == ["careful", "padded"]
    assert not hasattr(own, "mask_")
    first, second = env.learners.values()
    assert second.study_.memory.data.values is first.study_.memory.data.values
    assert "policy_" not in vars(second)  # nobody asked for it
    asked = len(told)
    for task in ("padded", "careful", "padded"):
        env.reset(options={"task": task})
    assert len(told) == asked


def test_a_learner_that_is_fitted_is_refitted(env, learner):
    assert env.masks == MASKS
    assert env.learners["careful"] is not learner
    assert env.learners["careful"].study_.memory.data is learner.study_.memory.data
    with pytest.raises(ValueError, match="has a seed of its own; rng=3"):
        RemaskingObservation(make(), TASKS, learner, rng=3)


def test_what_is_shown(env):
    assert env.mask == ("object", "guard")
    assert env.task == "careful"
    space = env.observation_space
    for task, shown in (("careful", [2, 1]), ("padded", [2, 0]), ("careful", [2, 1])):
        observation, info = env.reset(options={"task": task, "state": STATE})
        assert observation["exogenous"].tolist() == shown
        assert observation["endogenous"].tolist() == [0]
        assert (info["task"], info["mask"]) == (task, MASKS[task]) == (env.task, env.current_mask)
        observation, *_, info = env.step(0)
        assert (info["task"], info["mask"]) == (task, MASKS[task])
        assert observation in space
        assert env.observation_space is space
    env.reset(options={"task": "padded"})
    env.reset()
    assert env.task == "padded"


def test_what_is_hidden_tells_nothing(given):
    """Whatever the guard does."""
    given.reset(seed=0, options={"task": "padded"})
    shown = [step[0]["exogenous"] for step in record(given, 60, 0) if len(step) == 5]
    objects, guards = np.array(shown).T
    assert set(guards) == {0}
    assert len(set(objects)) > 1


def test_the_task_is_played(given):
    """In the padded one, walking into the guard costs nothing."""
    for task, cost in (("careful", -30.0), ("padded", 0.0)):
        state = GridMDP().sample_uniform(4_000, np.random.default_rng(0))
        lowest = 0.0
        for n, x in zip(*state, strict=True):
            given.reset(options={"task": task, "state": (n, x)})
            lowest = min(lowest, float(given.step(int(n[0]) % 4)[1]))
            if lowest == cost != 0:
                break
        assert lowest == cost


def test_the_policy_is_that_of_the_task(env):
    """And takes what this environment shows."""
    assert env.policy is env.learners["careful"].policy_
    observation, _ = env.reset(seed=0, options={"task": "padded"})
    policy = env.policy
    assert policy is env.policy
    assert policy.mask == env.mask
    planned = env.learners["padded"].policy_
    assert planned.mask == ("object",)
    rng = np.random.default_rng(1)
    states = GridMDP().sample_uniform(300, rng)
    whole = {"endogenous": states.endogenous, "exogenous": states.exogenous}
    shown = env.observation(whole)
    assert np.array_equal(policy(shown), planned(whole))
    assert np.array_equal(policy(whole), planned(whole))
    assert policy(observation) == planned({k: v[..., :1] for k, v in observation.items()})
    action, _ = policy.predict(observation)
    assert action == policy(observation)
    mdp = GridMDP(GridParameters(crash_cost=0.0))
    assert evaluate(policy, mdp, 200, rng=np.random.default_rng(0)).mean() > 60


def test_masks_that_are_given_are_not_learned(given):
    assert given.masks == MASKS
    assert given.learners == {}
    assert given.policy is None
    patterns = RemaskingObservation(make(), TASKS, masks={"careful": ["guard*"], "padded": [0]})
    assert patterns.masks == {"careful": ("guard", "guard_intent"), "padded": ("object",)}
    assert patterns.mask == ("object", "guard", "guard_intent")


def test_no_mask_keeps_anything():
    env = RemaskingObservation(make(), TASKS, masks={"careful": (), "padded": ()})
    assert set(env.observation_space) == {"endogenous"}
    assert env.reset(seed=0)[0] in env.observation_space


# --- Gymnasium, and others --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@pytest.mark.parametrize("observe_task", [False, True])
def test_everybodys_checks_accept_it(observe_task):
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    for check in (check_env, sb3.check_env):
        env = make().unwrapped
        check(RemaskingObservation(env, TASKS, masks=MASKS, observe_task=observe_task))


def test_a_seed_is_for_all_tasks(given):
    def run():
        trace = [given.reset(seed=5)]
        for k in range(4):
            trace += record(given, 20, k)
            trace.append(given.reset(options={"task": ("padded", "careful")[k % 2]}))
        return trace

    first = run()
    same(run(), first)
    padded = RemaskingObservation(make(), TASKS, masks=MASKS)
    alone = make(crash_cost=0.0)
    whole, _ = alone.reset(seed=7)
    shown, _ = padded.reset(seed=7, options={"task": "padded"})
    assert shown["exogenous"][0] == whole["exogenous"][0]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_continue_without_the_learners(env, duplicate):
    env.reset(seed=1, options={"task": "padded"})
    record(env, 7, 0)
    policy = env.policy
    twin = duplicate(env)
    assert twin.learners == {}
    assert env.learners
    assert (twin.task, twin.masks, twin.spec) == (env.task, env.masks, env.spec)
    whole = GridMDP().sample_uniform(50, np.random.default_rng(0))
    assert np.array_equal(twin.policy(whole), policy(whole))
    same(record(twin, 60, 2), record(env, 60, 2))
    for task in ("careful", "padded"):
        same(*(each.reset(seed=3, options={"task": task}) for each in (twin, env)))
        same(record(twin, 20, 3), record(env, 20, 3))
    twin.reset(options={"task": "careful"})
    assert twin.policy is None  # it was not planned before


def test_the_spec_does_not_learn_again(env, given, monkeypatch):
    for method in ("fit", "refit"):
        monkeypatch.setattr(f"wrappers.learners.base.MaskLearner.{method}", None)
    env.reset(seed=0, options={"task": "padded"})
    spec = EnvSpec.from_json(env.spec.to_json())
    for twin in (gym.make(env.spec), gym.make(spec)):
        assert twin.get_wrapper_attr("masks") == MASKS
        assert twin.get_wrapper_attr("task") == "careful"
        for task in ("padded", "careful"):
            same(*(each.reset(seed=3, options={"task": task}) for each in (twin, given)))
            same(record(twin, 30, 1), record(given, 30, 1))


def test_the_task_can_be_observed():
    env = RemaskingObservation(make(), TASKS, masks=MASKS, observe_task=True)
    for number, task in enumerate(TASKS):
        observation, _ = env.reset(options={"task": task})
        assert observation["task"] == number
        assert observation in env.observation_space
    flat = FlatObservation(env, "scaled")
    assert flat.reset(options={"task": "padded"})[0][-1] == 1.0


def test_vectors_of_them():
    lanes = SyncVectorEnv([lambda: RemaskingObservation(make(), TASKS, masks=MASKS)] * 3)
    observations, infos = lanes.reset(seed=0, options={"task": "padded"})
    assert observations["exogenous"].shape == (3, 2)
    assert not observations["exogenous"][:, 1].any()
    assert list(infos["mask"]) == [("object",)] * 3


def test_the_current_mask_is_drawn():
    env = RemaskingObservation(make(render_mode="rgb_array"), TASKS, masks=MASKS)
    plain = MaskedObservation(make(render_mode="rgb_array"), ("object",))
    for each in (env, plain):
        options = {"state": STATE} | ({"task": "padded"} if each is env else {})
        each.reset(options=options)
    assert np.array_equal(env.render(), plain.render())
    env.reset(options={"state": STATE, "task": "careful"})
    assert not np.array_equal(env.render(), plain.render())


# --- tasks of all kinds -----------------------------------------------------------------------


def test_environments_and_models_are_tasks():
    closed = []

    class Closing(ExoEnv):
        def close(self):
            closed.append(self)

    padded = GridMDP(GridParameters(crash_cost=0.0))
    tasks = {"careful": {}, "padded": Closing(padded), "model": padded}
    masks = {"careful": MASKS["careful"], "padded": ("object",), "model": ("carrier",)}
    env = RemaskingObservation(make(), tasks, masks=masks)
    assert env.spec is None
    for task, shown in (("padded", [2, 0, 0]), ("model", [0, 1, 0]), ("careful", [2, 0, 1])):
        observation, _ = env.reset(options={"task": task, "state": STATE})
        assert observation["exogenous"].tolist() == shown
    env.close()
    assert len(closed) == 1


def test_real_variables_are_hidden_too():
    env = RemaskingObservation(
        ExoEnv(BatteryMDP()),
        {"trade": {}, "watch": BatteryMDP(step=2.0)},
        masks={"trade": ["price", "wind"], "watch": ["signal"]},
    )
    for task, hidden in (("trade", [2]), ("watch", [0, 1])):
        observation, _ = env.reset(seed=0, options={"task": task})
        assert observation in env.observation_space
        assert np.flatnonzero(observation["exogenous"] == 0).tolist() == hidden


def test_an_environment_of_somebody_else():
    first, second = Harbour(), Harbour()
    for env in (first, second):
        env.spec = EnvSpec("Harbour-v0", max_episode_steps=10)
    settings = {"n_rollouts": 3, "n_data_rollouts": 30, "n1": 40}
    learner = RewardVariableMaskLearner(**settings)
    env = RemaskingObservation(first, {"one": {}, "other": second}, learner, rng=0)
    assert env.masks == dict.fromkeys(("one", "other"), ("exogenous_0", "exogenous_1"))
    assert env.reset(seed=0, options={"task": "other"})[0]["exogenous"].shape == (2,)


# --- what is refused ----------------------------------------------------------------------------


def test_odd_tasks():
    with pytest.raises(ValueError, match="unknown task 'paded'; did you mean 'padded'"):
        RemaskingObservation(make(), TASKS, masks=MASKS).reset(options={"task": "paded"})
    for odd in ({}, [], None, "careful", {3: {}}):
        with pytest.raises(TypeError, match="tasks"):
            RemaskingObservation(make(), odd, masks=MASKS)
    with pytest.raises(TypeError, match="task 'odd' is a mapping"):
        RemaskingObservation(make(), {"odd": 3}, masks={"odd": ()})
    with pytest.raises(ValueError, match=r"not made by gymnasium.make, so task 'padded'"):
        RemaskingObservation(ExoEnv(GridMDP()), TASKS, masks=MASKS)
    with pytest.raises(ValueError, match="the observation_space of task 'factory' is"):
        RemaskingObservation(make(), {"grid": {}, "factory": gym.make("exo_envs:ExoFactory-v0")})


def test_odd_arguments(learner):
    with pytest.raises(TypeError, match="wraps a gymnasium Env"):
        RemaskingObservation(GridMDP(), TASKS)
    with pytest.raises(TypeError, match="wraps a gymnasium Env"):
        RemaskingObservation(gym.make_vec("exo_envs:ExoGrid-v0", num_envs=2), TASKS)
    with pytest.raises(TypeError, match="a learner is a MaskLearner"):
        RemaskingObservation(make(), TASKS, "calibrated")
    with pytest.raises(ValueError, match="not both"):
        RemaskingObservation(make(), TASKS, learner, masks=MASKS)
    for odd in ({"careful": ()}, ["object"]):
        with pytest.raises(ValueError, match="masks has a mask for each task"):
            RemaskingObservation(make(), TASKS, masks=odd)
    with pytest.raises(ValueError, match="does not show all 5 exogenous variables"):
        RemaskingObservation(MaskedObservation(make(), ("object",)), TASKS)
    with pytest.raises(TypeError, match="observe_task"):
        RemaskingObservation(make(), TASKS, masks=MASKS, observe_task=3)


def test_another_process_is_refused(learner):
    with pytest.raises(ValueError, match="fit anew"):
        RemaskingObservation(make(), {"a": {}, "b": {"reconsider": 0.8}}, learner)


def test_the_example_of_the_page_is_complete():
    """What it says in comments is what comes out."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "remasking.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    namespace = {}
    exec(compile(block, "docs/remasking.md", "exec"), namespace)
    said = re.findall(r"^\S+  # (\(.*\))$", block, flags=re.MULTILINE)
    learner, padded, info = (namespace[name] for name in ("learner", "padded", "info"))
    assert said == [str(learner.mask_), str(padded.mask_), str(info["mask"])]
    assert namespace["policy"].mask == ("object",)
    assert namespace["env"].action_space.contains(namespace["action"])
