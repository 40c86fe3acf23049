"""What the rollouts of a policy hardly saw, and what it would do to the return.

A value of an exogenous variable that comes up once in ten thousand steps is in few rollouts, or in
none. If it costs a fortune, the mean of the returns says little. The model can be asked, though:
take states that the policy meets, give the variable that value, and let the policy go on from
there. What that changes in the return, with the same noise, is what the value costs *this* policy:
nothing, if it sees it and gets out of the way.

That is looked for among the values of single variables, and of variables that pay together. Events
of n alone, and variables that are seen in bins, are left to the returns themselves
(:func:`planners.core.rare_events.find_events`). Where x was recorded nobody can change it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import ExoMDP
from planners.core.arrays import Ints, joint_index, joint_values
from planners.core.evaluation import ActionRule, Scenarios
from planners.core.policy import Mask
from planners.core.rare_events import MANY, most_per_episode, rounded, shown
from planners.discretization.bins import MANY_VALUES
from planners.what_if import Change, Met, WhatIf

if TYPE_CHECKING:
    from planners.samples.rollouts import ExogenousData

#: A value is hardly seen only if it is in fewer rollouts than this.
FEW = 10
#: A value is hardly seen only if it is in a smaller share of the rollouts than this.
SELDOM = 0.1
#: What may be lost on average by what was hardly seen, as a share of half of the interval by
#: normal theory, from which on it matters.
NOTABLE = 0.5
#: Standard errors in half of an interval by normal theory.
HALF = NormalDist().inv_cdf(0.975)
#: Standard deviations of the returns by which an effect has to differ from all that is ordinary.
LARGE = 6.0
#: Values that are tried for one step at most.
MAX_TRIED = 256
#: Values from which on the policy is played to the end of the episode, at most.
MAX_PLAYED = 8
#: Rollouts in which a value came up that a policy is played on, at most.
NUM_MET = 64
#: Variables that are looked at where it is not known which of them matter, at most.
MAX_VARIABLES = 256


class Surprise(NamedTuple):
    """A value that was hardly seen, and what it does to a return."""

    variables: Mask
    values: tuple[int, ...]
    effect: float  # on the discounted return of an episode in which it comes up, on average
    seen: int  # rollouts in which it came up
    rollouts: int
    seen_at_all: int  # the same in all rollouts of x, whatever they were made for
    all_rollouts: int

    @property
    def at_most(self) -> float:
        """What it may change in the mean return, if it comes up as often as it may."""
        return abs(self.effect) * most_per_episode(self.seen_at_all, self.all_rollouts)

    @property
    def needed(self) -> int:
        """Rollouts that would do: so many that it comes up often enough for normal theory."""
        rate = self.seen_at_all / self.all_rollouts
        return rounded(MANY / (rate or most_per_episode(0, self.all_rollouts)))

    def __str__(self) -> str:
        """What to mind about an interval, for people."""
        kind = "loss" if self.effect < 0 else "gain"
        where = " and ".join(
            f"{name!r} is {value}" for name, value in zip(self.variables, self.values, strict=True)
        )
        seen = f"was seen in {self.seen:,} of {self.rollouts:,} episodes"
        if not self.seen:
            seen = f"was never seen in {self.rollouts:,} episodes"
        others = self.all_rollouts - self.rollouts
        if others:
            seen += f" (and in {self.seen_at_all - self.seen:,} of {others:,} other rollouts of x)"
        return (
            f"the largest {kind} ({shown(self.effect)} in return, where {where}) {seen}. Normal "
            f"theory does not hold for what comes up so seldom, so the interval bounds how often "
            f"it may; about {self.needed:,} rollouts would do"
        )


def find_surprises(
    mdp: ExoMDP,
    policy: ActionRule,
    scenarios: Scenarios,
    *,
    half_width: float,
    names: Sequence[str] | None = None,
    data: ExogenousData | None = None,
) -> list[Surprise]:
    """What was hardly seen and matters, the worst first.

    Args:
        mdp: the full model.
        policy: the policy.
        scenarios: the trajectories that it was played on.
        half_width: half of the interval by normal theory: what is much less does not matter.
        names: the variables that pay or move n, if they are known; by default all are looked at.
        data: other rollouts of x, which say how seldom a value is.
    """
    if mdp.is_recorded or len(mdp.exogenous_variables) == 0:
        return []
    rare = _hardly_seen(mdp, scenarios, names, data)
    if not rare:
        return []
    changes = [
        Change(tuple(mdp.exogenous_indices(own.variables).tolist()), own.values) for own in rare
    ]
    what_if = WhatIf(mdp, policy, scenarios)
    rates = [most_per_episode(own.seen_at_all, own.all_rollouts) for own in rare]
    potential = np.array([what_if.first_step(change) for change in changes]) * rates
    worth_a_look = NOTABLE * half_width
    order = np.lexsort((np.arange(len(rare)), -np.array(rates), -potential))[:MAX_PLAYED]
    tried = [k for k in order.tolist() if potential[k] > 0 and potential[k] >= worth_a_look]
    large = LARGE * half_width / HALF * math.sqrt(len(scenarios))
    seen = what_if.glance([changes[k] for k in tried])
    found = []
    for k, largest in zip(tried, seen.tolist(), strict=True):
        if largest <= large or largest * rates[k] < worth_a_look:
            continue
        effect = what_if.effect(changes[k], _trajectories(scenarios, data, changes[k]))
        if effect and (own := rare[k]._replace(effect=effect)).at_most >= worth_a_look:
            found.append(own)
    return sorted(found, key=lambda own: -own.at_most)


def at_most(surprises: Sequence[Surprise]) -> float:
    """What some surprises may change in the mean return together.

    Of those that never came up, only one counts: if one did, others would be as rare.
    """
    seen = [own.at_most for own in surprises if own.seen_at_all]
    unseen = [own.at_most for own in surprises if not own.seen_at_all]
    return math.hypot(*seen, max(unseen, default=0.0))


def _hardly_seen(
    mdp: ExoMDP, scenarios: Scenarios, names: Sequence[str] | None, data: ExogenousData | None
) -> list[Surprise]:
    """Values that are in few rollouts, those that are known to come up first; no effects yet."""
    found = []
    total = len(scenarios) + (0 if data is None else data.num_rollouts)
    for scope in _scopes(mdp, names):
        sizes = mdp.exogenous_sizes[list(scope)]
        seen = _count_rollouts(np.moveaxis(scenarios.exogenous, 0, 1), scope, sizes)
        rare = np.flatnonzero(seen < min(FEW, SELDOM * len(scenarios)))
        if not len(rare):
            continue
        elsewhere = np.zeros_like(seen)
        if data is not None:
            elsewhere = _count_rollouts(data.values, scope, sizes)
            rare = rare[(seen + elsewhere)[rare] < SELDOM * total]
        variables = tuple(mdp.exogenous_names[j] for j in scope)
        for code, values in zip(rare.tolist(), joint_values(rare, sizes).tolist(), strict=True):
            counts = int(seen[code]), len(scenarios), int(seen[code] + elsewhere[code]), total
            found.append(Surprise(variables, tuple(values), 0.0, *counts))
    return sorted(found, key=lambda own: own.seen_at_all == 0)[:MAX_TRIED]


def _scopes(mdp: ExoMDP, names: Sequence[str] | None) -> Iterator[tuple[int, ...]]:
    """Single variables of few values, and those that pay together."""
    known = mdp.exogenous_names[:MAX_VARIABLES] if names is None else names
    looked_at = set(mdp.exogenous_indices(known).tolist())
    scopes: list[tuple[int, ...]] = [(j,) for j in sorted(looked_at)]
    scopes += [scope for scope in mdp.scope_indices if looked_at.issuperset(scope)]
    for scope in dict.fromkeys(scopes):
        sizes = [int(mdp.exogenous_sizes[j]) for j in scope]
        if scope and max(sizes) <= MANY_VALUES and math.prod(sizes) <= MANY_VALUES:
            yield scope


def _count_rollouts(values: NDArray[Any], scope: tuple[int, ...], sizes: Ints) -> Ints:
    """In how many rollouts each joint value comes up, of values (rollouts, steps, m)."""
    codes = joint_index(values[:, :, list(scope)].astype(np.int64), sizes)
    met = np.zeros((len(codes), int(np.prod(sizes))), dtype=bool)
    met[np.arange(len(codes))[:, None], codes] = True
    return met.sum(axis=0)


def _trajectories(scenarios: Scenarios, data: ExogenousData | None, change: Change) -> Met:
    """The rollouts in which a value came up by itself."""
    steps = len(scenarios.exogenous)
    # (rollouts, steps, m) and (rollouts, k)
    sources = [(np.moveaxis(scenarios.exogenous, 0, 1), scenarios.endogenous)]
    if data is not None:
        sources.append((data.values[:, :steps], data.initial_endogenous))
    onsets, onsets_there, met = [], [], []
    for x, n in sources:
        is_it = (x[:, :, list(change.columns)] == np.array(change.values)).all(axis=2)
        rollouts = np.flatnonzero(is_it.any(axis=1))
        onsets.append(is_it[rollouts].argmax(axis=1))
        if x.shape[1] == steps and (data is None or not data.bins or x is sources[0][0]):
            rollouts = rollouts[:NUM_MET]
            onsets_there.append(onsets[-1][:NUM_MET])
            met.append((n[rollouts], np.moveaxis(x[rollouts], 0, 1)))
    playable = None
    if sum(len(n) for n, _ in met):
        playable = Scenarios(
            np.concatenate([n for n, _ in met]),
            np.concatenate([x for _, x in met], axis=1),
            scenarios.seed,
        )
    return Met(np.concatenate(onsets), playable, np.concatenate(onsets_there))
