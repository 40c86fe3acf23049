"""Masks in files, and learning as a wrapper."""

import copy
import json
import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from harbour import Harbour
from models import CounterMDP
from scripted import Sites
from sklearn.base import clone
from traces import record, same

from exo_envs import ExoEnv
from exo_envs.domains.grid import GridMDP
from wrappers import (
    CalibratedMaskLearner,
    GreedyMaskLearner,
    LearnedMask,
    MaskedObservation,
    RewardVariableMaskLearner,
    Study,
)
from wrappers.fitting.saved import SavedMask

SMALL = {"n_rollouts": 20, "n_data_rollouts": 40}
MASK = ("object", "guard")


def make(**arguments):
    return gym.make("exo_envs:ExoGrid-v0", **arguments)


@pytest.fixture(scope="module")
def learner():
    return RewardVariableMaskLearner(**SMALL).fit(make(slip=0.2), rng=11)


@pytest.fixture
def learned():
    return LearnedMask(make(), learner=RewardVariableMaskLearner(**SMALL), rng=1)


@pytest.fixture
def path(tmp_path, learner):
    learner.save(tmp_path / "mask.json")
    return tmp_path / "mask.json"


# --- files ------------------------------------------------------------------------------------


def test_a_file_holds_where_the_mask_comes_from(path, learner):
    saved = SavedMask.load(path)
    assert saved == learner.saved()
    assert saved.mask == learner.mask_ == MASK
    assert saved.names == GridMDP().exogenous_names
    assert saved.seed == 11
    assert saved.spec["kwargs"] == {"slip": 0.2}
    assert EnvSpec.from_json(json.dumps(saved.spec)).id == "ExoGrid-v0"
    assert saved.learner["class"] == "RewardVariableMaskLearner"
    assert saved.learner["n_rollouts"] == 20
    assert saved.status == "finished"
    assert saved.objective["value"] == learner.objective_.value
    assert saved.objective["n_rollouts"] == 20
    assert {"python", "exo-envs", "gymnasium", "numba", "numpy"} <= set(saved.versions)
    assert SavedMask.load(str(path)) == saved
    saved.check(GridMDP())
    saved.check(make())


