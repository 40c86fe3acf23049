"""What of the endogenous dynamics is seen through a mask."""

import itertools

import numpy as np
import pytest
from surveys import MoveMDP, moves_of, survey_of


def test_a_dropped_variable_is_averaged_given_what_tells_about_it():
    """x0 moves the agent; x1 is a copy of it now, nine times out of ten; x2 has no part in it."""

    class Copies(MoveMDP):
        def _throw(self, size, rng):
            x = rng.integers(2, size=(size, 3))
            x[:, 1] = np.where(rng.random(size) < 0.9, x[:, 0], 1 - x[:, 0])
            return x

    mdp = Copies((2, 2, 2), lambda n, x, u: x[..., 0])
    survey = survey_of(mdp, rollouts=1000)
    n, a = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    x = np.array(list(itertools.product(range(2), repeat=2)))
    moves = moves_of(survey, mdp, (1, 2))
    assert moves.dependencies() == (0,)  # x1, by its place in the mask
    np.testing.assert_allclose(
        moves.distribution(n, a, x)[:, 1], np.where(x[:, 0], 0.9, 0.1), atol=0.02
    )
    moves = moves_of(survey, mdp, (2,))
    assert moves.dependencies() == ()
    np.testing.assert_allclose(moves.distribution(n, a, x[:, :1])[:, 1], 0.5, atol=0.02)


def test_dropped_occupancies_become_the_chance_of_meeting_somebody(crowd_survey):
    mdp, survey = crowd_survey
    objects = list(range(mdp.object_slice.start, mdp.object_slice.stop))
    moves = moves_of(survey, mdp, objects)
    x = survey.backgrounds.data.sample(4000, np.random.default_rng(1))
    lanes = np.ones(len(x), dtype=np.int64)
    for cell, action in itertools.product((0, 9, 27, 62), range(1, mdp.num_actions)):
        target = int(mdp.floor.moves[cell, action])
        if target != cell and cell not in mdp.table_cells:
            found = moves.distribution(cell * lanes, action * lanes, x[:, objects]).mean(axis=0)
            met = x[:, target].mean()
            assert found[cell] == pytest.approx(met, abs=0.03)
            assert found[target] == pytest.approx(1 - met, abs=0.03)
