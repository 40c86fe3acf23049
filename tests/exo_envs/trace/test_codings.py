"""Columns as variables, asked directly: what no column says and no model has is refused."""

import numpy as np
import pytest
from battery import battery

from exo_envs.sources.tables.codings import Coding
from exo_envs.sources.tables.functions import Columns

FEW, REAL = Coding.of("sky", ["rain", "sun", "rain"]), Coding.of("price", np.arange(99) / 7)


def test_what_is_encoded_is_decoded():
    for coding, values in ((FEW, np.array(["sun", "rain"])), (REAL, np.array([1 / 7, 2.0]))):
        assert coding.decode(coding.encode(values)).tolist() == values.tolist()
    assert (FEW.is_real, REAL.is_real) == (False, True)
    assert Coding.range_of("hour", 0, 23).variable.size == 24


@pytest.mark.parametrize(
    ("coding", "values", "message"),
    [
        (FEW, [2], "variable 'sky' cannot be 2; its values are 0 ... 1"),
        (FEW, [-1], "variable 'sky' cannot be -1"),
        (FEW, [0.5], "holds 0.5, which is not a whole number"),
        (FEW, [2**63], "holds .* which is too large"),
        (FEW, ["sun"], "it should hold whole numbers"),
        (FEW, [[1], [2, 3]], "its rows have different lengths"),
        (REAL, [np.nan], "variable 'price' cannot be nan"),
        (REAL, [99.0], "variable 'price' cannot be 99.0; its values are 0 to 14"),
    ],
)
def test_what_no_model_has_is_not_decoded(coding, values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        coding.decode(values)


@pytest.mark.parametrize(
    ("coding", "values", "message"),
    [
        (FEW, ["snow"], r"'sky' is never 'snow'; its values are \['rain', 'sun'\]"),
        (FEW, [1], "column 'sky' holds strings, not"),
        (REAL, ["sun"], "column 'price' holds numbers, not"),
        (REAL, [99.0], "variable 'price' cannot be 99.0"),
        (Coding.range_of("hour", 0, 23), [24], "'hour' is never 24"),
    ],
)
def test_what_a_column_never_says_is_not_encoded(coding, values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        coding.encode(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "has no values, or some are missing"),
        ([1.0, np.nan], "has no values, or some are missing"),
        (["sun", None], "has no values, or some are missing"),
        (3, "has one axis"),
        ([1j], "numbers or strings, not complex"),
    ],
)
def test_a_coding_is_of_values(values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Coding.of("x", values)


def test_ranges_have_whole_ends():
    for first, last in ((0.5, 3), (0, 10**30), (3, 2), (None, 3)):
        with pytest.raises(ValueError, match=r"(first|last) is a whole number"):
            Coding.range_of("x", first, last)


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
