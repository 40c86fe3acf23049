"""The wrappers that show an agent the masked part of an observation only."""

import copy
import gc
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, TimeLimit, TransformObservation
from harbour import Harbour
from masks import each_id, each_mask, some_mask
from models import CounterMDP
from traces import record, same

from exo_envs import ExoEnv, ExoVectorEnv, as_mdp
from exo_envs.domains.grid import GridMDP
from planners import ReducedMDP, ValueIteration
from wrappers.observation.masked import MaskedObservation, MaskedVectorObservation

NAMES = GridMDP().exogenous_names  # object, carrier, guard, guard_intent, weather
STATE = {"endogenous": [3], "exogenous": [2, 0, 1, 0, 1]}


def grid(mask, **kwargs):
    return MaskedObservation(gym.make("ExoGrid-v0"), mask, **kwargs)


# --- what is seen -----------------------------------------------------------------------------


@each_id
@each_mask
def test_the_mask_is_all_that_changes(env_id, choose):
    """Also at the end of an episode, and in what the infos say."""
    env, reference = gym.make(env_id), gym.make(env_id)
    names = as_mdp(env).exogenous_names
    mask = choose(env)
    columns = [names.index(name) for name in mask]
    env = MaskedObservation(env, mask)
    env.reset(seed=3)
    reference.reset(seed=3)
    ours, theirs = record(env, 120, 5), record(reference, 120, 5)
    assert len(ours) == len(theirs) > 120
    for one, other in zip(ours, theirs, strict=True):
        assert one[0] in env.observation_space
        assert one[0].keys() == ({"endogenous", "exogenous"} if mask else {"endogenous"})
        np.testing.assert_array_equal(one[0]["endogenous"], other[0]["endogenous"])
        if mask:
            np.testing.assert_array_equal(one[0]["exogenous"], other[0]["exogenous"][columns])
            assert one[0]["exogenous"].dtype == other[0]["exogenous"].dtype
            assert one[0]["exogenous"].flags.c_contiguous
        same(one[1:], other[1:])  # all reward terms included


@pytest.mark.parametrize(
    "mask",
    [
        ["guard", "object"],
        ("object", "guard"),
        {"guard", "object"},
        np.array(["object", "guard"]),
        [2, 0],
        np.array([0, 2]),
        [True, False, True, False, False],
        np.array([1, 0, 1, 0, 0], dtype=bool),
        (name for name in ("guard", "object")),
    ],
)
def test_a_mask_is_names_indices_or_booleans(mask):
    env = grid(mask)
    assert env.mask == ("object", "guard")
    assert all(type(name) is str for name in env.mask)
    assert env.observation_space == spaces.Dict(
        endogenous=env.unwrapped.observation_space["endogenous"],
        exogenous=spaces.MultiDiscrete([3, 2]),
    )
    assert env.reset(options={"state": STATE})[0]["exogenous"].tolist() == [2, 1]


def test_a_full_mask_leaves_everything_and_an_empty_one_drops_the_part():
    whole = grid(NAMES)
    assert whole.observation_space == whole.unwrapped.observation_space
    assert whole.reset(options={"state": STATE})[0]["exogenous"].tolist() == STATE["exogenous"]
    nothing = grid([])
    assert nothing.mask == ()
    assert list(nothing.observation_space) == ["endogenous"]
    assert nothing.reset(options={"state": STATE})[0].keys() == {"endogenous"}


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (["gard"], ValueError, "unknown exogenous variable 'gard'; did you mean 'guard'"),
        ("guard", TypeError, "a sequence of names, not the string 'guard'"),
        (["guard", "guard"], ValueError, "'guard' more than once"),
        ([1, 1], ValueError, "'carrier' more than once"),
        ([-1], ValueError, r"no variable -1; indices are 0 \.\.\. 4"),
        ([5], ValueError, "no variable 5"),
        ([True, False], ValueError, "a boolean mask has 5 entries, not 2"),
        (["guard", 1], TypeError, "not indices and names"),
        ([["guard"]], TypeError, r"names, indices or booleans, not \['guard'\]"),
        (np.array([[0, 1]]), TypeError, "names, indices or booleans, not array"),
        (None, TypeError, "a sequence of names, not None"),
    ],
)
def test_bad_masks_are_refused(mask, error, message):
    env, vector_env = gym.make("ExoGrid-v0"), gym.make_vec("ExoGrid-v0", num_envs=2)
    with pytest.raises(error, match=message):
        MaskedObservation(env, mask)
    with pytest.raises(error, match=message):
        MaskedVectorObservation(vector_env, mask)
    gc.collect()  # a half-made wrapper takes nothing with it
    assert not vector_env.closed
    vector_env.reset(seed=0)


