"""The benchmark of masks and bounds: its parts run, and what it measures with is right."""

import json
import sys
from itertools import pairwise

import numpy as np
import pytest
from factored import random_mdp, to_arrays

import benchmark
from benchmarks.gap.chains import chain_of
from benchmarks.gap.domains import Domain, Settings
from benchmarks.gap.hindsight import HindsightPolicy
from benchmarks.gap.rivals import open_loop
from benchmarks.gap.small import best_value
from benchmarks.gap.tables import Percentage, Table, cell
from benchmarks.problems import small_problem
from planners import Estimate, ValueIteration, evaluate
from planners.forecasting.planner import ForecastPolicy

QUICK = Settings(rollouts=20).quick()


def test_the_command_writes_what_it_prints(monkeypatch, capsys, tmp_path):
    parts = ["--parts", "masks", "chains", "weights", "small", "--domains", "ExoGrid"]
    output = tmp_path / "new" / "gap.md"
    asked = ["benchmark.py", "gap", "--quick", "--rollouts", "20", *parts, "--output", str(output)]
    monkeypatch.setattr(sys, "argv", asked)
    benchmark.main()
    printed, written = capsys.readouterr().out, output.read_text("utf-8")
    tables = json.loads(output.with_suffix(".json").read_text("utf-8"))
    for table in tables:
        assert f"### {table['title']}" in printed
        assert f"### {table['title']}" in written
    masks = next(table for table in tables if "what masks earn" in table["title"])
    sizes = [row["variables"] for row in masks["rows"]]
    assert sizes[0] == 0
    assert sizes[-1] == 5
    assert all(row["return"]["mean"] > 50 for row in masks["rows"])
    (small,) = (table for table in tables if "best value is known" in table["title"])
    assert all(row["number"] == row["contain the best value"] for row in small["rows"])


@pytest.mark.parametrize("certain", [True, False])
def test_the_best_value_of_small_models_is_that_of_dense_matrices(certain):
    mdp = small_problem(np.random.default_rng(1), horizon=4, certain=certain)
    transitions, rewards = to_arrays(mdp)
    values = np.zeros(len(rewards))
    for _ in range(4):
        values = (rewards + mdp.discount * np.einsum("ast,t->sa", transitions, values)).max(axis=1)
    x = mdp.initial.exogenous @ np.array([3, 1])
    n = mdp.initial.endogenous[:, 0]
    assert best_value(mdp) == pytest.approx(values.reshape(6, 4)[x, n].mean())


def test_hindsight_is_right_where_the_future_is_certain():
    """With x that never moves every future is the same, and nothing is there to hedge against."""
    mdp = random_mdp(np.random.default_rng(3), parents=[(0,), (1,)], horizon=40, num_terminal=1)
    frozen = [np.eye(size) for size in mdp.exogenous_sizes]
    mdp.__dict__["factors"] = tuple(
        type(factor).from_table((i,), table)
        for i, (factor, table) in enumerate(zip(mdp.factors, frozen, strict=True))
    )
    mdp.__dict__.pop("all_factors", None)
    exact = ValueIteration().plan(mdp).policy
    policy = HindsightPolicy(mdp, num_futures=2, horizon=80)
    ours, best = (evaluate(rule, mdp, 200, rng=0) for rule in (policy, exact))
    assert ours.mean() == pytest.approx(best.mean(), abs=0.05)


def test_chains_grow_from_nothing_to_everything():
    domain = Domain("ExoGrid", QUICK)
    chain = chain_of(domain)
    assert chain[0] == ()
    assert chain[-1] == domain.mdp.exogenous_names
    for smaller, larger in pairwise(chain):
        assert set(smaller) < set(larger)
    states = domain.states(7)
    assert len(states.endogenous) == 7
    assert not domain.mdp.is_terminal(states).any()


def test_open_loop_is_a_forecast_planner():
    domain = Domain("ExoGrid", QUICK)
    model = domain.objective(("object",)).reduced
    assert isinstance(open_loop(domain, model).policy, ForecastPolicy)


def test_cells_read_well():
    assert [cell(value) for value in (1234, 0.034, 12.34, 123.4, 1234.5, True, float("nan"))] == [
        *("1,234", "0.03", "12.3", "123.4", "1,234", "yes", "–"),
    ]
    assert str(Percentage.of(Estimate(5.0, 1.0), 50.0)) == "10.0 ± 3.9 %"
    table = Table("Title", [{"a": 1, "b": Estimate(1.0, 0.0)}], "A note.")
    assert table.to_markdown() == "### Title\n\nA note.\n\n| a | b |\n|---|---|\n| 1 | 1.0 ± 0.0 |"
