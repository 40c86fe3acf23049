"""Numbers that users hand in: Python's own afterwards, and none that takes the machine down."""

import dataclasses
import pickle
from decimal import Decimal
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest

from exo_envs import AdaptedMDP, ExoVectorEnv, Variable
from exo_envs.core.arguments import check_positive, check_real, check_whole, optional
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.factory import FactoryMDP, FactoryParameters
from exo_envs.domains.grid import GridMDP, GridParameters
from exo_envs.domains.synthetic import SyntheticMDP, SyntheticParameters

DOMAINS = {
    GridParameters: GridMDP,
    FactoryParameters: FactoryMDP,
    CrowdParameters: CrowdMDP,
    SyntheticParameters: SyntheticMDP,
}
SMALL = (np.int8, np.uint8, np.int16, np.uint64)
NO_NUMBERS = ["4", b"4", None, float("nan"), float("inf"), 2j, np.array([4]), [4], (), {}, object()]


@pytest.mark.parametrize("cls", DOMAINS)
@pytest.mark.parametrize("kind", [*SMALL, np.float32, np.float64])
def test_numpys_numbers_become_pythons(cls, kind):
    """So the model is the same, its parameters are equal, and they are pickled as the others."""
    given = {}
    for field in dataclasses.fields(cls):
        if isinstance(field.default, int) and issubclass(kind, np.integer):
            given[field.name] = kind(field.default)
        elif isinstance(field.default, float):
            real = issubclass(kind, np.floating)
            given[field.name] = (kind if real else np.float64)(field.default)
    parameters = cls(**given)
    for name in given:
        assert type(getattr(parameters, name)) in (int, float)
    if kind is not np.float32:  # which cannot hold 0.1
        assert parameters == cls()
        assert pickle.loads(pickle.dumps(parameters)) == parameters
        assert repr(parameters) == repr(cls())
    following = [
        DOMAINS[cls](p).sample_initial(3, np.random.default_rng(0)).exogenous.shape
        for p in (parameters, cls())
    ]
    assert following[0] == following[1]


@pytest.mark.parametrize("kind", SMALL)
def test_a_crowd_of_100_agents_whatever_the_type_of_100(kind):
    """3 * np.int8(100) is 44: another problem, or none, if it were computed with."""
    env = gym.make("ExoCrowd-v0", num_agents=kind(100))
    model = env.unwrapped.mdp
    assert (
        model.exogenous_variables == CrowdMDP(CrowdParameters(num_agents=100)).exogenous_variables
    )
    env.reset(seed=0)
    env.step(0)


@pytest.mark.parametrize("cls", DOMAINS)
@pytest.mark.parametrize("value", [*NO_NUMBERS, True, np.True_, Decimal(4), Decimal("nan")])
def test_what_is_no_number_is_refused_by_name(cls, value):
    for field in dataclasses.fields(cls):
        if isinstance(field.default, (int, float)):
            with pytest.raises(ValueError, match=f"{field.name} is "):
                cls(**{field.name: value})


def test_fractions_are_real_numbers_but_not_whole_ones():
    assert GridParameters(slip=Fraction(1, 4)).slip == 0.25
    with pytest.raises(ValueError, match=r"horizon is a whole number.*Fraction\(4, 1\)"):
        GridParameters(horizon=Fraction(4))


