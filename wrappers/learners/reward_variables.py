"""*Estimate-Reward-Variables* (section 5.3 of the paper): which variables pay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import (
    Constraints,
    as_generator,
    check_choice,
    check_function,
    check_lanes,
    check_probability,
    real,
    whole,
)
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from exo_envs.sources.simulators.conversion import as_mdp
from planners.core.evaluation import Scenarios, evaluate
from planners.core.memory import Shelf
from planners.core.policy import Mask
from planners.discretization.coarse import with_values
from planners.reduced.ignored_rewards import IgnoredRewards
from planners.reduced.rewards import Reward, check_reward
from wrappers.fitting.history import Record
from wrappers.fitting.session import Session
from wrappers.fitting.study import Study
from wrappers.learners.base import MaskLearner

Sampling = Literal["uniform", "visited"]
#: (how many, generator) -> states (B,) and actions (B,).
Sampler = Callable[[int, np.random.Generator], tuple[State, NDArray[Any]]]

#: (n1, n2, uniform share, mask of the relaxed plan) -> how much the reward varies, (m,).
REWARD_VARIANCES = Shelf[tuple[int, int, float | None, Mask | None], FloatArray]("reward_variances")
#: mask -> states and actions that the policy of its relaxed problem meets.
VISITED = Shelf[Mask, tuple[State, NDArray[Any]]]("visited")


def estimate_reward_variables(
    mdp: ExoMDP | gym.Env[Any, Any],
    rng: np.random.Generator | int,
    *,
    n1: int = 250,
    n2: int = 5,
    sampler: Sampler | None = None,
    reward: Reward = "total",
) -> FloatArray:
    """*Estimate-Reward-Variables*: how much the reward varies with each exogenous variable.

    For each x^i: ``n1`` samples of n, the other exogenous variables and an action; for each of
    them the variance of the reward over ``n2`` settings of x^i; and the mean of these variances,
    which the paper compares with a threshold tau_variance.

    Args:
        mdp: the model, or an environment over it (see :func:`exo_envs.as_mdp`).
        rng: a generator or a seed.
        n1: samples of everything but x^i.
        n2: settings of x^i in each.
        sampler: draws the samples; by default every n, x and action is as likely.
        reward: "total" asks for rewards alone, as the paper does: m * n1 * n2 of them. With
            "terms" R^i(n, x^i, a) is looked at itself, so one set of n1 * n2 states serves all
            variables; the variance is the same, because all other terms are constant in it.
            Variables that pay together with others are changed one by one, n1 * n2 times each.

    Returns:
        The mean variances, shape (m,).
    """
    mdp, rng = checked(as_mdp(mdp)), as_generator("rng", rng)
    check_function("sampler", sampler, optional=True)
    check_reward(reward)
    n1 = check_lanes("n1", n1, len(mdp.exogenous_variables), 1)
    n2 = check_lanes("n2", n2, n1 * len(mdp.exogenous_variables), 2)
    sampler = uniform_sampler(mdp) if sampler is None else sampler
    sizes, scopes = mdp.exogenous_sizes, mdp.scope_indices

    def settings() -> tuple[State, NDArray[Any]]:
        state, action = sampler(n1, rng)
        repeated = State(*(np.repeat(part, n2, axis=0) for part in state))
        return repeated, np.repeat(action, n2)

    def changing(i: int) -> tuple[State, NDArray[Any]]:
        state, action = settings()
        state.exogenous[:, i] = rng.integers(sizes[i], size=n1 * n2)
        return state, action

    def terms(state: State, action: NDArray[Any]) -> FloatArray:
        terms = mdp.reward_terms(state, action)
        terms[mdp.is_terminal(state)] = 0.0  # nothing is paid when it is over
        return terms

    def variance(rewards: FloatArray) -> Any:
        by_sample = rewards.reshape(n1, n2, *rewards.shape[1:])
        # Less the first: where nothing changes the variance is then 0 and not a rounding error.
        return (by_sample - by_sample[:, :1]).var(axis=1).mean(axis=0)

    if reward == "total":
        return np.array([variance(mdp.reward(*changing(i))) for i in range(len(sizes))])
    variances = np.zeros(len(sizes))
    together = sorted({i for scope in scopes if len(scope) > 1 for i in scope})
    if len(together) < len(sizes):  # the others are changed all at once
        state, action = settings()
        state = State(state.endogenous, rng.integers(sizes, size=state.exogenous.shape))
        paid, own = terms(state, action), np.zeros(state.exogenous.shape)
        for column, scope in enumerate(scopes):
            if len(scope) == 1:
                own[:, scope[0]] += paid[:, column]
        variances = variance(own)
    for i in together:
        columns = [column for column, scope in enumerate(scopes) if i in scope]
        variances[i] = variance(terms(*changing(i))[:, columns].sum(axis=1))
    return variances


def uniform_sampler(mdp: ExoMDP) -> Sampler:
    """Every n, x and action is as likely as any other."""
    return lambda size, rng: (
        mdp.sample_uniform(size, rng),
        rng.integers(mdp.num_actions, size=size),
    )


def visited_sampler(study: Study, mask: Mask, cut_short: set[Mask] | None = None) -> Sampler:
    """States and actions that an agent will meet: those of a policy planned in a relaxed problem.

    The relaxed problem is the reduced model of ``mask`` in which every variable moves by itself,
    whatever the others do, and what the mask ignores is seen with optimism
    (:mod:`planners.reduced.ignored_rewards`): whoever has not found out yet what pays does not
    stand still. The study's planner plans there, and its policy plays 100 episodes in the full
    model. If the plan runs out of the study's time for one plan, the mask is added to
    ``cut_short``.
    """
    visited = study.memory.entries(VISITED)
    if mask in visited:
        return partial(_spread, *visited[mask])
    rng = study.rng("relaxed")
    relaxed = study.evaluator.reduce(mask, rng, relaxed=True)
    plan, was_cut = study.evaluator.solve(relaxed, rng)
    if plan.out_of_time and not was_cut and cut_short is not None:
        cut_short.add(mask)
    met: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    evaluate(
        with_values(plan, relaxed).policy,
        study.counted,
        scenarios=Scenarios.sample(study.counted, 100, rng),
        watch=lambda _, state, actions: met.append((*state, actions)),
    )
    if not met:  # every episode is over before it begins
        return uniform_sampler(study.mdp)
    n, x, actions = (np.concatenate(parts) for parts in zip(*met, strict=True))
    if not was_cut:
        visited[mask] = State(n, x), actions
    return partial(_spread, State(n, x), actions)


def _spread(
    states: State, actions: NDArray[Any], size: int, rng: np.random.Generator
) -> tuple[State, NDArray[Any]]:
    """Some of the states, with their actions, each as likely as any other.

    Samples are spread evenly over (n, a): each of these is drawn as often as its share of the
    states says, to within one. Independent draws would leave some of the rarer ones out.
    """
    in_order = np.lexsort((rng.random(len(actions)), *states.endogenous.T, actions))
    places = (np.arange(size) + rng.random()) * len(actions) / size
    # The last place may be rounded up to the end.
    chosen = rng.permutation(in_order[np.minimum(places.astype(np.intp), len(actions) - 1)])
    return State(states.endogenous[chosen], states.exogenous[chosen]), actions[chosen]


def draw_mixed(
    first: Sampler, second: Sampler, share: float, size: int, rng: np.random.Generator
) -> tuple[State, NDArray[Any]]:
    """A share of the samples, rounded up, is from the first sampler, the rest from the second."""
    number = math.ceil(share * size - 1e-9)  # of samples from the first
    (some, of_some), (others, of_others) = first(number, rng), second(size - number, rng)
    parts = (np.concatenate(both) for both in zip(some, others, strict=True))
    return State(*parts), np.concatenate([of_some, of_others])


@dataclass(kw_only=True)
class RewardVariableMaskLearner(MaskLearner):
    """The first phase of *Mask-Learning-Correlational* alone: the variables that pay.

    The paper favours states that the agent is likely to meet (``sampling="visited"``). It leaves
    open how. Here *Estimate-Reward-Variables* is run on uniform samples first. With what they find
    a relaxed problem is planned in (:func:`visited_sampler`). Then it is run again on samples of
    which only ``uniform_share`` is uniform, and the others are states and actions of that plan. If
    this finds variables that were not known before, it is repeated once, with the plan that knows
    them too. The last run decides: what pays only where the agent hardly ever goes is left out.

    Args:
        n1: samples of everything but one variable.
        n2: settings of that variable in each.
        tau_variance: a variable pays if the mean variance of the reward is above this.
        sampling: "visited" to favour states that the agent is likely to meet, or "uniform".
        uniform_share: with "visited", the share of samples that are uniform. With 0 nothing is
            looked at but what the agent meets, with 1 nothing is favoured.
    """

    ignored_rewards: IgnoredRewards = "zero"
    n1: int = 250
    n2: int = 5
    tau_variance: float = 0.0
    sampling: Sampling = "visited"
    uniform_share: float = 0.05

    constraints: ClassVar[Constraints] = {
        "n1": whole(1),
        "n2": whole(2),
        "tau_variance": real(0.0),
        "sampling": partial(check_choice, choices=get_args(Sampling)),
        "uniform_share": check_probability,
    }

    def _steps(self, session: Session) -> Iterator[Record]:
        """One record for each variable that pays, and J of all of them."""
        names = session.study.mdp.exogenous_names

        def paying(variances: FloatArray) -> Mask:
            return tuple(names[i] for i in np.flatnonzero(variances > self.tau_variance))

        session.report("looking for variables that pay")
        variances = self._variances(session)
        if self.sampling == "visited" and self.uniform_share < 1:
            session.report("looking for variables that pay where the agent goes")
            known = paying(variances)
            variances = self._variances(session, known)
            more = session.in_order({*known, *paying(variances)})
            if more != known:
                variances = self._variances(session, more)
        mask: Mask = ()
        for name, variance in zip(names, variances.tolist(), strict=True):
            if variance > self.tau_variance:
                mask = (*mask, name)
                yield session.record(
                    "find", (name,), reason="pays", role="pays", mask=mask, score=variance
                )
        yield session.record(
            "start",
            mask,
            reason="all that was found to pay",
            mask=mask,
            objective=session.glance(mask),
        )

    def _variances(self, session: Session, planned_with: Mask | None = None) -> FloatArray:
        """From uniform samples, or such as favour what the relaxed plan of a mask meets."""
        study = session.study
        share = None if planned_with is None else self.uniform_share
        key, known = (self.n1, self.n2, share, planned_with), study.memory.entries(REWARD_VARIANCES)
        if key in known:
            return known[key]
        sampler = uniform_sampler(study.mdp)
        stream: tuple[str | int, ...] = ("uniform",)
        if planned_with is not None:
            visited = visited_sampler(study, planned_with, session.cut_short)
            sampler = partial(draw_mixed, sampler, visited, self.uniform_share)
            stream = ("visited", *study.mdp.exogenous_indices(planned_with).tolist())
        rng, settings = study.rng("reward variables", *stream), {"n1": self.n1, "n2": self.n2}
        variances = estimate_reward_variables(
            study.counted, rng, sampler=sampler, reward=study.reward, **settings
        )
        if planned_with is None or planned_with in study.memory.entries(VISITED):
            known[key] = variances  # the plan, if there was one, was not cut short
        return variances
