"""One compiled call makes the step that the methods of a model make, byte for byte."""

import copy
import pickle
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exo_envs import ExoVectorEnv, State
from exo_envs.compiled.threads import in_parts
from exo_envs.core.kernels import MANY_VALUES, Noise, drawing_in_parts
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridMDP, GridParameters
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters
from exo_envs.shells.stepper import CompiledStepper

MODELS = {
    "grid": GridMDP(),
    "grid, odd": GridMDP(GridParameters(slip=1.0, carry=1.0, crash_cost=0.1)),
    "factory": FactoryMDP(),
    "factory, small": FactoryMDP(
        FactoryParameters(queue_length=1, clock_size=2, num_technicians=0, num_noise=0, wander=0.0)
    ),
    "factory, odd": FactoryMDP(FactoryParameters(order_reward=-0.1, down_cost=-0.3, stall=1.0)),
    "crowd": CrowdMDP(),
    "crowd, fixed": CrowdMDP(CrowdParameters(goal="fixed", stroll=0.5, pick_up=0.3)),
    "crowd, large": CrowdMDP(CrowdParameters(grid_size=20, num_agents=40, num_objects=20)),
    "synthetic": SyntheticMDP(),
    "synthetic, pairs": SyntheticMDP(
        SyntheticParameters(num_pairs=2, num_copies=20, generations=3, parents_per_paying=2)
    ),
    "synthetic, odd": SyntheticMDP(SyntheticParameters(persistence=0.0, noise=0.0, slip=0.5)),
}
several = pytest.mark.parametrize("name", MODELS)


class Methods:
    """The same model without its compiled step."""

    @staticmethod
    def of(mdp):
        plain = copy.copy(mdp)
        plain.compiled_step = lambda: None
        return plain


def noise_of(seed):
    noise = Noise.unseeded()
    noise.reseed(np.random.default_rng(seed))
    return noise


def same(one, other):
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tobytes() == other.tobytes()


@several
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_step_is_that_of_the_methods(name, seed, lanes):
    mdp, rng = MODELS[name], np.random.default_rng(seed)
    state = mdp.sample_uniform(lanes, rng)  # reachable or not
    if name.startswith("crowd"):
        # Where several goals lie on one table, their rewards may be added in another order.
        state.exogenous[:, mdp.object_slice] %= mdp.parameters.num_tables + 1
    actions = rng.integers(mdp.num_actions, size=lanes)
    noise = noise_of(seed)
    expected = mdp.transition(state, actions, noise.endogenous, exogenous_rng=noise.exogenous)
    stepper = CompiledStepper.of(mdp, lanes)
    again = noise_of(seed)
    before = State(*map(np.copy, state))
    following, shown, rewards, terminal = stepper.step(state, actions, again)
    same(following.endogenous, expected.state.endogenous)
    same(following.exogenous, expected.state.exogenous)
    same(rewards, expected.reward)
    same(shown.exogenous, expected.state.exogenous)
    same(shown.endogenous, expected.state.endogenous)
    same(terminal, np.asarray(mdp.is_terminal(expected.state)))
    assert noise.endogenous.random() == again.endogenous.random()
    assert noise.exogenous.random() == again.exogenous.random()
    same(state.exogenous, before.exogenous)
    same(state.endogenous, before.endogenous)


@several
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_environment_goes_as_with_the_methods(name, mode):
    mdp, lanes = MODELS[name], 6
    envs = [
        ExoVectorEnv(model, lanes, autoreset_mode=mode, reward_terms=True)
        for model in (mdp, Methods.of(mdp))
    ]
    assert envs[1]._stepper is None
    assert envs[0]._stepper is not None
    rng = np.random.default_rng(0)
    begin = [env.reset(seed=3)[0] for env in envs]
    same(begin[0]["exogenous"], begin[1]["exogenous"])
    for _ in range(2 * mdp.horizon + 3):
        actions = rng.integers(mdp.num_actions, size=lanes)
        mine, plain = (env.step(actions) for env in envs)
        for part in ("endogenous", "exogenous"):
            same(mine[0][part], plain[0][part])
        for k in (1, 2, 3):
            same(mine[k], plain[k])
        same_infos(mine[4], plain[4])


def same_infos(one, other):
    assert list(one) == list(other)
    for key, value in one.items():
        if isinstance(value, dict):
            same_infos(value, other[key])
        elif value.dtype == object:
            assert repr(value.tolist()) == repr(other[key].tolist())
        else:
            same(value, other[key])


