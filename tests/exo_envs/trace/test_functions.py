"""What users write: steps, rewards and their scopes, actions, where episodes begin and end."""

import numpy as np
import pytest
from battery import battery, price_table

from exo_envs import State, Variable
from exo_envs.sources.tables.functions import NamedColumns
from exo_envs.testing import check_mdp


def at(mdp, n, row, action):
    """One state of the record, with this n and action."""
    state = State(np.array([n], dtype=mdp.dtype_of("endogenous")), mdp.record.rows[row])
    return state, np.array(action)


def moved(mdp, n, action, seed=0):
    return mdp.sample_endogenous(*at(mdp, n, 0, action), np.random.default_rng(seed)).tolist()


@pytest.mark.parametrize(
    "step",
    [
        lambda n, a, x: np.clip(n.charge + a, 0, 4),
        lambda n, a, x: np.clip(n["charge"] + a, 0.0, 4.0),
        lambda n, a, x: {"charge": np.clip(n.charge + a, 0, 4)},
        lambda n, a, x: (np.clip(n.charge + a, 0, 4),),
        lambda n, a, x: np.clip(np.asarray(n) + a[:, None], 0, 4),
    ],
)
def test_steps_may_return_what_is_handy(step):
    mdp = battery(step=step)
    assert [moved(mdp, n, a) for n, a in ((0, 0), (2, 2), (4, 2))] == [[0], [3], [4]]


def test_what_a_step_does_not_name_stays():
    two = [Variable("charge", 5), Variable("mode", 3)]
    mdp = battery(endogenous=two, step=lambda n, a, x: {"mode": (n.mode + 1) % 3})
    n = np.array([[2, 2], [1, 0]])
    after = mdp.sample_endogenous(State(n, mdp.record.rows[:2]), np.zeros(2, int), None)
    assert after.tolist() == [[2, 0], [1, 1]]


def test_a_step_with_a_fourth_argument_is_random():
    mdp = battery(step=lambda n, a, x, rng: np.where(rng.random(len(n)) < 0.5, n.charge, 0))
    n = np.full((4000, 1), 3)
    x = np.repeat(mdp.record.rows[:1], 4000, axis=0)
    after = mdp.sample_endogenous(State(n, x), np.zeros(4000, int), np.random.default_rng(0))
    assert (after == 3).mean() == pytest.approx(0.5, abs=0.05)
    assert mdp.endogenous_distribution(State(n, x), np.zeros(4000, int)) is None
    assert battery().endogenous_distribution(State(n, x), np.zeros(4000, int)) is not None


def test_actions_have_names_or_values():
    seen = []
    names = ["sell", "wait", "buy"]
    mdp = battery(
        actions=names,
        step=lambda n, a, x: np.clip(n.charge + (a == "buy"), 0, 4),
        reward=lambda n, a, x: seen.append(a) or x.price * (a == "sell"),
    )
    assert (mdp.num_actions, mdp.actions.tolist()) == (3, names)
    assert set(seen[-1]) <= set(names)
    assert (moved(mdp, 1, 2), moved(mdp, 1, 0)) == ([2], [1])
    assert battery(actions=4, step=lambda n, a, x: a).num_actions == 4


