"""What every planner returns, and the one way to ask for it."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from exo_envs import ExoMDP
from exo_envs.mdp import FloatArray
from planners.evaluation import Estimate
from planners.policy import Mask, Policy


@dataclass(frozen=True)
class Candidate:
    """One of several ways to plan, and what came of it.

    Attributes:
        method: the way, for people.
        mask: the variables that its policy looks at.
        earned: what the policy earns in the model that was planned in, on trajectories that all
            candidates share; None if it was not played.
        remark: why it was taken, or was not.
    """

    method: str
    mask: Mask
    earned: Estimate | None
    remark: str

    def __str__(self) -> str:
        """One line."""
        earned = "" if self.earned is None else f", {self.earned} in the reduced model"
        return f"{self.method}: {len(self.mask)} variables{earned}; {self.remark}"


@dataclass(frozen=True)
class Plan:
    """A policy, and the truth about how it was found.

    Attributes:
        policy: the best policy found.
        values: the value of each state where the planner computes them: shape (X, N) over the
            joint values of x and n, both in C order; otherwise None.
        converged: whether the planner reached its tolerance, within its time.
        residual: how far it was from a fixed point when it stopped; zero for online planners.
        iterations: sweeps over the state space, or look-ahead steps of an online planner.
        seconds: everything it took, enumeration included.
        loss_bound: the policy's value is at most this much below the optimum, in every state of
            the model that was planned in (infinite where nothing can be said).
        method: how the policy was found, for people.
        candidates: what a planner that tries several ways tried, the best first; empty if there
            was only one.
        part: an exact plan with part of the mask, if one was made besides, with its values: plans
            for similar masks can start from it. Evaluators of masks take it out of the plans that
            they keep.
    """

    policy: Policy
    values: FloatArray | None = field(repr=False)
    converged: bool
    residual: float
    iterations: int
    seconds: float
    loss_bound: float = float("inf")
    method: str = ""
    candidates: tuple[Candidate, ...] = ()
    part: Plan | None = field(default=None, repr=False, compare=False)


class Planner(Protocol):
    """Anything that plans.

    ``plan`` may also take ``warm_start: Plan | None = None``, an earlier plan for a similar model,
    mostly one of a mask that has a few variables more or less. It may change how long planning
    takes, never what the plan says about itself, and is ignored where it is of no use. Planners
    need not take it: :func:`warm_start_for` tells those that do from those that do not.
    """

    def plan(
        self,
        mdp: ExoMDP,
        *,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Plan:
        """Plan in ``mdp`` for at most ``time_limit`` seconds, everything included."""
        ...


class OutOfTimeError(Exception):
    """A clock ran out; planners and learners catch it and return what they have."""


class Clock:
    """What is left of a time limit.

    Args:
        limit: in seconds; None is no limit.
    """

    def __init__(self, limit: float | None) -> None:
        if limit is not None and not limit >= 0:
            raise ValueError(f"time_limit is a number of seconds, at least 0, not {limit!r}")
        self._start = time.perf_counter()
        self._limit = math.inf if limit is None else limit

    def seconds(self) -> float:
        """The time since the start."""
        return time.perf_counter() - self._start

    def left(self) -> float | None:
        """The seconds that are left; None if there is no limit."""
        return None if self._limit == math.inf else max(0.0, self._limit - self.seconds())

    def tick(self) -> None:
        """Raise an :class:`OutOfTimeError` if the time is up."""
        if self.seconds() >= self._limit:
            raise OutOfTimeError


def warm_start_for(planner: Planner, plan: Plan | None) -> dict[str, Any]:
    """The argument that starts ``planner`` from ``plan``: none, if there is no plan or no need.

    >>> from planners import UCT
    >>> warm_start_for(UCT(), None)
    {}
    """
    if plan is None:
        return {}
    parameters = inspect.signature(planner.plan).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return {"warm_start": plan} if takes_any or "warm_start" in parameters else {}