def test_bytes_do_not_depend_on_the_number_of_threads():
    mdp = CrowdMDP()
    lanes = MANY_VALUES // len(mdp.exogenous_sizes) + 1
    actions = np.random.default_rng(0).integers(mdp.num_actions, size=(5, lanes))

    def play(threads):
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            env = ExoVectorEnv(mdp, lanes)
            env.reset(seed=0)
            return [env.step(action) for action in actions]
        finally:
            numba.set_num_threads(before)

    assert numba.config.NUMBA_NUM_THREADS > 1 or pytest.skip("there is one thread")
    for one, two in zip(play(1), play(2), strict=True):
        same(one[0]["exogenous"], two[0]["exogenous"])
        same(one[1], two[1])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 50), st.integers(1, 9), st.integers(0, 50))
def test_numbers_drawn_in_parts_are_those_drawn_at_once(seed, rows, width, cut):
    for kind in (np.random.PCG64, np.random.SFC64):
        rng, twin = (np.random.Generator(kind(seed)) for _ in range(2))
        assert rng.integers(3, size=rows).tolist() == twin.integers(3, size=rows).tolist()
        parts = np.full((rows, width), np.nan)
        draw = drawing_in_parts(rng, parts)
        draw(min(cut, rows), rows)
        draw(0, min(cut, rows))
        same(parts, twin.random((rows, width)))
        assert rng.integers(3, size=5).tolist() == twin.integers(3, size=5).tolist()
        assert rng.random() == twin.random()


@given(st.integers(1, 100), st.integers(0, 200), st.integers(1, 120), st.integers(1, 2))
def test_parts_are_a_partition(size, ahead, least, threads):
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    done = np.zeros(size, int)
    try:

        def work(first, last):
            done[first:last] += 1
            return first, last

        parts = in_parts(work, size, ahead=ahead)
        assert (done == 1).all()
        assert parts == sorted(parts)
        assert parts[-1][1] == size
        parts = in_parts(work, size, least=least)
        assert len(parts) == 1 or min(last - first for first, last in parts) >= least
    finally:
        numba.set_num_threads(before)


def test_an_error_in_a_thread_is_raised():
    def work(first, last):
        raise KeyError(first)

    with pytest.raises(KeyError):
        in_parts(work, 10)


def test_a_model_that_moves_otherwise_has_another_step():
    class Calm(CrowdMDP):
        def reward_terms(self, state, action):
            return super().reward_terms(state, action) / 2

    class Elsewhere(CrowdMDP):
        def sample_initial(self, size, rng):
            return self.sample_uniform(size, rng)

    class Renamed(CrowdMDP):
        """Changes nothing that matters."""

        def decode_object(self, values):
            return super().decode_object(values)

    assert CompiledStepper.of(Calm(), 1) is None
    assert CompiledStepper.of(Elsewhere(), 1) is None
    assert CompiledStepper.of(Renamed(), 1) is not None
    patched = CrowdMDP()
    patched.is_terminal = lambda state: np.ones(len(state.endogenous), bool)
    assert CompiledStepper.of(patched, 1) is None
    env, plain = ExoVectorEnv(Calm(), 50), ExoVectorEnv(CrowdMDP(), 50)
    halves = [env.reset(seed=0), plain.reset(seed=0)]
    halves = [e.step(np.full(50, 1))[1] for e in (env, plain)]
    assert halves[1].any()
    same(2 * halves[0], halves[1])


def test_infos_that_are_read_late_are_those_of_their_step():
    mdp = FactoryMDP()
    envs = [ExoVectorEnv(model, 40, reward_terms=True) for model in (mdp, Methods.of(mdp))]
    for env in envs:
        env.reset(seed=0)
    rng, kept, expected = np.random.default_rng(0), [], []
    action = np.empty(40, dtype=np.int64)  # written to again in every step
    for _ in range(30):
        action[:] = rng.integers(mdp.num_actions, size=40)
        kept.append(envs[0].step(action)[4])
        expected.append(envs[1].step(action)[4])
    assert any(infos["reward_terms"].any() for infos in expected)
    for mine, plain in zip(kept, expected, strict=True):
        same_infos(mine, plain)


def test_nothing_that_is_handed_out_is_written_to_again():
    env = ExoVectorEnv(CrowdMDP(), 5, autoreset_mode="SameStep", reward_terms=True)
    env.reset(seed=0)
    steps = [env.step(np.full(5, k % 5)) for k in range(120)]
    before = [pickle.dumps((step[:4], step[4])) for step in steps]
    for k in range(10):
        env.step(np.full(5, k % 5))
    assert [pickle.dumps((step[:4], step[4])) for step in steps] == before
    state = env.state
    env.step(np.zeros(5, int))[0]["exogenous"][:] = 0  # the caller's own array
    assert env.state.exogenous.any()
    assert state.exogenous.any()


