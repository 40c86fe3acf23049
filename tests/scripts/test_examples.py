"""The worked examples, and one small seed of everything that docs/real_worlds.md claims."""

import ast
import io
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import example
from benchmarks import planted, trace
from examples import battery, building, generated, inventory, recorded
from exo_envs.sources.tables.forecasts import Perfect
from planners import backtest, estimate_objective
from shared.script import ScriptError
from wrappers import CalibratedMaskLearner, Study, UndecidedWarning
from wrappers.fitting.relevance import find_relevance

recorded_x = pytest.mark.filterwarnings("ignore::wrappers.UndecidedWarning")


def code_lines(source):
    """The number of lines that are neither blank nor a comment, nor part of a docstring."""
    described = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            first = node.body[0]
            described |= set(range(first.lineno, first.end_lineno + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in described
        for number, line in lines
    )


@pytest.mark.parametrize("module", [battery, building, inventory], ids=lambda m: m.__name__)
def test_each_example_has_at_most_30_lines_of_code(module):
    assert 20 <= code_lines(Path(module.__file__).read_text(encoding="utf-8")) <= 30


@pytest.mark.parametrize(
    ("name", "share", "always"),
    [
        ("battery", 0.5, "price"),
        ("inventory", 0.3, "demand"),
        ("building", 0.02, "direct_solar_radiation"),
    ],
)
def test_an_example_runs_on_generated_data(name, share, always, tmp_path, capsys):
    arguments = [name, "--generated", "--share", str(share), "--output", str(tmp_path)]
    assert example.main(arguments) == 0
    printed = capsys.readouterr().out
    found = re.search(r"mask, (\d+) of (\d+): (.*)\n", printed)
    assert always in found[3].split(", ")
    assert int(found[1]) == len(found[3].split(", ")) < int(found[2])
    assert re.search(r"  learned less .* \(-?[\d.]+ to -?[\d.]+\)\n", printed)
    assert "note: x was recorded" in printed
    for kind in ("returns", "days"):
        picture = Image.open(io.BytesIO((tmp_path / f"{name}_{kind}.png").read_bytes()))
        assert picture.size == (900, 540)
        assert len(np.unique(np.asarray(picture.convert("L")))) > 20  # something is drawn


def test_data_that_is_missing_is_named(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert not recorded.is_installed()
    with pytest.raises(ScriptError, match=r"ev2gym is not installed: pip install .* --generated"):
        example.main(["battery"])
    with pytest.raises(ScriptError, match="--share is above 0 and at most 1, not 2"):
        example.main(["battery", "--share", "2"])


# --- what the page claims ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *(("pairs", name) for name in planted.PAIRS),
        ("real", "real"),
        ("real", "whole, 10^4 values"),
    ],
)
@recorded_x
def test_planted_masks_are_exact(family, name):
    mdp = planted.planted(family, name, instance=0)
    found = find_relevance(Study(mdp, 0)).findings
    assert set(found) == set(mdp.required_mask)
    assert len(found) <= 0.7 * len(mdp.exogenous_names)


@recorded_x
def test_drivers_among_60_columns_are_found():
    mdp = trace.trader(generated.driven(rows=20_000, num_columns=60, seed=0))
    assert len(mdp.exogenous_names) == 60
    learner = CalibratedMaskLearner(n_rollouts=20).fit(mdp, rng=0)
    assert set(learner.mask_) == set(generated.DRIVERS)


@recorded_x
def test_a_mask_of_a_tenth_of_the_columns_loses_nothing_in_later_time():
    mdp = battery.model(generated.dutch_like(days=180))
    learner = CalibratedMaskLearner(cost_weight=0.1, n_rollouts=200).fit(mdp, rng=0)
    assert 10 * len(learner.mask_) <= len(mdp.exogenous_names)
    plan = estimate_objective(mdp, mdp.exogenous_names, rng=0, n_rollouts=20).plan
    mine, everything = (
        backtest(policy, mdp, continued=True, discount=1.0)
        for policy in (learner.policy_, plan.policy)
    )
    assert mine.mean >= 0.99 * everything.mean > 30


@recorded_x
def test_a_forecast_is_worth_what_it_earns_in_later_time():
    days, earned = generated.shop(), []
    for forecast in (None, Perfect(1)):
        mdp = inventory.model(days, forecast)
        learner = CalibratedMaskLearner(cost_weight=0.1, n_rollouts=200).fit(mdp, rng=0)
        assert ("promo_forecast_1" in learner.mask_) == (forecast is not None)
        earned.append(backtest(learner.policy_, mdp, continued=True, discount=1.0))
    low, _ = earned[1].difference(earned[0]).interval()
    assert low > 0


def test_what_a_record_cannot_tell_is_said():
    mdp = trace.trader(generated.driven(rows=2000, num_columns=8, seed=0))
    with pytest.warns(UndecidedWarning, match="x was recorded"):
        CalibratedMaskLearner(n_rollouts=20).fit(mdp, rng=0)