def test_only_environments_are_wrapped_and_each_by_its_own_wrapper():
    with pytest.raises(TypeError, match="MaskedObservation wraps a gymnasium Env, not 3"):
        MaskedObservation(3, [])
    with pytest.raises(TypeError, match="wraps a gymnasium VectorEnv, not <"):
        MaskedVectorObservation(gym.make("ExoGrid-v0"), [])
    with pytest.raises(TypeError, match="wraps a gymnasium Env, not GridVectorEnv"):
        MaskedObservation(gym.make_vec("ExoGrid-v0"), [])


def test_observations_of_another_kind_are_refused():
    env = gym.make("ExoGrid-v0")
    for other in (gym.make("CartPole-v1"), FlattenObservation(env)):
        with pytest.raises(TypeError, match=r"not Dict\(endogenous=.* go around the mask"):
            MaskedObservation(other, [])
    stacked = spaces.Dict(exogenous=spaces.MultiDiscrete([[2, 2], [2, 2]]))
    with pytest.raises(TypeError, match="go around the mask"):
        MaskedObservation(TransformObservation(env, dict, stacked), [])
    fewer = spaces.Dict(exogenous=spaces.MultiDiscrete([2, 2]))
    with pytest.raises(ValueError, match="2 exogenous variables with 5 names"):
        MaskedObservation(TransformObservation(env, dict, fewer), [])


def test_nothing_is_shared_with_the_environment():
    class Careless(Harbour):
        """Hands out its own arrays."""

        def observe(self):
            return {"endogenous": self.n, "exogenous": self.x}

    for mask in ([], [0], [0, 1]):
        env = MaskedObservation(Careless(), mask)
        for observation in (env.reset(seed=1)[0], env.step(1)[0]):
            for part in observation.values():
                before = env.unwrapped.n.copy(), env.unwrapped.x.copy()
                part[:] = 99
                same(before, (env.unwrapped.n, env.unwrapped.x))
        assert env.unwrapped.observe().keys() == {"endogenous", "exogenous"}


# --- wherever it is put -----------------------------------------------------------------------


def test_a_mask_of_a_mask_chooses_among_what_is_left():
    inner = grid(["object", "guard", "weather"])
    outer = MaskedObservation(TimeLimit(inner, 3), ["weather", "object"])
    assert outer.mask == ("object", "weather")
    assert outer.reset(options={"state": STATE})[0]["exogenous"].tolist() == [2, 1]
    assert outer.observation_space["exogenous"] == spaces.MultiDiscrete([3, 2])
    assert MaskedObservation(inner, [1]).mask == ("guard",)
    assert MaskedObservation(inner, [False, False, True]).mask == ("weather",)
    assert MaskedObservation(outer, []).mask == ()
    assert MaskedObservation(MaskedObservation(outer, []), []).mask == ()
    assert inner.mask == ("object", "guard", "weather")
    with pytest.raises(ValueError, match=r"no variable 3; indices are 0 \.\.\. 2"):
        MaskedObservation(inner, [3])
    with pytest.raises(ValueError, match=r"'carrier' is no longer there: .* keeps 3 of 5"):
        MaskedObservation(inner, ["carrier"])
    with pytest.raises(ValueError, match=r"'guard' is no longer there: .* keeps 0 of 5"):
        MaskedObservation(MaskedObservation(outer, []), ["guard"])
    with pytest.raises(ValueError, match="'gard'; did you mean 'guard'"):
        MaskedObservation(inner, ["gard"])


