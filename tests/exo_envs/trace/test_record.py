"""A record is followed where it has been; later time is held out, with a gap before it."""

import numpy as np
import pandas as pd
import pytest
from battery import battery, price_table

from exo_envs import ExoEnv, ExoVectorEnv, State, TraceMDP, Variable
from exo_envs.testing import check_mdp


def with_clock(rows=600):
    """The price, and the number of the row, which no two rows share."""
    return {"price": price_table(rows)["price"], "clock": np.arange(rows) + 0.5}


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_contract_holds():
    check_mdp(battery())
    check_mdp(battery(with_clock()))


def test_x_is_followed_where_it_was_recorded():
    mdp = battery(with_clock())
    rows = mdp.record.rows
    np.testing.assert_array_equal(mdp.sample_exogenous(rows[:-1], rng()), rows[1:])
    np.testing.assert_array_equal(mdp.sample_exogenous(rows[5], rng()), rows[6])
    np.testing.assert_array_equal(mdp.sample_exogenous(rows[-1], rng()), rows[-1])  # nothing known
    shape = (3, 4, 2)
    assert mdp.sample_exogenous(rows[:12].reshape(shape), rng()).shape == shape


def test_one_of_several_equal_rows_is_followed():
    table = {"a": np.array([0, 1, 0, 2, 0, 3, 0, 1] * 40)}
    mdp = battery(table, reward=lambda n, a, x: x.a * a, horizon=4)
    following = mdp.sample_exogenous(np.zeros((8000, 1), dtype=np.int64), rng())
    shares = np.bincount(following[:, 0], minlength=4) / 8000
    np.testing.assert_allclose(shares, [0, 0.5, 0.25, 0.25], atol=0.03)


def test_an_episode_never_runs_over_the_end():
    """Rows of 3 steps before the end lead into it; equal ones elsewhere do not."""
    column = np.array([*([0, 1, 2, 3] * 20), 0, 1, 2, 9])
    mdp = battery({"a": column}, reward=lambda n, a, x: x.a * a, horizon=6)
    x = mdp.sample_initial(4000, rng()).exogenous
    for _ in range(5):
        after = mdp.sample_exogenous(x, rng(1))
        assert (after != x).all()  # nobody stands at the end
        x = after


def test_an_x_that_never_was_is_refused():
    mdp = battery(with_clock())
    x = mdp.record.rows[:4].copy()
    x[2, 0] += 1
    with pytest.raises(
        ValueError, match=r"x = \(price=.*, clock=2.5\) was never recorded.*no interv"
    ):
        mdp.sample_exogenous(x, rng())


def test_an_x_out_of_range_is_named_and_not_looked_up():
    mdp = battery(with_clock())
    for value in (6, -7, 2**40, np.nan, 0.5):
        x = mdp.record.rows[:4].copy()
        x[2, 0] = value
        with pytest.raises(ValueError, match=r"'price' cannot be .*; its values are 0 \.\.\. 5"):
            mdp.sample_exogenous(x, rng())
    with pytest.raises(ValueError, match="its rows have different lengths"):
        mdp.sample_exogenous([[1], [2, 3]], rng())
    whole = battery()
    x = whole.record.rows[:2].astype(np.float64)
    np.testing.assert_array_equal(whole.sample_exogenous(x, rng()), whole.record.rows[1:3])
    with pytest.raises(ValueError, match="not a whole number"):  # and not rounded
        whole.sample_exogenous(x + 0.5, rng())


