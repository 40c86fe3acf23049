"""The results of the paper's experiments as tables and plots."""

import math

import pytest

from reproduction import tables
from reproduction.output import write_tables
from reproduction.plots import all_plots
from reproduction.results import read_results
from reproduction.settings import CROWD, FACTORY, GRID, METHODS
from shared.intervals import Interval


def record(method, trial, mean_return, *, domain=FACTORY, experiment="large", **more):
    key = {
        "experiment": experiment,
        "domain": domain,
        "goal": "movable" if domain == CROWD else None,
        "method": method,
        "cost_weight": 2.0,
        "trial": trial,
    }
    mask = more.pop("mask", ["a", "b"])
    values = {"mask": mask, "mean_return": mean_return, "value": mean_return - 2.0 * len(mask)}
    base = {"key": key, "seed": 0, "standard_error": 1.0, "history": []}
    return base | values | {"measured": {"seconds": 10.0 + trial}} | more


def test_intervals_are_students():
    interval = Interval.of([1.0, 2.0, 3.0])
    assert interval.mean == 2.0
    assert interval.half_width == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert str(interval) == "2.00 ± 2.48"
    assert str(Interval.of([5.0])) == "5.00"


def test_the_papers_figures_stand_beside_ours():
    records = [
        *(record("greedy", trial, 0.0, mask=[]) for trial in range(3)),
        *(record("first phase", trial, 100.0 + trial) for trial in range(3)),
        *(record("ours", trial, 200.0 + trial) for trial in range(3)),
    ]
    table, orderings = tables.large_tables(records)
    assert [row[0] for row in table.rows] == ["Greedy", "First phase", "Full, ours"]
    assert [row[3] for row in table.rows] == [0, 186, 226]
    assert [row[5] for row in table.rows] == [13.4, None, 53.8]
    assert table.rows[2][2].mean == 201.0
    assert "| Full, ours | ExoFactory-v0 | 201.0 ± 2.5 | 226 | 11.0 ± 2.5 | 53.8 |" in (
        table.to_markdown()
    )
    assert [row[5] for row in orderings.rows] == ["yes", "yes"]
    assert orderings.rows[1][2] == (100.0, 0.0, 3)
    assert orderings.rows[1][6] == 1.99


def test_an_ordering_that_does_not_hold_is_shown():
    returns = {"first phase": (100.0, 200.0), "ours": (150.0, 190.0)}
    records = [
        record(method, trial, value)
        for method, values in returns.items()
        for trial, value in enumerate(values)
    ]
    assert tables.large_tables(records)[1].rows[0][5] == "no"


def test_where_the_best_mask_grows():
    returns = [0.0, 30.0, 35.0, 47.0, 47.0]
    best = [{"mask": ["v"] * k, "mean_return": value} for k, value in enumerate(returns)]
    # Two variables are never the best: three are better from where one ceases to be.
    assert tables.growth(best) == [30.0, 8.5, 8.5, 0.0]
    records = [
        record("brute force", trial, 1.0, domain=GRID, experiment="small", best_of_each_size=best)
        for trial in range(2)
    ]
    table = tables.growth_table(records)
    assert [row[0] for row in table.rows] == [1, 2, 3]
    assert [row[1].mean for row in table.rows] == [30.0, 8.5, 8.5]
    assert table.rows[0][3] == "2 of 2"


def test_the_turn_of_the_curve():
    points = [
        {"num_variables": k, "added": f"v_{k}", "value": v, "mean_return": r, "standard_error": 1.0}
        for k, v, r in [(0, 0, 0), (4, 50, 58), (5, 52, 62), (6, 51, 63), (10, 40, 60)]
    ]
    before, after = tables.turning_point(points)
    assert (before["num_variables"], after["num_variables"]) == (5, 6)
    assert tables.turning_point(points[:3]) is None
    curve = record("curve", 0, 1.0, domain=CROWD, history=points)
    (table,) = tables.curve_tables([curve])
    assert "Variable number 6 (v_6) lowers J from 52.0 to 51.0" in table.note
    assert len(table.rows) == 5
    assert set(all_plots([curve])) == {"crowd_curve"}


def test_goals_differ_in_what_most_masks_have():
    records = []
    for trial, extra in enumerate(["porter_0_cell", "porter_0_cell", "object_10"]):
        for goal, mask in (
            ("fixed", ["occupancy_3_0", "object_2"]),
            ("movable", ["occupancy_4_3", "occupancy_4_4", "object_2", extra]),
        ):
            for method in ("paper", "ours"):
                made = record(method, trial, 1.0, domain=CROWD, experiment="goals", mask=mask)
                made["key"]["goal"] = goal
                records.append(made)
    summary, *differences = tables.goal_tables(records)
    assert [row[1] for row in summary.rows] == ["fixed", "movable"] * 2
    assert [row[-2] for row in summary.rows] == ["none", "occupancy_4_3"] * 2
    assert len(differences) == 2
    assert differences[0].rows[-1] == ("porter_0_cell", 0.0, 0.667)
    assert {row[0] for row in differences[0].rows} == {
        *("occupancy_3_0", "occupancy_4_3", "occupancy_4_4", "porter_0_cell")
    }
    assert tables.differing_variables(["a", "b"], ["b", "c"]) == {"fixed": ["a"], "movable": ["c"]}


def test_readings_tell_where_they_stop():
    def step(action, *names):
        return {"action": action, "candidate": list(names)}

    history = [step("start", "a", "b"), step("add", "porter_3_cell"), step("add", "wanderer_1_x")]
    mask = ["a", "b", "porter_3_cell"]
    more = {"domain": CROWD, "experiment": "readings", "mask": mask, "history": history}
    (table,) = tables.reading_tables([record("paper", 0, 1.0, **more)])
    ((name, domain, _, variables, first, tried, favourite, agents, trials),) = table.rows
    assert (name, domain, trials) == (METHODS["paper"], CROWD, 1)
    assert (variables.mean, first.mean, tried.mean, agents.mean) == (3, 2, 2, 1)
    assert favourite == "porter_*_cell (1 of 1)"
    assert tables.reading_tables([]) == []


def test_plots_are_pictures_and_the_same_each_time(reference):
    records = read_results(reference)
    for image_format, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        plots = all_plots(records, image_format)
        assert set(plots) == {"small_objective", "small_time"}
        assert all(image.startswith(start) for image in plots.values())
        assert plots == all_plots(records, image_format)


def test_tables_are_written(reference):
    markdown, *plots = write_tables(reference)
    assert "| 1 |" in markdown.read_text(encoding="utf-8")
    assert [path.name for path in plots] == ["small_objective.svg", "small_time.svg"]
