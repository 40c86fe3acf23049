"""Environments of other packages, where these are installed: what their sources say is found.

The packages are gym-invmgmt, or-gymnasium and minigrid; none of them is among the extras.
"""

import gymnasium as gym
import numpy as np
import pytest

from exo_envs.testing import audit

# What other people's packages warn of on import is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")


def supply_chain(**demand):
    """A serial supply chain: three nodes, four pipelines of orders on their way."""
    package = pytest.importorskip("gym_invmgmt")
    config = {"type": "stationary", "base_mu": 20, **demand}
    return package.CoreEnv(scenario="serial", demand_config=config)


def numbered(*numbers):
    return tuple(f"observation_{i}" for i in numbers)


def test_demand_that_nobody_can_influence():
    """What is shown: demand, backlog, stock (3), orders on their way (8), the time, goodwill."""
    found = audit(supply_chain(), rng=0)
    assert found.endogenous == numbered(*range(1, 13))
    assert found.exogenous == numbered(0, 13)
    assert found.constant == numbered(14)
    by_name = {f.variable: f for f in found.findings}
    for later, earlier in ((5, 6), (6, 7), (7, 8), (9, 10), (10, 11), (11, 12)):
        (first,), (second,) = numbered(later), numbered(earlier)
        assert by_name[first].through == (second,)  # an order moves up
    assert by_name["observation_5"].steps == 4


def test_demand_that_looks_at_the_service():
    """With goodwill, customers who were turned away come back less often."""
    found = audit(supply_chain(use_goodwill=True), rng=0)
    assert found.exogenous == numbered(13)  # the time alone
    assert found.endogenous == numbered(*range(13), 14)
    demand = found.findings[0]
    assert demand.through == ("observation_1",)  # the backlog
    assert demand.steps > 5


def test_a_newsvendor():
    """What is shown: price, cost, holding cost, penalty, mean demand, and a queue of orders."""
    package = pytest.importorskip("or_gymnasium.envs.newsvendor")
    names = ["price", "cost", "holding", "penalty", "demand", *(f"queue_{i}" for i in range(5))]
    found = audit(package.NewsvendorEnv(), rng=0, names=names)
    assert found.exogenous == tuple(names[:5])
    assert found.endogenous == tuple(names[5:])
    assert [f.steps for f in found.findings[5:]] == [5, 4, 3, 2, 1]
    assert [f.through for f in found.findings[5:9]] == [(name,) for name in names[6:]]


def test_a_portfolio():
    """What is shown: cash, three prices, three holdings. A reset draws all prices to come."""
    package = pytest.importorskip("or_gymnasium.envs.portfolio_opt")
    found = audit(package.PortfolioOptEnv(), rng=0)
    assert found.exogenous == numbered(1, 2, 3)
    assert found.endogenous == numbered(0, 4, 5, 6)


def test_minigrid():
    """Obstacles look like they move by themselves: they avoid one cell of nine, the agent's.

    That is too little to be seen with so few draws, and the audit says that it may have missed it.
    """
    pytest.importorskip("minigrid")

    def read(env, _):
        own = env.unwrapped
        cells = [coordinate for ball in own.obstacles for coordinate in ball.cur_pos]
        return np.array([*own.agent_pos, own.agent_dir, *cells], dtype=float)

    agent = ("agent_x", "agent_y", "agent_dir")
    balls = tuple(f"ball_{i}_{axis}" for i in range(4) for axis in "xy")
    env = gym.make("MiniGrid-Dynamic-Obstacles-8x8-v0")
    found = audit(env, rng=0, read=read, names=(*agent, *balls))
    assert set(agent) <= set(found.endogenous)
    for finding in found.findings[3:]:
        assert finding.is_moved or "a small effect may have been missed" in finding.reason
