"""Backtests play held-out windows in order, and their intervals keep neighbours together."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from battery import battery, price_table

from exo_envs import ExoEnv
from exo_envs.domains.grid import GridMDP
from planners import Scenarios, backtest, bracket, evaluate
from planners.backtesting import Backtest, block_length

NUM_WINDOWS = 13  # 180 rows are held out; a window has 12, and begins 13 after the one before


def buy_low(state):
    """Charges at low prices and sells at high ones."""
    price = state.exogenous[:, 0]
    return np.where(price < 2, 2, np.where(price > 2, 0, 1))


def wait(state):
    return np.ones(len(state.endogenous), dtype=np.int64)


@pytest.fixture(scope="module")
def mdp():
    return battery(test=0.3, initial={"charge": 0})


def play_by_hand(policy, mdp, rows, discount, charge=0):
    """What a policy earns in some rows, one at a time, from the description of the battery."""
    table, earned = price_table(), 0.0
    for t, row in enumerate(rows):
        price = table["price"][row]
        x = mdp.record.rows[:1].copy()
        x[0, 0] = price
        action = int(policy(type("State", (), {"endogenous": x, "exogenous": x}))[0]) - 1
        after = min(max(charge + action, 0), 4)
        earned += discount**t * (-price * (after - charge) - 0.2 * (action > 0))
        charge = after
    return earned, charge


def test_windows_are_those_of_later_time_in_order(mdp):
    found = backtest(buy_low, mdp)
    assert len(found) == NUM_WINDOWS
    assert found.times.tolist() == list(range(420, 588, 13))
    by_hand = [play_by_hand(buy_low, mdp, range(r, r + 12), 0.97)[0] for r in found.times]
    np.testing.assert_allclose(found.returns, by_hand)
    assert found.mean == pytest.approx(np.mean(by_hand))
    assert found.total == pytest.approx(np.sum(by_hand))


def test_an_agent_may_go_on_from_window_to_window(mdp):
    found = backtest(buy_low, mdp, continued=True, discount=1.0)
    charge, by_hand = 0, []
    for row in range(420, 600, 12):
        earned, charge = play_by_hand(buy_low, mdp, range(row, row + 12), 1.0, charge)
        by_hand.append(earned)
    np.testing.assert_allclose(found.returns, by_hand)


def test_agents_go_on_within_episodes_only():
    frame = pd.DataFrame(price_table()).assign(day=np.arange(600) // 30)
    mdp = battery(frame, episode="day", test=0.3, initial={"charge": 0})
    found = backtest(buy_low, mdp, continued=True, discount=1.0)
    assert found.times.tolist() == [row for day in range(420, 600, 30) for row in (day, day + 12)]
    for k in range(0, len(found), 2):
        first, charge = play_by_hand(buy_low, mdp, range(420 + 15 * k, 432 + 15 * k), 1.0)
        second, _ = play_by_hand(buy_low, mdp, range(432 + 15 * k, 444 + 15 * k), 1.0, charge)
        np.testing.assert_allclose(found.returns[k : k + 2], [first, second])


def test_strides_and_lengths(mdp):
    assert len(backtest(wait, mdp, stride=1)) == 180 - 11
    assert backtest(wait, mdp, stride=1).block >= 12  # as many as overlap
    assert len(backtest(wait, mdp, horizon=60)) == 2
    assert len(backtest(wait, mdp, horizon=60, stride=60)) == 3
    assert backtest(wait, ExoEnv(mdp)).times.tolist() == backtest(wait, mdp).times.tolist()
    whole = battery()
    assert backtest(wait, whole).times[0] == 0  # nothing was held out


def test_policies_are_compared_window_by_window(mdp):
    first, second = backtest(buy_low, mdp), backtest(wait, mdp)
    gain = first.difference(second)
    np.testing.assert_array_equal(gain.returns, first.returns)
    low, high = gain.interval()
    assert low <= gain.mean <= high
    assert gain.estimate.standard_error == pytest.approx(gain.standard_error)
    table = first.to_pandas()
    assert list(table) == ["time", "return"]
    assert len(table) == NUM_WINDOWS
    with pytest.raises(ValueError, match="compared on the same windows"):
        first.difference(backtest(buy_low, mdp, stride=6))


def test_times_are_those_of_the_table():
    hours = pd.date_range("2024-01-01", periods=600, freq="h")
    mdp = battery(pd.DataFrame(price_table(), index=hours), test=0.3)
    found = backtest(wait, mdp)
    assert found.times[0] == np.datetime64("2024-01-18T12")
    assert "windows from 2024-01-18T12" in str(found)
    assert "bootstrap of blocks of 3" in str(found)


def alike(correlation, number, rng):
    """An autoregressive series of mean 0."""
    series = [0.0]
    for noise in rng.standard_normal(number + 100):
        series.append(correlation * series[-1] + noise)
    return np.array(series[-number:])


def covers(returns, block):
    low, high = Backtest(returns, np.arange(len(returns)), block, 1, 1).interval(0.95)
    return low <= 0 <= high


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.92), (0.7, 0.87)])
def test_intervals_cover_the_mean_of_neighbours_that_are_alike(correlation, least):
    """The shares in the module's docstring, less two standard errors of 300 series and some."""
    rng = np.random.default_rng(0)
    series = [alike(correlation, 300, rng) for _ in range(300)]
    assert least <= np.mean([covers(own, block_length(own)) for own in series])


