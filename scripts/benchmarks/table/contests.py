"""How the rows are measured: each function makes a contest between ours and a peer or a limit.

All of them use public names only, because they measure an earlier commit as well.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.table.rows import (
    BARE_IMPORT,
    COPYING,
    DUMMY,
    PAPER,
    QUANTECON,
    SB3,
    SCIKIT,
    SYNC,
)

#: When this process began, but for the start of the interpreter.
STARTED = time.perf_counter()

#: Runs once, and returns its figure in the unit of the row.
Measured = Callable[[], float]


@dataclass
class Remark:
    """What is said of a row beside its figures.

    Attributes:
        note: for people.
        holds: whether what the target asks for beside the figure is so.
        memory: megabytes by which the process's peak grew, where that is measured.
        answer: the same for two trees if their results are the same; empty if not compared.
    """

    note: str = ""
    holds: bool = True
    memory: float | None = None
    answer: str = ""


@dataclass
class Contest:
    """Ours and its peers, ready to run.

    Attributes:
        ours: one round of ours.
        peers: one round of each peer or limit, in the same unit.
        warm_up: compiles, and fills caches; runs before the first round.
        remark: what is to be said after the last round.
        profile: lines of a profile, where that of Python would not show it.
    """

    ours: Measured
    peers: dict[str, Measured] = field(default_factory=dict)
    warm_up: Callable[[], object] = lambda: None
    remark: Callable[[], Remark] = Remark
    profile: Callable[[], list[str]] | None = None


def step(*, env_id: str, lanes: int, seconds: float) -> Contest:
    """The vector shell, Gymnasium's SyncVectorEnv with at most 512 lanes, and mere copies."""
    import gymnasium as gym

    import exo_envs  # noqa: F401
    from benchmarks.step import SYNC_LANES, observation_copies, sync_vector_env, vector_steps

    env = gym.make_vec(env_id, num_envs=lanes)
    sync = sync_vector_env(env_id, min(lanes, SYNC_LANES))
    return _rates(
        vector_steps(env),
        {SYNC: vector_steps(sync), COPYING: observation_copies(env)},
        seconds,
    )


def adapter(*, env_id: str, lanes: int, seconds: float) -> Contest:
    """SB3's VecEnv on the vector shell, and on a loop over single ones."""
    import exo_envs  # noqa: F401
    from benchmarks.rl import adapter_contenders

    contenders = adapter_contenders(env_id, lanes)
    return _rates(contenders["batched"], {DUMMY: contenders["looped"]}, seconds)


def _rates(ours: Any, peers: dict[str, Any], seconds: float) -> Contest:
    """A contest of contenders that run for some seconds."""

    def warm_up() -> None:
        for run in (ours, *peers.values()):
            run(min(seconds, 0.05))

    timed_peers = {name: (lambda run=run: run(seconds)) for name, run in peers.items()}
    return Contest(lambda: ours(seconds), timed_peers, warm_up)


def learn(
    *,
    env_id: str,
    seconds: float,  # noqa: ARG001
    options: dict[str, Any] | None = None,
    cost_weight: float = 0.0,
    transitions: int = 0,
    cold: bool = False,
) -> Contest:
    """CalibratedMaskLearner, on at least so many transitions."""
    from benchmarks.learn import Learned, compile_learning
    from benchmarks.learn import learn as learn_mask

    found: list[Learned] = []

    def ours() -> float:
        found.append(learn_mask(env_id, options or {}, cost_weight))
        return time.perf_counter() - STARTED if cold else found[-1].seconds

    def remark() -> Remark:
        first = found[0]  # later ones find memory that the first one left
        against = f", {first.verdict}" if first.verdict else ""
        return Remark(
            f"mask of {len(first.mask)}, {first.transitions:,} transitions{against}",
            first.transitions >= transitions,
            first.memory / 2**20,
            _digest(first.mask),
        )

    peers = {PAPER: lambda: 123.5} if not options and cost_weight == 3.0 else {}
    if cold:
        return Contest(ours, peers, remark=remark)
    return Contest(ours, peers, lambda: compile_learning(env_id, cost_weight), remark)


def learn_cold(**options: Any) -> Contest:
    """The same from the start of the process, nothing compiled before."""
    return learn(cold=True, **options)


def information(*, transitions: int, pairs: int, seconds: float) -> Contest:  # noqa: ARG001
    """All pairs, against scikit-learn on some of them."""
    from benchmarks.information import Pairs

    work = Pairs(transitions, pairs)
    return Contest(
        work.ours,
        {SCIKIT: work.theirs},
        work.ours,
        lambda: Remark(f"largest difference {work.difference:.1e} nats"),
    )


