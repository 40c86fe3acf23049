"""ExoGrid: against a reference written from its description, and solved exactly."""

import itertools

import numpy as np
import pytest

from exo_envs import State
from exo_envs.domains.grid import GridMDP, GridParameters

MAP = ["TD.T", ".#..", "RD.T"]
CELLS = [(row, column) for row in range(3) for column in range(4)]
TABLES = [cell for cell in CELLS if MAP[cell[0]][cell[1]] == "T"]
DOORS = [cell for cell in CELLS if MAP[cell[0]][cell[1]] == "D"]
STEPS = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
DONE = 12


class FixedNoise:
    """Stands in for a generator: every uniform number is the given one."""

    def __init__(self, uniform):
        self.uniform = np.asarray(uniform, dtype=float)

    def random(self, shape):
        return np.broadcast_to(self.uniform, shape)


def walk(robot, action):
    row, column = CELLS[robot]
    row, column = row + STEPS[action][0], column + STEPS[action][1]
    inside = 0 <= row < 3 and 0 <= column < 4
    return CELLS.index((row, column)) if inside and MAP[row][column] != "#" else robot


def reference_exogenous(x, happens):
    obj, carrier, guard, intent, weather = x
    if happens[0]:
        obj = (obj + (1 if carrier == 0 else -1)) % 3
    return (
        obj,
        1 - carrier if happens[1] else carrier,
        intent if happens[2] else guard,
        1 - intent if happens[3] else intent,
        1 - weather if happens[4] else weather,
    )


def reference_endogenous(robot, x, action, slips):
    """The robot's next value and the rewards of the object and of the guard."""
    if robot == DONE:
        return DONE, 0.0, 0.0
    target = walk(robot, action)
    crashes = target != robot and CELLS[target] == DOORS[x[2]]
    crash = -30.0 if crashes else 0.0
    if CELLS[robot] == TABLES[x[0]]:
        return DONE, 100.0, crash
    return (robot if slips or crashes else target), 0.0, crash


EXOGENOUS = list(itertools.product(range(3), range(2), range(2), range(2), range(2)))


def test_it_has_about_600_states_and_5_exogenous_variables():
    mdp = GridMDP()
    assert mdp.num_states == 624
    assert mdp.exogenous_names == ("object", "carrier", "guard", "guard_intent", "weather")


@pytest.mark.parametrize("happens", list(itertools.product([False, True], repeat=5)))
def test_exogenous_dynamics_are_as_described(happens):
    noise = FixedNoise(np.where(happens, 0.0, 1.0 - 1e-9))
    following = GridMDP().sample_exogenous(np.array(EXOGENOUS), noise)
    assert [tuple(x) for x in following] == [reference_exogenous(x, happens) for x in EXOGENOUS]


@pytest.mark.parametrize("slips", [False, True])
def test_endogenous_dynamics_and_rewards_are_as_described(slips):
    mdp = GridMDP()
    cases = list(itertools.product(range(13), EXOGENOUS, range(5)))
    state = State(np.array([[n] for n, _, _ in cases]), np.array([x for _, x, _ in cases]))
    action = np.array([a for _, _, a in cases])
    following = mdp.sample_endogenous(state, action, FixedNoise(0.0 if slips else 1.0 - 1e-9))
    terms = mdp.reward_terms(state, action)
    expected = [reference_endogenous(n, x, a, slips) for n, x, a in cases]
    assert following[:, 0].tolist() == [n for n, _, _ in expected]
    assert terms[:, 0].tolist() == [goal for _, goal, _ in expected]
    assert terms[:, 2].tolist() == [crash for _, _, crash in expected]
    assert not terms[:, [1, 3, 4]].any()


def test_events_have_their_probabilities():
    """Each frequency is within Hoeffding's bound for an error probability of 1e-9."""
    p = GridParameters()
    draws = 100_000
    bound = np.sqrt(np.log(2 / 1e-9) / (2 * draws))
    mdp, rng = GridMDP(p), np.random.default_rng(0)
    x = np.tile([0, 0, 0, 1, 0], (draws, 1))
    changed = (mdp.sample_exogenous(x, rng) != x).mean(axis=0)
    expected = [p.carry, p.turn, p.follow, p.reconsider, p.weather_change]
    np.testing.assert_allclose(changed, expected, atol=bound)
    state = State(np.full((draws, 1), 8), np.tile([0, 0, 0, 0, 0], (draws, 1)))
    stays = mdp.sample_endogenous(state, np.full(draws, 1), rng) == 8
    np.testing.assert_allclose(stays.mean(), p.slip, atol=bound)


