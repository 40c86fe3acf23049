"""Hyper-parameters and arguments of learners, studies and of the functions that estimate J."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from exo_envs import as_mdp
from planners import (
    UCT,
    DefaultPlanner,
    ForecastPlanner,
    ReducedMDP,
    ValueIteration,
    bracket,
    estimate_objective,
    evaluate,
)
from planners.objective import MaskEvaluator
from planners.tables.factored_mdp import FactoredMDP
from reliability import subjects
from reliability.entries.users import LEARNERS
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import Ferry, Harbour, Market
from wrappers import CalibratedMaskLearner, MaskLearner, Study
from wrappers.fitting.history import History, Progress, Record
from wrappers.fitting.relevance import find_relevance
from wrappers.learners.reward_variables import estimate_reward_variables
from wrappers.reports.ignoring import CostOfIgnoring

#: Counts beyond these only take long; what is refused is refused long before.
AFFORDABLE = 40


def spend(value: Any) -> Any:
    """A whole number that would only cost time, made small."""
    is_number = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    is_array = isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu"
    return 3 if (is_number or is_array) and AFFORDABLE < value < 10**12 else value


def odd_mask(odd: Odd, names: tuple[str, ...]) -> Any:
    """A mask in any form, sound ones among them."""
    many = len(names)
    sound = (names[:1], [0], [True] + [False] * (many - 1), (), range(min(2, many)), names)
    unsound = (
        *("price", "", "x" * 300, None, 3, 1.5, {"price": True}, {0, 1}),
        *([True], [0, True], [False, 1, 2], [-1], [many], [0, 0], [0.0], [None], ["x"], b"\1\0\0"),
        *(np.array([[True]]), np.array(0), [names], [[0]], (n for n in names), {"object": True}),
        *(np.array([1.0]), np.array(["x"]), np.ones(many + 1, bool), [2**70], [1j], object()),
        *(dict.fromkeys(names, False), bytearray(b"\0\1"), "*", ["*"], ["?*"], ["price", 0]),
    )
    return odd.pick(sound if odd.chance(0.3) else unsound)


@entry("learners/parameters", weight=3.0, limit=60.0)
def parameters(odd: Odd) -> None:
    """One or two odd hyper-parameters of a learner."""
    cls = odd.pick(LEARNERS)
    names = [field.name for field in dataclasses.fields(cls)]
    given: dict[str, Any] = {**subjects.TINY}
    for _ in range(1 + odd.below(2)):
        name = odd.pick(names)
        words = ("time", "size", "zero", "average", "total", "terms", "x", "uniform", "visited")
        given[name] = spend(odd.anything() if odd.chance(0.6) else odd.pick(words))
    learner = odd.call(cls, **given)
    if odd.chance(0.2):
        odd.call(learner.set_params, **{odd.text() or "x": 3})
    odd.call(learner.fit, Ferry(), rng=odd.sound_or(0, 0.8))
    odd.must_work(learner.get_support)


@entry("learners/fit", weight=1.0, limit=60.0)
def fit(odd: Odd) -> None:
    """What ``fit`` is given instead of a model, and what a learner tells before and after."""
    learner = odd.pick(LEARNERS)(**subjects.TINY)
    kind = odd.below(6)
    if kind == 0:
        odd.call(lambda: getattr(learner, odd.pick(("mask_", "policy_", "reasons_", "history_"))))
    elif kind == 1:
        before = odd.pick((learner.get_support, learner.saved, lambda: learner.cost_of_ignoring_))
        odd.must_fail(before)
    elif kind == 2:
        given = (Market, None, "ExoGrid-v0", Harbour(), subjects.env("market"), odd.anything())
        odd.call(learner.fit, odd.pick(given), rng=odd.generator())
    elif kind == 3:
        odd.must_work(learner.fit, subjects.study())
        odd.must_work(
            lambda: (learner.mask_, learner.get_params(), learner.clone(), learner.saved())
        )
        odd.call(learner.get_support, odd.anything())
    elif kind == 4:
        learned = subjects.learner()
        odd.must_work(lambda: (learned.reasons_, learned.history_.to_pandas()))
        odd.must_work(lambda: learned.cost_of_ignoring_)
    else:
        odd.call(as_mdp, odd.pick((Market, Market(), None, subjects.env("grid"), odd.anything())))


@entry("learners/study", weight=1.0, limit=60.0)
def study(odd: Odd) -> None:
    """A study's arguments, and questions to one."""
    known = subjects.study()
    names = odd.pick((("price",), ("x",), (), [0], "price", ("price", "price"), [None]))
    kind = odd.below(10)
    if kind == 0:
        settings = {"n_rollouts": odd.sound_or(5), "n_data_rollouts": odd.sound_or(12)}
        settings |= {"level": odd.sound_or(0.05), "planning_time_limit": odd.sound_or(5.0)}
        settings |= {"reward": odd.sound_or("terms"), "planner": odd.sound_or(None)}
        settings = {name: spend(value) for name, value in settings.items()}
        made = odd.call(Study, Market(), odd.generator(), **settings)
        odd.call(made.parents, ("price",))
    elif kind == 1:
        odd.must_work(find_relevance, known)
    elif kind == 2:
        size = {"n1": spend(odd.sound_or(5)), "n2": spend(odd.sound_or(3))}
        sampler = odd.sound_or(None, 0.8)
        reward = odd.pick(("total", "terms", "x", None))
        mdp = odd.pick((Market(), None, subjects.env("market")))
        odd.call(
            estimate_reward_variables, mdp, odd.generator(), sampler=sampler, reward=reward, **size
        )
    elif kind == 3:
        odd.must_work(lambda: (known.samples, known.data(), known.same_as("price"), known.coarse))
        odd.call(known.rng, odd.pick(("x", 3)))
    elif kind == 4:
        rng = np.random.default_rng(0)
        odd.must_work(lambda: (known.evaluator.planner(), known.evaluator.planner(True)))
        odd.call(known.evaluator.reduce, names, rng, relaxed=odd.chance(0.5))
    else:
        odd.call(odd.pick((known.parents, known.actors)), names)


