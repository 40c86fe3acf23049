"""A learner's explanation in words, by families of variables or one by one."""

import re

import pytest

from planners import Estimate
from wrappers import Explanation
from wrappers.cli.explanation import (
    explanation_in_words,
    family,
    patterns,
    step_in_words,
    summary,
)
from wrappers.fitting.history import Record
from wrappers.reports.explanation import ExplainedVariable

NAMES = ("coin_0", "coin_1", "sky", "lottery")


def row(name, decision, **changes):
    """A row that says little, but for some of its fields."""
    told = {
        "role": None,
        "acts_on": (),
        "evidence": 1.0,
        "effect": 0.0,
        "unit": "nats",
        "detectable": 0.001,
        "needed": None,
        "worth": None,
        "tried_with": (),
        "price": 1.0,
        "sentence": f"{name} is told about.",
    }
    kept = decision.startswith("kept")
    return ExplainedVariable(variable=name, kept=kept, decision=decision, **told | changes)


def told(*rows, cost_weight=1.0, every=False):
    """What is said of rows, without the layout."""
    explanation = Explanation(rows, cost_weight, 0.05, 1_000, "finished")
    lines = explanation_in_words(explanation, every=every)
    return [" ".join(line.split()) for line in lines]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


def test_reasons_are_told_by_role_target_and_family():
    paid = {"role": "pays", "acts_on": ("reward",), "unit": "variance of its payment"}
    printed = told(
        row("coin_0", "kept", **paid, effect=250.0),
        row("coin_1", "kept", role="predicts", acts_on=("sky",), effect=0.25),
        row("sky", "kept", role="predicts", acts_on=("coin_0", "coin_1"), effect=0.5),
        row("wind", "kept", role="moves", acts_on=("boat", "sky"), unit="share of (n, a)"),
        row("lottery", "dropped: no sign"),
        cost_weight=0.0,
    )
    assert printed[0] == "Kept 4 of 5 variables"
    assert "coin_* 2 of 2 pays; predicts sky variance 250" in printed
    assert "sky 1 of 1 predicts coin_* 0.5 nats" in printed
    assert "wind 1 of 1 moves boat share 0" in printed
    assert "lottery 1 of 1 no sign that it matters (tests at level 0.05 find 0.001 nats)" in printed


def test_one_of_eight_that_was_tried_does_not_speak_for_the_others():
    """It used to be: "temperature 8 of 8: worth -0.0 ± 0.4"."""
    rows = [row(f"temperature_{i}", "kept", role="pays", acts_on=("reward",)) for i in range(8)]
    rows[3] = row("temperature_3", "kept", role="pays", worth=Estimate(-0.0, 0.2))
    (line,) = [line for line in told(*rows) if line.startswith("temperature_*")]
    assert line.endswith("± 0.4 temperature_3 alone")
    rows[5] = row("temperature_5", "kept", role="pays", worth=Estimate(2.0, 0.2))
    (line,) = [line for line in told(*rows) if line.startswith("temperature_*")]
    assert line.endswith("-0.0 to 2.0 2 of them alone")


def test_what_a_group_is_worth_is_told_of_the_group():
    group = ("coin_0", "coin_1", "sky")
    worth = Estimate(6.0, 0.5)
    rows = [
        row(name, "kept", role="pays", worth=worth, tried_with=tuple(n for n in group if n != name))
        for name in group
    ]
    printed = told(*rows, row("coin_2", "kept", role="pays"))
    assert "coin_* 3 of 3 pays 0 nats 6.0 ± 1.0 2 of them, 3 together" in printed
    assert "sky 1 of 1 pays 0 nats 6.0 ± 1.0 3 together" in printed
    dropped = [
        row(name, "dropped: not worth its price", worth=worth, tried_with=rows[k].tried_with)
        for k, name in enumerate(group)
    ]
    printed = told(*dropped)
    why = "2 coin_*, sky: worth 6.0 ± 1.0 in return, cost (λ) 3: not worth its price"
    assert f"coin_* 2 of 2 {why}" in printed
    assert f"sky 1 of 1 {why}" in printed