@pytest.mark.parametrize("number", [-1, 0.5, None, "3", np.array([3]), np.nan, 10**30, 2**63])
def test_numbers_of_steps_are_checked(number):
    mdp = battery(with_clock())
    for ask in (
        lambda: mdp.record.num_separate(number),
        lambda: mdp.trajectories(3, number, rng()),
        lambda: mdp.windows(np.array([0, 5]), number, rng()),
        lambda: mdp.record.starts(number),
        lambda: mdp.record.draw(3, number, rng()),
    ):
        with pytest.raises(ValueError, match="num_steps is a whole number"):
            ask()
    with pytest.raises(ValueError, match="stride is a whole number"):
        mdp.record.spaced(3, number)
    with pytest.raises(ValueError, match="size is a whole number"):
        mdp.record.draw(number, 3, rng())
    assert mdp.record.num_separate(np.uint64(11)) == mdp.record.num_separate(11)
    assert len(mdp.record.draw(np.uint8(3), np.uint64(11), rng())) == 3


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 600], r"there is no row 600; the rows of the record are 0 \.\.\. 599"),
        ([-1], "there is no row -1"),
        ([595], "a window of 12 rows cannot begin at row 595, which 4 follow"),
        ([[0]], r"starts has one axis, .* not shape \(1, 1\)"),
        ([0.5], "starts holds 0.5"),
        ("x", "starts has dtype"),
    ],
)
def test_windows_begin_in_the_record(starts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        battery(with_clock()).windows(starts, 11, rng())


def test_a_model_is_made_from_a_table_only():
    mdp = battery()
    with pytest.raises(TypeError, match=r"is made by TraceMDP\.from_frame"):
        TraceMDP(price_table(), mdp.interface, None, horizon=3, discount=0.9)


def test_trajectories_are_windows():
    mdp = battery(with_clock())
    state, following = mdp.trajectories(30, 11, rng())
    windows = np.stack([state.exogenous, *following])
    assert windows.shape == (12, 30, 2)
    assert (np.diff(windows[..., 1], axis=0) == 1).all()


def test_windows_share_no_transition_while_there_is_room():
    record = battery(with_clock()).record
    for size in (1, 20, 49, 54):  # 599 transitions
        starts = np.sort(record.draw(size, 11, rng()))
        assert (np.diff(starts) >= 11).all()
        assert starts[-1] + 11 < len(record)
    many = record.draw(500, 11, rng())
    assert len(np.unique(many)) > 400
    assert record.num_separate(11) == 599 // 12
    hours = record.draw(record.num_separate(24), 24, rng()) % 24
    assert len(np.unique(hours)) > 5  # not all at the same hour


def test_windows_stay_in_episodes():
    frame = pd.DataFrame(with_clock()).assign(day=np.arange(600) // 20)
    mdp = battery(frame, episode="day", horizon=None)
    assert mdp.horizon == 20
    starts = mdp.record.draw(30, 19, rng())
    assert sorted(starts.tolist()) == list(range(0, 600, 20))
    with pytest.raises(ValueError, match=r"windows of 22 rows were asked for.* has 20"):
        mdp.trajectories(3, 21, rng())


def test_shells_play_windows():
    mdp = battery(with_clock())
    env = ExoEnv(mdp)
    observation, _ = env.reset(seed=3)
    clocks = [observation["exogenous"][1]]
    truncated = False
    while not truncated:
        observation, _, terminated, truncated, _ = env.step(1)
        assert not terminated
        clocks.append(observation["exogenous"][1])
        truncated = truncated or len(clocks) > 12
    assert np.ptp(np.diff(clocks)) == 0
    envs = ExoVectorEnv(mdp, 5)
    envs.reset(seed=0)
    for _ in range(30):
        envs.step(envs.action_space.sample())


# --- held-out time ---------------------------------------------------------------------------


def test_the_last_share_is_held_out_after_a_gap():
    mdp = battery(with_clock(), test=0.25, lags={"clock": [5]})
    clock, later = (part.record.rows[:, 1] for part in (mdp, mdp.held_out))
    assert (len(later), later[-1]) == (149, 599.5)  # of 595 rows
    assert later[0] - clock[-1] == 12 + 5 + 1
    assert mdp.held_out.held_out is mdp.held_out
    assert mdp.held_out.exogenous_variables == mdp.exogenous_variables
    assert battery().held_out.record is not None


@pytest.mark.parametrize("test", [450, "2024-01-19 18:00", np.datetime64("2024-01-19T18")])
def test_a_row_or_a_date_begins_what_is_held_out(test):
    frame = pd.DataFrame(with_clock(), index=pd.date_range("2024-01-01", periods=600, freq="h"))
    mdp = battery(frame, test=test)
    assert mdp.held_out.record.rows[0, 1] == 450.5
    assert mdp.record.rows[-1, 1] == 437.5


def test_whole_episodes_are_held_out():
    frame = pd.DataFrame(with_clock()).assign(day=np.arange(600) // 20)
    mdp = battery(frame, episode="day", test=0.3)
    assert mdp.held_out.record.rows[0, 1] == 420.5
    assert len(mdp.record) == 420


def test_a_second_table_is_held_out():
    table = with_clock()
    later = {name: values[:90] + 600 for name, values in table.items()}
    mdp = battery(table, test=pd.DataFrame(later))
    assert (len(mdp.record), len(mdp.held_out.record)) == (600, 90)
    check_mdp(mdp.held_out)  # values that training never had are no misfits
    with pytest.raises(ValueError, match=r"these differ: \['moon'\]"):
        battery(table, test={**later, "moon": later["clock"]})


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (1.5, "a share of the rows is between 0 and 1"),
        (0.001, "windows of 12 rows"),
        (0.99, "leaves 0 of 600 rows to learn from"),
        (700, "and 0 to be judged on"),
        ("2024-01-01", "a date needs a table with dates"),
        (10**30, "and 0 to be judged on"),
        ([[1], [2, 3]], "a table is a pandas or polars DataFrame.*not list"),
        (1j, "is no share"),
    ],
)
def test_splits_that_leave_nothing_are_refused(test, message):
    with pytest.raises((ValueError, TypeError), match=message):
        battery(with_clock(), test=test)


def test_horizons_are_checked():
    with pytest.raises(ValueError, match="one long series needs the steps of an episode"):
        battery(horizon=None)
    with pytest.raises(ValueError, match="horizon=601 needs as many rows"):
        battery(horizon=601)


def test_uniform_states_have_x_of_the_record():
    mdp = battery(with_clock(), endogenous=[Variable("charge", low=0.0, high=4.0)])
    state = mdp.sample_uniform(300, rng())
    assert isinstance(state, State)
    mdp.sample_exogenous(state.exogenous, rng())
    assert state.endogenous.dtype == np.float64
    assert len(np.unique(state.endogenous)) == 300
