"""What a mask earns, in words."""

from types import SimpleNamespace

from planners import Estimate
from planners.core.planner import Candidate
from wrappers.cli.command import describe_plan, describe_worth


def test_a_plan_says_how_it_was_found_and_what_else_was_tried():
    tried = (
        Candidate("value iteration", ("a",), Estimate(3.0, 0.1), "taken"),
        Candidate("forecasts", ("a", "b"), None, "not played"),
    )
    first, *others = describe_plan(SimpleNamespace(method="value iteration", candidates=tried))
    assert first == "The policy was found by value iteration."
    assert others == [f"- {candidate}" for candidate in tried]
    assert describe_plan(SimpleNamespace(method="", candidates=())) == []
    assert len(describe_plan(SimpleNamespace(method="m", candidates=tried[:1]))) == 1


def test_without_a_policy_or_a_bound_that_is_said():
    (told,) = describe_worth(SimpleNamespace(objective_=None))
    assert "stopped before there was a policy" in told
    objective = SimpleNamespace(
        bracket=None,
        plan=SimpleNamespace(method="tree search", candidates=()),
        estimate=Estimate(3.0, 0.1),
        caution=None,
        value=1.0,
        returns=[3.0] * 7,
    )
    learner = SimpleNamespace(
        objective_=objective, cost_of_ignoring_="perhaps nothing", cost_weight=2.0
    )
    earned, unknown, given_up, planned = describe_worth(learner)
    assert "earns 3.0 ± 0.2 in 7 episodes (95 %); J, the return less λ" in earned
    assert "too much would have to be asked" in unknown
    assert given_up == "What it gives up by ignoring the rest: perhaps nothing."
    assert planned == "The policy was found by tree search."
    objective.caution = "the largest loss was never seen"
    assert list(describe_worth(learner))[1] == "Mind that the largest loss was never seen."
