"""What a trial is: one seed, one domain, one method, one lambda.

A trial is a pure function of its :class:`TrialSpec`: wherever it runs it finds the same mask, to
the last byte, and only the times that it measured differ. Those are kept apart, in "measured".
"""

from __future__ import annotations

import contextlib
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium as gym
import numba
import numpy as np
from threadpoolctl import threadpool_limits

import exo_envs  # noqa: F401 registers the environments
from exo_envs import ExoMDP
from planners.reduced.ignored_rewards import IgnoredRewards
from reproduction.curve import points_of
from reproduction.heuristics import heuristic_mask
from reproduction.settings import CROWD, EXPECTED_SECONDS, FACTORY, GRID, READINGS, Settings
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    LearningStoppedWarning,
    MaskLearner,
    RewardVariableMaskLearner,
    Study,
)
from wrappers.fitting.history import Record

SMALL_METHODS = ("brute force", "greedy", "paper", "ours")
LARGE_METHODS = {
    FACTORY: ("greedy", "first phase", "paper", "ours"),
    CROWD: ("greedy + heuristics", "first phase", "paper", "ours"),
}
GOAL_METHODS = ("paper", "ours")
#: What variables outside a mask pay in its reduced model: nothing, as in the paper.
IGNORED_REWARDS: IgnoredRewards = "zero"


@dataclass(frozen=True)
class TrialSpec:
    """A trial, completely.

    Attributes:
        experiment: one of :data:`reproduction.settings.EXPERIMENTS`.
        domain: the id of the environment.
        goal: of ExoCrowd; None elsewhere.
        method: one of :data:`reproduction.settings.METHODS`.
        cost_weight: the paper's lambda.
        trial: its number; all methods meet the same seed in the same trial.
        settings: everything else.
    """

    experiment: str
    domain: str
    goal: str | None
    method: str
    cost_weight: float
    trial: int
    settings: Settings

    @property
    def key(self) -> dict[str, Any]:
        """What names the trial among all trials of a results folder."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "settings"
        }

    @property
    def name(self) -> str:
        """The trial for people."""
        domain = self.domain if self.goal is None else f"{self.domain} ({self.goal} goal)"
        return f"{domain}, {self.method}, λ = {self.cost_weight:g}, trial {self.trial}"

    @property
    def seed(self) -> int:
        """The trial's seed, which does not depend on the method or on lambda."""
        world = zlib.crc32(f"{self.domain} {self.goal}".encode())
        words = np.random.SeedSequence([self.settings.seed, world, self.trial]).generate_state(2)
        return int(words[0]) << 16 | int(words[1]) >> 16  # 48 bits: exact in any JSON reader

    @property
    def batch(self) -> tuple[Any, ...]:
        """Trials for which this is equal are run together.

        Brute force estimates J of the same 32 masks whatever lambda is, so all lambdas share them;
        and a goal that two experiments look at is learned once.
        """
        shared = None if self.method == "brute force" else self.cost_weight
        return (self.domain, self.goal, self.method, self.trial, shared)


Batch = tuple[TrialSpec, ...]


def plan_trials(settings: Settings, experiments: Sequence[str]) -> list[TrialSpec]:
    """All trials of some experiments."""
    plans = {
        "small": _plan_small,
        "large": _plan_large,
        "goals": _plan_goals,
        "readings": _plan_readings,
    }
    return [spec for name in experiments for spec in plans[name](settings)]


def _plan_small(settings: Settings) -> Iterator[TrialSpec]:
    """Section 6.1."""
    for trial in range(settings.trials):
        for method in SMALL_METHODS:
            for cost_weight in settings.small_cost_weights:
                yield TrialSpec("small", GRID, None, method, cost_weight, trial, settings)


def _plan_large(settings: Settings) -> Iterator[TrialSpec]:
    """Section 6.2."""
    for domain, methods in LARGE_METHODS.items():
        goal = "movable" if domain == CROWD else None
        weight = settings.cost_weights[domain]
        for trial in range(settings.trials):
            for method in methods:
                yield TrialSpec("large", domain, goal, method, weight, trial, settings)
    weight = settings.cost_weights[CROWD]
    yield TrialSpec("large", CROWD, "movable", "curve", weight, 0, settings)


def _plan_goals(settings: Settings) -> Iterator[TrialSpec]:
    """Section 6.3."""
    weight = settings.cost_weights[CROWD]
    for goal in ("fixed", "movable"):
        for trial in range(min(settings.goal_trials, settings.trials)):
            for method in GOAL_METHODS:
                yield TrialSpec("goals", CROWD, goal, method, weight, trial, settings)


