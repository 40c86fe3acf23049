"""The wrappers that turn observations into one flat array."""

import copy
import gc
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, TransformObservation
from hypothesis import given
from hypothesis import strategies as st
from models import CounterMDP
from traces import record, same

from exo_envs import ExoEnv, ExoVectorEnv, as_mdp
from exo_envs.domains import ENVIRONMENTS
from wrappers.observation.flat import Encoding, FlatObservation, FlatVectorObservation
from wrappers.observation.masked import LearnedMask, MaskedObservation, MaskedVectorObservation

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "uint64"]
SPACE = spaces.Dict(
    endogenous=spaces.MultiDiscrete([3, 1], start=[-1, 7]), exogenous=spaces.MultiDiscrete([2, 5])
)
BATCH = {"endogenous": [[-1, 7], [1, 7]], "exogenous": [[1, 4], [0, 2]]}
LANES = 5

each_id = pytest.mark.parametrize("env_id", sorted(ENVIRONMENTS))
each_kind = pytest.mark.parametrize("kind", ["one-hot", "scaled"])
each_mode = pytest.mark.parametrize("mode", list(AutoresetMode))


def some_mask(env):
    """Every third variable."""
    return as_mdp(env).exogenous_names[::3]


VIEWS = {
    "full": lambda env: env,
    "masked": lambda env: MaskedObservation(env, some_mask(env)),
    "empty": lambda env: MaskedObservation(env, []),
    "learned": lambda env: LearnedMask(env, mask=some_mask(env)),
}
each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


# --- the encoding -----------------------------------------------------------------------------


@st.composite
def batches(draw):
    """A space with some of its parts and a batch of its observations, lane by lane too."""
    parts = {}
    for key in draw(st.sets(st.sampled_from(["endogenous", "exogenous", "other"]), min_size=1)):
        sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
        starts = draw(st.lists(st.integers(-9, 9), min_size=len(sizes), max_size=len(sizes)))
        dtype = draw(st.sampled_from([np.int8, np.int32, np.int64]))
        parts[key] = spaces.MultiDiscrete(sizes, dtype=dtype, start=starts)
    if draw(st.booleans()):
        parts["clock"] = spaces.Discrete(draw(st.integers(1, 4)), start=draw(st.integers(-3, 3)))
    space = spaces.Dict(parts, seed=draw(st.integers(0, 999)))
    shape = draw(st.sampled_from([(), (0,), (1,), (4,), (2, 3)]))
    lanes = [space.sample() for _ in range(np.prod(shape, dtype=int))]
    layout = draw(st.sampled_from("CF"))
    batch = {}
    for key, part in parts.items():
        values = np.array([lane[key] for lane in lanes], dtype=part.dtype, order=layout)
        batch[key] = values.reshape(shape + part.shape)
    return space, batch, lanes, shape


@given(batches(), st.sampled_from(DTYPES))
def test_one_hot_is_what_gymnasium_flattens(drawn, dtype):
    space, batch, lanes, shape = drawn
    before = copy.deepcopy(batch)
    encoding = Encoding.of(space, dtype=dtype)
    flat = encoding(batch)
    width = spaces.flatdim(space)
    assert encoding.space == spaces.Box(0, 1, (width,), np.dtype(dtype))
    assert (encoding.kind, encoding.dtype, flat.dtype) == ("one-hot", dtype, dtype)
    assert flat.flags.c_contiguous
    assert flat.shape == (*shape, width)
    for row, lane in zip(flat.reshape(len(lanes), width), lanes, strict=True):
        np.testing.assert_array_equal(row, spaces.flatten(space, lane))
        assert row in encoding.space
        assert data_equivalence(spaces.unflatten(space, row), lane, exact=True)
    same(batch, before)