def plan(*, kind: str, size: int, discount: float, seconds: float) -> Contest:  # noqa: ARG001
    """Value iteration, against QuantEcon's modified policy iteration."""
    import numpy as np

    from benchmarks.plan import Rivals
    from benchmarks.problems import grid_problem, random_problem

    problem = {"random": random_problem, "grid": grid_problem}[kind]
    rivals = Rivals(problem(size, discount, np.random.default_rng(0)))
    return Contest(
        rivals.ours,
        {QUANTECON: rivals.theirs},
        rivals.ours,
        lambda: Remark(f"largest difference {rivals.difference():.1e}"),
    )


def product(*, variables: int, time_limit: float, seconds: float) -> Contest:  # noqa: ARG001
    """Value iteration where no joint matrix could be held."""
    import numpy as np

    from benchmarks.plan import verdict
    from benchmarks.problems import product_problem
    from benchmarks.timing import timed
    from planners import Plan, ValueIteration

    mdp = product_problem(variables, 0.95, np.random.default_rng(0))
    plans: list[Plan] = []

    def ours() -> float:
        taken, found = timed(lambda: ValueIteration().plan(mdp, time_limit=time_limit))
        plans.append(found)
        return taken

    def remark() -> Remark:
        found = plans[-1]
        return Remark(f"{verdict(found)} after {found.iterations} sweeps", bool(found.converged))

    small = product_problem(3, 0.95, np.random.default_rng(0))
    return Contest(ours, {}, lambda: ValueIteration().plan(small), remark)


def ppo(*, env_id: str, seconds: float) -> Contest:  # noqa: ARG001
    """The one file, and SB3 on the adapter with the same batches and epochs."""
    import exo_envs  # noqa: F401
    from benchmarks.rl import LIKE_THE_ONE_FILE, one_file_rate, sb3_rate

    return Contest(
        lambda: one_file_rate(env_id),
        {SB3: lambda: sb3_rate(env_id, LIKE_THE_ONE_FILE)},
        lambda: one_file_rate(env_id),
    )


def imported(*, packages: list[str], seconds: float, without_numba: bool = False) -> Contest:  # noqa: ARG001
    """Seconds of an import in a fresh process."""
    names = ", ".join(packages)
    loaded = f"""
import json, sys
import {names}
found = ["numba" in sys.modules]
import gymnasium
gymnasium.make("ExoCrowd-v0")
print(json.dumps([*found, "numba" in sys.modules]))
"""

    def remark() -> Remark:
        by_import, by_make = json.loads(_fresh("-c", loaded).stdout.splitlines()[-1])
        words = {True: "yes", False: "no"}
        note = f"loads Numba: {words[by_import]}, after gym.make: {words[by_make]}"
        return Remark(note, not (without_numba and (by_import or by_make)))

    return Contest(
        lambda: _import_seconds(names),
        {BARE_IMPORT: lambda: _import_seconds("numpy, gymnasium")},
        lambda: _import_seconds(names),
        remark,
        lambda: _slowest_imports(names, make=without_numba),
    )


def _import_seconds(names: str) -> float:
    code = (
        f"import time; start = time.perf_counter(); import {names}; "
        "print(time.perf_counter() - start)"
    )
    return float(_fresh("-c", code).stdout.splitlines()[-1])


def _slowest_imports(names: str, *, make: bool) -> list[str]:
    """The ten modules that take most time themselves, with those that gym.make imports or not."""
    code = f"import {names}"
    if make:
        code += "; import gymnasium; gymnasium.make('ExoCrowd-v0')"
    told = _fresh("-X", "importtime", "-c", code).stderr
    lines = [line.split("|") for line in told.splitlines() if line.startswith("import time:")]
    timed_modules = [
        (int(own.removeprefix("import time:")), name.strip()) for own, _, name in lines[1:]
    ]
    slowest = sorted(timed_modules, reverse=True)[:10]
    return [f"{own / 1e6:9.4f} s  {name}" for own, name in slowest]


def _fresh(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)


def _digest(mask: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(sorted(mask)).encode()).hexdigest()[:16]


#: The contests by the names that rows give.
CONTESTS: dict[str, Callable[..., Contest]] = {
    made.__name__: made
    for made in (step, adapter, learn, learn_cold, information, plan, product, ppo, imported)
}
