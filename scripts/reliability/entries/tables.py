"""Models and rules that are written down as tables, with odd tables; and what exports them."""

from __future__ import annotations

from typing import Any

import numpy as np

from planners import ValueIteration, to_discrete_dp
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.tables.ragged import Ragged
from reliability import subjects
from reliability.odd import Odd
from reliability.registry import entry


def _table(odd: Odd, rows: int, size: int) -> Any:
    """A conditional table, sound or damaged."""
    table = odd.rng.dirichlet(np.ones(size), size=rows)
    if odd.chance(0.5):
        return table
    how = odd.below(6)
    if how == 0:
        table[odd.below(rows), odd.below(size)] = odd.pick((np.nan, -1.0, 2.0, np.inf, -0.1))
        return table
    if how == 1:
        return table[:, :-1]
    if how == 2:
        return odd.pick((np.zeros((0, 2)), np.ones(2), np.zeros((0, 0)), np.array(1.0)))
    return odd.pick((table.tolist(), table.astype("f4"), table[0], table[None]))


@entry("tables/rules")
def rules(odd: Odd) -> None:
    """Rules and factors by themselves."""
    kind = odd.below(7)
    variables: Any = odd.pick(((1,), (0, 1), (), (9,), (-1,), (0, 0)))
    if kind == 0:
        factor = odd.call(Factor.from_table, variables, _table(odd, 3, 3))
        odd.call(factor.to_table, odd.pick((3, 4, 100)))
    elif kind == 1:
        rule = odd.call(Rule.from_table, variables, _table(odd, 3, 4))
        odd.must_work(rule.row, 0)
        odd.must_work(rule.to_matrix, np.arange(4))
        odd.must_work(rule.with_rows, (0,), np.array([0, 0]))
    elif kind == 2:
        odd.must_work(Rule.certain, odd.below(5))
    elif kind == 3:
        targets = odd.altered(np.arange(4), 4)
        odd.call(Rule.from_matrix, variables, _table(odd, 3, 4), targets)
    elif kind == 4:
        known = subjects.model("factored").factors[1]
        parts = [known.parents, known.starts, known.values, known.probabilities]
        which = odd.below(4)
        parts[which] = odd.altered(parts[which], np.full(np.shape(parts[which])[-1:], 3))
        factor = odd.call(Factor, *parts)
        odd.call(factor.to_table, 3)
    else:
        _try_lists(odd)


def _try_lists(odd: Odd) -> None:
    """Decision lists: made of odd rules, or sound ones asked oddly."""
    if odd.chance(0.4):
        sound = [Rule.from_table((), np.full((1, 2), 0.5))]
        bad = odd.pick(
            (
                [],
                [Rule.certain(9)],
                [Rule.certain(-1)],
                [Rule.from_table((5,), np.ones((2, 1)))],
            )
        )
        listed = [sound, bad if odd.chance(0.7) else sound, sound, sound]
        sizes = odd.pick(((2, 3), (2, 3), (2,), (0, 0), (-1, 3)))
        made = odd.call(DecisionLists.from_lists, listed, odd.pick((2, 2, 1, 3, 0)), sizes)
        odd.call(made.checked)
        return
    lists = subjects.model("factored").decision_lists
    n, a = odd.rng.integers(4, size=3), odd.rng.integers(2, size=3)
    x = odd.rng.integers([2, 3], size=(3, 2))
    which = odd.below(4)
    n = odd.altered(n, 4) if which == 0 else n
    a = odd.altered(a, 2) if which == 1 else a
    x = odd.altered(x, [2, 3]) if which == 2 else x
    odd.must_work(lists.dependencies)
    odd.call(lists.distribution, n, a, x)


@entry("tables/factored", weight=1.5)
def factored(odd: Odd) -> None:
    """A model of tables, one of which is damaged, used at once."""
    sound = subjects.factored_mdp()
    names = (
        *("endogenous_variables", "exogenous_variables", "num_actions", "discount", "horizon"),
        *("factors", "decision_lists", "base_reward", "terms", "terminal", "initial"),
        "joint_terms",
    )
    given: dict[str, Any] = {name: getattr(sound, name) for name in names}
    which = odd.pick((*names, "factors", "decision_lists", "initial"))
    if which == "factors":
        parts = vars(given["factors"][1]).copy()
        name = odd.pick(sorted(parts))
        parts[name] = odd.damaged(parts[name], np.full(np.shape(parts[name])[-1:], 3))
        given["factors"] = (given["factors"][0], odd.call(Factor, **parts))
    elif which == "decision_lists":
        lists = given["decision_lists"]
        name = odd.pick((*lists._fields[:-1], *lists.tables._fields))
        owner = lists if name in lists._fields else lists.tables
        value = getattr(owner, name)
        if isinstance(value, Ragged):
            damaged: Any = value._replace(values=odd.damaged(value.values, [4]))
        else:
            damaged = odd.damaged(value, np.full(np.shape(value)[-1:], 4))
        changed = owner._replace(**{name: damaged})
        whole = changed if owner is lists else lists._replace(tables=changed)
        given["decision_lists"] = whole
    elif which == "initial":
        part = odd.pick(("endogenous", "exogenous"))
        sizes = getattr(sound, f"{part}_sizes")
        damaged = odd.damaged(getattr(given["initial"], part), sizes)
        given["initial"] = given["initial"]._replace(**{part: damaged})
    elif which in ("base_reward", "terminal"):
        given[which] = odd.damaged(given[which], np.full(given[which].shape[-1:], 2))
    elif which == "terms":
        given["terms"] = odd.pick(
            ({9: np.zeros((2, 4, 2))}, {"x": 1}, {1: np.zeros(3)}, None, {1: None})
        )
    elif which == "joint_terms":
        table = np.zeros((6, 4, 2))
        given["joint_terms"] = odd.pick(
            ({(0, 1): table}, {(1, 0): table}, {(0, 9): table}, {(0,): table}, {0: table}, {"x": 1})
        )
    else:
        given[which] = odd.number_()
    mdp = odd.call(FactoredMDP, **given)
    rng = np.random.default_rng(0)
    state = odd.call(mdp.sample_initial, 4, rng)
    odd.call(mdp.sample_next, state, np.zeros(4, dtype=np.int64), rng)
    odd.call(mdp.reward, state, np.zeros(4, dtype=np.int64))
    odd.call(ValueIteration().plan, mdp, time_limit=5.0)


@entry("tables/export", weight=0.5)
def export(odd: Odd) -> None:
    """Exports of models, some of which are none."""
    mdp = odd.pick(
        (subjects.model("factored"), subjects.model("blind"), subjects.model("market"), None)
    )
    limit = odd.sound_or(10**8)
    odd.call(to_discrete_dp, mdp, memory_limit=limit)