def test_single_windows_that_are_alike_would_make_too_short_an_interval():
    rng = np.random.default_rng(0)
    assert np.mean([covers(alike(0.7, 300, rng), 1) for _ in range(200)]) < 0.7


def test_blocks_are_longer_where_neighbours_are_alike_for_longer():
    rng = np.random.default_rng(0)
    lengths = [
        np.mean([block_length(alike(correlation, 300, rng)) for _ in range(20)])
        for correlation in (0.0, 0.7, 0.9)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < 9
    assert lengths[2] > 18
    assert block_length(np.ones(27)) == 3
    assert block_length(np.ones(1)) == 1


def test_windows_of_one_block_have_no_interval():
    found = Backtest(np.arange(3.0), np.arange(3), 3, 1, 1)
    assert found.interval() == (-np.inf, np.inf)
    assert found.standard_error == np.inf


def test_an_interval_of_independent_windows_is_the_usual_one():
    returns = np.random.default_rng(1).normal(size=500)
    found = Backtest(returns, np.arange(500), 1, 1, 1)
    assert found.standard_error == pytest.approx(returns.std() / np.sqrt(500), rel=0.06)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stride": 0}, "stride is a whole number, at least 1"),
        ({"continued": True, "stride": 3}, "leave stride out"),
        ({"continued": 1}, "continued is True or False"),
        ({"horizon": 500}, "windows of 500 rows were asked for"),
        ({"block": 0}, "block is a whole number"),
        ({"discount": 2}, "discount is in"),
    ],
)
def test_odd_arguments_are_refused(mdp, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        backtest(wait, mdp, **settings)


def test_only_records_have_backtests():
    with pytest.raises(TypeError, match=r"a backtest plays a record .*, not GridMDP"):
        backtest(wait, GridMDP())


# --- what else is judged on records ------------------------------------------------------------


def test_evaluate_and_bounds_play_windows_of_the_record(mdp):
    later = mdp.held_out
    scenarios = Scenarios.sample(later, 40, 0)
    assert {*map(tuple, scenarios.exogenous[0])} <= {*map(tuple, later.record.rows)}
    returns = evaluate(buy_low, later, scenarios=scenarios)
    found = bracket(later, buy_low, scenarios=scenarios)
    assert found.weights == ()
    assert found.upper == found.hindsight
    assert found.successors == "given by the model"
    assert (found.upper_values >= returns - 1e-9).all()
    with pytest.raises(ValueError, match="plain hindsight"):
        bracket(later, buy_low, 10, values=SimpleNamespace(backwards=lambda horizon: []))


def test_the_bound_on_a_record_of_real_values_is_hindsight_on_these_values():
    """Of somebody who knows all prices, by induction over the charge; all are below 1."""
    rng = np.random.default_rng(0)
    table = {"price": rng.uniform(0.2, 0.9, size=400), "noise": rng.normal(size=400)}
    mdp = battery(table, reward=lambda n, a, x: -x.price * (np.clip(n.charge + a, 0, 4) - n.charge))
    scenarios = Scenarios.sample(mdp, 5, 0)
    found = bracket(mdp, wait, scenarios=scenarios)
    column = mdp.exogenous_names.index("price")
    for k, start in enumerate(scenarios.endogenous[:, 0]):
        values = np.zeros(5)
        for price in scenarios.exogenous[::-1, k, column]:
            to = np.clip(np.arange(5)[:, None] + [-1, 0, 1], 0, 4)
            paid = -price * (to - np.arange(5)[:, None])
            values = (paid + 0.97 * values[to]).max(axis=1)
        assert found.upper_values[k] == pytest.approx(values[int(start)])
        assert values[int(start)] > 0.3
