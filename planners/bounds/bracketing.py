"""A policy's value and a bound on all policies', on the same exogenous trajectories.

A bound enumerates n. A battery that is charged by one unit at a time has a real charge, and 11
values of it. On such a *lattice* (:class:`~planners.discretization.bins.Grid`) nothing is rounded,
so what bounds the model there bounds the model itself. As soon as an n' is between two points,
there is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import (
    as_generator,
    check_function,
    check_kind,
    check_whole,
)
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State
from exo_envs.sources.simulators.conversion import as_mdp
from planners.bounds.penalty import MAX_EXACT_STATES, ExactValues, ValueFunction, default_model
from planners.bounds.relaxation import BoundDraws, gives_successors, relax_fitted
from planners.core.evaluation import (
    ActionRule,
    Estimate,
    Scenarios,
    evaluate,
    paired_difference,
    walk,
)
from planners.core.memory import Memory
from planners.discretization.bins import Grid, fit_grids
from planners.discretization.coarse import CoarseMDP, put_on_grid
from planners.reduced.survey import can_enumerate
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.indexing import format_count, num_endogenous_states

#: Questions that a model which answers one state at a time is asked at most: about 20 seconds.
MAX_QUESTIONS = 200_000
#: Draws of n' for each (t, n, a); and from models that are slow to answer.
NUM_SUCCESSORS, FEW_SUCCESSORS = 16, 2
#: Draws of x' for each x, whose mean the penalty is centred on; and trajectories, apart from those
#: of the bound, on which its weight is chosen.
NUM_FRESH, TRAINING_ROLLOUTS = 128, 100
#: Walks of an agent that acts at random, and their steps at most: they show which n occur.
LATTICE_WALKS, LATTICE_STEPS = 64, 64
#: An n' is on the lattice if it is this near to a point, as a share of the values there are.
POINT_SHARE = 1e-6

SuccessorKind = Literal["given by the model", "never differed", "sampled"]


class Budget(NamedTuple):
    """How often a bound asks the model: for each trajectory, and to fit the penalty before.

    A model that answers a thousand states as fast as one is asked millions of times within seconds.
    An environment that is stepped state by state would take the better part of an hour.
    """

    each: int  # questions for one trajectory
    fitting: int  # questions for the training trajectories, all of them

    @classmethod
    def of(cls, mdp: ExoMDP, horizon: int, *, penalty: bool) -> Budget:
        """Each (t, n, a) is asked for its reward and n', each t for x' if there is a penalty."""
        draws = 1 if gives_successors(mdp) else num_successors(mdp)
        pairs = num_endogenous_states(mdp) * mdp.num_actions
        each = horizon * (pairs * (1 + draws) + (NUM_FRESH if penalty else 0))
        return cls(each, TRAINING_ROLLOUTS * each if penalty else 0)

    def questions(self, n_rollouts: int) -> int:
        return self.fitting + n_rollouts * self.each

    def affordable(self, max_questions: float) -> int:
        return max(0, int((max_questions - self.fitting) // self.each))


def num_successors(mdp: ExoMDP) -> int:
    """Draws of n' for each (t, n, a), if a model does not give the probabilities."""
    return NUM_SUCCESSORS if mdp.is_batched else FEW_SUCCESSORS


class OffLatticeError(ArgumentError):
    """An n' lies between the points of a lattice."""


class LatticeMDP(CoarseMDP):
    """A model whose real variables of n are numbers of points; x is as it is."""

    def on_grid(self, endogenous: IntArray, rng: np.random.Generator) -> IntArray:
        """The numbers of the points; anything between them is refused."""
        found = put_on_grid(endogenous, self._endogenous_names, self.grids)
        off = np.abs(self.at_points(found) - endogenous)
        scale = np.array([np.ptp(own.points) or 1.0 for own in self.grids])
        places = [self._endogenous_names.index(own.name) for own in self.grids]
        if (off[..., places] > POINT_SHARE * scale).any():
            raise OffLatticeError("an n' lies between the points of a lattice")
        return found


