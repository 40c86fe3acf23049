"""A learner's history in words."""

from types import SimpleNamespace

from learning.explanation import Storyteller, family, summary
from wrappers import Record

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


def test_reasons_are_told_by_role_target_and_family(capsys):
    history = [
        found("coin_0", "pays", score=250.0),
        found("sky", "predicts", "coin_0", score=0.5),
        found("coin_1", "predicts", "sky", score=0.25),
    ]
    learner = SimpleNamespace(
        feature_names_in_=NAMES, mask_=NAMES[:3], history_=history, status_="finished"
    )
    Storyteller(0.0, "no sign that it matters").explain(learner)
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "coin 2 of 2 because it pays; predicts sky variance 250" in printed
    assert "sky 1 of 1 predicts coin 0.5 nats" in printed
    assert "lottery 1 of 1 no sign that it matters" in printed


def test_names_are_told_by_family():
    assert [family(name) for name in ("porter_0_cell", "clock", "7")] == ["porter", "clock", "7"]
    assert summary(["coin_0", "coin_1", "sky"]) == "2 coin, sky"
    assert summary(["coin_0"]) == "coin_0"
