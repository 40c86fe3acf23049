"""*Estimate-Reward-Variables* (section 5.3 of the paper): which variables pay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, State
from exo_envs.errors import unknown_name
from exo_envs.inputs import check_real, check_whole
from exo_envs.mdp import FloatArray
from planners import DefaultPlanner, ReducedMDP, Scenarios, evaluate
from planners.reduction.survey import Reward
from wrappers.learners.base import MaskLearner, Session
from wrappers.learners.history import Mask, Record
from wrappers.learners.study import Study

Sampling = Literal["uniform", "visited"]
#: (how many, generator) -> states (B,) and actions (B,).
Sampler = Callable[[int, np.random.Generator], tuple[State, NDArray[Any]]]

#: Episodes of the relaxed problem's policy, from which visited states are drawn.
RELAXED_EPISODES = 100


def estimate_reward_variables(
    mdp: ExoMDP,
    rng: np.random.Generator,
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
        mdp: the model.
        rng: where the randomness comes from.
        n1: samples of everything but x^i.
        n2: settings of x^i in each.
        sampler: draws the samples; by default every n, x and action is as likely.
        reward: "total" asks for rewards alone, as the paper does: m * n1 * n2 of them. With
            "terms" R^i(n, x^i, a) is looked at itself, so one set of n1 * n2 states serves all
            variables; the variance is the same, because all other terms are constant in it.

    Returns:
        The mean variances, shape (m,).
    """
    check_whole("n1", n1, 1)
    check_whole("n2", n2, 2)
    sampler = uniform_sampler(mdp) if sampler is None else sampler
    sizes = mdp.exogenous_sizes
    if reward == "terms":
        state, action = _repeat(*sampler(n1, rng), n2)
        settings = State(state.endogenous, rng.integers(sizes, size=state.exogenous.shape))
        terms = mdp.reward_terms(settings, action)
        terms[mdp.is_terminal(settings)] = 0.0  # nothing is paid when it is over
        return _mean_variance(terms, n1, n2)
    variances = np.empty(len(sizes))
    for i, size in enumerate(sizes):
        state, action = _repeat(*sampler(n1, rng), n2)
        state.exogenous[:, i] = rng.integers(size, size=len(state.exogenous))
        variances[i] = _mean_variance(mdp.reward(state, action), n1, n2)
    return variances


def uniform_sampler(mdp: ExoMDP) -> Sampler:
    """Every n, x and action is as likely as any other."""

    def sample(size: int, rng: np.random.Generator) -> tuple[State, NDArray[Any]]:
        return mdp.sample_uniform(size, rng), rng.integers(mdp.num_actions, size=size)

    return sample


def visited_sampler(study: Study, mask: Mask) -> Sampler:
    """States and actions that an agent will meet: those of a policy planned in a relaxed problem.

    The relaxed problem is the reduced model of ``mask`` in which every variable moves by itself,
    whatever the others do. Its policy plays some episodes in the full model.
    """
    key = ("visited", mask)
    if key not in study.memo:
        rng = study.rng("relaxed")
        relaxed = ReducedMDP.estimate(
            study.mdp,
            mask,
            rng=rng,
            data=study.data,
            survey=study.survey,
            max_parents=1,
            interventions=False,
            memory=study.memory,
        )
        plan = DefaultPlanner().plan(relaxed, rng=rng, time_limit=study.planning_time_limit)
        met: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        evaluate(
            plan.policy,
            study.mdp,
            scenarios=Scenarios.sample(study.mdp, RELAXED_EPISODES, rng),
            watch=lambda _, state, actions: met.append((*state, actions)),
        )
        study.memo[key] = [np.concatenate(parts) for parts in zip(*met, strict=True)]
        study.samples += len(study.memo[key][0])
    endogenous, exogenous, actions = study.memo[key]

    def sample(size: int, rng: np.random.Generator) -> tuple[State, NDArray[Any]]:
        chosen = rng.integers(len(actions), size=size)
        return State(endogenous[chosen], exogenous[chosen]), actions[chosen]

    return sample


def _repeat(state: State, action: NDArray[Any], times: int) -> tuple[State, NDArray[Any]]:
    repeated = State(*(np.repeat(part, times, axis=0) for part in state))
    return repeated, np.repeat(action, times)


def _mean_variance(rewards: FloatArray, n1: int, n2: int) -> Any:
    settings = rewards.reshape(n1, n2, *rewards.shape[1:])
    # Less the first: where nothing changes the variance is then 0 and not a rounding error.
    return (settings - settings[:, :1]).var(axis=1).mean(axis=0)


@dataclass(kw_only=True)
class RewardVariableMaskLearner(MaskLearner):
    """The first phase of *Mask-Learning-Correlational* alone: the variables that pay.

    Args:
        n1: samples of everything but one variable.
        n2: settings of that variable in each.
        tau_variance: a variable pays if the mean variance of the reward is above this.
        sampling: "uniform", or "visited" for states that the agent is likely to meet, found by
            planning in a relaxed problem.
    """

    n1: int = 250
    n2: int = 5
    tau_variance: float = 0.0
    sampling: Sampling = "uniform"

    def _check(self) -> None:
        super()._check()
        check_first_phase(self.n1, self.n2, self.tau_variance, self.sampling)

    def _steps(self, session: Session) -> Iterator[Record]:
        yield from first_phase(session, self.n1, self.n2, self.tau_variance, self.sampling)


def check_first_phase(n1: int, n2: int, tau_variance: float, sampling: str) -> None:
    """Refuse what *Estimate-Reward-Variables* cannot work with."""
    check_whole("n1", n1, 1)
    check_whole("n2", n2, 2)
    check_real("tau_variance", tau_variance, 0.0)
    if sampling not in ("uniform", "visited"):
        raise unknown_name("sampling", sampling, ("uniform", "visited"))


def first_phase(
    session: Session, n1: int, n2: int, tau_variance: float, sampling: Sampling
) -> Iterator[Record]:
    """The variables that pay, one record for each, and J of all of them."""
    study = session.study
    session.report("looking for variables that pay")
    variances = _variances(study, n1, n2, "uniform")
    if sampling == "visited":
        paying = np.flatnonzero(variances > tau_variance)
        mask = tuple(study.mdp.exogenous_names[i] for i in paying)
        variances = _variances(study, n1, n2, "visited", mask)
    mask = ()
    for name, variance in zip(study.mdp.exogenous_names, variances, strict=True):
        if variance > tau_variance:
            mask = (*mask, name)
            yield session.record("find", (name,), reason="pays", mask=mask, score=float(variance))
    yield session.record(
        "start", mask, reason="all that pays", mask=mask, objective=session.objective(mask)
    )


def _variances(study: Study, n1: int, n2: int, sampling: Sampling, mask: Mask = ()) -> FloatArray:
    key = ("reward variances", n1, n2, sampling, mask)
    if key not in study.memo:
        sampler = visited_sampler(study, mask) if sampling == "visited" else None
        study.memo[key] = estimate_reward_variables(
            study.mdp,
            study.rng("reward variables", sampling),
            n1=n1,
            n2=n2,
            sampler=sampler,
            reward=study.reward,
        )
        per_state = len(study.mdp.exogenous_names) if study.reward == "total" else 1
        study.samples += n1 * n2 * per_state
    variances: FloatArray = study.memo[key]
    return variances
