"""What cannot be represented is refused by name, and odd arguments are."""

import sys

import pytest
from rddl_texts import small, with_fluent

from exo_envs import from_rddl
from exo_envs.sources.rddl.loading import RDDLRefusedError

DICE = """coin : { interm-fluent, bool };
    own : { state-fluent, bool, default = false };
    other : { state-fluent, bool, default = false };"""

REFUSED = {
    "a draw that n' and x' share": (
        "shared-draw",
        "'own'.*'other'",
        small(fluents=DICE, cpfs="coin = Bernoulli(0.5); own' = coin ^ move; other' = coin;"),
        {},
    ),
    "n' drawn with chances that look at x'": (
        "next-state",
        "'extra'.*weather'",
        with_fluent("bool", "move ^ Bernoulli(0.5 * (weather' == @calm))", default="false"),
        {},
    ),
    "a real n' that looks at x', whose start cannot be found": (
        "initial-state",
        "'extra'",
        with_fluent("real", "0.5 * extra + move + (weather' == @calm)", default="0.25", horizon=2),
        {"bounds": {"extra": (0, 9)}},
    ),
    "an unbounded real n": (
        "unbounded",
        "endogenous real fluent 'extra'.*bounds=",
        with_fluent("real", "extra + Normal(1.0 * move, 1.0)", default="0.0"),
        {},
    ),
    "an unbounded whole x": (
        "unbounded",
        "exogenous whole fluent 'extra'.*bounds=",
        with_fluent("int", "extra + Poisson(2.0)"),
        {},
    ),
    "an unbounded whole action": (
        "unbounded",
        "'lift' has no largest value.*action_values=",
        small(
            fluents="lift : { action-fluent, int, default = 0 };",
            blocks="action-preconditions { lift >= 0; };",
        ),
        {},
    ),
    "a real action": (
        "real-actions",
        "'push'.*action_values=",
        small(fluents="push : { action-fluent, real, default = 0.0 };"),
        {},
    ),
    "too many actions": (
        "too-many-actions",
        "16 actions; max_actions is 10",
        small(fluents="turn(cell) : { action-fluent, bool, default = false };", most="pos-inf"),
        {"max_actions": 10},
    ),
    "a reward whose mean is not simple": (
        "reward",
        "Normal draw",
        small(reward="max[Normal(0.0, 1.0), 0.0]"),
        {},
    ),
    "next values that define each other": (
        "cycle",
        "defined by itself",
        small(
            fluents="""one : { state-fluent, bool, default = false };
                two : { state-fluent, bool, default = false };""",
            cpfs="one' = two' ^ move; two' = one' | move;",
        ),
        {},
    ),
    "observations": (
        "partially-observable",
        "seen",
        small(fluents="seen : { observ-fluent, bool };", cpfs="seen = weather' == @calm;"),
        {},
    ),
    "a function that is not known": (
        "unsupported-operation",
        "det",
        with_fluent("real", "det_{?c : cell, ?d : cell} [NEXT(?c, ?d)]", default="0.0"),
        {},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    reason, message, texts, arguments = REFUSED[case]
    with pytest.raises(RDDLRefusedError, match=message) as caught:
        from_rddl(*texts, **arguments)
    assert caught.value.reason == reason


def test_what_would_help_does():
    def model(case, **arguments):
        *_, texts, _ = REFUSED[case]
        return from_rddl(*texts, **arguments)

    assert model("an unbounded real n", bounds={"extra": (-9, 9)})
    assert model("an unbounded whole x", bounds={"extra": (0, 99)})
    lifting = model("an unbounded whole action", action_values={"lift": range(3)})
    assert lifting.action_names == ("noop", "move", "lift=1", "lift=2")
    pushing = model("a real action", action_values={"push": (-1, 0, 1.5)})
    assert pushing.action_names == ("noop", "move", "push=-1", "push=1.5")
    assert pushing.action_fluents(3) == {"move": False, "push": 1.5}
    turning = model("too many actions", max_concurrent=1)
    assert turning.num_actions == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": {"extraa": (0, 1)}}, "unknown state fluent 'extraa'; did you mean 'extra'"),
        ({"bounds": {"extra": 3}}, "pair"),
        ({"bounds": {"extra": (4, 9)}}, "begins with 0"),
        ({"action_values": {"moves": (0, 1)}}, "unknown action fluent 'moves'"),
        ({"action_values": {"move": ()}}, "finite numbers"),
        ({"action_values": {"move": (0.5,)}}, "whole numbers"),
        ({"preconditions": "maybe"}, "unknown treatment of preconditions 'maybe'"),
        ({"max_actions": 0}, "max_actions"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_odd_arguments(arguments, message):
    texts = with_fluent("int", "mod[extra + 1, 3]")
    with pytest.raises(ValueError, match=message):
        from_rddl(*texts, **arguments)


def test_action_values_that_no_action_may_have():
    texts = small(
        fluents="lift : { action-fluent, int, default = 0 };",
        blocks="action-preconditions { lift >= 0; lift <= 4; };",
    )
    assert from_rddl(*texts).num_actions == 6
    with pytest.raises(ValueError, match="'lift' cannot be 7"):
        from_rddl(*texts, action_values={"lift": (0, 3, 7)})


def test_sources():
    domain, instance = small()
    with pytest.raises(ValueError, match="did you mean 'Knapsack_or'"):
        from_rddl("Knapsak_or", 0)
    with pytest.raises(ValueError, match="unknown instance of Knapsack_or '7'; choose from '0'"):
        from_rddl("Knapsack_or", 7)
    with pytest.raises(TypeError, match="two paths, or two texts"):
        from_rddl(domain, 3)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        from_rddl("nowhere/domain.rddl", "nowhere/instance.rddl")
    with pytest.raises(ValueError, match="not RDDL"):
        from_rddl(domain.replace("cpfs {", "cpfs }"), instance)


def test_without_pyrddlgym_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyRDDLGym", None)
    with pytest.raises(ImportError, match=r"pip install 'exo-envs\[rddl\]'"):
        from_rddl("Knapsack_or", 0)
