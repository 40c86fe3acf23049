"""The rows of the table: what is measured, how often, and what is to be reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

MINUTE = 60.0
COPYING = "copying observations"
SYNC, DUMMY, SB3 = "SyncVectorEnv", "DummyVecEnv", "SB3, same batches"
SCIKIT, QUANTECON, PAPER = "scikit-learn", "QuantEcon MPI", "the paper's 123.5 s"
BARE_IMPORT = "numpy and gymnasium"


@dataclass(frozen=True)
class Target:
    """What is to be reached.

    Attributes:
        text: for people.
        figure: the figure itself is at least that, if it is a rate, and at most that in seconds.
        known: the figure of the commit before on the machine on which ``figure`` was set. Another
            machine may be faster, so that the figure must also be as many times that of before.
        times: how many times as fast as ``than``.
        than: a peer, or "before".
        memory: megabytes of the whole process, at most.
    """

    text: str
    figure: float | None = None
    known: float | None = None
    times: float | None = None
    than: str = ""
    memory: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: by which it is asked for; the part before the slash is its group.
        work: what is measured, for people.
        contest: the name of a function of ``benchmarks.table.contests``.
        options: what that function is given.
        unit: of its figures. Rates are better if they are higher, seconds if they are lower.
        target: what is to be reached; None where nothing is.
        cores: that the process may use; None is all.
        turns: processes for each of the two trees, which take turns.
        rounds: in each process, of which the best counts.
        quick: whether ``--quick`` has it.
        empty_cache: whether nothing that Numba compiled before is there.
        before: whether it is also measured on the commit before.
        timeout: seconds after which a process is stopped.
    """

    name: str
    work: str
    contest: str
    options: dict[str, Any] = field(default_factory=dict)
    unit: Literal["steps/s", "s"] = "s"
    target: Target | None = None
    cores: int | None = None
    turns: int = 1
    rounds: int = 1
    quick: bool = False
    empty_cache: bool = False
    before: bool = True
    timeout: float = 20 * MINUTE

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]


def step_row(env_id: str, lanes: int, cores: int, millions: float, known: float) -> Row:
    """Steps of a vector environment on one core or two, and what was known before, in millions."""
    domain = env_id.removeprefix("Exo").removesuffix("-v0").lower()
    which = "one core" if cores == 1 else "two cores"
    return Row(
        name=f"step/{domain}-{lanes}-{which.replace(' ', '-')}",
        work=f"step, {env_id}, {lanes} lanes, {which}",
        contest="step",
        options={"env_id": env_id, "lanes": lanes},
        unit="steps/s",
        target=Target(f"{millions:g} M", figure=millions * 1e6, known=known * 1e6),
        cores=cores,
        turns=2,
        rounds=4,
        quick=True,
    )


def plan_row(kind: str, size: int, discount: float, times: float) -> Row:
    """Value iteration against QuantEcon."""
    return Row(
        name=f"plan/{kind}-{size}-{discount}",
        work=f"value iteration, {kind}, {100 * size:,} states, γ {discount}",
        contest="plan",
        options={"kind": kind, "size": size, "discount": discount},
        target=Target(f"{times:g} x {QUANTECON}", times=times, than=QUANTECON),
        turns=2,
        rounds=2,
        quick=size <= 500,
    )


def ppo_row(env_id: str) -> Row:
    """The one-file PPO."""
    return Row(
        name=f"ppo/{env_id.removeprefix('Exo').removesuffix('-v0').lower()}",
        work=f"one-file PPO, {env_id}",
        contest="ppo",
        options={"env_id": env_id},
        unit="steps/s",
        target=Target("2 x before", times=2.0, than="before"),
        turns=2,
    )


def learn_row(name: str, work: str, options: dict[str, Any], target: Target, **more: Any) -> Row:
    """Learning a mask."""
    return Row(f"learn/{name}", work, "learn", options, target=target, **more)


CROWD = {"env_id": "ExoCrowd-v0", "cost_weight": 3.0}
CROWD_1000 = {"grid_size": 20, "num_agents": 180, "num_objects": 60}
CROWD_10000 = {"grid_size": 64, "num_agents": 1768, "num_objects": 600}