def _plan_readings(settings: Settings) -> Iterator[TrialSpec]:
    """What else the text of section 5.3 may mean, on the large domains."""
    for domain, goal in ((FACTORY, None), (CROWD, "movable")):
        weight = settings.cost_weights[domain]
        for trial in range(min(settings.reading_trials, settings.trials)):
            for reading in ("paper", *READINGS):
                yield TrialSpec("readings", domain, goal, reading, weight, trial, settings)


def batches_of(specs: Iterable[TrialSpec]) -> list[Batch]:
    """What is run together, the longest first, so that no worker ends long after the others."""
    batches: dict[tuple[Any, ...], list[TrialSpec]] = {}
    for spec in specs:
        batches.setdefault(spec.batch, []).append(spec)
    return sorted(map(tuple, batches.values()), key=expected_seconds, reverse=True)


def expected_seconds(batch: Batch) -> float:
    """How long a batch may take, roughly."""
    return EXPECTED_SECONDS[batch[0].domain, batch[0].method]


def run_trial(spec: TrialSpec) -> dict[str, Any]:
    """Run a trial; what comes back can be written as JSON."""
    return run_batch((spec,))[0]


def run_batch(batch: Batch) -> list[dict[str, Any]]:
    """Run trials that share work; one result for each, as if it had been run alone."""
    with one_thread():
        _warm_up(batch[0])
        return _run(batch)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and Numba to one thread: workers share the cores, and sums keep their order."""
    before = numba.get_num_threads()
    with threadpool_limits(1):
        numba.set_num_threads(1)
        try:
            yield
        finally:
            numba.set_num_threads(before)


#: Methods whose code another one runs through too.
_INCLUDED = {"first phase": "paper", "curve": "paper"}
_warm: set[tuple[str, str]] = set()


def _warm_up(spec: TrialSpec) -> None:
    """Compile, once in each process: a tiny run, so that no measured time is a compiler's."""
    kind = (spec.domain, _INCLUDED.get(spec.method, spec.method))
    if kind not in _warm:
        _warm.add(kind)
        tiny = replace(spec.settings, n_rollouts=5, n_data_rollouts=30)
        _run((replace(spec, method=kind[1], settings=tiny),))


def _run(batch: Batch) -> list[dict[str, Any]]:
    spec = batch[0]
    mdp = make_mdp(spec)
    if spec.method == "brute force":
        return _run_brute_force(batch, mdp)
    if spec.method == "curve":
        return [_run_curve(one, mdp) for one in batch]
    result = _run_learner(spec, mdp)
    return [{**result, "key": one.key} for one in batch]


def make_mdp(spec: TrialSpec) -> ExoMDP:
    """The model of a trial."""
    options = {} if spec.goal is None else {"goal": spec.goal}
    mdp: ExoMDP = gym.make(spec.domain, **options).unwrapped.mdp  # type: ignore[attr-defined]
    return mdp


def make_learner(spec: TrialSpec, mdp: ExoMDP) -> MaskLearner:
    """The learner of a trial."""
    settings = spec.settings
    common: dict[str, Any] = {
        "cost_weight": spec.cost_weight,
        "n_rollouts": settings.n_rollouts,
        "n_data_rollouts": settings.n_data_rollouts,
        "planning_time_limit": settings.planning_time_limit,
        "ignored_rewards": IGNORED_REWARDS,
    }
    first_phase: dict[str, Any] = {
        "n1": settings.n1,
        "n2": settings.n2,
        "tau_variance": settings.tau_variance,
        "sampling": settings.sampling.get(spec.domain, "uniform"),
    }
    if spec.method == "brute force":
        return BruteForceMaskLearner(**common)
    if spec.method == "greedy":
        trials = settings.greedy_trials if spec.domain == GRID else 1
        return GreedyMaskLearner(**common, trials=trials)
    if spec.method == "greedy + heuristics":
        return GreedyMaskLearner(**common, initial_mask=heuristic_mask(mdp))
    if spec.method == "first phase":
        return RewardVariableMaskLearner(**common, **first_phase)
    if spec.method == "ours":
        return CalibratedMaskLearner(**common)
    reading = {"patience": settings.curve_patience} if spec.method == "curve" else {}
    reading |= READINGS.get(spec.method, {})
    return CorrelationalMaskLearner(
        **common, **first_phase, tau_correl=settings.tau_correl, **reading
    )


