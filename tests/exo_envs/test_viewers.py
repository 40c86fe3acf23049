"""The pictures: what is seen of a state and of a mask in each backend, and what drawing keeps."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo

from exo_envs import State
from exo_envs.domains.crowd.env import CrowdEnv, CrowdVectorEnv
from exo_envs.domains.crowd.model import CrowdMDP
from exo_envs.domains.crowd.parameters import CrowdParameters
from exo_envs.domains.crowd.viewer import CrowdViewer
from exo_envs.domains.factory.env import FactoryEnv
from exo_envs.domains.factory.model import FactoryMDP
from exo_envs.domains.factory.parameters import UP, FactoryParameters
from exo_envs.domains.factory.viewer import FactoryViewer
from exo_envs.domains.grid.env import GridEnv
from exo_envs.domains.grid.model import GridMDP
from exo_envs.domains.grid.viewer import GridViewer
from exo_envs.rendering import scene
from exo_envs.rendering.palette import GOAL, GOLD, OCCUPIED, PURPLE

try:
    import pybullet  # noqa: F401  (there are no wheels for newer Pythons)
except ImportError:
    BACKENDS = ["flat"]
else:
    BACKENDS = ["flat", "bullet"]
needs_bullet = pytest.mark.skipif("bullet" not in BACKENDS, reason="pybullet is not installed")

SMALL = {"width": 160, "height": 120}


def make_viewer(domain, backend="flat", **size):
    if domain == "grid":
        return GridViewer(GridMDP(), width=240)
    mdp, viewer = {
        "crowd": (CrowdMDP, CrowdViewer),
        "factory": (FactoryMDP, FactoryViewer),
    }[domain]
    return viewer(mdp(), backend, **(size or SMALL))


@pytest.fixture(params=["grid-flat", *(f"{d}-{b}" for d in ("crowd", "factory") for b in BACKENDS)])
def viewer(request):
    viewer = make_viewer(*request.param.split("-"))
    yield viewer
    viewer.close()


def single(states, index=0):
    return State(states.endogenous[index], states.exogenous[index])


def first_state(mdp, seed=0):
    return single(mdp.sample_initial(1, np.random.default_rng(seed)))


def changed(state, mdp, **values):
    """The state with other values of some exogenous variables."""
    exogenous = state.exogenous.copy()
    exogenous[mdp.exogenous_indices(list(values))] = list(values.values())
    return State(state.endogenous, exogenous)


def count(frame, colour, tolerance=40):
    """How many pixels are about of a colour."""
    difference = np.abs(frame.astype(int) - np.array(colour)).max(axis=-1)
    return int((difference <= tolerance).sum())


def count_reds(frame):
    """How many pixels are of any shade of red, but neither pink nor orange."""
    red, green, blue = np.moveaxis(frame.astype(int), -1, 0)
    return int(((red - green > 90) & (np.abs(green - blue) < 30)).sum())


def test_frames_are_pictures_and_the_same_for_the_same_state(viewer):
    state = first_state(viewer.mdp)
    frame = viewer.draw(state)
    assert frame.dtype == np.uint8
    assert frame.ndim == 3
    assert frame.shape[2] == 3
    assert frame.shape[0] % 2 == 0, "videos want an even height"
    if not isinstance(viewer, GridViewer):
        assert frame.shape == (120, 160, 3)
    other = viewer.draw(first_state(viewer.mdp, seed=1))
    assert not np.array_equal(frame, other)
    assert np.array_equal(frame, viewer.draw(state)), "what was drawn before must not matter"
    viewer.close()
    assert np.array_equal(frame, viewer.draw(state)), "nor that the scene is a new one"


def test_the_robot_is_gold_and_purple_and_moves(viewer):
    state = first_state(viewer.mdp)
    here, there = (
        viewer.draw(State(np.array([cell, *state.endogenous[1:]]), state.exogenous))
        for cell in (viewer.mdp.floor.cell(2, 0), viewer.mdp.floor.cell(2, 2))
    )
    assert not np.array_equal(here, there)
    for frame in (here, there):
        assert count(frame, GOLD) > 10
        assert count(frame, PURPLE) > 10


def test_any_state_can_be_drawn(viewer):
    rng = np.random.default_rng(0)
    mdp = viewer.mdp
    states = mdp.sample_uniform(4, rng)
    last = State(np.array([mdp.endogenous_sizes - 1]), np.array([mdp.exogenous_sizes - 1]))
    for state in (*(single(states, index) for index in range(4)), single(last)):
        for mask in (None, (), mdp.exogenous_names[::3], mdp.exogenous_names):
            viewer.mask = mask
            assert viewer.draw(state).std() > 0
        assert viewer.text(state)


def test_a_mask_fades_what_it_drops(viewer):
    state = first_state(viewer.mdp)
    plain = viewer.draw(state)
    viewer.mask = viewer.mdp.exogenous_names
    everything = viewer.draw(state)
    viewer.mask = ()
    nothing = viewer.draw(state)
    assert not np.array_equal(plain, everything)
    assert not np.array_equal(plain, nothing)
    assert not np.array_equal(everything, nothing)
    assert count_reds(everything) > count_reds(nothing) + 50
    colourful = [np.ptp(frame.astype(int), axis=-1).sum() for frame in (plain, nothing)]
    assert colourful[1] < colourful[0]
    viewer.mask = None
    assert np.array_equal(plain, viewer.draw(state))


@pytest.mark.parametrize("backend", BACKENDS)
def test_red_squares_lie_on_kept_cells_and_green_discs_on_occupied_ones(backend):
    viewer = make_viewer("crowd", backend, width=320, height=240)
    mdp = viewer.mdp
    state = State(np.array([0]), np.zeros(len(mdp.exogenous_names), dtype=np.int64))
    state.exogenous[mdp.agent_slice].reshape(-1, 3)[:, 0] = 7  # all in the upper right corner
    occupied = changed(state, mdp, occupancy_6_1=1, occupancy_6_6=1)
    red = {}
    green = {}
    for name, mask in {
        "none": None,
        "empty": (),
        "one": ("occupancy_6_1",),
        "four": ("occupancy_6_1", "occupancy_6_2", "occupancy_5_1", "occupancy_5_2"),
    }.items():
        viewer.mask = mask
        frame, busy = viewer.draw(state), viewer.draw(occupied)
        # With a mask, the key too shows these colours: as much of them whatever the mask.
        red[name] = count_reds(frame)
        green[name] = count(busy, OCCUPIED, 60) - count(frame, OCCUPIED, 60)
    viewer.close()
    assert red["none"] == 0
    assert red["one"] > red["empty"] + 50
    assert red["four"] > red["empty"] + 3.2 * (red["one"] - red["empty"])
    assert green["none"] == green["empty"] == 0
    assert green["one"] == green["four"] > 50, "a disc for the kept cell, not for the other one"


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_goal_is_seen_on_tables_and_in_hands(backend):
    viewer = make_viewer("crowd", backend, width=320, height=240)
    mdp = viewer.mdp
    state = first_state(mdp)
    tables = len(mdp.table_cells)
    frames = {}
    for place in (0, 1, tables):  # two tables, a hand
        for is_goal in (False, True):
            objects = dict.fromkeys(mdp.exogenous_names[mdp.object_slice], 0)
            objects["object_0"] = place + (tables + 1) * is_goal
            frames[place, is_goal] = viewer.draw(changed(state, mdp, **objects))
        assert count(frames[place, True], GOAL) > count(frames[place, False], GOAL) + 30
    viewer.close()
    assert not np.array_equal(frames[0, True], frames[1, True])
    assert not np.array_equal(frames[0, True], frames[tables, True])


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_variable_of_the_factory_is_seen(backend):
    viewer = make_viewer("factory", backend, width=320, height=240)
    mdp = viewer.mdp
    state = State(np.array([9, 0]), np.zeros(len(mdp.exogenous_names), dtype=np.int64))
    plain = viewer.draw(state)
    for name in mdp.exogenous_names:
        assert not np.array_equal(plain, viewer.draw(changed(state, mdp, **{name: 1}))), name
    assert not np.array_equal(plain, viewer.draw(State(np.array([9, 1]), state.exogenous)))
    up = changed(state, mdp, **dict.fromkeys(mdp.exogenous_names[mdp.machine_slice], UP))
    assert count(viewer.draw(up), (40, 190, 80)) > count(plain, (40, 190, 80)) + 20
    viewer.close()


def test_every_variable_of_the_grid_is_seen():
    viewer = make_viewer("grid")
    state = State(np.array([8]), np.zeros(5, dtype=np.int64))
    plain = viewer.draw(state)
    for name in viewer.mdp.exogenous_names:
        other = viewer.draw(changed(state, viewer.mdp, **{name: 1}))
        assert not np.array_equal(plain, other), name
        assert viewer.text(state) != viewer.text(changed(state, viewer.mdp, **{name: 1})), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_sizes_are_drawn_too(backend):
    rng = np.random.default_rng(0)
    crowds = [
        CrowdParameters(grid_size=16, num_agents=64, num_objects=30),
        CrowdParameters(grid_size=3, num_agents=1, num_porters=1, num_objects=1, num_tables=2),
        CrowdParameters(num_agents=0, num_porters=0, goal="fixed"),
    ]
    factories = [
        FactoryParameters(rows=3, columns=3, queue_length=12, num_technicians=9, num_noise=0),
        FactoryParameters(rows=9, columns=4, queue_length=1, clock_size=1, num_technicians=0),
    ]
    for viewer in (
        *(CrowdViewer(CrowdMDP(p), backend, **SMALL) for p in crowds),
        *(FactoryViewer(FactoryMDP(p), backend, **SMALL) for p in factories),
    ):
        for states in (viewer.mdp.sample_initial(1, rng), viewer.mdp.sample_uniform(1, rng)):
            for mask in (None, viewer.mdp.exogenous_names):
                viewer.mask = mask
                assert viewer.draw(single(states)).shape == (120, 160, 3)
            assert viewer.text(single(states))
        viewer.close()


def test_text_is_a_floor_plan():
    crowd = make_viewer("crowd")
    mdp = crowd.mdp
    exogenous = np.zeros(len(mdp.exogenous_names), dtype=np.int64)
    agents = exogenous[mdp.agent_slice].reshape(-1, 3)
    agents[:, 0] = mdp.floor.cell(0, 0)
    agents[0, 0] = mdp.floor.cell(5, 3)
    agents[1, 0] = mdp.floor.cell(6, 3)
    tables = len(mdp.table_cells)
    exogenous[mdp.object_slice.start] = tables + (tables + 1)  # in a hand, and the goal
    lines = crowd.text(State(np.array([mdp.floor.cell(6, 3)]), exogenous)).splitlines()
    plan = [line.ljust(3 * mdp.floor.columns) for line in lines[: mdp.floor.rows]]
    assert plan[5][9:11] == "*P"
    assert plan[6][9:11] == ".!"
    assert plan[0][0:2] == ".+"
    assert "object_0 with porter_0 in cell (5, 3)" in lines[mdp.floor.rows]
    done = crowd.text(State(np.array([mdp.done]), exogenous))
    assert "robot done" in done

    factory = make_viewer("factory")
    mdp = factory.mdp
    state = State(np.array([1, 1]), np.zeros(len(mdp.exogenous_names), dtype=np.int64))
    state = changed(state, mdp, order_0=2, order_2=5, clock=3, machine_0=UP, technician_0=3)
    lines = factory.text(state).splitlines()
    assert lines[0].startswith("0+t . R")
    assert lines[4].endswith("3-t")
    assert lines[5].startswith("belt [1] - 4 -, fulfilled, moves in 4")


# --- clients, copies, windows -----------------------------------------------------------------


def test_closing_twice_is_fine_and_drawing_goes_on(viewer):
    state = first_state(viewer.mdp)
    viewer.close()
    viewer.draw(state)
    viewer.close()
    viewer.close()
    assert viewer.draw(state).std() > 0


@needs_bullet
@pytest.mark.parametrize("domain", ["crowd", "factory"])
def test_bodies_are_made_once(domain):
    viewer = make_viewer(domain, "bullet", width=64, height=48)
    rng = np.random.default_rng(0)
    counts = []
    for episode in range(60):
        # Uniform states show everything that there is to show.
        viewer.mask = viewer.mdp.exogenous_names if episode % 2 else None
        viewer.draw(single(viewer.mdp.sample_uniform(1, rng)))
        scene = viewer._scene
        counts.append(scene._bullet.getNumBodies(physicsClientId=scene._client))
    assert counts == sorted(counts)
    assert counts[30] == counts[-1]
    bullet, client = viewer._scene._bullet, viewer._scene._client
    viewer.close()
    assert not bullet.isConnected(physicsClientId=client)


@needs_bullet
def test_opening_a_scene_again_hands_pybullet_no_new_lists():
    """It keeps them for good; see exo_envs.rendering.scene._lasting_list."""
    viewer = make_viewer("factory", "bullet", width=64, height=48)
    state = first_state(viewer.mdp)
    viewer.draw(state)
    lists = {id(values) for values in scene._LISTS.values()}
    for _ in range(2):
        viewer.close()
        viewer.draw(state)
    viewer.close()
    assert {id(values) for values in scene._LISTS.values()} == lists


@needs_bullet
def test_a_dropped_viewer_leaves_no_client_behind():
    viewer = make_viewer("crowd", "bullet", width=64, height=48)
    viewer.draw(first_state(viewer.mdp))
    bullet, client = viewer._scene._bullet, viewer._scene._client
    assert bullet.isConnected(physicsClientId=client)
    del viewer
    assert not bullet.isConnected(physicsClientId=client)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [CrowdEnv, FactoryEnv])
def test_two_environments_and_a_copy_do_not_disturb_each_other(make, backend):
    envs = [make(render_mode="rgb_array", render_backend=backend) for _ in range(2)]
    for seed, env in enumerate(envs):
        env.viewer.width, env.viewer.height = SMALL.values()
        env.reset(seed=seed)
    frames = [env.render() for env in envs]
    assert not np.array_equal(*frames)
    copies = [copy.deepcopy(envs[0]), pickle.loads(pickle.dumps(envs[0]))]
    for other in copies:
        assert np.array_equal(other.render(), frames[0])
        other.step(1)
        other.render()
    envs[1].close()
    assert np.array_equal(envs[0].render(), frames[0])
    for env in (*envs, *copies):
        env.close()
        env.close()


def test_a_vector_environment_draws_every_lane():
    envs = CrowdVectorEnv(3, render_mode="rgb_array", render_backend="flat")
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 3
    assert not np.array_equal(frames[0], frames[1])
    envs.close()


def test_an_unknown_backend_is_an_error_that_names_the_choices():
    with pytest.raises(ValueError, match=r"unknown render backend 'vulkan'.*'bullet', 'flat'"):
        CrowdEnv(render_backend="vulkan")
    with pytest.raises(ValueError, match=r"width is a whole number, from 64 to 10000, not 10"):
        make_viewer("crowd", width=10, height=48)


@pytest.mark.parametrize("make", [CrowdEnv, FactoryEnv])
def test_without_pybullet_all_but_the_3d_picture_works(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "pybullet", None)
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ImportError, match=r'pip install pybullet.*render_backend="flat"'):
        env.render()
    env.close()
    flat = make(render_mode="rgb_array", render_backend="flat")
    flat.reset(seed=0)
    assert flat.render().shape == (480, 640, 3)
    assert make(render_mode="ansi").viewer.text(flat.state)
    flat.close()


@pytest.mark.parametrize(
    ("make", "backend"),
    [(GridEnv, None), *((make, b) for make in (CrowdEnv, FactoryEnv) for b in BACKENDS)],
)
def test_windows(make, backend):
    pytest.importorskip("pygame")
    env = make(render_mode="human", **({} if backend is None else {"render_backend": backend}))
    env.metadata["render_fps"] = 1000
    env.viewer.metadata = {**env.viewer.metadata, "render_fps": 1000}
    env.reset(seed=0)
    env.step(0)
    env.show_mask(env.mdp.exogenous_names[:3])
    env.step(0)
    env.close()
    env.close()
    env.reset(seed=0)
    env.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_videos_are_recorded(backend, tmp_path):
    pytest.importorskip("moviepy")
    env = CrowdEnv(render_mode="rgb_array", render_backend=backend)
    env.viewer.width, env.viewer.height = SMALL.values()
    env = RecordVideo(
        env, str(tmp_path / "videos"), episode_trigger=lambda episode: True, disable_logger=True
    )
    env.reset(seed=0)
    for _ in range(3):
        env.step(1)
    env.close()
    (video,) = (tmp_path / "videos").glob("*.mp4")
    assert video.stat().st_size > 500


@pytest.mark.parametrize("name", ["ExoGrid-v0", "ExoFactory-v0", "ExoCrowd-v0", "ExoSynthetic-v0"])
def test_who_draws_nothing_imports_no_drawing(name):
    """Making, wrapping and stepping an environment is all that most processes do."""
    code = (
        "import sys, gymnasium as gym, exo_envs, wrappers\n"
        f"env = gym.make({name!r})\n"
        "env = wrappers.MaskedObservation(env, env.unwrapped.mdp.exogenous_names[:2])\n"
        "env.reset(seed=0), env.step(0), env.close()\n"
        f"gym.make_vec({name!r}, num_envs=2).close()\n"
        "ours = [m for m in sys.modules if m.startswith('exo_envs.rendering')]\n"
        "assert not ours, ours\n"
        "ours = [m for m in sys.modules if m.startswith('exo_envs') and m.endswith('viewer')]\n"
        "assert not ours, ours\n"
        "assert not {'PIL', 'pybullet', 'pygame'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
