"""ExoCrowd: what holds along trajectories."""

import numpy as np
import pytest
from crowds import CROWDS, assert_consistent, crowd

from exo_envs.domains.crowd import CrowdMDP, CrowdParameters


def are_carrying(mdp, x):
    """Whether each porter has its object in hand, (lanes, num_porters); if not, it is with it."""
    agents = x[:, mdp.agent_slice].reshape(len(x), -1, 3)[:, : mdp.num_porters]
    cells, destinations, carrying = np.moveaxis(agents, -1, 0)
    place, _ = mdp.decode_object(x[:, mdp.object_slice][:, : mdp.num_porters])
    assert ((carrying == 1) | (place == destinations)).all()
    assert ((carrying == 1) | (cells == mdp.table_cells[destinations])).all()
    return carrying == 1


@pytest.mark.parametrize("name", CROWDS)
def test_trajectories_stay_consistent(name):
    mdp, rng = crowd(name), np.random.default_rng(2)
    x = mdp.sample_initial(100, rng).exogenous
    movable = mdp.parameters.goal == "movable"
    goal = mdp.decode_object(x[:, mdp.object_slice])[1].argmax(axis=1)
    assert ((goal < mdp.num_porters) == movable).all()
    for _ in range(30):
        assert_consistent(mdp, x)
        before = x
        x = mdp.sample_exogenous(x, rng)
        changed = are_carrying(mdp, before) != are_carrying(mdp, x)
        porters_objects = slice(mdp.object_slice.start, mdp.object_slice.start + mdp.num_porters)
        moved = x[:, porters_objects] != before[:, porters_objects]
        assert (moved == changed).all()
        fixed = slice(porters_objects.stop, None)
        assert (x[:, fixed] == before[:, fixed]).all()
        assert (mdp.decode_object(x[:, mdp.object_slice])[1].argmax(axis=1) == goal).all()
        rows, columns = np.divmod(
            np.stack([before, x])[..., mdp.agent_slice].reshape(2, 100, -1, 3)[..., 0],
            mdp.floor.columns,
        )
        assert (np.abs(np.diff(rows, axis=0)) + np.abs(np.diff(columns, axis=0)) <= 1).all()


def test_any_state_is_consistent_after_one_step():
    mdp, rng = CrowdMDP(), np.random.default_rng(3)
    x = mdp.sample_uniform(500, rng).exogenous
    x[:, mdp.object_slice] = mdp.sample_initial(500, rng).exogenous[:, mdp.object_slice]
    assert_consistent(mdp, mdp.sample_exogenous(x, rng))


@pytest.mark.parametrize("goal", ["movable", "fixed"])
def test_every_candidate_becomes_the_goal(goal):
    mdp = CrowdMDP(CrowdParameters(goal=goal))
    x = mdp.sample_initial(600, np.random.default_rng(4)).exogenous
    counts = mdp.decode_object(x[:, mdp.object_slice])[1].sum(axis=0)
    candidates = slice(0, 6) if goal == "movable" else slice(6, 12)
    # 100 expected of each; a count is outside with probability 1e-7.
    assert ((counts[candidates] > 50) & (counts[candidates] < 155)).all()
    assert counts.sum() == 600 == counts[candidates].sum()


def test_every_porter_takes_its_object_to_every_table():
    mdp, rng = CrowdMDP(), np.random.default_rng(5)
    x = mdp.sample_initial(50, rng).exogenous
    seen = np.zeros((6, 7), dtype=bool)
    for _ in range(100):
        x = mdp.sample_exogenous(x, rng)
        place, _ = mdp.decode_object(x[:, mdp.object_slice][:, :6])
        for i in range(6):
            seen[i, place[:, i]] = True
    assert seen.all()


@pytest.mark.parametrize("numbers", [{}, {"pick_up": 0.1, "stand_still": 0.3, "num_tables": 3}])
def test_porters_start_as_busy_as_they_stay(numbers):
    """Each of the 4 shares is within Hoeffding's bound at an error probability of 1e-6."""
    p = CrowdParameters(num_agents=60, num_porters=60, num_objects=60, **numbers)
    mdp, rng = CrowdMDP(p), np.random.default_rng(6)
    rows, columns = np.divmod(mdp.table_cells, mdp.floor.columns)
    apart = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    walk = apart[apart > 0].mean() / (1 - p.stand_still)
    share = (walk + 1) / (walk + 1 + 1 / p.pick_up)
    x = mdp.sample_initial(2000, rng).exogenous
    start = are_carrying(mdp, x)
    for _ in range(500):
        x = mdp.sample_exogenous(x, rng)
    bound = np.sqrt(np.log(2 * 4 / 1e-6) / (2 * start.size))  # 0.008
    for carrying in (start, are_carrying(mdp, x)):
        assert carrying.mean() == pytest.approx(share, abs=bound)
