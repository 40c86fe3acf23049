"""Viewers say what is wrong with what they are given."""

import numpy as np
import pytest
from models import CounterMDP

from exo_envs import State
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.crowd.viewer import CrowdViewer
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.factory.viewer import FactoryViewer
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.grid.viewer import GridViewer
from exo_envs.rendering.viewer import Viewer

VIEWERS = {
    "grid": lambda: GridViewer(GridMDP(), width=64),
    "factory": lambda: FactoryViewer(FactoryMDP(), "flat", width=64, height=48),
    "crowd": lambda: CrowdViewer(CrowdMDP(), "flat", width=64, height=48),
}
each_viewer = pytest.mark.parametrize("make", VIEWERS.values(), ids=VIEWERS)


@each_viewer
@pytest.mark.parametrize("how", ["text", "draw", "show"])
def test_a_state_out_of_range_is_named(make, how):
    viewer = make()
    n, x = (part[0] for part in viewer.mdp.sample_initial(1, np.random.default_rng(0)))
    x[-1] = 99
    name = viewer.mdp.exogenous_names[-1]
    with pytest.raises(ValueError, match=f"{name!r} cannot be 99"):
        getattr(viewer, how)(State(n, x))
    with pytest.raises(TypeError, match="a state is a State or a mapping"):
        getattr(viewer, how)(None)
    viewer.close()


def test_text_of_any_model_checks_the_state():
    with pytest.raises(ValueError, match="the exogenous part of the state has shape"):
        Viewer(CounterMDP()).text(State(np.zeros(2, int), np.zeros(3, int)))


def test_a_viewer_draws_the_model_that_it_knows():
    with pytest.raises(TypeError, match="GridViewer draws states of a GridMDP, not of"):
        GridViewer(CounterMDP())
    with pytest.raises(TypeError, match="Viewer draws states of a ExoMDP, not of a str"):
        Viewer("model")


@pytest.mark.parametrize("size", [63, 64.5, None, "64", True, np.nan, 10**9])
def test_sizes_are_whole_numbers_of_pixels(size):
    with pytest.raises(ValueError, match="width is a whole number"):
        GridViewer(GridMDP(), width=size)
    if size is not None:
        with pytest.raises(ValueError, match="width is a whole number"):
            CrowdViewer(CrowdMDP(), "flat", width=size)
    with pytest.raises(ValueError, match="supersampling is a whole number"):
        FactoryViewer(FactoryMDP(), supersampling=0)


@pytest.mark.parametrize("backend", ["x", None, 3, ["flat"]])
def test_backends_are_named(backend):
    with pytest.raises(ValueError, match="unknown render backend"):
        CrowdViewer(CrowdMDP(), backend)
