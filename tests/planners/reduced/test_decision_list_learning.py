"""Decision lists that are learned by asking, and how lists are simplified."""

import itertools

import numpy as np
from surveys import MoveMDP, moves_of, survey_of

from planners.tables.decision_lists import (
    DecisionLists,
    Rule,
    sample_lists,
    simplify,
    with_default,
)


def test_a_condition_on_two_variables_becomes_one_rule():
    """Each of ten things has a place and a flag; any that is here and flagged decides."""

    def move(n, x, u):
        here = (x[..., 0:20:2] == 3) & (x[..., 1:20:2] == 1)
        return np.where(here.any(axis=-1), 2, np.where(x[..., 20] == 1, 0, 1))

    mdp = MoveMDP((*(5, 2) * 10, 2), move, positions=3)
    survey = survey_of(mdp)
    rules = survey.lists[0]
    assert [rule.variables for rule in rules[:10]] == [(k, k + 1) for k in range(0, 20, 2)]
    assert all(np.flatnonzero(rule.decided).tolist() == [7] for rule in rules[:10])
    rng = np.random.default_rng(0)
    x = mdp.sample_uniform(5000, rng).exogenous
    n = rng.integers(3, size=5000)
    moves = moves_of(survey, mdp)
    found = sample_lists(moves, n, np.zeros_like(n), x, rng.random(5000))
    assert (found == move(n, x, 0)).all()


def test_what_overrides_comes_first_whatever_its_position():
    """Twelve dice; the last one that shows its number decides, which is where it sends you."""
    sizes = (4,) * 12

    def move(n, x, u):
        target = np.zeros(x.shape[:-1], dtype=np.int64)
        for i in range(12):
            target = np.where(x[..., i] == i % 4, 1 + i, target)
        return target

    mdp = MoveMDP(sizes, move, positions=13)
    survey = survey_of(mdp)
    rng = np.random.default_rng(0)
    x = mdp.sample_uniform(5000, rng).exogenous
    n = rng.integers(13, size=5000)
    assert (
        sample_lists(moves_of(survey, mdp), n, np.zeros_like(n), x, rng.random(5000))
        == move(n, x, 0)
    ).all()
    assert survey.lists[0][0].variables == (11,)


def majority(n, x, u):
    return np.where(u < 0.1, 0, (x[..., :15].sum(axis=-1) > 7).astype(np.int64))


def test_richer_interactions_get_a_table_over_few_variables():
    """A majority of fifteen has no decision list: a documented approximation."""
    mdp = MoveMDP((2,) * 18, majority)
    survey = survey_of(mdp, rollouts=2000)
    assert survey.relevant[:, :15].all()
    assert set(survey.undecided) == {0, 1}
    rng = np.random.default_rng(0)
    x = mdp.sample_uniform(20_000, rng).exogenous
    n = np.zeros(20_000, dtype=np.int64)
    told = moves_of(survey, mdp).distribution(n, n, x)[:, 1]
    truth = 0.9 * (x[:, :15].sum(axis=-1) > 7)
    assert np.corrcoef(told, truth)[0, 1] > 0.55  # the best table of eight variables has 0.65
    # With three of them in the mask it is the conditional distribution.
    moves = moves_of(survey, mdp, (2, 5, 9))
    few = np.array(list(itertools.product(range(2), repeat=3)))
    told = moves.distribution(np.zeros(8, dtype=np.int64), np.zeros(8, dtype=np.int64), few)[:, 1]
    truth = [truth[(x[:, [2, 5, 9]] == row).all(axis=1)].mean() for row in few]
    np.testing.assert_allclose(told, truth, atol=0.05)


def test_simplified_lists_say_the_same():
    rng = np.random.default_rng(0)
    sizes = np.array([2, 3])

    def rule(variables):
        rows = int(np.prod(sizes[list(variables)]))
        table = rng.dirichlet(np.ones(4), size=rows) * rng.random((rows, 1))
        table[rng.random(rows) < 0.3] = 0.0
        return Rule.from_matrix(tuple(variables), table, np.arange(4))

    for _ in range(20):
        rules = [rule([[], [0], [1], [0, 1]][k]) for k in rng.integers(4, size=6)]
        rules.append(Rule.certain(2))
        shorter = simplify(rules)
        assert len(shorter) <= len(rules)
        assert all(a.variables != b.variables for a, b in itertools.pairwise(shorter))
        n, a, x = np.indices((1, 1, 6)).reshape(3, -1)
        x = np.stack(np.divmod(x, 3), axis=-1)
        one, other = (DecisionLists.from_lists([part] * 4, 1, sizes) for part in (rules, shorter))
        np.testing.assert_allclose(
            one.distribution(n, a, x), other.distribution(n, a, x), atol=1e-12
        )


def test_the_most_common_row_becomes_the_default():
    matrix = np.array([[1.0, 0], [0, 1], [0, 1], [0, 0]])  # the last one was never asked about
    first, default = with_default(Rule.from_matrix((3,), matrix, np.array([5, 6])))
    assert first.decided.tolist() == [1, 0, 0, 0]
    assert (default.variables, default.targets.tolist()) == ((), [6])