@given(batches(), st.sampled_from(["float16", "float32", "float64"]))
def test_scaled_is_the_fraction_of_the_range(drawn, dtype):
    space, batch, lanes, shape = drawn
    encoding = Encoding.of(space, "scaled", dtype)
    flat = encoding(batch)
    assert flat.shape == (*shape, *encoding.space.shape)
    assert flat.dtype == encoding.dtype == dtype
    expected = [np.zeros((len(lanes), 0))]
    for key, part in space.items():
        sizes = np.atleast_1d(part.n if key == "clock" else part.nvec).astype(int)
        values = batch[key].reshape(len(lanes), len(sizes)).astype(int)
        expected.append((values - part.start) / np.where(sizes > 1, sizes - 1, 1))
    expected = np.concatenate(expected, axis=1).astype(dtype)
    np.testing.assert_array_equal(flat.reshape(expected.shape), expected)
    assert encoding.space == spaces.Box(0, 1, expected.shape[1:], np.dtype(dtype))
    assert all(row in encoding.space for row in flat.reshape(expected.shape))


def test_the_ends_of_a_range_are_zero_and_one():
    encoding = Encoding.of(SPACE, "scaled")
    assert encoding(BATCH).tolist() == [[0, 0, 1, 1], [1, 0, 0, 0.5]]
    large = Encoding.of(spaces.Dict(exogenous=spaces.Discrete(10**12)), "scaled", float)
    assert large({"exogenous": [0, 10**12 - 1]}).tolist() == [[0], [1]]


def test_encodings_are_values():
    encoding = Encoding.of(SPACE, "one-hot", np.uint8)
    encoding(BATCH)
    for twin in (copy.deepcopy(encoding), pickle.loads(pickle.dumps(encoding))):
        assert twin == encoding
        assert hash(twin) == hash(encoding)
        same(twin(BATCH), encoding(BATCH))
    others = (Encoding.of(SPACE), Encoding.of(SPACE, "scaled"))
    assert len({encoding, *others, Encoding.of(SPACE, dtype="u1")}) == 3
    assert repr(encoding) == "Encoding(kind='one-hot', dtype=dtype('uint8'))"


@pytest.mark.parametrize(
    ("kind", "dtype", "error", "message"),
    [
        ("onehot", "float32", ValueError, "unknown encoding 'onehot'; did you mean 'one-hot'"),
        (None, "float32", ValueError, "unknown encoding None; choose from 'one-hot', 'scaled'"),
        ("scaled", "uint8", ValueError, "fractions; dtype is a floating one, not uint8"),
        ("one-hot", "bool", ValueError, "a native real dtype of at most 64 bits, not bool"),
        ("one-hot", "complex64", ValueError, "not complex64"),
        ("scaled", np.dtype("f4").newbyteorder(), ValueError, "not [<>]f4"),
        ("one-hot", "flaot", TypeError, "flaot"),
    ],
)
def test_unknown_encodings_and_dtypes_are_refused(kind, dtype, error, message):
    env, vector_env = ExoEnv(CounterMDP()), ExoVectorEnv(CounterMDP(), 2)
    for wrapper, inner in ((FlatObservation, env), (FlatVectorObservation, vector_env)):
        with pytest.raises(error, match=message):
            wrapper(inner, kind, dtype=dtype)
    gc.collect()  # a half-made wrapper takes nothing with it
    assert not vector_env.closed


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiDiscrete([2]),
        spaces.Dict(),
        spaces.Dict(exogenous=spaces.MultiDiscrete([[2, 2]])),
        spaces.Dict(endogenous=spaces.MultiDiscrete([2]), zoom=spaces.Box(0, 1, (2, 2))),
    ],
    ids=str,
)
def test_spaces_of_another_kind_are_refused(space):
    with pytest.raises(TypeError, match=r"the observation space is .*, not Dict\(endogenous=.*one"):
        FlatObservation(TransformObservation(ExoEnv(CounterMDP()), dict, space))


@each_kind
@pytest.mark.parametrize("value", [-2, 2, 2**63 - 1, -(2**63), 2**31, 1.0e10])
def test_values_that_do_not_exist_are_never_written(kind, value):
    encoding = Encoding.of(SPACE, kind)
    broken = np.array(BATCH["endogenous"], dtype=type(value))
    broken[1, 0] = value
    message = f"variable 0 in the endogenous part .* cannot be {int(value)}; .* -1 ... 1"
    with pytest.raises(ValueError, match=message):
        encoding({**BATCH, "endogenous": broken})
    with pytest.raises(ValueError, match=r"variable 1 in the exogenous part .* be 5;.* 0 \.\.\. 4"):
        encoding({**BATCH, "exogenous": [[1, 5], [0, 0]]})


