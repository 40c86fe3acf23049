"""ExoCrowd: what holds along trajectories."""

import numpy as np
import pytest
from crowds import CROWDS, assert_consistent, crowd

from exo_envs.domains.crowd import CrowdMDP, CrowdParameters


def phases(mdp, x):
    """What the porters do, (lanes, num_porters): 0 carry, 1 stroll, 2 return, 3 wait."""
    agents = x[:, mdp.agent_slice].reshape(len(x), -1, 3)[:, : mdp.num_porters]
    cells, destinations, carrying = np.moveaxis(agents, -1, 0)
    place, _ = mdp.decode_object(x[:, mdp.object_slice][:, : mdp.num_porters])
    waiting = cells == mdp.table_cells[destinations]
    return np.select([carrying == 1, place != destinations, ~waiting], [0, 1, 2], 3)


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
        phase, next_phase = phases(mdp, before), phases(mdp, x)
        # The phases follow each other; a porter that does not stroll goes from 0 to 3.
        assert np.isin(next_phase - phase, [0, 1, -3, 3]).all()
        assert (phase[next_phase - phase == 3] == 0).all()
        porters_objects = slice(mdp.object_slice.start, mdp.object_slice.start + mdp.num_porters)
        moved = x[:, porters_objects] != before[:, porters_objects]
        assert (moved == ((phase != next_phase) & ((phase == 0) | (phase == 3)))).all()
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


@pytest.mark.parametrize(
    "numbers",
    [{}, {"stroll": 1.0}, {"stroll": 0.3, "pick_up": 0.1, "stand_still": 0.3, "num_tables": 3}],
)
def test_porters_start_as_busy_as_they_stay(numbers):
    """Every share is within Hoeffding's bound for 16 of them at an error probability of 1e-6."""
    p = CrowdParameters(num_agents=60, num_porters=60, num_objects=60, **numbers)
    mdp, rng = CrowdMDP(p), np.random.default_rng(6)
    rows, columns = np.divmod(mdp.table_cells, mdp.floor.columns)
    apart = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    walk = apart[apart > 0].mean() / (1 - p.stand_still)
    steps = np.array([walk + 1, p.stroll * (walk + 1), p.stroll * walk, 1 / p.pick_up])
    x = mdp.sample_initial(2000, rng).exogenous
    start = phases(mdp, x)
    for _ in range(500):
        x = mdp.sample_exogenous(x, rng)
    bound = np.sqrt(np.log(2 * 16 / 1e-6) / (2 * start.size))  # 0.0085
    for phase in (start, phases(mdp, x)):
        shares = np.bincount(phase.ravel(), minlength=4) / phase.size
        np.testing.assert_allclose(shares, steps / steps.sum(), atol=bound)


def test_objects_lie_about_without_porters_that_stroll():
    """The bounds are Hoeffding's, each at an error probability of 1e-6."""
    mdp, rng = CrowdMDP(CrowdParameters(stroll=1.0)), np.random.default_rng(16)
    x = mdp.sample_initial(3000, rng).exogenous
    for _ in range(100):
        x = mdp.sample_exogenous(x, rng)
    place, _ = mdp.decode_object(x[:, mdp.object_slice][:, :6])
    lies = place < 6
    table = mdp.table_cells[np.where(lies, place, 0)]
    away = x[:, mdp.agent_slice].reshape(3000, -1, 3)[:, :6, 0] != table
    # At its object's table a porter is for 1 / 0.5 steps before and 1 / 0.9 after each walk of
    # 6.4 cells, in a cycle in which the object lies for 2 * 6.4 / 0.9 + 1 + 1 / 0.5 steps.
    assert away[lies].mean() == pytest.approx(1 - 3.11 / 17.22, abs=0.025)
    # Others pass by: of the cells where objects lie 2 in 5 are free. Objects of one lane are not
    # independent in this, so it counts the first of each.
    free = np.take_along_axis(x, table, axis=1) == 0
    assert free[lies[:, 0], 0].mean() == pytest.approx(0.4, abs=0.06)