@entry("learners/records", weight=0.3)
def records(odd: Odd) -> None:
    """What learners tell: plain records, which take anything, and what is computed from them."""
    step = Record(action="try", candidate=(), accepted=True, reason=odd.text(), mask=("a",))
    odd.must_work(History([step]).to_pandas)
    odd.must_work(Progress, "x", 1.0, step)
    own = subjects.objective()
    odd.call(CostOfIgnoring.of, own, own, odd.sound_or(0.95))
    odd.must_fail(MaskLearner)


@entry("learners/objective", weight=2.0, limit=60.0)
def objective(odd: Odd) -> None:
    """``estimate_objective`` with odd arguments, masks above all."""
    given: dict[str, Any] = {"rng": 0, "n_rollouts": 6, "num_rollouts": 12}
    for name, sound in (
        *(("cost_weight", 0.5), ("cost", "time"), ("n_rollouts", 5), ("time_limit", 5.0)),
        *(("planner", None), ("scenarios", subjects.scenarios()), ("warm_start", None)),
        ("planning_time_limit", 5.0),
        *(("level", 0.01), ("max_parents", 2), ("min_samples", 5), ("smoothing", 1.0)),
        *(("interventions", False), ("reward", "total"), ("ignored_rewards", "zero"), ("rng", 1)),
        *(("data", None), ("survey", None), ("memory", None), ("known_parents", None)),
    ):
        if odd.chance(0.1):
            given[name] = spend(odd.sound_or(sound, 0.3))
    mdp = Market()
    mask = odd_mask(odd, mdp.exogenous_names) if odd.chance(0.7) else ("price",)
    odd.call(estimate_objective, mdp, mask, **given)


@entry("learners/evaluator", weight=1.0, limit=60.0)
def evaluator(odd: Odd) -> None:
    """Questions to an evaluator of masks, and to what it answers."""
    known: MaskEvaluator = subjects.study().evaluator
    mask = odd_mask(odd, subjects.model("market").exogenous_names)
    own = subjects.objective()
    kind = odd.below(8)
    if kind == 0:
        odd.call(known.objective, mask, cost_weight=odd.sound_or(0.1), cost=odd.sound_or("size"))
    elif kind == 1:
        odd.call(known.compare, mask, odd.pick(((), ("season",), "season")))
    elif kind == 2:
        odd.call(known.plan, odd.pick((("price",), ("x",), ("price", "price"), ("news", "price"))))
    elif kind == 3:
        odd.call(known.visits, odd.pick((("price",), ("x",), ())))
        odd.must_work(known.known_objective, odd.pick((("price",), ("x",), ())))
    elif kind == 4:
        odd.must_work(known.independent_scenarios, 3)
        compared = odd.must_work(known.compare, ("price",), ())
        odd.must_work(lambda: (compared.gain.is_decided, compared.is_cut_short))
        odd.must_work(lambda: (known.scenarios(), known.fresh_scenarios(), known.knows(("price",))))
    elif kind == 5:
        odd.must_work(own.gain_over, own)
        odd.call(own.interval, odd.sound_or(0.9))
        odd.must_work(lambda: (own.bracket, own.mask, str(own)))
        odd.must_work(lambda: (known.keeps(own.plan), known.as_played(own), own.claimed))
    elif kind == 6:
        given = odd.pick((subjects.model("blind"), subjects.model("market")))
        odd.must_work(known.solve, given, np.random.default_rng(0))
    else:
        odd.call(CalibratedMaskLearner(**subjects.TINY).fit, subjects.study())


