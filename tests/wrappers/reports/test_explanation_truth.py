"""Every row about ExoFactory and ExoCrowd, against what the code of these domains says."""

import dataclasses
from pathlib import Path

import pytest
from scripted import ScriptedStudy

from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP
from learning.truth import contradictions, truth_of
from wrappers import CalibratedMaskLearner, Explanation


@pytest.fixture(scope="module")
def factory():
    return CalibratedMaskLearner(cost_weight=1.0, n_rollouts=100).fit(FactoryMDP(), 0)


def test_every_row_of_the_factory_is_so(factory):
    """Exactly so: whatever acts on another variable there does so clearly."""
    explanation, truth = factory.explain(), truth_of(FactoryMDP())
    assert contradictions(explanation, FactoryMDP()) == []
    for row in explanation:
        others = {name for name in row.acts_on if name in factory.feature_names_in_}
        assert others == truth.acts_on[row.variable]
        assert (row.role is not None) == (row.variable in truth.matters)
        assert (row.decision == "dropped: no sign") == (row.variable not in truth.matters)


def test_every_row_of_the_crowd_is_so():
    """The wanderers act on who is where, and tell too little about it."""
    study = ScriptedStudy(CrowdMDP(), len, n_data_rollouts=2_000)  # plans nothing
    explanation = CalibratedMaskLearner().fit(study).explain()
    assert len(explanation) == 124
    assert contradictions(explanation, CrowdMDP()) == []
    wanderers = [row for row in explanation if row.variable.startswith("wanderer")]
    assert {row.decision for row in wanderers} == {
        "dropped: too little to see",
        "dropped: no place in a table",
        "dropped: never varied",
    }
    for row in explanation.kept:
        assert row.role in ("pays", "predicts")


def test_rows_that_are_not_so_are_noticed(factory):
    rows = factory.explain()
    changes = {
        "order_0": {"acts_on": ("fulfilled",)},
        "clock": {"acts_on": ("robot",)},
        "noise_0": {"acts_on": ("order_1",), "role": "predicts"},
        "machine_2": {"role": "moves"},
        "order_3": {"decision": "dropped: no sign"},
        "technician_1": {"decision": "dropped: never varied"},
        "noise_3": {"effect": 1.0},
    }
    for name, change in changes.items():
        wrong = dataclasses.replace(rows[name], **change)
        told = contradictions(Explanation((wrong,), 1.0, 0.05, 1, "finished"), FactoryMDP())
        assert told
        assert all(line.startswith(f"{name}: ") for line in told)


def test_the_page_shows_the_table_that_the_script_made():
    docs = Path(__file__).resolve().parents[3] / "docs"
    page = (docs / "explaining.md").read_text(encoding="utf-8")
    for name in ("factory_explained.md", "factory_path.md"):
        assert (docs / "pictures" / name).read_text(encoding="utf-8") in page
    whole = (docs / "pictures" / "crowd_explained.md").read_text(encoding="utf-8")
    names = [line.split(" | ")[0].removeprefix("| ") for line in whole.splitlines()[2:]]
    assert names == list(CrowdMDP().exogenous_names)