@pytest.mark.parametrize(
    ("exogenous", "error", "message"),
    [
        ([[0, 0.5], [0, 0]], ValueError, "the exogenous part of the observation holds 0.5"),
        ([[0, np.nan], [0, 0]], ValueError, "the exogenous part of the observation holds nan"),
        ([[True, False]] * 2, TypeError, "the exogenous part .* dtype bool"),
        ([[0, 0, 0]] * 2, ValueError, r"exogenous part .* shape \(2, 3\); it should be \(..., 2\)"),
        (0, ValueError, r"exogenous part .* shape \(\)"),
        ([[0, 0]] * 3, ValueError, r"different shapes: {'endogenous': \(2,\), 'exogenous': \(3,\)"),
    ],
)
def test_observations_that_do_not_fit_are_refused(exogenous, error, message):
    with pytest.raises(error, match=message):
        Encoding.of(SPACE)({**BATCH, "exogenous": exogenous})


def test_whole_floats_pass_but_nothing_may_be_missing():
    encoding = Encoding.of(SPACE)
    floats = {key: np.array(part, dtype=float) for key, part in BATCH.items()}
    same(encoding({**floats, "more": "ignored"}), encoding(BATCH))
    with pytest.raises(ValueError, match=r"exogenous part .* missing; there is 'endogenous'"):
        encoding({"endogenous": BATCH["endogenous"]})
    with pytest.raises(TypeError, match=r"an observation is a mapping, not None$"):
        encoding(None)
    with pytest.raises(TypeError, match="an observation is a mapping, not ndarray"):
        encoding(np.zeros(4))


# --- single environments ----------------------------------------------------------------------


@each_id
@each_view
def test_flat_is_all_that_changes(env_id, view):
    env, reference = FlatObservation(view(gym.make(env_id))), view(gym.make(env_id))
    theirs = FlattenObservation(reference)
    low, high = theirs.observation_space.low, theirs.observation_space.high
    assert env.observation_space.shape == theirs.observation_space.shape

    def scaled(flat):  # real numbers have columns of their own; the others are 0 and 1 already
        return ((flat - low) / (high - low)).astype(np.float32)

    same(env.reset(seed=3)[0], scaled(theirs.reset(seed=3)[0]))
    for one, other in zip(record(env, 60, 5), record(theirs, 60, 5), strict=True):
        assert one[0] in env.observation_space
        same(one[0], scaled(other[0]))
        same(one[1:], other[1:])


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@each_id
@each_kind
@pytest.mark.parametrize("view", ["full", "masked"])
def test_everybodys_checks_accept_it(env_id, kind, view):
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    for check in (check_env, sb3.check_env):
        check(FlatObservation(VIEWS[view](gym.make(env_id).unwrapped), kind))


@each_kind
@each_view
def test_the_spec_makes_the_same_environment_again(kind, view):
    env = FlatObservation(view(gym.make("ExoGrid-v0", horizon=9)), kind, dtype=np.float64)
    kwargs = env.spec.additional_wrappers[-1].kwargs
    assert kwargs == {"encoding": kind, "dtype": "float64"}
    env.reset(seed=2)
    expected = record(env, 30, 1)
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        again = gym.make(spec)
        assert (again.encoding, again.spec) == (env.encoding, env.spec)
        assert again.observation_space == env.observation_space
        again.reset(seed=2)
        same(record(again, 30, 1), expected)


def test_copies_and_snapshots_continue_identically_and_pictures_stay():
    env = gym.make("ExoGrid-v0", render_mode="rgb_array")
    env = FlatObservation(MaskedObservation(env, ["guard"]), "scaled")
    env.reset(seed=11)
    same(env.render(), env.env.render())
    record(env, 10, 1)
    snapshot = env.unwrapped.get_state()
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = record(env, 60, 2)
    env.unwrapped.set_state(snapshot)
    for twin in (*twins, env):
        assert twin.encoding == env.encoding
        same(record(twin, 60, 2), expected)


