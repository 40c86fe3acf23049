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
from functools import cached_property
from itertools import islice
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import as_actions
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from planners.core.arrays import Ints, joint_index, joint_values
from planners.core.evaluation import ActionRule, Scenarios, play, returns_on
from planners.core.policy import Mask
from planners.core.rare_events import ENOUGH_EVENTS, most_per_episode, readable, two_digits
from planners.discretization.bins import MAX_SINGLE_VALUES

if TYPE_CHECKING:
    from planners.samples.rollouts import ExogenousData

#: A value is hardly seen only if it is in fewer rollouts than this.
FEW_ROLLOUTS = 10
#: A value is hardly seen only if it is in a smaller share of the rollouts than this.
HARDLY_SEEN_SHARE = 0.1
#: What may be lost on average by what was hardly seen, as a share of half of the interval by
#: normal theory, from which on it matters.
NOTABLE_LOSS_SHARE = 0.5
#: Standard errors in half of an interval by normal theory.
HALF_WIDTH_ERRORS = NormalDist().inv_cdf(0.975)
#: Standard deviations of the returns by which an effect has to differ from all that is ordinary.
LARGE_DEVIATIONS = 6.0
#: Values that are tried for one step at most.
MAX_TRIED = 256
#: Values from which on the policy is played to the end of the episode, at most.
MAX_PLAYED = 8
#: Rollouts in which a value came up that a policy is played on, at most.
NUM_MET_ROLLOUTS = 64
#: Variables that are looked at where it is not known which of them matter, at most.
MAX_LOOKED_AT = 256
#: Rollouts that are played again for states that the policy meets, and such states.
NUM_PLAYED, NUM_MET_STATES = 64, 128
#: A glance is at so many rollouts and at least so many states, with so many values of x in all.
GLANCE_PLAYED, GLANCE_STATES, GLANCE_VALUES = 16, 8, 1024
#: Rollouts and states of a model that answers one state at a time.
SLOW_PLAYED, SLOW_MET_STATES = 8, 8
#: Actions that are tried in a state at most.
MAX_TRIED_ACTIONS = 8
#: A glance begins in this part of the episode: what comes later is discounted.
EARLY_SHARE = 1 / 3
#: How many times at which a value came up weigh as much as not knowing when it does.
ANY_TIME_ONSETS = 5
#: Standard errors by which an effect differs from nothing.
BEYOND_DOUBT_ERRORS = 2.0
#: A value that would change the return so often, and never did where it came up, is announced.
OFTEN_ROLLOUTS = 4.0
#: The share of what a value does to a return that counts as having done something.
VISIBLE_SHARE = 0.2


