"""The report of a folder of results, looked at in a real browser."""

import json
import re

import pytest
from browser import Browser

from exo_envs.domains.crowd.model import CrowdMDP
from reproduction.report import table_html, typical_mask, write_report
from reproduction.tables import Table
from shared.intervals import Interval

NAMES = CrowdMDP().exogenous_names
CELLS = [
    f"occupancy_{row}_{column}" for row in range(8) for column in range(8) if row < 4 or column > 3
]
PAYS = [*CELLS, *NAMES[-12:]]
PORTERS = [name for name in NAMES if name.startswith("porter")]


def result(experiment, domain, method, trial, *, goal=None, weight=1.0, mask=(), **more):
    key = {
        "experiment": experiment,
        "domain": domain,
        "goal": goal,
        "method": method,
        "cost_weight": weight,
        "trial": trial,
    }
    mean = more.pop("mean_return", 100.0) + trial
    return {
        "key": key,
        "seed": trial,
        "mask": [name for name in NAMES if name in mask] if "Crowd" in domain else list(mask),
        "mean_return": mean,
        "standard_error": 5.0,
        "value": mean - weight * len(mask),
        "history": more.pop("history", []),
        "best_of_each_size": [{"mask": list("ab"[:k]), "mean_return": 20.0 * k} for k in range(3)],
        "measured": {"seconds": more.pop("seconds", 1.5) + 0.1 * trial},
    }


def results_of(trials=3):
    """What a small run could have found."""
    grid = {"brute force": 55.0, "greedy": 40.0, "paper": 54.0, "ours": 55.0}
    found = {
        ("ExoFactory-v0", "greedy"): (0.0, 0.5, []),
        ("ExoFactory-v0", "first phase"): (168.0, 2.0, ["order_0"]),
        ("ExoFactory-v0", "ours"): (253.0, 9.5, ["order_0", "clock"]),
        ("ExoCrowd-v0", "greedy + heuristics"): (188.0, 20.0, NAMES[-12:]),
        ("ExoCrowd-v0", "first phase"): (306.0, 12.0, PAYS),
        ("ExoCrowd-v0", "ours"): (566.0, 60.0, PAYS + PORTERS),
    }
    for trial in range(trials):
        for method, mean in grid.items():
            for weight in (0.5, 5.0, 20.0):
                mask = ["object", "guard"][: 1 + (weight < 10)]
                more = {"weight": weight, "mask": mask, "mean_return": mean}
                yield result("small", "ExoGrid-v0", method, trial, **more)
        for (domain, method), (mean, seconds, mask) in found.items():
            more = {"mean_return": mean, "seconds": seconds, "mask": mask}
            goal = "movable" if "Crowd" in domain else None
            yield result("large", domain, method, trial, goal=goal, **more)
    for goal, mask in (("fixed", PAYS), ("movable", PAYS + PORTERS)):
        yield result("goals", "ExoCrowd-v0", "ours", 0, goal=goal, mask=mask, mean_return=800.0)
    curve = [
        {"num_variables": size, "added": None, "value": 6.0 * size - size**2 / 20}
        | {"mean_return": 6.0 * size - size**2 / 40, "standard_error": 5.0}
        for size in range(0, 125, 5)
    ]
    more = {"goal": "movable", "mask": PAYS + PORTERS, "history": curve}
    yield result("large", "ExoCrowd-v0", "curve", 0, **more)


SETTINGS = {
    "command": "python scripts/reproduce.py all --quick",
    "commit": "0123abc",
    "versions": {"numpy": "2.4.6", "python": "3.11.7"},
    "parameters": {
        "seed": 7,
        "n_data_rollouts": 80,
        "trials": 3,
        "n_rollouts": 500,
        "note": "a <b> & a | b",
    },
}


def write_results(folder):
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    lines = "".join(json.dumps(line) + "\n" for line in results_of())
    (folder / "results.jsonl").write_text(lines)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_results(folder)
    return write_report(folder)


