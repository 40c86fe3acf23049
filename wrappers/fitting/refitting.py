"""Another task over the same exogenous process: what an earlier study found out is kept.

P(x' | x) and who predicts whom do not depend on the task. What pays, what moves n, and plans do.
So a study of another task takes over from an earlier one

* the rollouts, if x begins as before: the same seed draws the same x_0;
* who predicts a variable, if neither it nor what predicts it is seen with other values or other
  frequencies than before: a goal that was never drawn was never seen in the rollouts;
* counts and forecasts of variables that have the same values in both rollouts;
* how n moves, if the two models say the same about every (n, a);

and asks for everything else anew. What is rolled out, drawn and tested has the same seeds as in a
study of its own.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from exo_envs.contract.checked_mdp import CountedMDP
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP
from exo_envs.core.statistics import g_test
from planners.core.memory import Shelf
from planners.dependence.same_process import compare_processes
from planners.discretization.bins import Bins
from planners.findings import ACTORS, LEFT_OUT, PARENTS
from planners.reduced.survey import survey_again
from planners.samples.rollouts import ExogenousData
from wrappers.fitting.study import Study

#: Names that are listed at most.
MOST_NAMES = 3


def take_over(earlier: Study, study: Study) -> None:
    """Let a study of another task have what an earlier one found out about x.

    Raises:
        ValueError: its model has other exogenous variables, or another P(x' | x).
    """
    _refuse_other_variables(earlier.mdp, study.mdp)
    before = CountedMDP(earlier.mdp)
    compared = compare_processes(before, study.counted, study.rng("same process"))
    if compared.difference is not None:
        raise ArgumentError(
            f"x moves by itself otherwise in {study.mdp!r} than in the model that was learned "
            f"on: {compared.difference}. What is known about x does not hold for it; fit anew"
        )
    known = earlier.data()
    data = study.memory.data = _rollouts(known, study, compared.common_noise)
    same_bins = _same_bins(known, data)
    same = same_bins & _same_values(known, data)
    if compared.common_noise:
        study.memory.take_over(earlier.memory, same)
    _keep_parents(earlier, study, same | (same_bins & _same_frequencies(known, data, same)))
    survey = earlier.memory.survey
    if survey is not None and same_bins.all():
        rng = study.rng("survey")
        study.memory.survey = survey_again(
            survey, before, study.counted, data, rng, reward=study.reward
        )
    study.counted.add(before)


def _refuse_other_variables(before: ExoMDP, mdp: ExoMDP) -> None:
    own, known = mdp.exogenous_variables, before.exogenous_variables
    if own == known:
        return
    pairs = zip_longest(own, known)
    differ = [repr((a or b).name) for a, b in pairs if a != b]
    shown, rest = ", ".join(differ[:MOST_NAMES]), len(differ) - MOST_NAMES
    raise ArgumentError(
        f"{mdp!r} has other exogenous variables than the model that was learned on, which has "
        f"{len(known)} of them; look at {shown}{f' and {rest} more' if rest > 0 else ''}. What is "
        "known about x does not hold for it; fit anew"
    )


def _rollouts(known: ExogenousData, study: Study, common_noise: bool) -> ExogenousData:
    """The rollouts before, where x begins with the same values; new ones otherwise."""
    mdp, count = study.counted, study.n_data_rollouts
    same_length = known.num_steps == mdp.horizon and count in (None, known.num_rollouts)
    if common_noise and same_length and not known.bins and not mdp.is_recorded:
        n, x = mdp.sample_initial(known.num_rollouts, study.rng("data"))
        if np.array_equal(x, known.values[:, 0]):
            return known.beginning_with(n)
    return study.data()


def _same_bins(known: ExogenousData, data: ExogenousData) -> BoolArray:
    """Which variables are seen in the same bins, or value by value in both, shape (m,)."""
    one, two = (
        {own.name: own.starts for own in each.bins if isinstance(own, Bins)}
        for each in (known, data)
    )
    same = [np.array_equal(one.get(name, ()), two.get(name, ())) for name in data.names]
    return np.array(same, dtype=np.bool_) & (known.sizes == data.sizes)


def _same_values(known: ExogenousData, data: ExogenousData) -> BoolArray:
    """Which variables have the same values in both rollouts, shape (m,)."""
    if known.values is data.values:
        return np.ones(len(data.names), dtype=np.bool_)
    if known.values.shape != data.values.shape or known.seed != data.seed:
        return np.zeros(len(data.names), dtype=np.bool_)
    return np.asarray((known.values == data.values).all(axis=(0, 1)))


def _same_frequencies(known: ExogenousData, data: ExogenousData, same: BoolArray) -> BoolArray:
    """Which of the other variables have their values about as often, and no others, shape (m,).

    A variable that never had a value before may be predicted by others where it has that value.
    """
    found, rng = np.zeros(len(same), dtype=np.bool_), np.random.default_rng(data.seed)
    # One state of each rollout: they are independent of each other.
    once = [
        each.values[
            np.arange(each.num_rollouts), rng.integers(each.num_steps, size=each.num_rollouts)
        ]
        for each in (known, data)
    ]
    number = min(map(len, once))
    for j in np.flatnonzero(~same & (known.sizes == data.sizes)).tolist():
        size = int(data.sizes[j])
        seen, seen_again = (
            np.bincount(each.values[..., j].reshape(-1), minlength=size) > 0
            for each in (known, data)
        )
        if (seen == seen_again).all():
            counts = (np.bincount(sample[:number, j], minlength=size) for sample in once)
            found[j] = g_test(*counts).log_p >= np.log(1e-2)  # to be wrong costs time only
    return found


def _keep_parents(earlier: Study, study: Study, alike: BoolArray) -> None:
    """Who predicts a variable, where all that are concerned are as before."""
    shelves: tuple[Shelf[str, Any], ...] = (PARENTS, LEFT_OUT, ACTORS)
    left_out = earlier.memory.entries(LEFT_OUT)
    unchanged = {study.mdp.exogenous_names[j] for j in np.flatnonzero(alike)}
    for name, found in earlier.memory.entries(PARENTS).items():
        if unchanged.issuperset((name, *found, *left_out[name])):
            for shelf in shelves:
                known = earlier.memory.entries(shelf)
                if name in known:
                    study.memory.entries(shelf)[name] = known[name]