def test_copies_and_pickles_go_on_alike():
    env = ExoVectorEnv(CrowdMDP(), 4)
    env.reset(seed=0)
    for k in range(5):
        env.step(np.full(4, k % 5))
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    ahead = [env.step(np.full(4, k % 5))[0]["exogenous"] for k in range(5)]
    for twin in copies:
        for k, expected in enumerate(ahead):
            same(twin.step(np.full(4, k % 5))[0]["exogenous"], expected)


def test_a_wrong_action_costs_no_random_numbers():
    env = ExoVectorEnv(GridMDP(), 3)
    env.reset(seed=0)
    snapshot = env.get_state()
    with pytest.raises(ValueError, match="there is no action 9"):
        env.step([0, 9, 0])
    after = env.step([0, 1, 2])[0]
    env.set_state(snapshot)
    same(env.step([0, 1, 2])[0]["exogenous"], after["exogenous"])


def test_parameters_are_those_of_the_model():
    rich = CrowdMDP(replace(CrowdParameters(), goal_reward=7.0))
    table = int(rich.table_cells[0])
    x = rich.sample_initial(1, np.random.default_rng(0)).exogenous
    x[:, rich.object_slice] = 0
    x[:, rich.object_slice.start] = rich.parameters.num_tables + 1  # the goal, on table 0
    env = ExoVectorEnv(rich, 1, reward_terms=True)
    env.reset(options={"state": {"endogenous": [table], "exogenous": x[0]}})
    _, rewards, terminated, _, infos = env.step([0])
    assert (rewards.tolist(), terminated.tolist()) == ([7.0], [True])
    assert infos["reward_terms"][0, rich.object_slice.start] == 7.0


def test_an_interrupt_between_a_step_and_its_return_is_no_harm():
    mdp = FactoryMDP()
    env = ExoVectorEnv(mdp, 50, reward_terms=True)
    env.reset(seed=0)
    actions = np.full(50, 5)
    for _ in range(3):
        env.step(actions)

    def interrupted(self, *arguments):
        CompiledStepper.step(self, *arguments)
        raise KeyboardInterrupt

    stepper = env._stepper
    with pytest.raises(KeyboardInterrupt):
        interrupted(stepper, env._state, actions, env._noise)
    for _ in range(6):
        before, noise = env.state, env.get_state().noise
        observation, rewards, _, _, infos = env.step(actions)
        expected = mdp.transition(before, actions, noise.endogenous, exogenous_rng=noise.exogenous)
        same(observation["exogenous"], expected.state.exogenous)
        same(observation["endogenous"], expected.state.endogenous)
        same(rewards, expected.reward)
        same(infos["reward_terms"], expected.reward_terms)


@pytest.mark.parametrize("actions", [np.zeros((6, 2), int)[:, 0], np.broadcast_to(0, 6)])
def test_one_kernel_steps_all_layouts(actions):
    env = ExoVectorEnv(GridMDP(), 6)
    env.reset(seed=0)
    env.step(np.zeros(6, int))
    known = len(env._stepper._step.kernel.signatures)
    state = State(env.state.endogenous[0], env.state.exogenous[0])
    env.reset(options={"state": state})
    env.step(np.zeros(6, int))
    observation, *_ = env.step(actions)
    assert observation["exogenous"].flags.c_contiguous
    assert len(env._stepper._step.kernel.signatures) == known


def test_a_reset_looks_at_the_model_again():
    env = ExoVectorEnv(GridMDP(), 50, reward_terms=True)

    def total():
        env.reset(seed=0)
        return sum(env.step(np.full(50, k % 4))[1].sum() for k in range(40))

    poor = GridMDP(GridParameters(goal_reward=0.0, crash_cost=0.0))
    assert total() != 0
    env.mdp = poor
    assert total() == 0
    env.mdp.reward_terms = lambda state, action: np.ones(state.exogenous.shape)
    env.reset(seed=0)
    _, rewards, _, _, infos = env.step(np.zeros(50, int))
    same(rewards, infos["reward_terms"].sum(axis=1))


def test_pickles_hold_no_kernels():
    env = ExoVectorEnv(CrowdMDP(), 2)
    env.reset(seed=0)
    env.step([0, 0])
    stored = pickle.dumps(env._stepper)
    assert b"_advance_porter" not in stored
    assert isinstance(pickle.loads(stored), CompiledStepper)