ROWS = (
    step_row("ExoCrowd-v0", 512, 1, 5.0, 1.26),
    step_row("ExoCrowd-v0", 512, 2, 8.0, 1.26),
    step_row("ExoCrowd-v0", 4096, 1, 5.0, 1.35),
    step_row("ExoCrowd-v0", 4096, 2, 8.0, 1.35),
    step_row("ExoCrowd-v0", 8, 1, 0.6, 0.14),
    step_row("ExoGrid-v0", 512, 1, 6.0, 2.3),
    step_row("ExoGrid-v0", 512, 2, 6.0, 2.3),
    step_row("ExoFactory-v0", 512, 1, 6.0, 2.2),
    step_row("ExoFactory-v0", 512, 2, 6.0, 2.2),
    Row(
        name="step/adapter-8",
        work="step, SB3's adapter, ExoCrowd-v0, 8 lanes",
        contest="adapter",
        options={"env_id": "ExoCrowd-v0", "lanes": 8},
        unit="steps/s",
        target=Target(f"10 x {DUMMY}", times=10.0, than=DUMMY),
        cores=1,
        turns=2,
        rounds=4,
        quick=True,
    ),
    learn_row(
        "crowd",
        "mask of ExoCrowd-v0, λ = 3, warm",
        CROWD,
        Target("5 s", figure=5.0, known=9.4),
        turns=2,
        rounds=2,
    ),
    Row(
        name="learn/crowd-cold",
        work="mask of ExoCrowd-v0, λ = 3, fresh process, empty Numba cache",
        contest="learn_cold",
        options=CROWD,
        target=Target("20 s", figure=20.0, known=39.0),
        empty_cache=True,
    ),
    learn_row(
        "crowd-1000",
        "mask of a crowd of 1,000 variables, λ = 0",
        {"env_id": "ExoCrowd-v0", "options": CROWD_1000},
        Target("20 s", figure=20.0, known=79.0),
    ),
    learn_row(
        "crowd-10000",
        "mask of a crowd of 10,000 variables, λ = 0",
        {"env_id": "ExoCrowd-v0", "options": CROWD_10000},
        Target("10 minutes, 6 GB", figure=10 * MINUTE, memory=6000.0),
        before=False,
        timeout=60 * MINUTE,
    ),
    learn_row(
        "synthetic-10000",
        "mask of ExoSynthetic-v0, 10,000 variables, λ = 0",
        {
            "env_id": "ExoSynthetic-v0",
            "options": {"num_noise": 9978},
            "transitions": 100_000,
        },
        Target("15 s, 100,000 transitions", figure=15.0, known=26.8),
    ),
    Row(
        name="information/crowd",
        work="information, all pairs of 124 variables, 100,000 transitions",
        contest="information",
        options={"transitions": 100_000, "pairs": 12},
        target=Target(f"500 x {SCIKIT}", times=500.0, than=SCIKIT),
        turns=2,
        rounds=3,
        quick=True,
    ),
    *(
        plan_row(kind, size, discount, times)
        for kind, times in (("random", 25.0), ("grid", 10.0))
        for size in (500, 5000)
        for discount in (0.95, 0.99)
    ),
    Row(
        name="plan/product",
        work="value iteration, product of 6 variables, 10^8 states, limit 60 s",
        contest="product",
        options={"variables": 6, "time_limit": 60.0},
        target=Target("converged in 60 s", figure=60.0),
    ),
    ppo_row("ExoFactory-v0"),
    ppo_row("ExoCrowd-v0"),
    Row(
        name="import/exo_envs",
        work="import exo_envs",
        contest="imported",
        options={"packages": ["exo_envs"], "without_numba": True},
        target=Target("no Numba until a step", figure=float("inf")),
        turns=2,
        rounds=5,
        quick=True,
    ),
    Row(
        name="import/all",
        work="import exo_envs, planners, wrappers",
        contest="imported",
        options={"packages": ["exo_envs", "planners", "wrappers"]},
        turns=2,
        rounds=5,
        quick=True,
    ),
)
