"""What every planner returns, and the one way to ask for it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from exo_envs.contract.answers import check_declaration
from exo_envs.core.arguments import check_kind, check_real
from exo_envs.core.errors import ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.core.evaluation import Estimate
from planners.core.policy import Mask, Policy


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
        earned = "" if self.earned is None else f", {self.earned} in the reduced model"
        return f"{self.method}: {len(self.mask)} variables{earned}; {self.remark}"


@dataclass(frozen=True)
class Plan:
    """A policy, and the truth about how it was found.

    Attributes:
        policy: the best policy found.
        values: the value of each state where the planner computes them: shape (X, N) over the
            joint values of x and n, both in C order; otherwise None.
        converged: whether the planner reached its tolerance, within its time. Tree search has none,
            and never does.
        residual: how far it was from a fixed point when it stopped; zero for forecasts, infinite
            for tree search.
        iterations: sweeps over the state space, or look-ahead steps of an online planner.
        seconds: everything it took, enumeration included, but for compiling (:class:`Clock`).
        loss_bound: the policy's value is at most this much below the optimum, in every state of
            the model that was planned in (infinite where nothing can be said).
        method: how the policy was found, for people.
        candidates: what a planner that tries several ways tried, the best first; empty if there
            was only one.
        part: an exact plan with part of the mask, if one was made besides, with its values: plans
            for similar masks can start from it. Evaluators of masks take it out of the plans that
            they keep.
        out_of_time: whether it has not converged because its time was up. With more time the policy
            might be better, so it does not say what the mask is worth.
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
    out_of_time: bool = False


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
        """Plan in ``mdp`` for at most ``time_limit`` seconds, everything included but compiling.

        A :class:`Clock` measures that.
        """
        ...


class PlanCutShortWarning(UserWarning):
    """Plans ran out of time, so what their masks are worth is not known."""


def check_planner(planner: Any) -> None:
    """Refuse what cannot plan, before anything is computed; None is the default planner.

    >>> check_planner("vi")
    Traceback (most recent call last):
    exo_envs.core.errors.ArgumentTypeError: a planner has a method plan(...); planner='vi' has none
    """
    if planner is None:
        return
    wanted = "a planner has a method plan(mdp, *, rng, time_limit)"
    if isinstance(planner, type):
        name = planner.__name__
        raise ArgumentTypeError(f"{wanted}; planner={name} is a class, did you mean {name}()?")
    plan = getattr(planner, "plan", None)
    if not callable(plan):
        raise ArgumentTypeError(f"{wanted}; planner={planner!r} has none")
    try:
        signature = inspect.signature(plan)
    except ValueError:  # of a function that is not written in Python
        return
    try:
        signature.bind(None, rng=None, time_limit=None)
    except TypeError as error:
        raise ArgumentTypeError(f"{wanted}; that of planner={planner!r} differs: {error}") from None


def check_problem(mdp: Any, warm_start: Any = None) -> None:
    """Refuse what nobody can plan in, or start from."""
    check_kind("mdp", mdp, ExoMDP)
    check_declaration(mdp)
    check_kind("warm_start", warm_start, Plan, optional=True)


def check_plan(planner: Planner, plan: Any) -> Plan:
    """Refuse what a planner returned if it is no plan."""
    made = f"what planner.plan of {type(planner).__name__} returned"
    if not isinstance(plan, Plan):
        raise ArgumentTypeError(f"{made} is no Plan: {plan!r}")
    if not isinstance(plan.policy, Policy):
        raise ArgumentTypeError(f"{made} has a policy that is no Policy: {plan.policy!r}")
    check_real(f"Plan.seconds of {made}", plan.seconds, 0.0)
    return plan


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