def test_real_n_may_round_but_not_leave_its_range():
    charge = Variable("charge", low=0.0, high=4.0)
    mdp = battery(endogenous=[charge], step=lambda n, a, x: np.clip(n.charge + a, 0, 4) + 1e-12)
    assert moved(mdp, 4.0, 2) == [4.0]
    check_mdp(mdp)
    with pytest.raises(
        ValueError, match=r"step moves 'charge' to 4\..*; its values are 0 to 4. Clip"
    ):
        battery(endogenous=[charge], step=lambda n, a, x: n.charge + 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": lambda n, a, x: n.charge + 0.5}, r"'charge' = .*\.5; its values are whole"),
        ({"step": lambda n, a, x: n.charge - 1}, "step moves 'charge' to -1"),
        ({"step": lambda n, a, x: {"charges": n.charge}}, "unknown endogenous variable 'charges'"),
        ({"step": lambda n, a, x: np.zeros(3)}, "shape"),
        ({"step": lambda n, a, x: x.prise}, "no column 'prise'; did you mean 'price'"),
        ({"step": 3}, "step is a function"),
        ({"reward": lambda n, a, x: x["prise"]}, "unknown column 'prise'"),
        ({"reward": lambda n, a, x: "much"}, "not numbers"),
        ({"reward": lambda n, a, x: np.zeros(3)}, r"shape \(3,\) for"),
        ({"actions": []}, "actions are a number, or a list"),
        ({"actions": ["go", "go"]}, "actions are all different"),
        ({"endogenous": ["charge"]}, "a sequence of Variable"),
        ({"endogenous": [Variable("charge", low=0.0, high=np.inf)]}, "needs finite bounds"),
        ({"initial": {"charges": 1}}, "unknown endogenous variable 'charges'"),
        ({"initial": {"charge": 7}}, "initial gives 'charge' the value 7"),
        ({"discount": 1.5}, "discount is in"),
        ({"step": lambda n, a, x: [[1], [2, 3]]}, "what step returned is no array"),
        ({"step": lambda n, a, x: x}, "step returned an array of shape"),
        ({"step": lambda n, a, x: n.charge * np.nan}, "'charge' = nan; its values are whole"),
        ({"step": lambda n, a, x: n.charge + 1e300}, r"'charge' = 1e\+300; its values are whole"),
        ({"reward": lambda n, a, x: [[1], [2, 3]]}, "what reward returned is no array"),
        (
            {"reward": lambda n, a, x: np.where(x.price > 2, np.inf, 0.0)},
            "returned inf; rewards are",
        ),
        ({"terminal": lambda n: n.charge}, "terminal returned int64, not booleans"),
        ({"terminal": lambda n: n.charge[:3] > 1}, r"terminal returned shape \(3,\) for 8"),
        ({"actions": 10**30}, "actions is a whole number, at most 1,000,000"),
        ({"actions": [[1], [2, 3]]}, "the list of actions is no array"),
        ({"actions": [0.0, np.nan]}, "actions are names or finite numbers"),
        ({"endogenous": 3}, "endogenous is a sequence of Variable, not 3"),
        ({"endogenous": []}, "endogenous has one Variable at least"),
        ({"endogenous": [Variable("charge", low=-1e308, high=1e308)]}, "needs finite bounds"),
        ({"initial": 3}, "initial is a mapping from names to values"),
        ({"initial": {"charge": 1.5}}, "initial returned 'charge' = 1.5; its values are whole"),
        ({"initial": {"charge": [1, 2]}}, r"initial, for 'charge', returned shape \(2,\) for 8"),
    ],
)
def test_mistakes_show_where_the_model_is_made(settings, message):
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        battery(**settings)


def test_columns_are_asked_for_by_name():
    seen = NamedColumns(np.zeros((2, 1)), ("price",))
    for name in ("prise", 3, None, ["price"], np.array([1, 2])):
        with pytest.raises(ValueError, match="unknown column"):
            seen[name]


def test_functions_cannot_write_to_states():
    def step(n, a, x):
        n.charge[:] = 0
        return n.charge

    with pytest.raises(ValueError, match="read-only"):
        battery(step=step)