@dataclass(frozen=True)
class Bracket:
    """V_policy ≤ V* ≤ U: what a policy earns, and what no policy can exceed.

    V* is the best expected return of an episode over all policies, also those that look at every
    variable and count the steps.

    Attributes:
        lower: what the policy earns: the mean of its plain returns or that of ``lower_returns``,
            whichever has the smaller standard error.
        upper: the bound on all policies.
        hindsight: the bound without a penalty: the best return with the future known.
        weights: the weight of the penalty, 0 if it does not help; () if there is none.
        successors: how n' was found out. Its probabilities are "given by the model"; or they were
            drawn and "never differed", so that n' is taken to be certain; or it was "sampled".
        loosening: if n' was sampled, how much lower the bound is than with half as many draws. More
            draws would lower it about as much again.
        lower_returns: what the policy earned on each trajectory, less luck that is zero on average:
            it has the mean of plain returns in the long run and never exceeds the bound on the same
            trajectory. It has less noise than plain returns if the policy is good, and may have
            more if it is poor.
        upper_values: the bound on each trajectory.
    """

    lower: Estimate
    upper: Estimate
    hindsight: Estimate
    weights: tuple[float, ...]
    successors: SuccessorKind
    loosening: float
    lower_returns: FloatArray = field(repr=False)
    upper_values: FloatArray = field(repr=False)

    @property
    def difference(self) -> Estimate:
        """U - V_policy, trajectory by trajectory: what is left to be gained, at most.

        It is never negative: both sides are those of the same trajectory.
        """
        return paired_difference(self.upper_values, self.lower_returns)

    @property
    def gap(self) -> float:
        """The mean of :attr:`difference` as a share of U."""
        left = self.difference.mean
        if self.upper.mean == 0:
            return 0.0 if left == 0 else math.inf
        return left / abs(self.upper.mean)

    def __str__(self) -> str:
        text = f"earns {self.lower}; no policy can earn more than {self.upper}, whatever it sees"
        if self.successors == "sampled":
            text += f" (n' was sampled, which may loosen the bound by about {self.loosening:.2g})"
        return text


def bracket(
    mdp: ExoMDP | gym.Env[Any, Any],
    policy: ActionRule,
    n_rollouts: int = 500,
    rng: np.random.Generator | int = 0,
    *,
    scenarios: Scenarios | None = None,
    values: ValueFunction | tuple[()] | None = None,
    model: FactoredMDP | None = None,
    memory: Memory | None = None,
    returns: FloatArray | None = None,
    max_questions: float = MAX_QUESTIONS,
) -> Bracket:
    """Bound the value of the best policy from both sides, with standard errors.

    >>> from exo_envs.domains.grid import GridMDP
    >>> found = bracket(GridMDP(), lambda state: np.zeros(len(state.endogenous), int), 50)
    >>> found.lower.mean <= found.upper.mean <= found.hindsight.mean
    True

    Args:
        mdp: the full model, or an environment over it (see :func:`exo_envs.as_mdp`). Its n must be
            few enough to be enumerated; real variables of n may have the values of a lattice.
        policy: anything that :func:`evaluate` takes.
        n_rollouts: how many; with ``scenarios``, theirs.
        rng: a generator or a seed.
        scenarios: trajectories to share with other policies; the policy and the bound are both
            judged on these.
        values: approximate values that make the penalty for knowing the future, or () for none. The
            bound holds whatever they are and is tight for the best values. Without ``values`` and
            ``model`` they are exact values of the variables that pay or move n and of what predicts
            these, as far as that can be enumerated; if nothing can be, there is no penalty. There
            is none either if x was recorded (:class:`~exo_envs.TraceMDP`).
        model: a model whose exact values make the penalty, such as ``objective.reduced``.
        memory: what was collected and counted before. If it has rollouts and a survey of ``mdp``,
            the model that makes the penalty by default is estimated from these.
        returns: plain returns of the policy on ``scenarios``, as :func:`evaluate` gives them, if it
            has been played there already.
        max_questions: how often a model that answers one state at a time may be asked.

    Raises:
        OffLatticeError: n has real values between those of a lattice.
        ValueError: n cannot be enumerated, an argument makes no sense, or a model that answers one
            state at a time would be asked too often; how many rollouts are affordable is said.
        TooLargeError: ``model`` has too many states.
    """
    mdp = checked(as_mdp(mdp))
    check_function("policy", policy)
    check_kind("memory", memory, Memory, optional=True)
    check_kind("model", model, FactoredMDP, optional=True)
    check_kind("scenarios", scenarios, Scenarios, optional=True)
    n_rollouts = check_whole("n_rollouts", n_rollouts, 1)
    _check_combination(mdp, values, model, scenarios, returns)
    if mdp.is_recorded:
        values = ()
    mdp, policy, scenarios = _enumerable(mdp, policy, scenarios, memory)
    if not mdp.is_batched:
        count = n_rollouts if scenarios is None else len(scenarios)
        horizon = mdp.horizon if scenarios is None else len(scenarios.exogenous)
        _refuse_expensive(mdp, count, horizon, max_questions, penalty=not _is_empty(values))
    rng = as_generator("rng", rng)
    play, train, sample, estimate = (int(seed) for seed in rng.integers(2**63, size=4))
    if scenarios is None:
        scenarios = Scenarios.sample(mdp, n_rollouts, play)
    function = None if isinstance(values, tuple) else values
    if values is None:
        generator = np.random.default_rng(estimate)
        model = model or default_model(mdp, policy, MAX_EXACT_STATES, generator, memory)
        function = None if model is None else ExactValues(model, mdp)
    draws = BoundDraws(NUM_FRESH, num_successors(mdp), sample)

    horizon = len(scenarios.exogenous)
    training = Scenarios.sample(mdp, TRAINING_ROLLOUTS, train, horizon=horizon)
    weight, found = relax_fitted(mdp, policy, training, scenarios, function, draws)
    upper, coupled = found.values[:, 0], (found.values - found.given_away)[:, 0]
    if returns is None:
        returns = evaluate(policy, mdp, scenarios=scenarios)
    plain, lower = Estimate.of(returns), Estimate.of(coupled)
    kind: SuccessorKind = "given by the model"
    if not found.given:
        kind = "sampled" if found.differed else "never differed"
    return Bracket(
        lower=plain if plain.standard_error < lower.standard_error else lower,
        upper=Estimate.of(upper),
        hindsight=Estimate.of(found.values[:, 1]),
        weights=() if function is None else (weight,),
        successors=kind,
        loosening=float((found.halved - found.values)[:, 0].mean()) if found.differed else 0.0,
        lower_returns=coupled,
        upper_values=upper,
    )


