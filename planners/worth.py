"""What a mask was found to be worth: J, and what is left to be gained by any other policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import check_choice, check_real
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP, FloatArray
from exo_envs.sources.simulators.played import Agreement
from planners.bounds.bracketing import MAX_QUESTIONS, Bracket, Budget, OffLatticeError, bracket
from planners.core.evaluation import Estimate, Scenarios, paired_difference
from planners.core.memory import Memory
from planners.core.planner import Plan
from planners.core.policy import Mask
from planners.core.rare_events import find_mixture, most_per_episode
from planners.reduced.reduced_mdp import ReducedMDP
from planners.reduced.survey import can_enumerate
from planners.surprises import at_most, find_surprises

#: What is said where a model's claim is not what is played, and nothing else is found.
NO_REASON = (
    "Its steps are what the model says, one by one, as far as a few hundred of them tell: the plan "
    "may rely on rare ones, or on what the model knows and the environment does not show"
)
#: Trajectories that a bound is played on at least, where not all can be afforded.
FEWEST_TRAJECTORIES = 10

CostFunction = Callable[[Mask, Plan], float]
Cost = Literal["size", "time"] | CostFunction

COSTS: dict[str, CostFunction] = {
    "size": lambda mask, plan: float(len(mask)),
    "time": lambda mask, plan: plan.seconds,
}


def cost_function(cost: Cost) -> CostFunction:
    """The function that a cost stands for, or an error that names the choices."""
    if callable(cost):
        return cost
    check_choice("cost", cost, COSTS)
    return COSTS[cost]


class Played(NamedTuple):
    """The model and the trajectories of a policy: what could be earned there is asked later."""

    mdp: ExoMDP  # the full model
    parts: tuple[Scenarios, ...]  # the trajectories
    memory: Memory | None  # what was collected from the model before, if it is known


@dataclass(frozen=True)
class Objective:
    """An estimate of J(mask).

    Attributes:
        value: the mean return less the weighted cost.
        mean_return: of the reduced policy in the full model; of one that was made of somebody
            else's environment (:class:`~exo_envs.AdaptedMDP`), in this environment itself.
        standard_error: of the mean return.
        cost: Cost(mask), before it is weighted with lambda.
        plan: the plan whose policy was rolled out.
        returns: one for each rollout, shape (n_rollouts,).
        cost_weight: lambda.
        reduced: the reduced model that was planned in.
        rollouts: what the policy was played in and on; None in a copy or a pickle.
        claimed_returns: those of the model, if ``returns`` are of the environment itself; see
            :attr:`agreement`.
    """

    value: float
    mean_return: float
    standard_error: float
    cost: float
    plan: Plan
    returns: FloatArray = field(repr=False)
    cost_weight: float
    reduced: ReducedMDP = field(repr=False)
    rollouts: Played | None = field(default=None, repr=False, compare=False)
    claimed_returns: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        returns: FloatArray,
        plan: Plan,
        reduced: ReducedMDP,
        *,
        cost_weight: float = 0.0,
        cost: Cost = "size",
        rollouts: Played | None = None,
        claimed_returns: FloatArray | None = None,
    ) -> Objective:
        cost_weight = check_real("cost_weight", cost_weight)
        price = check_real("what cost returns", cost_function(cost)(reduced.mask, plan))
        estimate = Estimate.of(returns)
        return cls(
            value=estimate.mean - cost_weight * price,
            mean_return=estimate.mean,
            standard_error=estimate.standard_error,
            cost=price,
            plan=plan,
            returns=returns,
            cost_weight=cost_weight,
            reduced=reduced,
            rollouts=rollouts,
            claimed_returns=claimed_returns,
        )

    @property
    def claimed(self) -> Estimate:
        """The mean return in the model itself, on its trajectories.

        That is ``mean_return``, unless the model was made of somebody else's environment.
        """
        return Estimate.of(self.returns if self.claimed_returns is None else self.claimed_returns)

    @property
    def agreement(self) -> Agreement | None:
        """What the model claims beside what was played; None if the model is all there is."""
        if self.claimed_returns is None or min(len(self.returns), len(self.claimed_returns)) < 2:
            return None
        return Agreement.of(self.claimed_returns, self.returns)

    @cached_property
    def disagreement(self) -> str | None:
        """Why the model claims another return than was played, for people; None if it does not.

        Where they differ, a few hundred steps of the policy are compared with the model, which
        takes some seconds; so it is worked out when it is first read.
        """
        agreement = self.agreement
        if agreement is None or agreement.agrees:
            return None
        original = None if self.rollouts is None else checked(self.rollouts.mdp).original
        why = "" if original is None else original.why_different(self.plan.policy)
        return f"{agreement}, which is what is reported. {why or NO_REASON}"

    @property
    def mask(self) -> Mask:
        """The mask, as names."""
        return self.reduced.mask

    @cached_property
    def estimate(self) -> Estimate:
        """The mean return, with an interval and what to mind about it.

        Where a rare event decides, normal theory does not hold: the few returns that stand out are
        counted (:mod:`planners.core.rare_events`), and the model is asked what values of x that the
        rollouts hardly saw would cost (:mod:`planners.surprises`). So it is worked out when it is
        first read, and remembered. A copy that was made before knows the returns only.
        """
        plain = Estimate.of(self.returns)
        played = replace(plain, mean=self.mean_return, standard_error=self.standard_error)
        tells = len(self.returns) >= FEWEST_TRAJECTORIES and np.isfinite(self.returns).all()
        if self.rollouts is None or not tells:
            return played
        mdp, parts, memory = self.rollouts
        survey = None if memory is None else memory.survey
        error = plain.standard_error if plain.mixture is None else plain.mixture.error
        low, high = Estimate(plain.mean, error).interval()
        found = find_surprises(
            mdp,
            self.plan.policy,
            Scenarios.join(parts),
            half_width=(high - low) / 2,
            names=None if survey is None else sorted({*survey.paying, *survey.moving}),
            data=None if memory is None else memory.data,
        )
        if not found:
            return played
        losses = at_most([own for own in found if own.effect < 0])
        gains = at_most([own for own in found if own.effect > 0])
        # One event of this size, not seen, may change the mean by what was found.
        unit = most_per_episode(0, len(self.returns))
        mixture = find_mixture(self.returns, loss=losses / unit, gain=gains / unit)
        worst = max(found, key=lambda own: abs(own.effect))
        return replace(played, mixture=mixture, caution=str(worst))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval of the mean return."""
        return self.estimate.interval(level)

    @property
    def caution(self) -> str | None:
        """What to mind about the interval, for people; None if normal theory will do."""
        return self.estimate.caution

    def gain_over(self, other: Objective) -> Estimate:
        """J of this mask less J of the other one, paired: both were run on the same scenarios."""
        difference = paired_difference(self.returns, other.returns)
        costs = self.cost_weight * self.cost - other.cost_weight * other.cost
        return replace(difference, mean=difference.mean - costs)

    @cached_property
    def bracket(self) -> Bracket | None:
        """What the policy earns, and what no policy can exceed, on this objective's trajectories.

        Worked out when it is first read, which takes seconds in a large model, and remembered.
        None if n has too many values to be enumerated.

        A model that answers one state at a time, such as an adapted environment, is asked for some
        20 seconds at most. Both ends are of the model then, whatever was played. If the time is
        not enough for all trajectories and the penalty, the bound has no penalty and is played on
        the first trajectories, as many as can be afforded, at least 10; the policy is judged on the
        same ones, so that ``lower`` is not the mean return of all. If even 10 are too many, it is
        None.

        Raises:
            ValueError: this is a copy, which does not have the model.
        """
        if self.rollouts is None:
            raise ArgumentError(
                "this objective is a copy, and copies do not have the model; read bracket before "
                "copying or pickling, or call planners.bracket(mdp, objective.plan.policy)"
            )
        mdp, parts, memory = self.rollouts
        if not can_enumerate(mdp):
            return None
        returns = self.returns if self.claimed_returns is None else self.claimed_returns
        scenarios = Scenarios.join(parts)
        settings: dict[str, Any] = {"memory": memory}
        if not mdp.is_batched:
            horizon, count = scenarios.exogenous.shape[:2]
            fitted, plain = (Budget.of(mdp, horizon, penalty=own) for own in (True, False))
            if fitted.affordable(MAX_QUESTIONS) < count:
                affordable = plain.affordable(MAX_QUESTIONS)
                if affordable < min(count, FEWEST_TRAJECTORIES):
                    return None
                scenarios, returns = scenarios.first(affordable), returns[:affordable]
                settings = {"values": ()}
        rng = np.random.default_rng([scenarios.seed, len(scenarios)])
        settings |= {"scenarios": scenarios, "returns": returns}
        try:
            return bracket(mdp, self.plan.policy, rng=rng, **settings)
        except OffLatticeError:
            return None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the model and its trajectories; a bracket that was read is kept."""
        return {**self.__dict__, "rollouts": None}


@dataclass(frozen=True)
class MaskComparison:
    """A mask against another one, on the same trajectories.

    Masks are not played to the end once it is clear which is better: the objectives have fewer
    rollouts then.

    Attributes:
        objective: of the mask.
        gain: of J.
        returns: the gain before the masks have paid their price.
        rival: the objective of the other mask.
    """

    objective: Objective
    gain: Estimate
    returns: Estimate
    rival: Objective

    def __iter__(self) -> Iterator[Any]:
        """What there is to say of the mask: ``objective, gain, returns = comparison``."""
        return iter((self.objective, self.gain, self.returns))

    @property
    def is_cut_short(self) -> bool:
        """Whether the mask that is behind might be ahead if its plan had had more time.

        A mask that is ahead may well have been planned with in too little time: what its policy
        earned is no less true.
        """
        behind = self.objective if self.gain.mean < 0 else self.rival
        return behind.plan.out_of_time