ODD_STATES = [
    ("endogenous", [[5]], "endogenous variable 'charge' cannot be 5; its values are 0 ... 4"),
    ("endogenous", [[0.5]], "holds 0.5, which is not a whole number"),
    ("endogenous", [[1], [2, 3]], "its rows have different lengths"),
    ("endogenous", "state", "has dtype <U5; it should hold whole numbers"),
    ("exogenous", [[-1] + [0] * 7], "exogenous variable 'price' cannot be -1"),
    ("exogenous", [[2**62] + [0] * 7], "exogenous variable 'price' cannot be 4611686018427387904"),
    ("exogenous", [[np.nan] + [0] * 7], "holds nan, which is not a whole number"),
    ("exogenous", [[0, 0]], r"has shape \(1, 2\); it should be \(\.\.\., 8\)"),
    ("action", [3], "there is no action 3; actions are 0 ... 2"),
    ("action", [0.5], "holds 0.5, which is not a whole number"),
    ("action", [0, 0, 0], r"different batches, of shapes \(2,\), .*\(3,\)"),
    ("action", [[1], [2, 3]], "its rows have different lengths"),
]


@pytest.mark.parametrize(("what", "value", "message"), ODD_STATES)
def test_odd_states_and_actions_are_refused_before_functions_see_them(what, value, message):
    mdp = battery(terminal=lambda n: n.charge == 4)
    given = {"endogenous": [[1], [2]], "exogenous": mdp.record.rows[:2], "action": [0, 1]}
    given[what] = value
    state, action = State(given["endogenous"], given["exogenous"]), given["action"]
    rng = np.random.default_rng(0)
    questions = [
        lambda: mdp.sample_endogenous(state, action, rng),
        lambda: mdp.reward_terms(state, action),
        lambda: mdp.transition(state, action, rng),
    ]
    if what != "exogenous":
        questions.append(lambda: mdp.endogenous_reward(state.endogenous, action))
    if what == "endogenous":
        questions.append(lambda: mdp.is_terminal(state))
    if what == "exogenous":
        questions.append(lambda: mdp.decoded(state.exogenous))
        questions.append(lambda: mdp.sample_exogenous(state.exogenous, rng))
    for ask in questions:
        with pytest.raises((ValueError, TypeError), match=message):
            ask()


def test_parts_of_a_batch_are_broadcast():
    mdp = battery()
    wide = State(np.array([[1], [2]]), mdp.record.rows[0])
    full = State(np.array([[1], [2]]), np.repeat(mdp.record.rows[:1], 2, axis=0))
    np.testing.assert_array_equal(mdp.reward(wide, 2), mdp.reward(full, np.array([2, 2])))
    floats = State(full.endogenous.astype(np.float64), full.exogenous.astype(np.float32))
    np.testing.assert_array_equal(mdp.reward(floats, [2, 2]), mdp.reward(full, np.array([2, 2])))


def test_where_episodes_begin_and_end():
    mdp = battery(initial={"charge": 2}, terminal=lambda n: n.charge == 4)
    state = mdp.sample_initial(50, np.random.default_rng(0))
    assert set(state.endogenous[:, 0].tolist()) == {2}
    assert mdp.is_terminal(State(np.array([[4], [3]]), mdp.record.rows[:2])).tolist() == [
        True,
        False,
    ]
    check_mdp(mdp)
    drawn = battery(initial=lambda size, rng: {"charge": rng.integers(2, size=size)})
    assert set(drawn.sample_initial(50, np.random.default_rng(0)).endogenous[:, 0]) == {0, 1}


# --- rewards ---------------------------------------------------------------------------------


def pay(mdp, n, row, action):
    return float(mdp.reward(*at(mdp, n, row, action)))