@entry("learners/planners", weight=2.0, limit=60.0)
def planners(odd: Odd) -> None:
    """Planners' hyper-parameters, and what they are given to plan in."""
    cls = odd.pick((ValueIteration, ForecastPlanner, UCT, DefaultPlanner))
    names = [field.name for field in dataclasses.fields(cls)]
    given: dict[str, Any] = {"num_rollouts": 12} if cls is ForecastPlanner else {}
    given |= {"simulations": 3} if cls is UCT else {}
    for _ in range(odd.below(3)):
        given[odd.pick(names)] = spend(odd.number_())
    planner = odd.call(cls, **given)
    mdp: Any = subjects.model(odd.pick(("tabulated", "blind", "factored", "simulated", "market")))
    mdp = mdp if odd.chance(0.9) else odd.anything()
    settings: dict[str, Any] = {"rng": odd.sound_or(np.random.default_rng(0), 0.8)}
    settings["time_limit"] = odd.sound_or(10.0, 0.7)
    if odd.chance(0.2) and cls is not ForecastPlanner:
        settings["warm_start"] = odd.pick((subjects.objective().plan, None, 3, "x"))
    plan = odd.call(planner.plan, mdp, **settings)
    start = mdp.sample_initial(2, np.random.default_rng(0))
    odd.must_work(plan.policy, start)
    if cls is DefaultPlanner:
        odd.must_work(planner.choose, mdp)
    if cls is ValueIteration and isinstance(mdp, FactoredMDP):
        odd.must_work(lambda: (planner.bytes_needed(mdp), planner.attainable_tolerance(mdp)))


@entry("learners/evaluate", weight=1.0)
def evaluating(odd: Odd) -> None:
    """``evaluate`` and ``bracket``: policies that are none, and odd counts."""
    mdp = odd.pick((Market(), Ferry(), subjects.model("blind"), subjects.model("adapted")))
    answers = odd.pick(([0, 0, 0, 0, 0, 0], None, 0, "x", [0.5] * 6, [9] * 6, [[0]] * 6, [-1] * 6))
    policy: Any = odd.pick(
        (lambda state: answers, lambda: 0, None, subjects.policy("tabular"), odd.anything())
    )
    given: dict[str, Any] = {"n_rollouts": spend(odd.sound_or(6)), "rng": odd.sound_or(0)}
    if odd.chance(0.3):
        given["scenarios"] = odd.pick((subjects.scenarios(), subjects.scenarios("ferry"), 3, "x"))
    if odd.chance(0.5):
        odd.call(evaluate, policy, mdp, watch=odd.sound_or(None, 0.8), **given)
        return
    if odd.chance(0.3):
        names = ("values", "model", "memory", "returns", "penalty", "max_questions")
        given[odd.pick(names)] = spend(odd.anything())
    odd.call(bracket, mdp, policy, **given)


@entry("learners/estimate", weight=1.0)
def estimate(odd: Odd) -> None:
    """``ReducedMDP.estimate`` with masks and arguments of all kinds."""
    mdp = odd.pick((Market(), Ferry(), subjects.model("wide"), subjects.model("tabulated")))
    given: dict[str, Any] = {"rng": odd.sound_or(0, 0.8), "num_rollouts": odd.sound_or(12, 0.8)}
    if odd.chance(0.4):
        names = ("level", "max_parents", "min_samples", "smoothing", "reward", "ignored_rewards")
        given[odd.pick(names)] = spend(odd.number_())
    if odd.chance(0.2):
        given |= {"data": subjects.data(), "num_rollouts": None}
    given = {name: spend(value) for name, value in given.items()}
    made = odd.call(ReducedMDP.estimate, mdp, odd_mask(odd, mdp.exogenous_names), **given)
    odd.must_work(made.describe)
