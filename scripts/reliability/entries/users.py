"""Users' models with bugs, given to everything that takes a model; and the catalogue of bugs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from exo_envs import ExoEnv, ExoVectorEnv, State
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.testing import check_mdp
from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    ReducedMDP,
    Scenarios,
    ValueIteration,
    bracket,
    estimate_objective,
    evaluate,
)
from planners.dependence.interventions import actors_of
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from reliability import subjects
from reliability.bugs import BUGS, missed
from reliability.odd import Odd, Wrong
from reliability.registry import entry
from reliability.user_models import Changed, Ferry, Market, Wide, buggy
from wrappers import (
    BruteForceMaskLearner,
    CalibratedMaskLearner,
    CorrelationalMaskLearner,
    GreedyMaskLearner,
    MaskedObservation,
    RewardVariableMaskLearner,
    Study,
)
from wrappers.learners.reward_variables import estimate_reward_variables

LEARNERS = (
    *(CalibratedMaskLearner, CalibratedMaskLearner, CorrelationalMaskLearner, GreedyMaskLearner),
    *(BruteForceMaskLearner, RewardVariableMaskLearner),
)


@entry("user-bugs", cases=len(BUGS), limit=120.0)
def user_bugs(odd: Odd) -> None:
    """Each bug of the catalogue: is it named by ``fit``?"""
    bug = BUGS[odd.number]
    odd.remark(str(bug))
    learner = CalibratedMaskLearner(n_rollouts=50, n_data_rollouts=500)
    if reason := missed(bug, lambda mdp: learner.fit(mdp, rng=0)):
        raise Wrong(reason)


@entry("users/fit", weight=3.0, limit=60.0)
def fit(odd: Odd) -> None:
    """Every learner on models with a bug."""
    odd.call(odd.pick(LEARNERS)(**subjects.TINY).fit, buggy(odd), rng=0)


@entry("users/objective", weight=2.0, limit=60.0)
def objective(odd: Odd) -> None:
    """One mask of a model with a bug."""
    mdp = buggy(odd)
    mask = odd.pick(((), (0,), (0, 1)))
    odd.call(estimate_objective, mdp, mask, rng=0, n_rollouts=6, num_rollouts=12)


@entry("users/planners", weight=2.0, limit=60.0)
def planners(odd: Odd) -> None:
    """What plans, samples, plays and bounds, on models with a bug."""
    mdp = buggy(odd)
    rng = np.random.default_rng(0)
    sound = subjects.model("market")
    calls: list[Callable[[], Any]] = [
        lambda: Scenarios.sample(mdp, 5, 0),
        lambda: ExogenousData.collect(mdp, 10, rng),
        lambda: EndogenousSurvey.collect(mdp, ExogenousData.collect(mdp, 10, rng), rng),
        lambda: ReducedMDP.estimate(mdp, (0,), rng=0, num_rollouts=12).describe(),
        lambda: evaluate(_first_action, mdp, 6, 0),
        lambda: evaluate(_first_action, mdp, scenarios=subjects.scenarios()),
        lambda: bracket(mdp, _first_action, 5, 0),
        lambda: actors_of(mdp, subjects.data(), [0]),
        lambda: UCT(simulations=3, depth=3).plan(mdp).policy(mdp.sample_initial(2, rng)),
        lambda: DefaultPlanner().plan(mdp),
        lambda: ForecastPlanner(num_rollouts=10).plan(mdp),
        lambda: ValueIteration().plan(mdp),
        lambda: estimate_reward_variables(mdp, rng, n1=5, n2=3),
        lambda: CountedMDP(mdp).sample_next(sound.sample_initial(3, rng), np.zeros(3, int), rng),
        lambda: Study(mdp, 0, **subjects.TINY).parents(mdp.exogenous_names[:1]),
    ]
    odd.call(odd.pick(calls))


def _first_action(state: Any) -> Any:
    return np.zeros(len(state.endogenous), dtype=np.int64)


@entry("users/shells", weight=2.0)
def shells(odd: Odd) -> None:
    """Both shells over models with a bug."""
    mdp = buggy(odd)
    if odd.chance(0.5):
        env: Any = odd.call(ExoEnv, mdp)
        if odd.chance(0.3):
            env = odd.call(MaskedObservation, env, (0,))
        odd.call(env.reset, seed=0)
        for _ in range(4):
            odd.call(env.step, odd.below(mdp.num_actions))
        return
    lanes = odd.call(ExoVectorEnv, mdp, 3, autoreset_mode=odd.pick(("NextStep", "SameStep")))
    odd.call(lanes.reset, seed=0)
    for _ in range(8):
        odd.call(lanes.step, odd.rng.integers(mdp.num_actions, size=3))


@entry("users/check", weight=2.0)
def check(odd: Odd) -> None:
    """The contract check on models with a bug; and sound models pass it."""
    if odd.chance(0.1):
        model = odd.pick((Market, Ferry, Wide))()
        odd.must_work(check_mdp, model, num_states=8, num_samples=20, rng=odd.below(1000))
        return
    settings = {
        "num_states": odd.sound_or(8, 0.9),
        "num_samples": odd.sound_or(20, 0.9),
        "error_probability": odd.sound_or(1e-6, 0.9),
        "reward_range": odd.sound_or(None, 0.9),
        "any_state": odd.sound_or(None, 0.9),
        "rng": odd.sound_or(0, 0.9),
    }
    for name in ("num_states", "num_samples"):
        if isinstance(settings[name], (int, np.integer)) and settings[name] > 300:
            settings[name] = 5
    odd.call(check_mdp, buggy(odd) if odd.chance(0.7) else Market(), **settings)


@entry("users/silent", weight=2.0, limit=60.0)
def silent(odd: Odd) -> None:
    """A wrong value that is always there: no learner may answer as if nothing were the matter."""
    model = odd.pick((Market, Ferry))
    method = odd.pick(("sample_exogenous", "sample_endogenous", "sample_initial", "reward_terms"))
    step = odd.pick((10, 1000, -10, 2**33, 0.5, math.nan))
    if method == "reward_terms":
        step = math.nan
    part = odd.pick(State._fields)

    def change(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        answer = right()
        if isinstance(answer, State):
            return answer._replace(**{part: getattr(answer, part) + step})
        return answer + step

    odd.remark(f"{method} {part} + {step} in {model.__name__}")
    learner = odd.pick(LEARNERS)(**subjects.TINY)
    learned = odd.call(learner.fit, Changed(model(), **{method: change}), rng=0)
    raise Wrong(f"{type(learner).__name__} learns {learned.mask_} with {method} + {step}")
