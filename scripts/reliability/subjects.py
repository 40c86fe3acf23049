"""What odd inputs are tried on: small models, policies, data and files, each made once."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from exo_envs import AdaptedMDP, ExoEnv, ExoMDP, ExoVectorEnv, State, Variable
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.domains.crowd import CrowdMDP, CrowdParameters
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from exo_envs.domains.synthetic import RealSyntheticMDP, SyntheticMDP, SyntheticParameters
from exo_envs.testing import check_mdp
from planners import (
    UCT,
    ForecastPlanner,
    Objective,
    Policy,
    ReducedMDP,
    Scenarios,
    ValueIteration,
    bracket,
    estimate_objective,
)
from planners.discretization.coarse import CoarseMDP, with_values
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import DecisionLists, Rule
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from reliability.user_models import (
    Battery,
    Broad,
    Ferry,
    Harbour,
    Market,
    Wide,
    battery_on_record,
    price_table,
)
from wrappers import (
    AgentPolicy,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    FlatVectorObservation,
    GreedyMaskLearner,
    LearnedMask,
    Study,
)

IDS = ("ExoGrid-v0", "ExoFactory-v0", "ExoCrowd-v0", "ExoSynthetic-v0", "ExoSyntheticReal-v0")
#: Settings with which a fit takes hundredths of a second.
TINY: dict[str, Any] = {"n_rollouts": 6, "n_data_rollouts": 16}
LEARNERS = (CalibratedMaskLearner, CorrelationalMaskLearner, GreedyMaskLearner)
SMALL_SYNTHETIC = {
    "num_paying": 1,
    "num_xor_pairs": 0,
    "generations": 1,
    "num_moving": 0,
    "num_copies": 1,
    "num_noise": 1,
    "num_correlated": 0,
    "horizon": 10,
}
SMALL_CROWD = {"grid_size": 4, "num_agents": 3, "num_porters": 1, "num_objects": 2, "num_tables": 3}


def factored_mdp() -> FactoredMDP:
    """A small model that is written down as tables."""
    rng = np.random.default_rng(0)
    sizes, states, actions = (2, 3), 4, 2
    factors = [
        Factor.from_table((0,), rng.dirichlet(np.ones(2), size=2)),
        Factor.from_table((0, 1), rng.dirichlet(np.ones(3), size=6)),
    ]
    rules = {
        (n, a): [
            Rule.from_table((1,), 0.5 * rng.dirichlet(np.ones(states), size=3)),
            Rule.from_table((), rng.dirichlet(np.ones(states), size=1)),
        ]
        for n in range(states)
        for a in range(actions)
    }
    return FactoredMDP(
        endogenous_variables=(Variable("n", states),),
        exogenous_variables=(Variable("x0", 2), Variable("x1", 3)),
        num_actions=actions,
        discount=0.9,
        horizon=5,
        factors=factors,
        decision_lists=DecisionLists.from_lists([*rules.values()], actions, sizes),
        base_reward=rng.normal(size=(states, actions)),
        terms={1: rng.normal(size=(3, states, actions))},
        terminal=np.arange(states) == 3,
        initial=State(np.zeros((3, 1), dtype=np.int64), rng.integers(sizes, size=(3, 2))),
    )


@cache
def model(name: str) -> Any:
    """A model of each kind, by name."""
    made: dict[str, Any] = {
        "grid": GridMDP,
        "factory": FactoryMDP,
        "crowd": lambda: CrowdMDP(CrowdParameters(**SMALL_CROWD)),
        "synthetic": lambda: SyntheticMDP(SyntheticParameters(**SMALL_SYNTHETIC)),
        "planted": SyntheticMDP,
        "factored": factored_mdp,
        "tabulated": lambda: reduced("grid", ("object", "guard")),
        "blind": lambda: reduced("market", ()),
        "simulated": lambda: reduced("wide", ("price", "season")),
        "adapted": lambda: AdaptedMDP(Harbour(), horizon=5),
        "counted": lambda: CountedMDP(Market()),
        "market": Market,
        "ferry": Ferry,
        "wide": Wide,
        "broad": Broad,
        "coarse": lambda: CoarseMDP(Broad(), data("broad").bins),
        "binned": lambda: reduced("broad", ("price", "season")),
        "battery": Battery,
        "battery-coarse": lambda: CoarseMDP(Battery(), data("battery").bins),
        "battery-reduced": lambda: reduced("battery", ("price",)),
        "planted-real": RealSyntheticMDP,
        "trace": lambda: battery_on_record(price_table(80)),
    }
    return made[name]()


MODELS = (
    *("grid", "factory", "crowd", "synthetic", "planted", "factored", "tabulated", "blind"),
    *("simulated", "adapted", "counted", "market", "ferry", "wide", "broad", "coarse", "binned"),
    *("battery", "battery-coarse", "battery-reduced", "planted-real", "trace"),
)


def reduced(name: str, mask: tuple[str, ...]) -> ReducedMDP:
    """A reduced model, from little data."""
    return ReducedMDP.estimate(model(name), mask, rng=0, num_rollouts=40)


@cache
def data(name: str = "market") -> ExogenousData:
    """Rollouts of a model."""
    return ExogenousData.collect(model(name), 24, np.random.default_rng(0))


@cache
def survey(name: str = "market") -> EndogenousSurvey:
    """What was found out about a model."""
    return EndogenousSurvey.collect(model(name), data(name), np.random.default_rng(0))


@cache
def scenarios(name: str = "market") -> Scenarios:
    """Trajectories of a model."""
    return Scenarios.sample(model(name), 6, 0)


@cache
def study() -> Study:
    """A study in which some is known already."""
    made = Study(Market(), 0, **TINY)
    made.survey()
    return made


@cache
def objective() -> Objective:
    """An estimate of J."""
    return estimate_objective(Market(), ("price",), rng=0, n_rollouts=6, num_rollouts=16)


@cache
def learner() -> CalibratedMaskLearner:
    """A learner that has learned."""
    return CalibratedMaskLearner(**TINY).fit(Market(), rng=0)


@cache
def policy(kind: str) -> Policy:
    """A policy of each kind, of the market with the mask of price and season."""
    if kind == "binned":
        return with_values(ValueIteration().plan(model("binned")), model("binned")).policy
    mdp = reduced("market", ("price", "season"))
    if kind == "tabular":
        return ValueIteration().plan(mdp).policy
    if kind == "forecast":
        return ForecastPlanner(num_rollouts=24).plan(mdp).policy
    if kind == "uct":
        return UCT(simulations=3, depth=2).plan(mdp).policy
    env = FlatVectorObservation(ExoVectorEnv(Market(), 2))
    return AgentPolicy(lambda flat: np.zeros(len(flat), dtype=np.int64), env)


POLICIES = ("tabular", "forecast", "uct", "binned", "agent")


def make_env(name: str) -> Any:
    """A new environment."""
    return gym.make(name, disable_env_checker=True) if name in IDS else ExoEnv(model(name), "ansi")


def make_vector_env(name: str) -> Any:
    """A new one with three lanes."""
    return gym.make_vec(name, num_envs=3) if name in IDS else ExoVectorEnv(model(name), 3)


@cache
def env(name: str) -> Any:
    """An environment that has been reset."""
    made = make_env(name)
    made.reset(seed=0)
    return made


@cache
def folder() -> Path:
    """A folder of this process, which goes when it ends."""
    kept = tempfile.TemporaryDirectory(prefix="exo-fuzz-")
    _KEPT.append(kept)
    return Path(kept.name)


_KEPT: list[Any] = []  # or the folder would go at once


@cache
def saved(kind: str) -> Path:
    """A file of each kind that can be saved."""
    path = folder() / f"saved-{kind}"
    if kind in POLICIES:
        policy(kind).save(path)  # type: ignore[attr-defined]
    elif kind == "mask":
        learner().save(path)
    elif kind == "learned":
        LearnedMask(ExoEnv(Market()), CalibratedMaskLearner(**TINY), 0).save(path)
    else:
        model(kind).save(path)
    return path


def sound_state(mdp: ExoMDP, shape: tuple[int, ...], rng: np.random.Generator) -> State:
    """States of a model, in any batch shape."""
    n, x = mdp.sample_uniform(int(np.prod(shape, dtype=np.int64)), rng)
    return State(n.reshape(*shape, n.shape[-1]), x.reshape(*shape, x.shape[-1]))


def warm_up() -> None:
    """Do once what compiles, so that the time limits of cases are about the cases."""
    for name in MODELS:
        mdp = model(name)
        mdp.sample_next(
            mdp.sample_initial(2, rng := np.random.default_rng(0)), np.zeros(2, int), rng
        )
    for kind in POLICIES:
        policy(kind)(sound_state(model("market"), (2,), np.random.default_rng(0)))
    for cls in LEARNERS:
        cls(**TINY).fit(Ferry(), rng=0)
    for name in ("market", "ferry"):
        bracket(model(name), lambda state: np.zeros(len(state.endogenous), int), 4)
        check_mdp(model(name), num_states=8, num_samples=20)