class Surprise(NamedTuple):
    """A value that was hardly seen, and what it does to a return."""

    variables: Mask
    columns: tuple[int, ...]  # of these variables in x
    values: tuple[int, ...]
    effect: float  # on the discounted return of an episode in which it comes up, on average
    seen: int  # rollouts in which it came up
    rollouts: int
    seen_at_all: int  # the same in all rollouts of x, whatever they were made for
    all_rollouts: int

    def put_into(self, state: State) -> State:
        """The same states with these values."""
        x = state.exogenous.copy()
        x[:, list(self.columns)] = self.values
        return State(state.endogenous, x)

    @property
    def at_most(self) -> float:
        """What it may change in the mean return, if it comes up as often as it may."""
        return abs(self.effect) * most_per_episode(self.seen_at_all, self.all_rollouts)

    @property
    def needed(self) -> int:
        """Rollouts that would do: so many that it comes up often enough for normal theory."""
        rate = self.seen_at_all / self.all_rollouts
        return two_digits(ENOUGH_EVENTS / (rate or most_per_episode(0, self.all_rollouts)))

    def __str__(self) -> str:
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
            f"the largest {kind} ({readable(self.effect)} in return, where {where}) {seen}. Normal "
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
    what_if = WhatIf(mdp, policy, scenarios)
    rates = [most_per_episode(own.seen_at_all, own.all_rollouts) for own in rare]
    potential = np.array([what_if.first_step(own) for own in rare]) * rates
    worth_a_look = NOTABLE_LOSS_SHARE * half_width
    order = np.lexsort((np.arange(len(rare)), -np.array(rates), -potential))[:MAX_PLAYED]
    tried = [k for k in order.tolist() if potential[k] > 0 and potential[k] >= worth_a_look]
    large = LARGE_DEVIATIONS * half_width / HALF_WIDTH_ERRORS * math.sqrt(len(scenarios))
    seen = what_if.glance([rare[k] for k in tried])
    found = []
    for k, largest in zip(tried, seen.tolist(), strict=True):
        if largest <= large or largest * rates[k] < worth_a_look:
            continue
        effect = what_if.effect(rare[k], _trajectories(scenarios, data, rare[k]))
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
        rare = np.flatnonzero(seen < min(FEW_ROLLOUTS, HARDLY_SEEN_SHARE * len(scenarios)))
        if not len(rare):
            continue
        elsewhere = np.zeros_like(seen)
        if data is not None:
            elsewhere = _count_rollouts(data.values, scope, sizes)
            rare = rare[(seen + elsewhere)[rare] < HARDLY_SEEN_SHARE * total]
        variables = tuple(mdp.exogenous_names[j] for j in scope)
        for code, values in zip(rare.tolist(), joint_values(rare, sizes).tolist(), strict=True):
            counts = int(seen[code]), len(scenarios), int(seen[code] + elsewhere[code]), total
            found.append(Surprise(variables, scope, tuple(values), 0.0, *counts))
    return sorted(found, key=lambda own: own.seen_at_all == 0)[:MAX_TRIED]


def _scopes(mdp: ExoMDP, names: Sequence[str] | None) -> Iterator[tuple[int, ...]]:
    """Single variables of few values, and those that pay together."""
    known = mdp.exogenous_names[:MAX_LOOKED_AT] if names is None else names
    looked_at = set(mdp.exogenous_indices(known).tolist())
    scopes: list[tuple[int, ...]] = [(j,) for j in sorted(looked_at)]
    scopes += [scope for scope in mdp.scope_indices if looked_at.issuperset(scope)]
    for scope in dict.fromkeys(scopes):
        sizes = [int(mdp.exogenous_sizes[j]) for j in scope]
        if scope and max(sizes) <= MAX_SINGLE_VALUES and math.prod(sizes) <= MAX_SINGLE_VALUES:
            yield scope


def _count_rollouts(values: NDArray[Any], scope: tuple[int, ...], sizes: Ints) -> Ints:
    """In how many rollouts each joint value comes up, of values (rollouts, steps, m)."""
    codes = joint_index(values[:, :, list(scope)].astype(np.int64), sizes)
    met = np.zeros((len(codes), int(np.prod(sizes))), dtype=bool)
    met[np.arange(len(codes))[:, None], codes] = True
    return met.sum(axis=0)


def _trajectories(scenarios: Scenarios, data: ExogenousData | None, tried: Surprise) -> Met:
    """The rollouts in which a value came up by itself."""
    steps = len(scenarios.exogenous)
    # (rollouts, steps, m) and (rollouts, k)
    sources = [(np.moveaxis(scenarios.exogenous, 0, 1), scenarios.endogenous)]
    if data is not None:
        sources.append((data.values[:, :steps], data.initial_endogenous))
    onsets, onsets_there, met = [], [], []
    for x, n in sources:
        is_it = (x[:, :, list(tried.columns)] == np.array(tried.values)).all(axis=2)
        rollouts = np.flatnonzero(is_it.any(axis=1))
        onsets.append(is_it[rollouts].argmax(axis=1))
        if x.shape[1] == steps and (data is None or not data.bins or x is sources[0][0]):
            rollouts = rollouts[:NUM_MET_ROLLOUTS]
            onsets_there.append(onsets[-1][:NUM_MET_ROLLOUTS])
            met.append((n[rollouts], np.moveaxis(x[rollouts], 0, 1)))
    playable = None
    if sum(len(n) for n, _ in met):
        playable = Scenarios(
            np.concatenate([n for n, _ in met]),
            np.concatenate([x for _, x in met], axis=1),
            scenarios.seed,
        )
    return Met(np.concatenate(onsets), playable, np.concatenate(onsets_there))


