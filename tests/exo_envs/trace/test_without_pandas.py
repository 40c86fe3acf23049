"""Without the extra ``data``, arrays are read; DataFrames, dates and filling say what they need."""

import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[2] / "support"
BLOCKED = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
sys.modules |= dict.fromkeys(("pandas", "narwhals", "narwhals.stable.v1", "polars"))
import numpy as np
from battery import battery, price_table
from exo_envs.sources.tables.forecasts import Perfect

class Frame:
    columns = ("price",)

def needs_more(module, table=None, **settings):
    try:
        battery(table, **settings)
    except ImportError as error:
        assert f"need {{module}}" in str(error), error
        assert 'pip install "exo-envs[data]"' in str(error), error
    else:
        raise AssertionError(settings)

table = price_table()
rows = np.arange(600)
"""


@pytest.mark.parametrize(
    "body",
    [
        """
lists = {name: values.tolist() for name, values in table.items()} | {"sky": ["sun", "rain"] * 300}
mdp = battery(lists, test=0.3, lags={"price": [1, 24]}, forecasts={"load": Perfect(2)})
assert mdp.decoded(mdp.record.rows)["price_lag_1"][1] == mdp.decoded(mdp.record.rows)["price"][0]
assert len(mdp.held_out.record) == 172
""",
        """
mdp = battery({**table, "day": rows // 30}, episode="day", horizon=None)
assert len(mdp.record.segments()) == 20
assert battery({**table, "when": rows * 0.5}, time="when", test=400).record.labels[2] == 1.0
assert battery(np.stack([*table.values()], axis=1), columns=list(table)).exogenous_names
""",
        """
try:
    battery({**table, "wind": np.where(rows % 2, np.nan, 1.0)})
except ValueError as error:
    assert "'wind' has no value in 300 of 600 rows" in str(error)
assert len(battery({**table, "wind": np.where(rows % 2, np.nan, 1.0)}, fill={"wind": 2}).record)
needs_more("pandas", {**table, "wind": np.where(rows % 2, np.nan, 1.0)}, fill="forward")
needs_more("pandas", {**table, "sky": ["sun", None] * 300}, fill={"sky": "none"})
""",
        """
needs_more("pandas", Frame())
needs_more("pandas", {**table, "when": np.datetime64("2024-01-01T00") + rows})
needs_more("pandas", {**table, "when": ["2024-01-01"] * 600}, time="when")
""",
    ],
    ids=["lists", "episodes and times", "missing values", "what needs more"],
)
def test_arrays_need_neither_pandas_nor_narwhals(body):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + body], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
