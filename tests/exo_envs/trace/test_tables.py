"""Tables of all kinds are read alike; gaps and missing values are named, or filled as one says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from battery import battery, price_table

from exo_envs.sources.tables.frames import read_table
from exo_envs.sources.tables.gaps import without_gaps

HOURS = pd.date_range("2024-01-01", periods=600, freq="h")


def as_structured(table):
    kinds = [(name, values.dtype) for name, values in table.items()]
    out = np.empty(600, dtype=kinds)
    for name, values in table.items():
        out[name] = values
    return out


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, as_structured, lambda table: np.stack([*table.values()], axis=1)],
    ids=["pandas", "polars", "structured", "two axes"],
)
def test_all_kinds_of_tables_are_the_same_model(make):
    table = price_table()
    frame = make(table)
    plain = isinstance(frame, np.ndarray) and frame.dtype.names is None
    mdp = battery(frame, **({"columns": list(table)} if plain else {}))
    expected = battery(table)
    assert mdp.exogenous_variables == expected.exogenous_variables
    np.testing.assert_array_equal(mdp.record.rows, expected.record.rows)


def test_columns_become_variables_by_what_they_hold():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "price": rng.normal(size=300),
            "tariff": rng.choice([0.2, 0.5, 0.7], size=300),
            "is_open": rng.random(300) < 0.5,
            "weather": pd.Categorical(rng.choice(["rain", "sun"], size=300)),
            "count": pd.array(rng.integers(5, 9, size=300), dtype="Int64"),
            "meter": rng.integers(10**6, size=300),
        }
    )
    seen = {}

    def reward(n, a, x):
        seen.update(x=x)
        return x.tariff * a + (x.weather == "rain")

    mdp = battery(frame, reward=reward)
    sizes = {v.name: None if v.is_real else v.size for v in mdp.exogenous_variables}
    assert sizes == {
        "price": None,
        "tariff": 3,
        "is_open": 2,
        "weather": 2,
        "count": 4,
        "meter": None,
    }
    assert mdp.exogenous_variables[0].bounds == (frame.price.min(), frame.price.max())
    assert mdp.reward_scopes == (("tariff",), ("weather",))
    assert set(seen["x"].weather) == {"rain", "sun"}
    assert set(seen["x"]["count"]) == {5, 6, 7, 8}
    decoded = mdp.decoded(mdp.record.rows)
    assert decoded["weather"].tolist() == frame.weather.tolist()
    assert decoded["tariff"].tolist() == frame.tariff.tolist()
    assert decoded["price"].tolist() == frame.price.tolist()


def test_missing_values_are_named():
    frame = pd.DataFrame(price_table(), index=HOURS).astype(float)
    frame.iloc[[17, 40], 2] = np.nan
    with pytest.raises(ValueError, match=r"'load' has no value in 2 of 600 .* row 17 \(time 2024-"):
        battery(frame)


def test_missing_rows_are_named():
    frame = pd.DataFrame(price_table(), index=HOURS).drop(HOURS[[50, 51, 90]])
    with pytest.raises(ValueError, match=r"3 rows are missing in 2 gaps .* after row 49 \(time"):
        battery(frame)


@pytest.mark.parametrize("kind", [pd, pl])
def test_missing_strings_are_named(kind):
    weather = ["sun", None, "rain", "sun"] * 150
    with pytest.raises(ValueError, match="'weather' has no value in 150 of 600 rows"):
        battery(kind.DataFrame({**price_table(), "weather": weather}))
    filled = battery(kind.DataFrame({**price_table(), "weather": weather}), fill="forward")
    assert (
        filled.decoded(filled.record.rows)["weather"].tolist()
        == ["sun", "sun", "rain", "sun"] * 150
    )


def test_gaps_are_filled_as_one_says():
    frame = pd.DataFrame({"price": [1.0, np.nan, 3.0, 4.0]}, index=HOURS[[0, 1, 2, 5]])
    table = read_table(frame)
    assert without_gaps(table, "forward").columns["price"].tolist() == [1, 1, 3, 3, 3, 4]
    drawn = without_gaps(table, "linear")
    np.testing.assert_allclose(drawn.columns["price"], [1, 2, 3, 10 / 3, 11 / 3, 4])
    np.testing.assert_array_equal(drawn.time, HOURS[:6].to_numpy())
    split = without_gaps(table, "split")
    assert split.columns["price"].tolist() == [1, 3, 4]
    assert len(set(split.segment.tolist())) == 3
    given = without_gaps(table, {"price": 7.0})
    assert given.columns["price"].tolist() == [1, 7, 3, 7, 7, 4]


def test_windows_never_run_across_a_gap():
    frame = pd.DataFrame(price_table(), index=HOURS).drop(HOURS[[100, 300]])
    frame["clock"] = (frame.index - HOURS[0]) // pd.Timedelta("1h")
    mdp = battery(frame, fill="split", max_levels=10**6)
    state, following = mdp.trajectories(200, 11, np.random.default_rng(0))
    clock = np.stack([state.exogenous, *following])[..., -1]
    assert (np.diff(clock, axis=0) == 1).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.iloc[::-1], "times increase"),
        (
            lambda f: f.set_index(
                f.index.where(f.index != HOURS[3], HOURS[3] + pd.Timedelta("7min"))
            ),
            "evenly",
        ),
        (lambda f: f.assign(price=np.inf), "holds inf in row 0"),
        (lambda f: f.assign(day=f.index), "holds dates"),
        (lambda f: f.assign(name=[f"n{k}" for k in range(600)]), "600 different strings"),
        (lambda f: f.assign(odd=[{}] * 600), "'odd' holds numbers or strings"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: f.assign(charge=1), "'charge' is an endogenous variable and a column"),
        (lambda f: "frame.csv", "a table is a pandas or polars DataFrame"),
        (lambda f: f.to_numpy(), "needs as many names"),
        (lambda f: {"price": 3}, r"'price' has one axis, a value for each row, not shape \(\)"),
        (lambda f: {"price": f[["price"]].to_numpy()}, r"has one axis, .* not shape \(600, 1\)"),
        (lambda f: {"price": [[1], [2, 3]]}, "column 'price' is no array"),
        (lambda f: {"1": f.price, 1: f.wind}, "more than one column '1'"),
        (lambda f: f.assign(price=f.price * 1j), "'price' holds numbers or strings, not complex"),
        (
            lambda f: f.assign(price=pd.Series([10**400] * 600, index=f.index, dtype=object)),
            "holds a number that no 64-bit float is",
        ),
        (lambda f: f.assign(price=[np.inf, *"ab"][:1] * 600).astype(object), "holds inf in row 0"),
        (lambda f: {"price": np.array([b"\xff"] * 600)}, "holds bytes that are no text"),
        (lambda f: f.assign(price=["sun", 3] * 300), "numbers or strings, not both"),
    ],
)
def test_what_is_wrong_is_said(change, message):
    frame = pd.DataFrame(price_table(), index=HOURS)
    with pytest.raises((ValueError, TypeError), match=message):
        battery(change(frame))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time": ["when"]}, r"unknown column \['when'\]"),
        ({"episode": {}}, "unknown column {}"),
        ({"columns": "price"}, "the names in columns are a collection of them, not 'price'"),
        ({"columns": np.array(3)}, "the names in columns are a collection of them"),
        ({"columns": [["price"]]}, r"unknown column \['price'\]"),
        ({"episode": "lists"}, "the episodes in 'lists' are numbers, strings or dates"),
        ({"episode": "holes"}, "some rows have no episode: 'holes' lacks values"),
        ({"episode": "back"}, "'back' = 0 comes back after others"),
    ],
)
def test_names_of_columns_are_checked(settings, message):
    frame = pd.DataFrame(price_table())
    frame["lists"] = [[1]] * 600
    frame["holes"] = np.where(frame.index == 3, np.nan, 1.0)
    frame["back"] = frame.index // 100 % 2
    with pytest.raises((ValueError, TypeError), match=message):
        battery(frame, **settings)


def test_episodes_may_be_days():
    frame = pd.DataFrame(price_table(), index=HOURS)
    frame["day"] = HOURS.date
    assert len(battery(frame, episode="day", horizon=None).record.segments()) == 25


def test_large_whole_numbers_stay_what_they_are():
    price = np.where(price_table()["price"] > 2, 1e300, 0.0)
    mdp = battery({"price": price}, reward=lambda n, a, x: (x.price > 1) * a)
    assert mdp.decoded(mdp.record.rows)["price"].tolist() == price.tolist()


def test_a_time_that_is_far_off_does_not_take_all_memory():
    when = np.arange(600)
    when[300:] += 10**15
    table = {**price_table(), "when": when}
    with pytest.raises(ValueError, match=r"add 1e\+15 rows, .*most of them after row 299 \(time"):
        battery(table, time="when", fill="forward")
    assert len(battery(table, time="when", fill="split").record.segments()) == 2


@pytest.mark.parametrize("dtype", ["u1", "i1", "u8", "f4"])
def test_times_of_small_types_do_not_wrap_around(dtype):
    when = np.concatenate([np.arange(-60, 0), np.arange(7, 67)]) + (60 if dtype != "i1" else 0)
    table = {**price_table(120), "when": when.astype(dtype)}
    filled = battery(table, time="when", fill="forward")
    assert len(filled.record) == 127
    with pytest.raises(ValueError, match="times increase"):
        battery({**table, "when": table["when"][::-1]}, time="when")


def test_times_with_infinite_steps_are_refused():
    early = -1.7e308 + np.arange(60) * 1e300
    table = {**price_table(120), "when": np.concatenate([early, -early[::-1]])}
    with pytest.raises(ValueError, match=r"evenly spaced, but row 60 .* is inf steps after"):
        battery(table, time="when")


def test_fills_are_checked():
    with pytest.raises(
        ValueError, match="unknown way to fill gaps 'foward'; did you mean 'forward'"
    ):
        battery(fill="foward")
    with pytest.raises(ValueError, match="unknown column 'prise'; did you mean 'price'"):
        battery(fill={"prise": "forward"})
    strings = {**price_table(), "sky": ["sun", None] * 300}
    with pytest.raises(TypeError, match="column 'sky' holds strings; fill it with one, not 3"):
        battery(strings, fill={"sky": 3})
    with pytest.raises(ValueError, match="what column 'price' is filled with is a finite number"):
        battery(fill={"price": np.nan})
    nothing = {**price_table(), "price": np.full(600, np.nan)}
    with pytest.raises(ValueError, match="'price' has no value before row 0"):
        battery(nothing, fill="forward")


def test_months_are_evenly_spaced_whatever_their_length():
    frame = pd.DataFrame(
        price_table(120), index=pd.date_range("2000-01-01", periods=120, freq="MS")
    )
    mdp = battery(frame, calendar=True)
    assert {"weekday", "month"} < set(mdp.exogenous_names)
    assert "hour" not in mdp.exogenous_names


def test_a_lazy_table_is_to_be_collected_first():
    lazy = pl.DataFrame(price_table()).lazy()
    for settings in ({"table": lazy}, {"test": lazy}):
        with pytest.raises(TypeError, match=r"LazyFrame is read when it is needed.*\.collect\(\)"):
            battery(**settings)


def test_a_line_cannot_be_drawn_through_strings_and_the_message_says_what_can():
    frame = pd.DataFrame(price_table(), index=HOURS)
    frame["sky"] = np.where(frame["wind"] > 2, "clear", "grey")
    frame = frame.drop(frame.index[100:103])
    with pytest.raises(ValueError, match=r"fill=\{'sky': 'forward', \.\.\.: 'linear'\}"):
        battery(frame, fill="linear")
    each = dict.fromkeys(frame.columns, "linear") | {"sky": "forward"}
    mdp = battery(frame, fill=each)
    assert len(mdp.record) == 600
    assert mdp.decoded(mdp.record.rows)["sky"][100:103].tolist() == [frame["sky"].iloc[99]] * 3


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