def _is_empty(values: Any) -> bool:
    return isinstance(values, tuple) and not values


def _check_combination(
    mdp: ExoMDP,
    values: Any,
    model: FactoredMDP | None,
    scenarios: Scenarios | None,
    returns: FloatArray | None,
) -> None:
    if values is not None and model is not None:
        raise ArgumentError("give values or a model, not both")
    if values is not None and not _is_empty(values):
        check_function("backwards of values", getattr(values, "backwards", None))
    if mdp.is_recorded and (model is not None or not (values is None or _is_empty(values))):
        raise ArgumentError(
            "x was recorded, so there are no fresh draws of it to make a penalty from: the bound "
            "of a record is plain hindsight (values=())"
        )
    if scenarios is not None:
        scenarios.check(mdp)
    if returns is not None and (scenarios is None or np.shape(returns) != (len(scenarios),)):
        raise ArgumentError("returns are one for each of the scenarios, which have to be given too")


def _enumerable(
    mdp: ExoMDP, policy: ActionRule, scenarios: Scenarios | None, memory: Memory | None
) -> tuple[ExoMDP, ActionRule, Scenarios | None]:
    """The model, a policy and trajectories, with points of a lattice in place of real n.

    The grids of the memory's rollouts are the lattice; without these, walks show which n occur.
    """
    if mdp.endogenous_ranges.is_real and can_enumerate(mdp):
        rng, real = np.random.default_rng(0), policy
        known = () if memory is None or memory.data is None else memory.data.bins
        grids: Any = [own for own in known if isinstance(own, Grid)]
        steps = min(mdp.horizon, LATTICE_STEPS)
        seen = LatticeMDP(mdp, grids or fit_grids(mdp, walk(mdp, LATTICE_WALKS, steps, rng)))

        def on_values(state: State) -> Any:
            return real(State(seen.at_points(state.endogenous), state.exogenous))

        if scenarios is not None:
            n = seen.on_grid(scenarios.endogenous, rng)
            scenarios = replace(scenarios, endogenous=n)
        mdp, policy = seen, on_values
    if not can_enumerate(mdp):
        states = format_count(num_endogenous_states(mdp))
        raise ArgumentError(
            f"the bound enumerates n, and {mdp!r} has {states} values of n, which are too many; "
            "evaluate(policy, mdp) gives what a policy earns, and estimate_objective with all "
            "variables something to compare it with"
        )
    return mdp, policy, scenarios


def _refuse_expensive(
    mdp: ExoMDP, n_rollouts: int, horizon: int, max_questions: float, *, penalty: bool
) -> None:
    """Refuse what would take too long, and say what would not."""
    planned, plain = (Budget.of(mdp, horizon, penalty=own) for own in (penalty, False))
    if planned.questions(n_rollouts) > max_questions:
        raise ArgumentError(
            f"{mdp!r} answers one state at a time, and the bound would ask it "
            f"{planned.questions(n_rollouts):,} questions; {max_questions:,.0f} (max_questions) "
            f"are enough for {planned.affordable(max_questions)} rollouts, or for "
            f"{plain.affordable(max_questions)} without a penalty (values=())"
        )