def test_episodes_start_in_the_corner_with_the_world_anywhere():
    state = GridMDP().sample_initial(2000, np.random.default_rng(0))
    assert (state.endogenous == 8).all()
    assert len(np.unique(state.exogenous, axis=0)) == 48


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"slip": 1.5}, r"slip is a probability, 0 \.\.\. 1, not 1.5"),
        ({"weather_change": -0.1}, r"weather_change is a probability, 0 \.\.\. 1, not -0.1"),
        ({"carry": float("nan")}, r"carry is a finite number, not nan"),
        ({"follow": "often"}, r"follow is a finite number, not 'often'"),
        ({"turn": True}, r"turn is a finite number, not True"),
        ({"crash_cost": -1}, r"crash_cost is a finite number, at least 0, not -1"),
        ({"goal_reward": float("inf")}, r"goal_reward is a finite number, at least 0, not inf"),
        ({"discount": 0}, r"discount is in \(0, 1\], not 0"),
        ({"horizon": 4.0}, r"horizon is a whole number, at least 1, not 4.0"),
    ],
    ids=str,
)
def test_bad_parameters(numbers, message):
    with pytest.raises(ValueError, match=message):
        GridParameters(**numbers)


@pytest.fixture(scope="module")
def returns_by_mask():
    """What the reduced policy of each mask earns in the full model, exactly.

    Dropped variables are marginalised under the stationary distribution; a reduced model keeps
    only the reward terms of its mask.
    """
    p = GridParameters()
    probability = [p.carry, p.turn, p.follow, p.reconsider, p.weather_change]
    index = {x: i for i, x in enumerate(EXOGENOUS)}
    exogenous = np.zeros((48, 48))
    for happens in itertools.product([False, True], repeat=5):
        weight = np.prod(np.where(happens, probability, 1 - np.array(probability)))
        for x in EXOGENOUS:
            exogenous[index[x], index[reference_exogenous(x, happens)]] += weight
    endogenous = np.zeros((13, 48, 5, 13))
    terms = np.zeros((13, 48, 5, 5))
    for n, x, a in itertools.product(range(13), EXOGENOUS, range(5)):
        for slips, weight in ((False, 1 - p.slip), (True, p.slip)):
            following, goal, crash = reference_endogenous(n, x, a, slips)
            endogenous[n, index[x], a, following] += weight
            terms[n, index[x], a, [0, 2]] = goal, crash
    stationary = np.full(48, 1 / 48) @ np.linalg.matrix_power(exogenous, 10_000)

    def reduced_policy(mask):
        values = [tuple(x[i] for i in mask) for x in EXOGENOUS]
        labels = np.array([sorted(set(values)).index(value) for value in values])
        member = np.eye(labels.max() + 1)[labels]  # (48, K)
        weights = member * stationary[:, None]
        weights /= weights.sum(axis=0)
        reduced_exogenous = weights.T @ exogenous @ member
        reduced_endogenous = np.einsum("nxam,xk->nkam", endogenous, weights)
        reward = np.einsum("nxa,xk->nka", terms[..., list(mask)].sum(axis=-1), weights)
        values = np.zeros((13, member.shape[1]))
        for _ in range(500):
            ahead = np.einsum("nkam,mk->nka", reduced_endogenous, values @ reduced_exogenous.T)
            q = reward + p.discount * ahead
            values = q.max(axis=-1)
        return q.argmax(axis=-1)[:, labels]

    def value(policy):
        n, x = np.indices(policy.shape)
        reward, moves = terms[n, x, policy].sum(axis=-1), endogenous[n, x, policy]
        values = np.zeros((13, 48))
        for _ in range(p.horizon):
            values = reward + p.discount * np.einsum("nxm,mx->nx", moves, values @ exogenous.T)
        return values[8].mean()

    names = GridMDP().exogenous_names
    return {
        frozenset(names[i] for i in mask): value(reduced_policy(mask))
        for size in range(6)
        for mask in itertools.combinations(range(5), size)
    }


STAIRS = [
    (0.0, []),
    (45.4, ["object"]),
    (75.2, ["object", "guard"]),
    (76.6, ["object", "guard", "carrier"]),
    (77.1, ["object", "guard", "carrier", "guard_intent"]),
]


def test_returns_are_those_of_the_documentation(returns_by_mask):
    for expected, mask in STAIRS:
        assert returns_by_mask[frozenset(mask)] == pytest.approx(expected, abs=0.05)


def test_the_best_mask_grows_as_variables_get_cheaper(returns_by_mask):
    def best(cost):
        return max(returns_by_mask, key=lambda mask: returns_by_mask[mask] - cost * len(mask))

    costs = [46.0, 40.0, 10.0, 0.9, 0.1]
    assert [best(cost) for cost in costs] == [frozenset(mask) for _, mask in STAIRS]


def test_the_weather_never_matters(returns_by_mask):
    for mask, value in returns_by_mask.items():
        assert returns_by_mask[mask | {"weather"}] == pytest.approx(value, abs=1e-9)