SETTINGS = {
    "names": {"initial_mask": ("coin_0",)},
    "booleans": {"initial_mask": list(np.array([True, False]))},
    "indices": {"initial_mask": np.array([0])},
    "numpy": {"cost_weight": np.float64(0.5), "trials": np.int64(2)},
    "function": {"cost": lambda mask, plan: 0.0},
    "one rollout": {"n_rollouts": 1},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_whatever_was_learned_can_be_saved(tmp_path, settings):
    """As JSON that others can read."""
    learner = GreedyMaskLearner(**{**SMALL, **settings}).fit(Sites(coins=1))
    learner.save(tmp_path / "mask.json")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    json.loads((tmp_path / "mask.json").read_text(), parse_constant=refuse)
    assert SavedMask.load(tmp_path / "mask.json").mask == learner.mask_


def test_what_is_read_is_what_was_written(tmp_path):
    """Tuples are lists in JSON."""
    learner = GreedyMaskLearner(initial_mask=("coin_0",), **SMALL).fit(Sites(coins=1))
    learner.save(tmp_path / "mask.json")
    assert SavedMask.load(tmp_path / "mask.json") == learner.saved()


def test_a_mask_that_was_never_played(tmp_path, learner):
    saved = replace(learner.saved(), objective=None, spec=None, mask=())
    saved.save(tmp_path / "mask.json")
    assert SavedMask.load(tmp_path / "mask.json") == saved


DAMAGE = {
    "empty": (lambda text: "", "not JSON"),
    "no JSON": (lambda text: "mask: object", "not JSON"),
    "truncated": (lambda text: text[: len(text) // 2], "not JSON"),
    "one bracket less": (lambda text: text.rstrip()[:-1], "not JSON"),
    "a list": (lambda text: "[1, 2]", "format"),
    "null": (lambda text: "null", "format"),
    "another format": (lambda text: text.replace("exo-envs mask", "exo-envs plan"), "format"),
    "a later version": (lambda text: text.replace('"version": 1', '"version": 2'), "version 2"),
    "no version": (lambda text: text.replace('"version": 1,', ""), "version None"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused(path, damage):
    spoil, message = DAMAGE[damage]
    path.write_text(spoil(path.read_text()))
    with pytest.raises(ValueError, match=message) as caught:
        SavedMask.load(path)
    assert str(path) in str(caught.value)


def test_bytes_that_are_no_text_are_refused(path):
    path.write_bytes(b"\x80\x81" + path.read_bytes())
    with pytest.raises(ValueError, match="not JSON"):
        SavedMask.load(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, ...) for key in SavedMask.__dataclass_fields__),
        ("mask", "object"),
        ("mask", ["object", "ghost"]),
        ("mask", ["object", "object"]),
        ("mask", [["object"]]),
        ("mask", [0]),
        ("names", {"object": 0}),
        ("names", [["object"], "guard"]),
        ("seed", "11"),
        ("seed", True),
        ("learner", None),
        ("status", 3),
        ("objective", [1.0]),
        ("versions", "1.0"),
        ("spec", "ExoGrid-v0"),
    ],
    ids=str,
)
def test_content_that_makes_no_sense_is_refused(path, key, value):
    content = json.loads(path.read_text())
    if value is ...:
        del content[key]
    else:
        content[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=key if value is ... else "mask"):
        SavedMask.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        SavedMask.load(tmp_path / "mask.json")


def test_a_wrong_model_is_refused(path):
    for other in (CounterMDP(), gym.make("exo_envs:ExoFactory-v0")):
        with pytest.raises(ValueError, match=r"learned on 5 exogenous variables \(object,"):
            SavedMask.load(path).check(other)
    with pytest.raises(ValueError, match="learned on 5"):
        LearnedMask.load(gym.make("exo_envs:ExoFactory-v0"), path)


def test_a_file_is_replaced_at_once(path, learner, monkeypatch):
    before = path.read_text()
    folder = path.parent
    learner.save(path)
    assert path.read_text() == before
    assert list(folder.iterdir()) == [path]

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        replace(learner.saved(), mask=()).save(path)
    assert path.read_text() == before
    assert list(folder.iterdir()) == [path]


def test_where_nothing_can_be_written(tmp_path, learner):
    with pytest.raises(FileNotFoundError):
        learner.save(tmp_path / "nowhere" / "mask.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        learner.save(tmp_path / "file" / "mask.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="folder' is a folder; name a file to write"):
        learner.save(tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_nothing_is_saved_before_fit(tmp_path):
    for question in (lambda x: x.save(tmp_path / "mask.json"), lambda x: x.saved()):
        with pytest.raises(AttributeError, match="fit first"):
            question(CalibratedMaskLearner())
    assert not list(tmp_path.iterdir())


# --- learning as a wrapper --------------------------------------------------------------------


def run(env, seed=3, steps=80):
    """A reset and some steps."""
    return [env.reset(seed=seed), *record(env, steps, seed)]


def test_it_learns_and_then_is_a_masked_observation(learned):
    assert isinstance(learned, MaskedObservation)
    assert learned.mask == MASK
    assert learned.learner.mask_ == MASK
    assert learned.learner.study_.seed == 1
    masked = MaskedObservation(make(), MASK)
    assert learned.observation_space == masked.observation_space
    same(run(learned), run(masked))
    observation, _ = learned.reset(seed=0)
    assert learned.policy.mask == MASK
    assert learned.action_space.contains(learned.policy(observation))


def test_the_default_learner_is_the_calibrated_one():
    env = LearnedMask(ExoEnv(Sites(coins=2, horizon=5)), rng=0)
    assert type(env.learner) is CalibratedMaskLearner
    assert env.mask == ("coin_0", "coin_1", "rain")


def test_the_spec_does_not_learn_again(learned, monkeypatch):
    def fit(*arguments, **options):
        raise AssertionError("it learns again")

    monkeypatch.setattr("wrappers.learners.base.MaskLearner.fit", fit)
    spec = EnvSpec.from_json(learned.spec.to_json())
    for twin in (gym.make(learned.spec), gym.make(spec)):
        outer = twin
        while not isinstance(outer, LearnedMask):
            outer = outer.env
        assert outer.mask == MASK
        assert outer.learner is outer.policy is None
        same(run(twin), run(MaskedObservation(make(), MASK)))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_continue_without_the_learner(learned, duplicate):
    """The learner has all its data, and possibly a callback that cannot be pickled."""
    learned.learner.callback = lambda progress: None
    run(learned, steps=7)
    twin = duplicate(learned)
    assert twin.learner is None
    assert learned.learner is not None
    assert len(pickle.dumps(learned)) < 100_000
    rng = np.random.default_rng(0)
    for _ in range(60):
        action = int(rng.integers(learned.action_space.n))
        one, other = learned.step(action), twin.step(action)
        same(one, other)
        if one[2] or one[3]:
            same(learned.reset(), twin.reset())
    assert twin.spec == learned.spec


def test_save_and_load(learned, tmp_path, monkeypatch):
    learned.save(tmp_path / "mask.json")
    assert SavedMask.load(tmp_path / "mask.json").mask == MASK
    monkeypatch.setattr("wrappers.learners.base.MaskLearner.fit", None)
    twin = LearnedMask.load(make(), tmp_path / "mask.json")
    assert type(twin) is LearnedMask
    assert twin.mask == MASK
    assert twin.learner is None
    same(run(twin), run(MaskedObservation(make(), MASK)))
    with pytest.raises(ValueError, match="this mask was given, not learned or loaded"):
        LearnedMask(make(), mask=MASK).save(tmp_path / "again.json")
    assert not (tmp_path / "again.json").exists()


def test_an_empty_mask_is_saved_and_loaded(tmp_path):
    priced = CalibratedMaskLearner(cost_weight=1e6, **SMALL)
    env = LearnedMask(make(), learner=priced, rng=0)
    assert env.mask == ()
    assert set(env.observation_space) == {"endogenous"}
    env.save(tmp_path / "mask.json")
    assert LearnedMask.load(make(), tmp_path / "mask.json").mask == ()


def test_a_learner_and_a_mask_are_one_too_many():
    with pytest.raises(ValueError, match="not both"):
        LearnedMask(make(), learner=RewardVariableMaskLearner(), mask=MASK)
    assert LearnedMask(make(), mask=()).mask == ()


def test_an_environment_of_somebody_else(tmp_path):
    """Its variables have no names of their own."""
    env, again = Harbour(), Harbour()
    env.spec = again.spec = EnvSpec("Harbour-v0", max_episode_steps=10)
    settings = {"n_rollouts": 3, "n_data_rollouts": 30, "n1": 40}
    env = LearnedMask(env, learner=RewardVariableMaskLearner(**settings), rng=0)
    assert env.mask == ("exogenous_0", "exogenous_1")
    assert env.reset(seed=0)[0]["exogenous"].shape == (2,)
    env.save(tmp_path / "mask.json")
    assert LearnedMask.load(again, tmp_path / "mask.json").mask == env.mask


def test_a_mask_underneath_is_refused_before_anything_is_learned():
    """What is learned on the whole model says nothing about an observation of a part of it."""
    asked = []
    learner = RewardVariableMaskLearner(callback=asked.append, **SMALL)
    with pytest.raises(ValueError, match="mask"):
        LearnedMask(MaskedObservation(make(), MASK), learner=learner)
    assert not asked


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
def test_everybodys_checks_accept_it(learner):
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    for check in (check_env, sb3.check_env):
        check(LearnedMask(make().unwrapped, learner=clone(learner), rng=0))


def test_a_study_can_be_shared_with_the_wrapper(learned):
    study = learned.learner.study_
    assert isinstance(study, Study)
    other = CalibratedMaskLearner().fit(study)
    assert other.mask_ == ("object", "carrier", "guard", "guard_intent")


def test_environments_that_share_a_learner_share_nothing_else(tmp_path):
    """The learner is cloned: a second environment leaves the first one's mask and policy alone."""
    learner = RewardVariableMaskLearner(**SMALL)
    first = LearnedMask(make(), learner=learner, rng=1)
    mask, policy = first.mask, first.policy
    second = LearnedMask(ExoEnv(Sites(coins=2, horizon=5)), learner=learner, rng=1)
    assert second.mask != mask
    assert not hasattr(learner, "mask_")
    assert first.policy is policy is not second.policy
    first.save(tmp_path / "mask.json")
    assert SavedMask.load(tmp_path / "mask.json").mask == mask