def _make_study(spec: TrialSpec, mdp: ExoMDP) -> Study:
    return Study(
        mdp,
        spec.seed,
        n_rollouts=spec.settings.n_rollouts,
        n_data_rollouts=spec.settings.n_data_rollouts,
        planning_time_limit=spec.settings.planning_time_limit,
        ignored_rewards=IGNORED_REWARDS,
    )


def _fit(learner: MaskLearner, study: Study) -> MaskLearner:
    """Learn to the end: a learner that is interrupted has a mask, too, but not the trial's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningStoppedWarning)
        learner.fit(study)
    if learner.status_ == "interrupted":
        raise KeyboardInterrupt
    return learner


def _run_learner(spec: TrialSpec, mdp: ExoMDP) -> dict[str, Any]:
    """A learner that nobody has done any work for."""
    cpu = time.process_time()
    learner = _fit(make_learner(spec, mdp), _make_study(spec, mdp))
    cpu = time.process_time() - cpu
    # Ten runs of Greedy for each lambda are long, and nobody reads them.
    keep = not (spec.domain == GRID and spec.method == "greedy")
    return _result(spec, learner, seconds=learner.seconds_, cpu_seconds=cpu, history=keep)


def _run_brute_force(batch: Batch, mdp: ExoMDP) -> list[dict[str, Any]]:
    """Brute force for some lambdas.

    The time of each is that of estimating all masks, which is measured once because lambda has no
    part in it, plus its own.
    """
    study = _make_study(batch[0], mdp)
    start = time.process_time()
    first = _fit(make_learner(replace(batch[0], cost_weight=0.0), mdp), study)
    shared, shared_cpu = first.history_[-1].seconds, time.process_time() - start
    best = _best_of_each_size(first)
    results = []
    for spec in batch:
        start = time.process_time()
        learner = _fit(make_learner(spec, mdp), study)
        seconds, cpu = learner.seconds_, time.process_time() - start
        result = _result(
            spec,
            learner,
            seconds=shared + seconds,
            cpu_seconds=shared_cpu + cpu,
            history=False,
            best_of_each_size=best,
        )
        results.append(result)
    return results


def _best_of_each_size(learner: MaskLearner) -> list[dict[str, Any]]:
    """The mask with the highest returns, for each number of variables."""
    best: dict[int, Record] = {}
    for record in learner.history_:
        size = len(record.candidate)
        if size not in best or record.mean_return > best[size].mean_return:
            best[size] = record
    return [
        {"mask": list(record.candidate), "mean_return": _plain(record.mean_return)}
        for _, record in sorted(best.items())
    ]


def _run_curve(spec: TrialSpec, mdp: ExoMDP) -> dict[str, Any]:
    """What masks are worth that grow by the paper's rule, some way beyond where it stops."""
    cpu = time.process_time()
    learner = _fit(make_learner(spec, mdp), _make_study(spec, mdp))
    cpu = time.process_time() - cpu
    result = _result(spec, learner, seconds=learner.seconds_, cpu_seconds=cpu, history=False)
    return {**result, "history": [_plain(point) for point in points_of(learner.history_)]}


def _result(
    spec: TrialSpec,
    learner: MaskLearner,
    *,
    seconds: float,
    cpu_seconds: float,
    history: bool,
    **more: Any,
) -> dict[str, Any]:
    objective = learner.objective_
    if objective is None:
        raise RuntimeError(f"learning was stopped: {learner.status_}")
    steps = learner.history_ if history else []
    return {
        "key": spec.key,
        "seed": spec.seed,
        "mask": list(learner.mask_),
        "mean_return": _plain(objective.mean_return),
        "standard_error": _plain(objective.standard_error),
        "value": _plain(objective.value),
        "history": [_describe(record) for record in steps],
        **more,
        "measured": {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "plan_seconds": [record.plan_seconds for record in steps],
            "converged": bool(objective.plan.converged),
        },
    }


def _describe(record: Record) -> dict[str, Any]:
    """A step without its times; while variables are found the mask is what was found so far."""
    values = {
        field.name: _plain(getattr(record, field.name))
        for field in fields(record)
        if field.name not in ("seconds", "plan_seconds", "converged")
    }
    return values | ({"mask": None} if record.action == "find" else {})


def _plain(value: Any) -> Any:
    """The same for JSON."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
