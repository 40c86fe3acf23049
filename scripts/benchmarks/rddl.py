"""`python scripts/benchmark.py rddl`: imported models against pyRDDLGym's own simulator."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import Contender, race, random_steps
from exo_envs import ExoVectorEnv, from_rddl

LANES = (1, 64, 4096)


class Example(NamedTuple):
    """One domain of rddlrepository and the line that imports it."""

    domain: str
    instance: int
    arguments: Mapping[str, Any] = MappingProxyType({})

    @property
    def line(self) -> str:
        """The import as a line of Python."""
        given = "".join(f", {name}={value!r}" for name, value in self.arguments.items())
        return f"from_rddl({self.domain!r}, {self.instance}{given})"


#: The domains of docs/rddl.md.
EXAMPLES = (
    Example("CrossingTraffic_MDP_ippc2011", 5),
    Example("Intruders_Discrete", 0),
    Example("PowerGen_Discrete", 0),
    Example(
        "SupplyChain_or",
        0,
        {"action_values": {"produce": (0, 10, 20, 30), "ship": (0, 5, 10, 20)}},
    ),
    Example("Workforce_rddlsim", 0, {"action_values": {"train": (0, 1, 2, 3)}}),
    Example(
        "HVAC_ippc2023",
        2,
        {
            "action_values": {"fan-in": (0.05, 1, 5), "heat-input": (0, 100)},
            "bounds": {"temp-zone": (0, 40), "temp-heater": (0, 40)},
        },
    ),
    Example("EarthObservation_ippc2018", 1),
    Example("Manufacturer_ippc2018", 1, {"max_concurrent": 2}),
    Example("Knapsack_or", 0),
    Example("BinPacking_or", 0),
    Example("Tetris_arcade", 0),
)


def add_command(commands: Any) -> None:
    """The sub-command ``rddl`` of scripts/benchmark.py."""
    parser = commands.add_parser("rddl", help="imported RDDL models against pyRDDLGym")
    parser.add_argument("domains", nargs="*", help="default: those of docs/rddl.md")
    parser.add_argument("--seconds", type=float, default=0.5, help="per contender and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """One line a domain."""
    examples = [e for e in EXAMPLES if not arguments.domains or e.domain in arguments.domains]
    if not examples:
        raise SystemExit(f"choose from {', '.join(e.domain for e in EXAMPLES)}")
    lanes = "".join(f"{f'{count} lanes':>14}" for count in LANES)
    print(f"\n{'steps/s, random actions':34}{'pyRDDLGym':>12}{lanes}{'ratio':>9}")
    for example in examples:
        rates = compare(example, arguments.seconds, arguments.rounds)
        theirs, *ours = rates.values()
        shown = "".join(f"{rate:>14,.0f}" for rate in ours)
        name = f"{example.domain} {example.instance}"
        print(f"{name:34}{theirs:>12,.0f}{shown}{ours[-1] / theirs:>8,.0f}x")


def compare(example: Example, seconds: float, rounds: int) -> dict[str, float]:
    """Steps per second of pyRDDLGym's simulator and of our vector shell."""
    mdp = from_rddl(example.domain, example.instance, **example.arguments)
    contenders = {"pyRDDLGym": simulator_steps(example, mdp)}
    for lanes in LANES:
        env = ExoVectorEnv(mdp, lanes)
        env.reset(seed=0)
        contenders[f"{lanes} lanes"] = random_steps(env, mdp.num_actions)
    return race(contenders, seconds, rounds)


def simulator_steps(example: Example, mdp: Any) -> Contender:
    """The same actions in pyRDDLGym's vectorised simulator, without its Gymnasium environment."""
    from pyRDDLGym.core.simulator import RDDLSimulator

    from exo_envs.sources.rddl.loading import load

    lifted = load(example.domain, example.instance)
    simulator = RDDLSimulator(lifted, rng=np.random.default_rng(0), keep_tensors=True)
    simulator.reset()
    prepared = [
        simulator.prepare_actions_for_sim(mdp.action_fluents(action))
        for action in np.random.default_rng(0).integers(mdp.num_actions, size=16).tolist()
    ]

    def run(seconds: float) -> float:
        steps, start = 0, time.perf_counter()
        with np.errstate(all="ignore"):
            while time.perf_counter() - start < seconds:
                *_, done = simulator.step(prepared[steps % len(prepared)])
                steps += 1
                if done or steps % mdp.horizon == 0:
                    simulator.reset()
        return steps / (time.perf_counter() - start)

    return run
