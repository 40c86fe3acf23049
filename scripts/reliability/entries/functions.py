"""Functions on data: scenarios, rollouts, information, estimates, memory, prices."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs import Variable
from exo_envs.contract.check import check_quickly
from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.clock import check_time_limit
from exo_envs.sources.simulators.conversion import warn_of_ignored_wrappers
from planners import (
    Bracket,
    Clock,
    Estimate,
    Memory,
    Objective,
    Scenarios,
    ValueIteration,
    bracket,
    evaluate,
    pairwise_information,
)
from planners.bounds.penalty import ExactValues
from planners.core.evaluation import paired_difference
from planners.core.planner import Candidate, check_planner
from planners.dependence.contingency import Cases, Rows, conditional_information
from planners.dependence.interventions import actors_of, hidden_in_bins, influence_given
from planners.dependence.parents import ParentSearch, TransitionCounts
from planners.discretization.bins import Bins
from planners.discretization.coarse import CoarseMDP, coarsened, with_values
from planners.findings import Findings
from planners.objective import MaskEvaluator, PlannedMask
from planners.reduced.ignored_rewards import check_ignored_rewards
from planners.reduced.rewards import check_reward
from planners.reduced.survey import EndogenousSurvey
from planners.samples.rollouts import ExogenousData
from planners.worth import cost_function
from reliability import subjects
from reliability.entries.learners import spend
from reliability.odd import Odd
from reliability.registry import entry
from reliability.user_models import Ferry, Market, buggy


@entry("functions/scenarios")
def scenarios(odd: Odd) -> None:
    """Trajectories: sampled with odd arguments, cut, joined, forged, played."""
    kind = odd.below(4)
    known = subjects.scenarios()
    if kind == 0:
        mdp = odd.sound_or(Market(), 0.8)
        horizon = spend(odd.sound_or(None))
        odd.call(Scenarios.sample, mdp, spend(odd.sound_or(4)), odd.generator(), horizon=horizon)
    elif kind == 1:
        odd.call(known.first, odd.sound_or(2))
    elif kind == 2:
        other = subjects.scenarios("ferry")
        odd.call(Scenarios.join, odd.pick(([known, known], [known, other], [])))
    else:
        n = odd.altered(known.endogenous, Market().endogenous_sizes)
        x = odd.altered(known.exogenous, Market().exogenous_sizes)
        which = odd.below(3)
        parts = (n, known.exogenous) if which == 0 else (known.endogenous, x)
        forged = odd.call(Scenarios, *parts, 3)
        odd.call(evaluate, lambda s: np.zeros(len(s.endogenous), int), Market(), scenarios=forged)


@entry("functions/data")
def data(odd: Odd) -> None:
    """Rollouts of x: collected, restricted, asked, forged."""
    known = subjects.data()
    names = odd.pick((("price",), ("x",), (), "price", ("price", "price"), [0]))
    kind = odd.below(8)
    if kind == 0:
        steps = spend(odd.sound_or(None))
        rng = np.random.default_rng(0)
        odd.call(ExogenousData.collect, Market(), spend(odd.sound_or(5)), rng, num_steps=steps)
    elif kind <= 2:
        odd.call(odd.pick((known.restrict, known.positions)), names)
    elif kind == 3:
        rollouts = odd.pick((slice(None), [0], known.fitted))
        odd.must_work(odd.pick((known.before, known.after)), odd.below(3), rollouts)
    elif kind == 4:
        odd.must_work(known.sample, 5, np.random.default_rng(0))
        n = odd.altered(known.initial_endogenous, Market().endogenous_sizes)
        odd.call(known.beginning_with, n)
        odd.must_work(
            lambda: (known.initial(), known.held_out, known.num_rollouts, known.num_steps)
        )
    else:
        values = odd.altered(known.values, known.sizes)
        sizes = known.sizes if odd.chance(0.7) else odd.altered(known.sizes, np.full(3, 9))
        made = odd.call(ExogenousData, known.names, sizes, values, known.initial_endogenous, 3)
        ask = odd.below(3)
        if ask == 0:
            odd.call(pairwise_information, made)
        elif ask == 1:
            odd.call(ParentSearch(made).parents, 0, [0, 1])
        else:
            odd.call(EndogenousSurvey.collect, Market(), made, np.random.default_rng(0))


@entry("functions/information")
def information(odd: Odd) -> None:
    """Who predicts whom, asked oddly."""
    known = subjects.data()
    kind = odd.below(7)
    column = odd.altered(known.before(0, slice(None)), 5)
    if kind == 0:
        targets = odd.pick((None, [0], [9], [-1], [], [2**40], [0, 0]))
        rollouts = odd.pick((None, [0, 1], [99], [-1], []))
        odd.call(pairwise_information, known, targets, odd.chance(0.5), rollouts)
    elif kind == 1:
        rows = odd.call(Rows.of, spend(odd.sound_or_real(len(np.atleast_1d(column)))))
        odd.call(rows.split, column, odd.sound_or_real(5))
    elif kind == 2:
        target = known.after(1, slice(None))
        rows = Rows.of(len(target))
        given = target if odd.chance(0.5) else column
        cases = odd.call(Cases, rows, given, odd.sound_or_real(5))
        odd.call(conditional_information, cases, column, odd.sound_or_real(5))
        odd.call(lambda: cases.bits)
    elif kind == 3:
        settings = {"level": odd.sound_or(0.01), "max_parents": odd.sound_or(2)}
        search = odd.call(ParentSearch, known, **settings)
        suspects = odd.pick((None, {0: 0.5}, {9: 1.0}, {0: np.nan}, {}))
        candidates = odd.pick(([0, 1, 2], [9], [-1], [], [0, 0]))
        target = odd.pick((0, 1, 9, -1))
        odd.call(odd.pick((search.parents, search.explain)), target, candidates, suspects)
    elif kind == 4:
        targets = odd.pick(([0], [9], [], [-1], [0, 0]))
        memory = odd.pick((None, Memory()))
        odd.call(actors_of, odd.pick((Market(), Ferry())), known, targets, memory=memory)
    elif kind == 5:
        _count(odd, known)
    else:
        memory = odd.call(Memory, data=odd.pick((None, known)))
        odd.call(memory.bind, data=odd.pick((known, None, subjects.data("ferry"))))


def _count(odd: Odd, known: ExogenousData) -> None:
    counts = odd.call(TransitionCounts, known, odd.pick((1, 2, 3, 0, -1, 10**9)), Memory())
    target, given = odd.pick((0, 1, 2, 9, -1)), odd.pick(([0], [], [1, 2], [9], [-1], [0, 0]))
    kind = odd.below(5)
    if kind == 0:
        odd.call(
            odd.pick((counts.cases, counts.information, counts.null, counts.is_certain)),
            target,
            given,
        )
    elif kind == 1:
        odd.call(odd.pick((counts.num_rows, counts.rows)), given)
    elif kind == 2:
        odd.call(counts.later, target)
    elif kind == 3:
        candidates = odd.pick((np.array([0, 1]), np.array([9]), np.array([-1])))
        odd.call(counts.screen, target, given, candidates)
    else:
        odd.must_work(counts.columns)


@entry("functions/estimates")
def estimates(odd: Odd) -> None:
    """Means, differences, prices, clocks: small functions with odd numbers."""
    samples = odd.altered(np.arange(5.0), 9)
    kind = odd.below(9)
    if kind == 0:
        odd.call(Estimate.of, samples)
    elif kind == 1:
        made = odd.call(Estimate, float(odd.sound_or_real(1.0)), float(odd.sound_or_real(0.5)))
        odd.call(made.interval, odd.sound_or(0.9))
        odd.call(str, made)
    elif kind == 2:
        odd.call(paired_difference, samples, np.ones(5))
    elif kind == 3:
        odd.call(odd.pick((check_ignored_rewards, check_reward)), odd.sound_or("average"))
    elif kind == 4:
        price = odd.call(
            cost_function, odd.pick(("size", "time", "x", None, 3, lambda mask, plan: 1.0))
        )
        odd.call(price, ("price",), subjects.objective().plan)
    elif kind == 5:
        clock = odd.call(Clock, odd.sound_or_real(5.0))
        odd.call(lambda: (clock.left(), clock.seconds(), clock.tick()))
    elif kind == 6:
        own = subjects.objective()
        given = {"cost_weight": odd.sound_or(0.1), "cost": odd.sound_or("size")}
        made = odd.call(Objective.of, own.returns, own.plan, own.reduced, **given)
        odd.must_work(lambda: (made.value, made.interval(), made.caution, made.mask))
    elif kind == 7:
        odd.must_work(Candidate, "x", (), Estimate(1.0, 1.0), "y").__str__()
        odd.must_work(lambda: PlannedMask(subjects.objective().plan, None, [], np.zeros(1)))
    else:
        made = odd.call(
            MaskEvaluator,
            Findings(Market(), n_data_rollouts=12),
            planner=odd.sound_or(ValueIteration()),
            n_rollouts=spend(odd.sound_or(5)),
            time_limit=odd.sound_or(5.0),
        )
        odd.call(made.scenarios)


@entry("functions/bins")
def bins(odd: Odd) -> None:
    """Variables of very many values: bins that are none, and questions about them."""
    known = subjects.data("broad")
    (own,) = known.bins
    broad = subjects.model("broad")
    kind = odd.below(6)
    if kind == 0:
        starts = odd.altered(own.starts, np.full(len(own), 2_000))
        odd.call(Bins, own.name, own.size, starts, own.stand_ins)
    elif kind == 1:
        stand_ins = odd.altered(own.stand_ins, np.full(own.stand_ins.shape[-1], 2_000))
        made = odd.call(Bins, own.name, own.size, own.starts, stand_ins)
        odd.call(CoarseMDP(broad, [made]).sample_initial, 3, np.random.default_rng(0))
    elif kind == 2:
        values = odd.altered(np.arange(2_000), 2_000)
        made = odd.call(Bins.of, Variable("price", 2_000), values)
        odd.call(made.of_values, odd.altered(np.arange(9), 2_000))
    elif kind == 3:
        model = odd.pick((broad, Market(), Ferry()))
        odd.call(odd.pick((coarsened, CoarseMDP)), model, odd.pick(([], [own], [own, own])))
    elif kind == 4:
        n = np.zeros((3, 1), dtype=np.int64)
        odd.must_work(hidden_in_bins, broad, known, "price", ("season",), n)
        plan = subjects.objective().plan
        odd.must_work(with_values, plan, odd.pick((subjects.model("binned"), Market())))
    else:
        rows = Rows.of(len(known.fitted) * known.num_steps)
        odd.must_work(influence_given, broad, known, odd.below(3), odd.below(3), rows)
        coarse: CoarseMDP = subjects.model("coarse")
        x = coarse.sample_initial(3, np.random.default_rng(0)).exogenous
        odd.must_work(lambda: coarse.in_bins(coarse.refine(x, np.random.default_rng(0))))


@entry("functions/checks", weight=0.5)
def checks(odd: Odd) -> None:
    """What checks arguments is called by users too."""
    kind = odd.below(5)
    if kind == 0:
        odd.call(check_planner, odd.pick((ValueIteration(), ValueIteration, None, odd.anything())))
    elif kind == 1:
        odd.call(check_time_limit, "time_limit", odd.sound_or(3.0), positive=odd.chance(0.5))
    elif kind == 2:
        odd.call(check_quickly, buggy(odd), seconds=odd.pick((1.0, 0.0)))
    elif kind == 3:
        odd.must_work(check_quickly, odd.pick((Market(), Ferry(), subjects.model("adapted"))))
    else:
        env = odd.pick((subjects.env("market"), subjects.env("ExoGrid-v0"), Market(), None))
        odd.must_work(warn_of_ignored_wrappers, env, Market())


@entry("functions/bounds", weight=1.0, limit=60.0)
def bounds(odd: Odd) -> None:
    """Bounds, and value functions that they take."""
    model: Any = subjects.model(odd.pick(("factored", "blind", "tabulated")))
    kind = odd.below(3)
    if kind == 0:
        mdp = odd.pick((None, subjects.model("grid"), model, Market()))
        values = odd.call(ExactValues, model, mdp)
        for _ in odd.call(values.backwards, spend(odd.sound_or(3))):
            pass
    elif kind == 1:
        made: Bracket = odd.must_work(bracket, model, lambda s: np.zeros(len(s.endogenous), int), 5)
        odd.must_work(lambda: (made.gap, made.difference, str(made)))
    else:
        counted = odd.call(CountedMDP, odd.pick((Market(), subjects.model("counted"))))
        odd.must_work(lambda: (counted.samples, counted.num_states))
