"""Columns as variables: values are coded and decoded, and asked for by name."""

import numpy as np
import pytest
from battery import battery

from exo_envs.sources.tables.functions import Columns


def test_columns_are_asked_for_by_name():
    seen = Columns(np.zeros((2, 1)), ("price",))
    for name in ("prise", 3, None, ["price"], np.array([1, 2])):
        with pytest.raises(ValueError, match="unknown column"):
            seen[name]


def test_decoded_states_have_any_shape():
    mdp = battery()
    rows = mdp.record.rows[:6]
    assert mdp.decoded(rows.reshape(2, 3, -1))["price"].shape == (2, 3)
    assert mdp.decoded(rows[0])["price"] == mdp.decoded(rows)["price"][0]


def test_a_column_of_strings_stays_one():
    sky = {"price": np.arange(600) % 5, "sky": ["sun", "rain"] * 300}
    with pytest.raises(TypeError, match="'sky' holds strings in one table and numbers in another"):
        battery(sky, test={"price": [1] * 90, "sky": [1] * 90})
    mdp = battery(sky, test={"price": [1] * 90, "sky": ["fog"] * 90})
    assert mdp.exogenous_variables[1].size == 3  # what later rows say is declared, too
