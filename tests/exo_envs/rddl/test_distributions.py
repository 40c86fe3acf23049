"""Every function and distribution of RDDL, next to pyRDDLGym's own simulator.

A right import fails a comparison of distributions with a probability of at most 1e-6 (all of
its comparisons together); seeds are fixed.
"""

import numpy as np
import pytest
from rddl_simulator import Simulator, disagreements
from rddl_texts import small, with_fluent

from exo_envs import from_rddl
from exo_envs.sources.rddl.expressions import Graph, Program
from exo_envs.sources.rddl.intervals import Interval, intervals
from exo_envs.sources.rddl.operations import DISTRIBUTIONS, FUNCTIONS

DRAWS = {
    "bool": ("Bernoulli(0.3 + 0.4 * (weather == @windy))", "~extra | Bernoulli(0.5)"),
    "int": (
        "Poisson(1.5 + (weather == @calm))",
        "Binomial(5, 0.3)",
        "NegativeBinomial(3, 0.4)",
        "Geometric(0.4)",
        "floor[Uniform(0.0, 4.0)]",
    ),
    "real": (
        "Normal(0.5 * extra, 2.0)",
        "Uniform(-1.0, 1.0 + (weather == @calm))",
        "Exponential(2.0)",
        "Weibull(1.5, 2.0)",
        "Gamma(2.0, 0.5)",
        "Beta(2.0, 3.0)",
        "Pareto(3.0, 1.0)",
        "Student(4.0)",
        "Gumbel(1.0, 2.0)",
        "Laplace(1.0, 2.0)",
        "Cauchy(0.0, 1.0)",
        "Gompertz(1.0, 2.0)",
        "ChiSquare(3.0)",
        "Kumaraswamy(2.0, 3.0)",
        "DiracDelta(0.25 * extra + 1.0)",
    ),
}
DEFAULTS = {"bool": "false", "int": "1", "real": "0.5"}
DETERMINISTIC = (
    "if (extra > 5) then 0 else extra + 1",
    "abs[extra - 3] + sgn[extra - 2]",
    "round[extra * 0.6] + ceil[extra / 4] - floor[extra / 3]",
    "div[extra, 2] + mod[extra + 1, 4]",
    "2 * div[1 - extra, 2] - mod[-extra, 3]",
    "min[extra + 1, 6] + max[-extra, -2]",
    "floor[4 * abs[sin[extra]] + cos[extra] + exp[-extra] + ln[extra + 2] + sqrt[extra + 1]]",
    "floor[pow[extra, 2] / 4] + (extra == 2) - (extra ~= 3)",
    "(sum_{?m : mood} [2 * (weather == ?m)]) + (prod_{?m : mood} [1 + (weather == ?m)])",
    "(max_{?c : cell} [at(?c) + GOAL(?c)]) + (min_{?c : cell} [at(?c)])",
    "floor[10 * (avg_{?c : cell} [at(?c)])]",
    "((exists_{?c : cell} at(?c)) => move) + (move <=> (weather == @calm)) + (move | false)",
    "switch (weather) { case @windy : 3, default : 1 }",
)


def agree(texts, **arguments):
    mdp = from_rddl(*texts, bounds=arguments.pop("bounds", {}))
    arguments = {"states": 4, "samples": 300, **arguments}
    assert disagreements(mdp, Simulator(*texts), **arguments) == []


@pytest.mark.parametrize(
    ("kind", "expression"), [(kind, draw) for kind, draws in DRAWS.items() for draw in draws]
)
def test_draws(kind, expression):
    bounds = {"extra": (-50, 50)} if kind == "int" else {}
    agree(with_fluent(kind, expression, default=DEFAULTS[kind]), bounds=bounds)


def test_every_distribution_is_tried():
    tried = " ".join(draw for draws in DRAWS.values() for draw in draws)
    assert [n for n in DISTRIBUTIONS if n not in tried] == ["Discrete", "UnnormDiscrete"]


@pytest.mark.parametrize("expression", DETERMINISTIC)
def test_functions(expression):
    agree(with_fluent("int", expression, default="1"), samples=3, states=8)


@pytest.mark.parametrize(
    "chances",
    [
        "Discrete(mood, @calm : 0.2, @windy : 0.5 * move, @stormy : 0.8 - 0.5 * move)",
        "UnnormDiscrete(mood, @calm : 1, @windy : 2, @stormy : 1 + move)",
        "Discrete_{?m : mood}((1 + 2 * (?m == @windy)) / 5.0)",
        "UnnormDiscrete_{?m : mood}(1 + (weather == ?m))",
    ],
)
def test_chances_of_an_enumerated_type(chances):
    agree(with_fluent("mood", chances, default="@calm"))


def test_draws_of_several_objects_are_apart_and_a_shared_one_is_one():
    """A lifted draw is one for each object; an intermediate fluent is drawn once."""
    fluents = """coin : { interm-fluent, bool };
        apart(cell) : { state-fluent, bool, default = false };
        same(cell) : { state-fluent, bool, default = false };"""
    cpfs = "coin = Bernoulli(0.5); apart'(?c) = Bernoulli(0.5); same'(?c) = coin ^ ~GOAL(?c);"
    texts = small(fluents=fluents, cpfs=cpfs)
    agree(texts, states=2, samples=1000)
    mdp = from_rddl(*texts)
    assert any("not drawn independently" in note for note in mdp.notes)
    state = mdp.sample_initial(1000, np.random.default_rng(0))
    following = mdp.fluents(mdp.sample_next(state, np.zeros(1000, int), np.random.default_rng(1)))
    assert (following["same___c1"] == following["same___c2"]).all()
    assert (following["apart___c1"] != following["apart___c2"]).any()


def test_impossible_arguments_are_replaced_by_the_nearest_possible_ones():
    texts = with_fluent("real", "Normal(extra, 0.1 * extra)", default="1.0")
    mdp = from_rddl(*texts)
    assert any("negative variance" in note for note in mdp.notes)
    x = np.tile([0.0, -3.0], (5, 1))
    assert (mdp.sample_exogenous(x, np.random.default_rng(0))[:, 1] == -3.0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_hold_every_value(name):
    """Of random intervals of the arguments, the interval of the value holds all values."""
    rng = np.random.default_rng(0)
    graph = Graph()
    arity = FUNCTIONS[name].arity
    kind = "int" if name in ("div", "mod") else "real"
    nodes = [graph.leaf("state", f"v{i}", kind) for i in range(arity)]
    root = graph.function(name, nodes)
    for _ in range(200):
        ends = np.sort(rng.uniform(-3, 6, size=(arity, 2)), axis=1)
        ends = np.round(ends) if kind == "int" else ends
        (found,) = intervals(
            [root], {node: Interval(*pair) for node, pair in zip(nodes, ends, strict=True)}
        )
        values = rng.uniform(ends[:, :1], ends[:, 1:], size=(arity, 50))
        values = np.round(values).astype(int) if kind == "int" else values
        (seen,) = Program([root])(dict(zip(nodes, values, strict=True)), 50)
        seen = seen[np.isfinite(seen)]
        assert (seen >= found.low - 1e-9).all()
        assert (seen <= found.high + 1e-9).all()