def test_what_was_dropped_is_told_by_what_was_decided():
    worth = {"role": "predicts", "acts_on": ("sky",), "worth": Estimate(0.5, 0.1)}
    printed = told(
        row("coin_0", "dropped: not worth its price", **worth),
        row("coin_1", "dropped: predicts what was dropped", role="predicts", acts_on=("sky",)),
        row("sky", "dropped: never tried", role="pays", acts_on=("reward",)),
        row("wind", "dropped: too little to see", role="predicts", acts_on=("sky",)),
        row("moon", "dropped: no place in a table", role="predicts", acts_on=("sky",)),
        row("roof", "dropped: never varied"),
        row("lottery", "dropped: cannot tell with this data", needed=390_000),
        row("late", "dropped: not decided", role="pays", worth=Estimate(0.0, 0.0)),
    )
    assert printed[0] == "Kept 0 of 8 variables, at λ = 1 each"
    assert "coin_0 1 of 2 worth 0.5 ± 0.2 in return, cost (λ) 1: not worth its price" in printed
    assert "coin_1 1 of 2 predicts sky, dropped as well" in printed
    assert "sky 1 of 1 matters, but was never tried" in printed
    assert "wind 1 of 1 acts on sky, but tells too little to be seen" in printed
    assert "moon 1 of 1 tells about sky, whose table has no place for it" in printed
    assert "roof 1 of 1 never varied" in printed
    wanted = "cannot tell with this data; about 390,000 transitions would do"
    assert f"lottery 1 of 1 {wanted}" in printed
    assert any(line.endswith("not decided, a plan was cut short") for line in printed)


def test_every_variable_can_be_told_by_itself():
    printed = told(row("coin_0", "kept"), row("coin_1", "dropped: no sign"), every=True)
    assert printed[1] == "coin_0 is told about."
    assert printed[-1] == "coin_1 is told about."


def test_tables_fit_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    group = tuple(f"a_long_name_{i}" for i in range(9))
    rows = [
        row(
            name,
            "kept",
            role="predicts",
            acts_on=("another_long_name_1", "yet_another_long_name_1", "sky"),
            worth=Estimate(1234.5, 300.0),
            tried_with=group[:k] + group[k + 1 :],
        )
        for k, name in enumerate(group)
    ]
    explanation = Explanation(tuple(rows), 1.0, 0.05, 1_000, "finished")
    for every in (False, True):
        assert max(map(len, explanation_in_words(explanation, every=every))) <= 80


def test_names_are_told_by_family():
    assert [family(name) for name in ("porter_0_cell", "clock", "7")] == ["porter_*", "clock", "7"]
    assert summary(["coin_0", "coin_1", "sky"]) == "2 coin_*, sky"
    assert summary(["sky", "coin_1"]) == "sky, coin_1"


def test_a_mask_is_told_by_patterns_that_stand_for_it_alone():
    assert patterns(NAMES[:3], NAMES) == "coin_*, sky"
    assert patterns(["coin_1", "sky"], NAMES) == "coin_1, sky"
    odd = ["a[0]", "a[1]", "b[x]1", "b[x]2"]  # patterns read brackets in another way
    assert patterns(odd, odd) == "a[*, b[x]1, b[x]2"
    assert patterns(["x1", "x2"], ["x1", "x2", "xylophone"]) == "x1, x2"


def test_what_a_variable_costs_is_not_called_a_price():
    """A variable may be called so."""
    step = Record(
        action="add",
        candidate=("price",),
        accepted=True,
        reason="",
        mask=(),
        gain=2.0,
        gain_error=0.1,
    )
    assert step_in_words(step, 3.0) == "price: worth 5.0 ± 0.2 in return, cost (λ) 3: added"
    printed = "\n".join(told(row("price", "kept", sentence=""), cost_weight=3.0))
    assert "at λ = 3 each" in printed
    assert len(re.findall("price", printed)) == 1


def test_plans_that_were_cut_short_are_told():
    step = Record(
        action="add",
        candidate=("sky",),
        accepted=False,
        reason="not decided; its plan ran out of time",
        mask=(),
        mean_return=0.0,
        gain=-1.0,
        gain_error=0.0,
    )
    said = step_in_words(step, 1.0)
    assert said.endswith("cost (λ) 1: not added, a plan was cut short")


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ((), "with nothing: earns 12.3"),
        (("price",), "with price: earns 12.3"),
        (("coin_1", "coin_2", "sky"), "with 2 coin_*, sky: earns 12.3"),
    ],
)
def test_what_a_mask_of_any_size_earns(mask, words):
    step = Record(
        action="start", candidate=mask, accepted=True, reason="", mask=mask, mean_return=12.34
    )
    assert step_in_words(step, 1.0) == words
