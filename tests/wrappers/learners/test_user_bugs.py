"""Bugs in users' models are named by ``fit`` itself: one or two of each kind of the catalogue."""

import pytest

from exo_envs.testing import check_mdp
from reliability.bugs import BUGS, KINDS, missed
from reliability.user_models import Changed, Ferry, Market
from wrappers import CalibratedMaskLearner


def of_each_kind():
    """The first and the last of each kind."""
    for kind in KINDS:
        bugs = [bug for bug in BUGS if bug.kind == kind]
        yield from (bugs[0], bugs[-1])


@pytest.mark.parametrize("bug", list(of_each_kind()), ids=str)
def test_a_bug_is_named(bug):
    assert missed(bug, lambda mdp: CalibratedMaskLearner().fit(mdp, rng=0)) is None


def test_there_are_222_bugs_of_23_kinds():
    assert len({str(bug) for bug in BUGS}) == len(BUGS) == 222
    assert len(KINDS) == 23


@pytest.mark.parametrize("model", [Market, Ferry])
def test_without_the_bug_the_models_are_right(model):
    check_mdp(Changed(model()), rng=0)
    assert CalibratedMaskLearner(n_rollouts=50).fit(Changed(model()), rng=0).status_ == "finished"