def check_same(mdp, reward):
    """The terms, and what is paid without x, add up to what the user wrote."""
    rng = np.random.default_rng(5)
    n, a = rng.integers(5, size=(300, 1)), rng.integers(3, size=300)
    x = mdp.record.rows[rng.integers(len(mdp.record), size=300)]
    expected = reward(*mdp.interface.views(n, a, x))
    if isinstance(expected, dict):
        expected = sum(expected.values())
    np.testing.assert_allclose(mdp.reward(State(n, x), a), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("reward", "scopes"),
    [
        (lambda n, a, x: x.price * a, (("price",),)),
        (lambda n, a, x: x.price * a + x.wind * n.charge - a, (("price",), ("wind",))),
        (lambda n, a, x: x.price * x.load * a + x.wind, (("price", "load"), ("wind",))),
        (
            lambda n, a, x: np.maximum(x.load - x.wind + a, 0) * x.price,
            (("price", "wind", "load"),),
        ),
        (lambda n, a, x: n.charge * a, ()),
        (lambda n, a, x: np.where(x.temp == 2, x.price, 3.0), (("price", "temp"),)),
        (
            lambda n, a, x: x.price + x.wind + x.load + x.temp + x.noise_0 * x.noise_1,
            (("price",), ("wind",), ("load",), ("temp",), ("noise_0", "noise_1")),
        ),
    ],
)
def test_it_is_found_what_a_reward_looks_at(reward, scopes):
    mdp = battery(reward=reward)
    assert mdp.reward_scopes == scopes
    check_same(mdp, reward)
    check_mdp(mdp)


def test_a_reward_of_named_terms():
    def reward(n, a, x):
        return {("price", "load"): x.price * x.load * a, "wind": x.wind * n.charge, (): -1.0 * a}

    mdp = battery(reward=reward)
    assert mdp.reward_scopes == (("price", "load"), ("wind",))
    check_same(mdp, reward)
    assert mdp.endogenous_reward(np.array([[1], [1]]), np.array([0, 2])).tolist() == [1, -1]
    check_mdp(mdp)


def test_a_reward_of_no_column_is_one_too():
    mdp = battery(reward=lambda n, a, x: {(): -1.0 * a})
    assert mdp.reward_scopes == ()
    assert pay(mdp, 1, 0, 2) == -1
    check_mdp(mdp)


def test_scopes_of_one_array():
    joint = battery(reward=lambda n, a, x: x.price * a + x.load, scopes=("price", "load"))
    assert joint.reward_scopes == (("price", "load"),)
    two = battery(reward=lambda n, a, x: x.price * a + x.load, scopes=[("load",), ("price",)])
    assert two.reward_scopes == (("load",), ("price",))
    four = ("price", "wind", "load", "temp")

    def product(n, a, x):
        return x.price * x.wind * x.load * x.temp

    assert battery(reward=product, scopes=four).reward_scopes == (four,)
    with pytest.raises(ValueError, match=r"'price', 'wind', 'load', 'temp' together.*a mapping"):
        battery(reward=product)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"reward": lambda n, a, x: {"price": x.price * x.load}},
            r"term of \('price',\) also looks at 'load'; its scope is \('price', 'load'\)",
        ),
        ({"reward": lambda n, a, x: {"prise": x.price}}, "unknown column in a scope"),
        ({"reward": lambda n, a, x: {(): x.price}}, r"term of \(\) also looks at 'price'"),
        ({"reward": lambda n, a, x: {("price", "price"): x.price}}, "more than once"),
        (
            {"reward": lambda n, a, x: {("price", "load"): 1.0, ("load", "price"): 2.0}},
            "two terms of the same columns",
        ),
        (
            {"reward": lambda n, a, x: x.price * x.load, "scopes": "price"},
            r"term of \('price',\) also looks at 'load'",
        ),
        (
            {"reward": lambda n, a, x: x.price * x.load, "scopes": [("price",), ("load",)]},
            "no sum of terms with the scopes",
        ),
        (
            {"reward": lambda n, a, x: x.price, "scopes": [("price",), ("price", "load")]},
            "share columns",
        ),
    ],
)
def test_wrong_scopes_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        battery(**settings)


def test_what_is_paid_is_what_was_written():
    mdp = battery()
    price = price_table()["price"]
    assert [pay(mdp, 2, row, 0) for row in range(5)] == price[:5].tolist()
    assert [pay(mdp, 2, row, 2) for row in range(5)] == pytest.approx((-price[:5] - 0.2).tolist())