def test_environments_without_a_model_count_their_variables_and_are_not_run():
    harbour = Harbour()
    env = MaskedObservation(harbour, ["exogenous_1"])
    assert harbour.num_steps == 0
    assert not hasattr(harbour, "n")  # no reset either
    full = env.reset(seed=1)[0], harbour.observe()
    assert full[0]["exogenous"].tolist() == full[1]["exogenous"][1:].tolist()
    with pytest.raises(ValueError, match="unknown exogenous variable 'tide'; choose from 'exog"):
        MaskedObservation(harbour, ["tide"])


def test_the_other_parts_may_be_anything():
    space = spaces.Dict(
        endogenous=spaces.Box(0, 1, (2, 2), np.float32),
        exogenous=spaces.MultiDiscrete([4, 3], dtype=np.int8, start=[-2, 1]),
        zoom=spaces.Discrete(3),
    )
    made = TransformObservation(Harbour(), lambda _: space.sample(), space)
    space.seed(0)
    for env in (
        MaskedObservation(made, [0]),
        MaskedVectorObservation(SyncVectorEnv([lambda: made]), [0]),
    ):
        observations = [env.reset(seed=0)[0] for _ in range(20)]
        assert all(observation in env.observation_space for observation in observations)
        assert all(o["exogenous"].dtype == np.int64 for o in observations)
        assert {int(o["exogenous"].item()) for o in observations} == {-2, -1, 0, 1}
        assert all(o.keys() == {"endogenous", "exogenous", "zoom"} for o in observations)


def test_models_that_were_reduced_are_masked_like_any_other():
    reduced = ReducedMDP.estimate(GridMDP(), ["object", "guard"], rng=np.random.default_rng(0))
    assert MaskedObservation(ExoEnv(reduced), ["guard"]).mask == ("guard",)


# --- copies and specs -------------------------------------------------------------------------


@each_id
@each_mask
def test_the_spec_makes_the_same_environment_again(env_id, choose):
    env = gym.make(env_id, horizon=9)
    env = MaskedObservation(env, np.isin(as_mdp(env).exogenous_names, choose(env)))
    assert env.spec.additional_wrappers[-1].kwargs == {"mask": env.mask, "show_mask": True}
    env.reset(seed=2)
    expected = record(env, 30, 1)
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        again = gym.make(spec)
        assert type(again) is MaskedObservation
        assert again.mask == env.mask
        assert again.spec == env.spec
        assert again.observation_space == env.observation_space
        again.reset(seed=2)
        same(record(again, 30, 1), expected)


def test_the_spec_remembers_both_of_two_masks_and_whether_they_are_shown():
    env = MaskedObservation(grid(["object", "guard"], show_mask=False), [1])
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert (again.mask, again.env.mask) == (("guard",), ("object", "guard"))
    assert again.spec == env.spec
    assert [w.kwargs["show_mask"] for w in again.spec.additional_wrappers[-2:]] == [False, True]


@each_id
def test_copies_continue_identically(env_id):
    env = gym.make(env_id)
    env = MaskedObservation(env, some_mask(env))
    env.reset(seed=11)
    record(env, 30, 1)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = record(env, 100, 2)
    for twin in twins:
        assert twin.mask == env.mask
        assert twin.spec == env.spec
        same(record(twin, 100, 2), expected)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@each_id
@each_mask
def test_everybodys_checks_accept_it(env_id, choose):
    env = gym.make(env_id).unwrapped
    check_env(MaskedObservation(env, choose(env)))
    env = gym.make(env_id).unwrapped
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(
        MaskedObservation(env, choose(env))
    )