@pytest.mark.parametrize(
    ("cls", "given", "words"),
    [
        (CrowdParameters, {"num_agents": 10**8}, r"num_agents=100000000 .* variables; at most"),
        (CrowdParameters, {"num_agents": 10**5000}, r"about 10\^5000 variables"),
        (CrowdParameters, {"num_objects": 10**8}, "variables; at most 1,000,000 fit into memory"),
        (CrowdParameters, {"grid_size": 10**6}, r"grid_size=1000000 .* variables"),
        (CrowdParameters, {"grid_size": 900, "num_tables": 10**5}, "ways to tables; at most"),
        (FactoryParameters, {"num_noise": 10**9}, "num_noise=1000000000 .* variables; at most"),
        (FactoryParameters, {"queue_length": 10**9}, "variables; at most"),
        (FactoryParameters, {"num_technicians": 10**9}, "variables; at most"),
        (
            FactoryParameters,
            {"rows": 10**6},
            "rows=1000000 and columns=6 .* 6000000 cells; at most",
        ),
        (FactoryParameters, {"clock_size": 10**30}, r"clock_size is a whole number, at most"),
        (SyntheticParameters, {"num_noise": 10**9}, "variables; at most"),
        (SyntheticParameters, {"num_copies": 10**9}, "variables; at most"),
        (SyntheticParameters, {"num_correlated": 10**9}, "variables; at most"),
        (SyntheticParameters, {"num_paying": 10**9}, "variables; at most"),
        (SyntheticParameters, {"noise_size": 10**9}, "values of noise; at most"),
        *(
            (cls, {"horizon": 10**18}, r"horizon is a whole number, at most 1,000,000,000 \(whole")
            for cls in DOMAINS
        ),
    ],
)
def test_huge_arguments_are_refused_before_memory_is_taken(cls, given, words):
    with pytest.raises(ValueError, match=words):
        cls(**given)


def test_a_large_crowd_is_no_huge_one():
    CrowdParameters(grid_size=202, num_agents=19_000, num_objects=6000)
    crowd = CrowdMDP(CrowdParameters(grid_size=64, num_agents=1900, num_objects=600))
    assert len(crowd.exogenous_variables) == 10_396
    assert len(FactoryMDP(FactoryParameters(num_noise=10_000)).exogenous_variables) > 10_000


@pytest.mark.parametrize(
    ("num_envs", "words"),
    [
        (10**12, r"num_envs is a whole number, at most 178,956,970 \(states of 6 variables"),
        (0, "num_envs is a whole number, at least 1, not 0"),
        (2.0, "num_envs is a whole number, at least 1, not 2.0"),
        (True, "num_envs is a whole number, at least 1, not True"),
        ("2", "num_envs is a whole number, at least 1, not '2'"),
    ],
)
def test_odd_numbers_of_lanes_are_refused(num_envs, words):
    with pytest.raises(ValueError, match=words):
        ExoVectorEnv(GridMDP(), num_envs)


def test_lanes_and_limits_are_pythons_numbers():
    env = ExoVectorEnv(GridMDP(), np.uint8(200), max_episode_steps=np.int8(5))
    assert type(env.num_envs) is int
    env.reset(seed=0)
    for _ in range(5):
        truncated = env.step(np.zeros(200, dtype=np.uint8))[3]
    assert truncated.any()
    with pytest.raises(ValueError, match="max_episode_steps is a whole number"):
        ExoVectorEnv(GridMDP(), 2, max_episode_steps=True)


def test_sizes_of_variables_are_pythons_numbers():
    assert Variable("x", np.uint8(200)) == Variable("x", 200)
    assert type(Variable("x", np.int16(3)).size) is int
    assert Variable("x", 2**62).size == 2**62
    for size in (10**30, 2**62 + 1):
        with pytest.raises(
            ValueError, match=r"size of 'x' is .* at most 4,[0-9,]* \(values are 64"
        ):
            Variable("x", size)
    for size in (*NO_NUMBERS, True, 2.0, 0, -1, Decimal(3)):
        with pytest.raises(ValueError, match="the size of 'x' is a whole number, at least 1, not"):
            Variable("x", size)


def test_adapted_models_convert_too():
    mdp = AdaptedMDP(gym.make("ExoGrid-v0"), horizon=np.uint8(200), discount=np.float32(0.5))
    assert (type(mdp.horizon), type(mdp.discount)) == (int, float)
    with pytest.raises(ValueError, match="discount is a finite number, not 'a'"):
        AdaptedMDP(gym.make("ExoGrid-v0"), horizon=3, discount="a")


def test_checks_return_what_they_checked():
    assert type(check_whole("n", np.uint8(3), 1)) is int
    assert optional(check_whole)("n", None, 1) is None
    assert type(check_real("x", np.int8(3))) is float
    assert check_positive("x", np.float32(0.5)) == 0.5
    for huge in (10**400, Fraction(10**400), np.longdouble("1e4000")):
        with pytest.raises(ValueError, match="x is a finite number, not"):
            check_real("x", huge)