def test_the_page_needs_nothing_else(report):
    html = report.read_text()
    addresses = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)""", html)
    assert addresses
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"@import|url\((?!#)", html)
    assert "$" not in re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)


def test_the_page_tells_the_settings(report):
    html = report.read_text()
    for text in (
        SETTINGS["command"],
        "0123abc",
        "numpy <code>2.4.6</code>",
        "a &lt;b&gt; &amp; a | b",
    ):
        assert text in html


def test_the_tables_are_in_markdown_too(report):
    text = report.with_name("report.md").read_text()
    row = "| Full, ours | ExoFactory-v0 | 254.0 ± 2.5 | 226 | 9.60 ± 0.25 | 53.8 | 2.00 ± 0.00 |"
    assert row in text
    assert SETTINGS["command"] in text
    for block in re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_cells_are_escaped_and_have_a_number_to_sort_by():
    rows = (("a|<b>", Interval(1.0, 2.0, 3)), ("b", None))
    html = table_html(Table("a < b", ("x", "n"), rows, "a & b"))
    assert "<caption>a &lt; b<" in html
    assert ">a &amp; b</span></caption>" in html
    assert "<td>a|&lt;b&gt;</td>" in html
    assert '<td class="number" data-value="1">1.00 ± 2.00</td>' in html
    assert '<td class="number" data-value="">–</td>' in html


def test_a_long_table_is_folded_and_an_empty_one_is_no_problem():
    rows = tuple((number,) for number in range(17))
    assert "<details>" in table_html(Table("long", ("n",), rows))
    assert "<details>" not in table_html(Table("short", ("n",), rows[:16]))
    assert "<tbody></tbody>" in table_html(Table("empty", ("n", "m"), ()))


def test_a_report_of_part_of_the_experiments(tmp_path):
    (tmp_path / "settings.json").write_text(json.dumps({"parameters": {}}))
    lines = [line for line in results_of() if line["key"]["experiment"] == "small"]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    html = write_report(tmp_path).read_text()
    assert 'id="small"' in html
    assert 'id="goals"' not in html
    assert "replay-data" not in html


def test_the_typical_mask_differs_least_from_the_others():
    masks = [NAMES[:5], NAMES[:9], NAMES[:8], NAMES[:8]]
    goal = {"goal": "fixed"}
    found = [result("goals", "ExoCrowd-v0", "ours", 0, mask=mask, **goal) for mask in masks]
    assert typical_mask(found, "ours", "fixed") == NAMES[:8]
    assert typical_mask(found, "ours", "movable") is None


# --- in the browser -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(report):
    with Browser() as browser:
        browser.open(report)
        yield browser
        assert browser.console() == []


def column(browser, table, number):
    """The cells of a column of the first table in a section."""
    rows = f"[...document.querySelector('#{table} tbody').rows]"
    return browser.evaluate(f"{rows}.map(row => row.cells[{number}].textContent)")


def text(browser, name):
    return browser.evaluate(f"document.getElementById('replay-{name}').textContent")


def drawing(browser, name):
    return browser.evaluate(f"document.getElementById('replay-{name}').innerHTML")


def drawings(browser):
    return [drawing(browser, name) for name in ("there", "seen", "forecast")]


def test_every_picture_loads(browser):
    widths = browser.evaluate("[...document.images].map(image => image.naturalWidth)")
    assert len(widths) == 6  # three plots, the world and two masks in it
    assert all(width > 0 for width in widths)


def test_a_table_sorts_both_ways(browser):
    header = "#large thead th:nth-child(3) button"  # the returns
    before = column(browser, "large", 2)
    browser.click(header)
    rising = column(browser, "large", 2)
    assert [float(cell.split()[0]) for cell in rising] == [1, 169, 189, 254, 307, 567]
    browser.click(header)
    assert column(browser, "large", 2) == rising[::-1]
    assert sorted(before) == sorted(rising)
    browser.click("#large thead th:nth-child(6) button")  # dashes come last
    assert column(browser, "large", 5) == ["13.4", "43.7", "53.8", "123.5", "–", "–"]
    browser.click("#large thead th:nth-child(2) button")
    assert column(browser, "large", 1) == ["ExoCrowd-v0"] * 3 + ["ExoFactory-v0"] * 3


def test_the_replay_steps_forward_and_back(browser):
    assert text(browser, "number").startswith("0 of ")
    start = drawings(browser)
    browser.click("#replay-forward")
    assert text(browser, "number").startswith("1 of ")
    second = drawings(browser)
    assert all(now != before for now, before in zip(second, start, strict=True))
    browser.press("Right")
    assert text(browser, "number").startswith("2 of ")
    browser.press("Left")
    assert drawings(browser) == second
    browser.click("#replay-back")
    assert drawings(browser) == start
    browser.click("#replay-last")
    last = text(browser, "number")
    assert last.split(" of ")[0] == last.split(" of ")[1]
    assert "the episode is over" in text(browser, "status")
    browser.press("Home")
    assert drawings(browser) == start


def count(browser, panel, kind):
    return browser.evaluate(f"document.querySelectorAll('#replay-{panel} .{kind}').length")


def choose(browser, name, number):
    """As the arrow keys do in a list."""
    browser.evaluate(
        f"(s => {{ s.selectedIndex = {number}; s.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById('replay-{name}'))"
    )


def test_the_panels_differ_where_the_mask_hides_something(browser):
    options = "[...document.querySelectorAll('#replay-episode option')]"
    titles = browser.evaluate(f"{options}.map(option => option.text)")
    assert [title.split(":")[0] for title in titles] == ["Goal 2", "Goal 2", "Goal 1"]
    people = {}
    for number in range(2):
        choose(browser, "episode", number)
        assert count(browser, "there", "person") == 2 * 16  # a head and a body each
        people[number] = count(browser, "seen", "person")
        assert count(browser, "seen", "kept") == len(CELLS)
        assert count(browser, "seen", "unknown") == 64 - len(CELLS)
        assert count(browser, "seen", "table") == count(browser, "there", "table") == 6
        assert drawing(browser, "seen") != drawing(browser, "there")
    assert people == {0: 2 * 6, 1: 0}  # the porters, and nobody
    choose(browser, "episode", 0)


def test_the_forecast_depends_on_how_far_it_looks(browser):
    seen = set()
    for k in range(4):
        browser.click(f"#replay-ahead label:nth-of-type({k + 1}) input")
        seen.add(drawing(browser, "forecast"))
        assert count(browser, "forecast", "heat") == len(CELLS)
    assert len(seen) == 4
    choose(browser, "object", 12)
    assert drawing(browser, "forecast") not in seen
    choose(browser, "object", 0)