# --- pictures ---------------------------------------------------------------------------------


def picture(mask, state=STATE):
    """What the environment draws if it is told to show a mask."""
    env = gym.make("ExoGrid-v0", render_mode="rgb_array").unwrapped
    env.reset(options={"state": state})
    env.show_mask(mask)
    return env.render()


def test_pictures_show_the_mask_and_the_environment_stays_as_it_was():
    env = gym.make("ExoGrid-v0", render_mode="rgb_array")
    first, second = MaskedObservation(env, ["object"]), MaskedObservation(env, ["guard"])
    nested = MaskedObservation(MaskedObservation(env, ["guard", "object"]), ["object"])
    silent = MaskedObservation(env, ["object"], show_mask=False)
    env.reset(options={"state": STATE})
    plain, with_object, with_guard = picture(None), picture(["object"]), picture(["guard"])
    assert (with_object != plain).any()
    assert (with_object != with_guard).any()
    for _ in range(2):
        same(first.render(), with_object)
        same(second.render(), with_guard)
        same(nested.render(), with_object)
        same(silent.render(), plain)
        same(env.render(), plain)
    env.unwrapped.show_mask(["guard"])  # the user's own word counts
    same(first.render(), with_guard)
    env.unwrapped.show_mask(None)
    same(env.render(), plain)


def test_every_lane_of_a_vector_shows_the_mask():
    env = gym.make_vec("ExoGrid-v0", num_envs=2, render_mode="rgb_array")
    masked = MaskedVectorObservation(env, ["object"])
    masked.reset(options={"state": STATE})
    same(masked.render(), (picture(["object"]),) * 2)
    same(env.render(), (picture(None),) * 2)


def test_windows_show_the_mask_while_the_environment_is_stepped():
    env = gym.make("ExoGrid-v0", render_mode="human")
    shown = []
    env.unwrapped.viewer.show = lambda state: shown.append(env.unwrapped.viewer.mask)
    masked = MaskedObservation(env, ["object"])
    masked.reset(seed=0)
    masked.step(0)
    masked.render()
    with pytest.raises(ValueError, match="no action 9"):
        masked.step(9)  # the mask is taken away after an error too
    env.step(0)
    assert shown == [("object",)] * 3 + [None]


def test_what_draws_text_or_nothing_can_be_rendered():
    env = MaskedObservation(ExoEnv(CounterMDP(), render_mode="ansi"), ["die"])
    env.reset(seed=0)
    assert env.render() == env.unwrapped.render()
    harbour = Harbour()
    harbour.render = lambda: "a boat"
    assert MaskedObservation(harbour, []).render() == "a boat"


# --- policies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [["object", "guard"], [], NAMES], ids=len)
def test_a_policy_acts_alike_on_masked_and_on_full_observations(mask):
    mdp, rng = GridMDP(), np.random.default_rng(0)
    reduced = ReducedMDP.estimate(mdp, mask, rng=rng)
    policy = ValueIteration().plan(reduced, rng=rng).policy
    env = MaskedObservation(ExoEnv(mdp), policy.mask)
    observation, _ = env.reset(seed=4)
    actions = []
    for _ in range(100):
        actions.append(policy(observation))
        assert actions[-1] == policy(env.unwrapped.state)
        assert policy.predict(observation)[0] == actions[-1]
        observation, _, terminated, truncated, _ = env.step(actions[-1])
        if terminated or truncated:
            observation, _ = env.reset()
    assert len(set(actions)) > 1 or not mask
    lanes = MaskedVectorObservation(ExoVectorEnv(mdp, 200), policy.mask)
    observations, _ = lanes.reset(seed=1)
    for _ in range(5):
        batch = policy(observations)
        np.testing.assert_array_equal(batch, policy(lanes.unwrapped.state))
        observations = lanes.step(batch)[0]