def test_only_environments_are_wrapped_and_each_by_its_own_wrapper():
    with pytest.raises(TypeError, match="FlatObservation wraps a gymnasium Env, not GridVectorEnv"):
        FlatObservation(gym.make_vec("ExoGrid-v0"))
    with pytest.raises(TypeError, match="wraps a gymnasium VectorEnv, not <"):
        FlatVectorObservation(gym.make("ExoGrid-v0"))


# --- the vector twin --------------------------------------------------------------------------


@each_mode
@each_kind
@pytest.mark.parametrize("mask", [None, [], ["die"]], ids=str)
def test_lanes_see_what_single_environments_see(mode, kind, mask):
    """Over both shells, against Gymnasium's vector of flat environments."""
    mdp = CounterMDP()

    def single():
        return ExoEnv(mdp) if mask is None else MaskedObservation(ExoEnv(mdp), mask)

    theirs = SyncVectorEnv([lambda: FlatObservation(single(), kind)] * LANES, autoreset_mode=mode)
    lanes = ExoVectorEnv(mdp, LANES, autoreset_mode=mode, reward_terms=True)
    for inner in (
        lanes if mask is None else MaskedVectorObservation(lanes, mask),
        SyncVectorEnv([single] * LANES, autoreset_mode=mode),
    ):
        ours = FlatVectorObservation(inner, kind)
        assert ours.encoding == theirs.envs[0].encoding
        assert ours.observation_space == theirs.observation_space
        assert ours.single_observation_space == theirs.single_observation_space
        assert ours.metadata["autoreset_mode"] is mode
        same(ours.reset(seed=0), theirs.reset(seed=0))
        rng, num_ended, num_finals = np.random.default_rng(0), 0, 0
        for _ in range(20):
            actions = rng.integers(3, size=LANES)
            step = ours.step(actions)
            same(step, theirs.step(actions))
            assert step[0] in ours.observation_space
            ended = step[2] | step[3]
            num_ended += ended.sum()
            num_finals += sum(final is not None for final in step[4].get("final_obs", ()))
            if mode is AutoresetMode.DISABLED and ended.any():
                options = [{"reset_mask": ended.copy()} for _ in range(2)]
                same(ours.reset(options=options[0]), theirs.reset(options=options[1]))
        assert num_ended > LANES
        assert num_finals == (num_ended if mode is AutoresetMode.SAME_STEP else 0)


def test_final_observations_are_encoded_as_one_batch_and_stay_as_they_were(monkeypatch):
    inner = ExoVectorEnv(CounterMDP(), 50, autoreset_mode=AutoresetMode.SAME_STEP)
    seen, calls = [], []
    step, write = inner.step, Encoding.__call__
    inner.step = lambda actions: seen.append(step(actions)) or seen[-1]
    env = FlatVectorObservation(inner, "scaled")
    env.reset(seed=0)
    monkeypatch.setattr(Encoding, "__call__", lambda *a: calls.append(1) or write(*a))
    for _ in range(3):
        infos = env.step([0, *[2] * 49])[4]
    assert len(calls) == 3 + 1  # each step, and the 49 that ended in the last one
    assert infos["_final_obs"].tolist() == [False] + [True] * 49
    assert infos["final_obs"][0] is None
    for final in infos["final_obs"][1:]:
        np.testing.assert_array_equal(final, np.float32([1, 1, 1, 3 / 5]))
        final[:] = 0  # its own
    full = seen[-1][4]["final_obs"][1]  # not written to
    assert full["exogenous"].tolist() == [3, 3]


def test_copies_of_the_vector_twin_continue_identically():
    env = FlatVectorObservation(gym.make_vec("ExoGrid-v0", num_envs=3), "scaled", dtype="float16")
    assert env.observation_space.sample() in env.observation_space
    env.reset(seed=0)
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    expected = [env.step([0, 1, 0]) for _ in range(30)]
    assert expected[0][0].dtype == np.float16
    for twin in twins:
        assert twin.encoding == env.encoding
        same([twin.step([0, 1, 0]) for _ in range(30)], expected)


def test_observations_that_are_too_long_are_refused():
    space = spaces.Dict(exogenous=spaces.MultiDiscrete([2**31]))
    with pytest.raises(ValueError, match="2,147,483,648 numbers is too long, at most 100,000,000"):
        Encoding.of(space)
    assert Encoding.of(space, "scaled").space.shape == (1,)
