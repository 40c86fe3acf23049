"""Forged and damaged files: one ValueError that names the file, or something that can be used."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from factored import random_mdp
from forgery import file_of, forge, parts_of

from exo_envs.domains.grid import GridMDP
from planners import ForecastPlanner, Policy, ReducedMDP, ValueIteration, evaluate
from planners.forecasting.planner import ForecastPolicy
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.value_iteration.tabular_policy import TabularPolicy

GRID = GridMDP()
MASK = ("object", "guard")


@cache
def reduced():
    return ReducedMDP.estimate(GRID, MASK, rng=0, num_rollouts=200)


@cache
def saved():
    """Something of every kind, and how it is read."""
    forecasts = ForecastPlanner(horizon=4)
    return {
        "TabularPolicy": (ValueIteration().plan(reduced()).policy, Policy.load),
        "ForecastPolicy": (forecasts.plan(reduced()).policy, Policy.load),
        "TabulatedReducedMDP": (reduced(), ReducedMDP.load),
    }


KINDS = ("TabularPolicy", "ForecastPolicy", "TabulatedReducedMDP")
each_kind = pytest.mark.parametrize("kind", KINDS)


def content_of(kind, folder):
    saved()[kind][0].save(folder / "good")
    return (folder / "good").read_bytes()


def use(thing):
    """Everything that a user would do with it first."""
    rng = np.random.default_rng(0)
    if isinstance(thing, Policy):
        if thing.endogenous_size == 1 and len(thing.full) == 5:
            state = GRID.sample_uniform(40, rng)
            assert thing(state).shape == (40,)
        return
    state = thing.sample_uniform(20, rng)
    actions = rng.integers(thing.num_actions, size=20)
    thing.sample_initial(3, rng)
    thing.transition(state, actions, rng)
    thing.describe()
    if thing.horizon < 1000:
        plan = ForecastPlanner(horizon=3, additive=False).plan(thing, time_limit=5)
        evaluate(plan.policy, thing, 3, rng=0)
    if thing.num_states < 10_000 and thing.discount < 1:
        ValueIteration().plan(thing, time_limit=1.0).policy(state)


def check_forgeries(kind, folder, seeds):
    """How many of the forged files were refused."""
    content, (_, load), path = content_of(kind, folder), saved()[kind], folder / "forged"
    messages = []
    for seed in seeds:
        path.write_bytes(forge(content, np.random.default_rng(seed)))
        try:
            thing = load(path)
        except ValueError as error:
            messages.append(str(error))
        else:
            use(thing)
    assert all(repr(str(path)) in said and len(said) < 2_000 for said in messages)
    return len(messages)


@each_kind
def test_forged_files_are_refused_or_harmless(kind, tmp_path):
    number = 120
    assert check_forgeries(kind, tmp_path, range(number)) > number / 2


@each_kind
def test_what_is_whole_is_read(kind, tmp_path):
    content_of(kind, tmp_path)
    use(saved()[kind][1](tmp_path / "good"))


def test_a_large_file_is_refused_before_it_takes_memory(tmp_path):
    """A sparse file of 2 GB."""
    saved()["TabularPolicy"][0].save(tmp_path / "large")
    with (tmp_path / "large").open("r+b") as file:
        file.truncate(2**31)
    program = (
        "import resource, sys; from planners import Policy\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: Policy.load(sys.argv[1])\n"
        "except ValueError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "large")]
    said, taken = subprocess.run(
        arguments, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "large' is damaged" in said
    assert "are allowed; if you trust the file, allow more with max_bytes" in said
    assert int(taken) < 50_000  # kilobytes


def test_the_limit_is_the_callers(tmp_path):
    policy = saved()["TabularPolicy"][0]
    policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="more than the 100 bytes that are allowed"):
        TabularPolicy.load(tmp_path / "policy", max_bytes=100)
    TabularPolicy.load(tmp_path / "policy", max_bytes=100_000)


def forged(tmp_path, kind, change):
    """A file of which something is changed: ``change`` gets its head and its arrays."""
    head, arrays = parts_of(content_of(kind, tmp_path))
    (tmp_path / "forged").write_bytes(file_of(*change(head, arrays)))
    return saved()[kind][1], tmp_path / "forged"


def replaced(name, array):
    return lambda head, arrays: (head, {**arrays, name: array})


LISTS = "content.tables.decision_lists.tables"
FORGED = {
    "targets beyond the states": ("TabulatedReducedMDP", f"{LISTS}.values.values", "targets"),
    "probabilities that are none": ("TabulatedReducedMDP", f"{LISTS}.probabilities", "probab"),
    "starts that go back": ("TabulatedReducedMDP", f"{LISTS}.values.starts", "starts of targets"),
    "values of rollouts": ("TabulatedReducedMDP", "content.data.values", "values of the rollouts"),
    "factors": ("TabulatedReducedMDP", "content.fit.factors.0.values", "factor of 'object'"),
    "a row of a table": ("ForecastPolicy", "content.forecasts.lookups.0", "lookup"),
    "where a list leads": ("ForecastPolicy", "content.models.now.lists.otherwise", "otherwise"),
    "what comes before": ("ForecastPolicy", "content.models.later.trees.parents", "parents"),
    "sizes": ("TabularPolicy", "content.exogenous_sizes", "actions"),
    "actions": ("TabularPolicy", "content.actions", "action"),
}


@pytest.mark.parametrize("case", FORGED)
def test_indices_out_of_range_are_named(case, tmp_path):
    kind, name, message = FORGED[case]
    array = parts_of(content_of(kind, tmp_path))[1][name]
    array.reshape(-1)[-2] = 120 if array.dtype == np.uint8 else 2**30
    if name.endswith("actions"):
        array = array.astype(np.int64) - 1
    load, path = forged(tmp_path, kind, replaced(name, array))
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert repr(str(path)) in str(caught.value)


def test_files_that_we_would_not_write(tmp_path):
    def refused(change, message):
        load, path = forged(tmp_path, "TabularPolicy", change)
        with pytest.raises(ValueError, match=message):
            load(path)

    refused(replaced("more", np.ones(1)), "nothing refers to .*'more")
    refused(lambda head, arrays: (head, {}), "there is no array 'content.actions'")
    refused(replaced("more", np.full(3, 7, np.uint8).view(bool)), "neither true nor false")
    refused(replaced("more", np.ones(1, np.complex64)), "not of plain numbers")


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "9" * 10_000, '{"a": 1', '"\\ud800"'])
def test_heads_that_are_none(tmp_path, text):
    load, path = forged(tmp_path, "TabularPolicy", lambda head, arrays: (text, arrays))
    with pytest.raises(ValueError, match="forged'"):
        load(path)


def test_a_head_may_not_be_too_deep(tmp_path):
    def nest(head, arrays):
        for _ in range(50):
            head["content"] = [head["content"]]
        return head, arrays

    load, path = forged(tmp_path, "TabularPolicy", nest)
    with pytest.raises(ValueError, match="nested more than 20 deep"):
        load(path)


def test_the_kind_is_in_the_file(tmp_path):
    for kind in ("TabularPolicy", "ForecastPolicy"):
        policy = saved()[kind][0]
        policy.save(tmp_path / kind)
        assert type(Policy.load(tmp_path / kind)) is type(policy)
    with pytest.raises(ValueError, match="as a TabularPolicy: it holds a 'ForecastPolicy'"):
        TabularPolicy.load(tmp_path / "ForecastPolicy")
    with pytest.raises(ValueError, match="as a ForecastPolicy: it holds a 'TabularPolicy'"):
        ForecastPolicy.load(tmp_path / "TabularPolicy")
    saved()["TabulatedReducedMDP"][0].save(tmp_path / "model")
    with pytest.raises(ValueError, match="as a Policy: it holds a 'TabulatedReducedMDP'"):
        Policy.load(tmp_path / "model")


# --- the same, made by hand -------------------------------------------------------------------


def wrong_lists():
    good = random_mdp(np.random.default_rng(0)).decision_lists
    variables, row_starts, targets, probabilities = good.tables
    for wrong in (targets.values + 99, targets.values - 99, targets.values + 0.5):
        yield "targets", {"values": targets._replace(values=wrong)}
    for wrong in (probabilities * np.nan, probabilities * 2, probabilities[1:]):
        yield "probabilities", {"probabilities": wrong}
    yield "decides", {"probabilities": probabilities * 0.5}
    yield "variables", {"variables": variables._replace(values=variables.values + 9)}
    yield "rule 0|rule_starts", {"sizes": good.sizes + 1}
    yield "sizes", {"sizes": good.sizes * 0}
    yield "num_states", {"num_states": 0}
    yield "rule_starts", {"num_states": 10**9}
    for change in (np.flip, lambda starts: starts + 1):
        yield "rule_starts", {"rule_starts": change(good.rule_starts)}
        yield "row_starts", {"row_starts": change(row_starts)}
        for message, name, ragged in (
            ("starts of variables", "variables", variables),
            ("starts of targets", "values", targets),
        ):
            yield message, {name: ragged._replace(starts=change(ragged.starts))}


def test_decision_lists_that_are_none_are_refused():
    good = random_mdp(np.random.default_rng(0)).decision_lists
    good.checked()
    for message, change in wrong_lists():
        of_tables = change.keys() <= set(good.tables._fields)
        changed = {"tables": good.tables._replace(**change)} if of_tables else change
        wrong = good._replace(**changed)
        with pytest.raises(ValueError, match=message):
            wrong.checked()


def test_factors_and_rules_that_are_none_are_refused():
    halves = np.full(2, 0.5)
    Factor((0,), np.array([0, 2]), np.array([0, 1]), halves)
    for message, fields in (
        ("starts", ((0,), np.array([0, 9]), np.array([0, 1]), halves)),
        ("starts", ((0,), np.array([0, 2, 1, 2]), np.array([0, 1]), halves)),
        ("values", ((0,), np.array([0, 2]), np.array([0, -1]), halves)),
        ("values", ((0,), np.array([0, 2]), np.array([0.0, 0.5]), halves)),
        ("no probability", ((0,), np.array([0, 2]), np.array([0, 1]), halves * np.inf)),
        ("no probability", ((0,), np.array([0, 2]), np.array([0, 1]), halves / 2)),
        ("no probability", ((0,), np.array([0, 2]), np.array([0, 1]), np.array([-1.0, 2.0]))),
    ):
        with pytest.raises(ValueError, match=message):
            Factor(*fields)
    wrong = [Rule((0,), np.array([0, 5, 5]), np.array([0]), np.ones(1)), Rule.certain(0)]
    with pytest.raises(ValueError, match="starts"):
        DecisionLists.from_lists([wrong], 1, [2]).checked()


def test_models_of_tables_that_do_not_fit_are_refused():
    good = random_mdp(np.random.default_rng(0))
    names = (
        *("endogenous_variables", "exogenous_variables", "num_actions", "discount", "horizon"),
        *("factors", "decision_lists", "base_reward", "terms", "terminal", "initial"),
    )
    fields = {name: getattr(good, name) for name in names}
    FactoredMDP(**fields)
    others = random_mdp(np.random.default_rng(0), endogenous=(5,))
    for name, value, message in (
        ("discount", 1.5, "discount"),
        ("discount", float("nan"), "discount"),
        ("horizon", 0, "horizon"),
        ("num_actions", 2, "decision lists"),
        ("decision_lists", others.decision_lists, "decision lists are of 5 states"),
        ("base_reward", good.base_reward * np.nan, "base_reward holds nan"),
        ("base_reward", good.base_reward[:2], "base_reward has shape"),
        ("terms", {7: good.terms[0]}, "terms"),
        ("terminal", good.terminal[:2], "terminal has shape"),
        ("initial", type(good.initial)(good.initial[0] + 9, good.initial[1]), "endogenous part"),
        ("initial", type(good.initial)(good.initial[0], good.initial[1][:, :1]), "exogenous part"),
        ("factors", good.factors[:1], "1 factors for 2"),
        ("exogenous_variables", good.exogenous_variables[:1] * 2, "more than once"),
    ):
        with pytest.raises(ValueError, match=message):
            FactoredMDP(**{**fields, name: value})


def test_tabular_policies_that_are_none_are_refused():
    fields = {"exogenous_sizes": [2], "endogenous_sizes": [3], "mask": ("x",)}
    actions = np.zeros((2, 3), int)
    TabularPolicy(actions, **fields)
    for change, message in (
        ({"exogenous_sizes": [3]}, "shape"),
        ({"exogenous_sizes": [-2]}, "exogenous_sizes"),
        ({"endogenous_sizes": [2**62, 2**62]}, "shape"),
        ({"mask": ("x", "x")}, "more than once"),
        ({"mask": ("y",), "full": ("x",)}, "'y', which is none"),
        ({"mask": (3,)}, "no name"),
        ({"mask": ()}, "0 variables"),
        ({"endogenous_names": ("a", "b")}, "endogenous_names"),
    ):
        with pytest.raises(ValueError, match=message):
            TabularPolicy(actions, **{**fields, **change})
    for wrong in (actions - 1, actions + 2**40, actions + 0.5, actions[:1]):
        with pytest.raises(ValueError, match="action"):
            TabularPolicy(wrong, **fields)


#: What an array is changed into that has the right numbers, or none.
OTHER_FORMS = {
    "float32": lambda array: array.astype(np.float32),
    "one dimension more": lambda array: array[None],
    "no reals": lambda array: np.zeros(0, dtype=np.float32),
    "no rows": lambda array: np.zeros((0, 2), dtype=array.dtype),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
@each_kind
def test_arrays_of_another_form_are_refused_or_harmless(kind, form, tmp_path):
    """Above all where there is nothing to look at: kernels are compiled for one type."""
    _, arrays = parts_of(content_of(kind, tmp_path))
    changed = {name: OTHER_FORMS[form](array) for name, array in arrays.items()}
    for name, array in changed.items():
        load, path = forged(tmp_path, kind, replaced(name, array))
        try:
            thing = load(path)
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = repr(str(path))
            use(thing)
        assert repr(str(path)) in refusal
