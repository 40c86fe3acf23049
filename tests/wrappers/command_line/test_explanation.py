"""A learner's history in words."""

from types import SimpleNamespace

from wrappers import Record
from wrappers.command_line import Storyteller, family, patterns, summary

NAMES = ("coin_0", "coin_1", "sky", "lottery")


def found(name, role, target=None, score=1.0):
    """A record whose words say nothing: only its fields do."""
    return Record(
        action="find",
        candidate=(name,),
        accepted=True,
        reason=f"because it {role}",
        role=role,
        target=target,
        mask=(),
        score=score,
    )


def test_reasons_are_told_by_role_target_and_family():
    history = [
        found("coin_0", "pays", score=250.0),
        found("sky", "predicts", "coin_0", score=0.5),
        found("coin_1", "predicts", "sky", score=0.25),
    ]
    learner = SimpleNamespace(
        feature_names_in_=NAMES, mask_=NAMES[:3], history_=history, status_="finished"
    )
    told = Storyteller(0.0, "no sign that it matters").explain(learner)
    printed = [" ".join(line.split()) for line in told]
    assert "coin_* 2 of 2 because it pays; predicts sky variance 250" in printed
    assert "sky 1 of 1 predicts coin_* 0.5 nats" in printed
    assert "lottery 1 of 1 no sign that it matters" in printed


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
    assert Storyteller(3.0, "").step(step) == "price: worth 5.0 ± 0.2 in return, cost (λ) 3: added"
    learner = SimpleNamespace(
        feature_names_in_=("price",), mask_=("price",), history_=[step], status_="finished"
    )
    told = "\n".join(Storyteller(3.0, "").explain(learner))
    assert "at λ = 3 each" in told
    assert told.count("price") == 1


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
    story = Storyteller(1.0, "no sign that it matters")
    assert story.step(step).endswith("cost (λ) 1: not added, a plan was cut short")
    learner = SimpleNamespace(
        feature_names_in_=NAMES, mask_=(), history_=[step], status_="plans cut short"
    )
    assert "cost (λ) 1: a plan was cut short" in " ".join(" ".join(story.explain(learner)).split())