# --- what a value does ------------------------------------------------------------------------


class Met(NamedTuple):
    """Rollouts in which a value came up by itself, and the steps at which it first did."""

    onsets: Ints  # in all of them
    scenarios: Scenarios | None  # some of them that a policy can be played on
    onsets_there: Ints


class WhatIf:
    """States that a policy meets, and what becomes of them if x is another one.

    Args:
        mdp: the full model.
        policy: the policy.
        scenarios: trajectories that it is played on, of which some are played again.
    """

    def __init__(self, mdp: ExoMDP, policy: ActionRule, scenarios: Scenarios) -> None:
        self.mdp, self.policy, self.scenarios = mdp, policy, scenarios
        self.seed, self.horizon = scenarios.seed, len(scenarios.exogenous)
        width = len(mdp.exogenous_variables)
        few = max(GLANCE_STATES, min(NUM_MET_STATES // 2, GLANCE_VALUES // width))
        self.few, self.many = (GLANCE_PLAYED, few), (NUM_PLAYED, NUM_MET_STATES)
        if not mdp.is_batched:
            self.few = self.many = (SLOW_PLAYED, SLOW_MET_STATES)
        rng = np.random.default_rng([self.seed, 1])
        self.actions = rng.permutation(mdp.num_actions)[: min(mdp.num_actions, MAX_TRIED_ACTIONS)]

    # --- one step -----------------------------------------------------------------------------

    def first_step(self, tried: Surprise) -> float:
        """A bound on what values do to a return, by what they do at once.

        It is infinite if n moves elsewhere: who knows what that costs.
        """
        state, _ = self._early
        if not len(state.endogenous):
            return 0.0
        pays, leads = self._steps(tried.put_into(state))
        if (leads != self._usual[1]).any():
            return math.inf
        longest = float((self.mdp.discount ** np.arange(self.horizon)).sum())
        return float(np.abs(pays - self._usual[0]).max()) * longest

    @cached_property
    def _early(self) -> tuple[State, Ints]:
        """A few states in the first part of an episode, and when they are met."""
        steps, rng = math.ceil(EARLY_SHARE * self.horizon), np.random.default_rng([self.seed, 5])
        again = self.scenarios.first(self.few[0])
        states = _States.of(self.policy, self.mdp, again, steps)
        return states.draw(rng.integers(steps, size=self.few[1]), rng)

    @cached_property
    def _usual(self) -> tuple[FloatArray, NDArray[Any]]:
        return self._steps(self._early[0])

    def _steps(self, state: State) -> tuple[FloatArray, NDArray[Any]]:
        """What each action pays, and where it leads, in all states with the same noise."""
        count = len(self.actions)
        repeated = State(*(np.repeat(part, count, axis=0) for part in state))
        action = np.tile(self.actions, len(state.endogenous))
        noise = np.random.default_rng([self.seed, 2])
        following = self.mdp.sample_endogenous(repeated, action, noise)
        return self.mdp.reward(repeated, action), following

    # --- to the end of the episode ------------------------------------------------------------

    def glance(self, tried: Sequence[Surprise]) -> FloatArray:
        """The largest effect that each of some has in a few states, shape (tried,).

        All are played at once, each with noise of its own: only large effects can be seen.
        """
        state, time = self._early
        if not len(time) or not tried:
            return np.zeros(len(tried))
        worlds = [state, *(own.put_into(state) for own in tried)]
        together = State(*(np.concatenate([world[part] for world in worlds]) for part in (0, 1)))
        returns = self._play(together, np.tile(time, len(worlds)), same_noise=False)
        earned = returns.reshape(len(worlds), -1)
        return np.asarray(np.abs(earned[1:] - earned[0]).max(axis=1))

    def effect(self, tried: Surprise, met: Met) -> float:
        """What a value does to the return on average; 0 if that may be chance.

        It is 0, too, if the value came up often enough and never did anything: something announces
        it, and the policy gets out of its way.

        Args:
            tried: the value.
            met: the rollouts in which it came up.
        """
        played, count = self.many
        rng = np.random.default_rng([self.seed, 6])
        time = rng.integers(self.horizon, size=count)
        if len(met.onsets):
            is_known = rng.random(count) * (len(met.onsets) + ANY_TIME_ONSETS) < len(met.onsets)
            time = np.where(is_known, rng.choice(met.onsets, size=count), time)
        state, time = self._met.draw(time, rng)
        if not len(time):
            return 0.0
        changes = self._play(tried.put_into(state), time) - self._play(state, time)
        mean = float(changes.sum()) / count  # those that had ended change nothing
        error = math.sqrt(float(changes @ changes)) / count
        if abs(mean) <= BEYOND_DOUBT_ERRORS * error:
            return 0.0
        # As if it had come up in the first step: what comes late is discounted.
        along = changes * math.copysign(1.0, mean) / self.mdp.discount**time
        hits = along > along.max() / 2.0
        if met.scenarios is None or hits.sum() * len(met.scenarios) < OFTEN_ROLLOUTS * count:
            return mean
        earned = returns_on(self.policy, self.mdp, met.scenarios)
        usual = np.median(returns_on(self.policy, self.mdp, self.scenarios.first(played)))
        away = (earned - usual) * math.copysign(1.0, mean) / self.mdp.discount**met.onsets_there
        return mean if (away > VISIBLE_SHARE * along[hits].mean()).any() else 0.0

    def _play(self, state: State, time: Ints, *, same_noise: bool = True) -> FloatArray:
        """Discounted returns from some states on, met at these times, to the end of the episode.

        With the same noise in every call, rollouts that have ended are drawn for as well; without,
        they are left alone.
        """
        noise, exogenous_noise = (np.random.default_rng([self.seed, k]) for k in (3, 4))
        returns, lanes = np.zeros(len(time)), np.arange(len(time))
        for step in range(self.horizon - int(time.min())):
            going_on = (time[lanes] + step < self.horizon) & ~self.mdp.is_terminal(state)
            if not going_on.any():
                break
            if not same_noise and not going_on.all():
                lanes, state = lanes[going_on], State(*(part[going_on] for part in state))
                going_on = going_on[going_on]
            actions = as_actions(self.mdp, self.policy(state), (len(lanes),))
            moved = self.mdp.transition(state, actions, noise, exogenous_rng=exogenous_noise)
            paid = self.mdp.discount ** (time[lanes] + step) * moved.reward
            returns[lanes] += np.where(going_on, paid, 0.0)
            state = moved.state
        return returns

    @cached_property
    def _met(self) -> _States:
        again = self.scenarios.first(self.many[0])
        return _States.of(self.policy, self.mdp, again, self.horizon)


class _States(NamedTuple):
    """States that a policy met in some rollouts."""

    states: State  # one after another
    place: Ints  # (steps, rollouts): where the state is among them; -1 if the rollout had ended

    @classmethod
    def of(cls, policy: ActionRule, mdp: ExoMDP, scenarios: Scenarios, steps: int) -> _States:
        """Play the first steps of some rollouts."""
        place: Ints = np.full((steps, len(scenarios)), -1, dtype=np.int64)
        n, x, met = [scenarios.endogenous[:0]], [scenarios.exogenous[0, :0]], 0
        for t, step in enumerate(islice(play(policy, mdp, scenarios), steps)):
            place[t, step.lanes] = met + np.arange(len(step.lanes))
            met += len(step.lanes)
            n.append(step.state.endogenous)
            x.append(step.state.exogenous)
        exogenous = np.concatenate(x).astype(mdp.dtype_of("exogenous"))
        return cls(State(np.concatenate(n), exogenous), place)

    def draw(self, time: Ints, rng: np.random.Generator) -> tuple[State, Ints]:
        """States at some times, and these times; there are none of rollouts that had ended."""
        place = self.place[time, rng.integers(self.place.shape[1], size=len(time))]
        time, place = time[place >= 0], place[place >= 0]
        return State(self.states.endogenous[place], self.states.exogenous[place]), time
