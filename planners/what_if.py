"""What becomes of states that a policy meets, if x were another one there.

The policy goes on from a changed state and from the state as it was, to the end of the episode. The
difference of the returns is what the change does to *this* policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.batches import as_actions
from exo_envs.core.mdp import ExoMDP, FloatArray, State
from planners.core.arrays import Ints
from planners.core.evaluation import ActionRule, Scenarios, play, returns_on

#: Rollouts that are played again for states that the policy meets, and such states.
NUM_PLAYED, NUM_STATES = 64, 128
#: The same for a glance, at least, and values of x in all of its states.
FEW_PLAYED, FEW_STATES, FEW_VALUES = 16, 8, 1024
#: The same with a model that answers one state at a time.
SLOW_PLAYED, SLOW_STATES = 8, 8
#: Actions that are tried in a state at most.
MAX_ACTIONS = 8
#: A glance begins in this part of the episode: what comes later is discounted.
EARLY = 1 / 3
#: How many times at which a value came up weigh as much as not knowing when it does.
ANY_TIME = 5
#: Standard errors by which an effect differs from nothing.
BEYOND_DOUBT = 2.0
#: A value that would change the return so often, and never did where it came up, is announced.
OFTEN = 4.0
#: The share of what a value does to a return that counts as having done something.
VISIBLE = 0.2


class Change(NamedTuple):
    """Other values of some variables."""

    columns: tuple[int, ...]
    values: tuple[int, ...]

    def of(self, state: State) -> State:
        """The same states with these values."""
        x = state.exogenous.copy()
        x[:, list(self.columns)] = self.values
        return State(state.endogenous, x)


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
        few = max(FEW_STATES, min(NUM_STATES // 2, FEW_VALUES // width))
        self.few = (FEW_PLAYED, few) if mdp.is_batched else (SLOW_PLAYED, SLOW_STATES)
        self.many = (NUM_PLAYED, NUM_STATES) if mdp.is_batched else (SLOW_PLAYED, SLOW_STATES)
        rng = np.random.default_rng([self.seed, 1])
        self.actions = rng.permutation(mdp.num_actions)[: min(mdp.num_actions, MAX_ACTIONS)]

    # --- one step -----------------------------------------------------------------------------

    def first_step(self, change: Change) -> float:
        """A bound on what a change does to a return, by what it does at once.

        It is infinite if n moves elsewhere: who knows what that costs.
        """
        state, _ = self._early
        if not len(state.endogenous):
            return 0.0
        pays, leads = self._steps(change.of(state))
        if (leads != self._usual[1]).any():
            return math.inf
        longest = float((self.mdp.discount ** np.arange(self.horizon)).sum())
        return float(np.abs(pays - self._usual[0]).max()) * longest

    @cached_property
    def _early(self) -> tuple[State, Ints]:
        """A few states in the first part of an episode, and when they are met."""
        steps, rng = math.ceil(EARLY * self.horizon), np.random.default_rng([self.seed, 5])
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

    def glance(self, changes: Sequence[Change]) -> FloatArray:
        """The largest effect that each of some changes has in a few states, shape (changes,).

        All are played at once, each with noise of its own: only large effects can be seen.
        """
        state, time = self._early
        if not len(time) or not changes:
            return np.zeros(len(changes))
        worlds = [state, *(change.of(state) for change in changes)]
        together = State(*(np.concatenate([world[part] for world in worlds]) for part in (0, 1)))
        returns = self._play(together, np.tile(time, len(worlds)), same_noise=False)
        earned = returns.reshape(len(worlds), -1)
        return np.asarray(np.abs(earned[1:] - earned[0]).max(axis=1))

    def effect(self, change: Change, met: Met) -> float:
        """What a change does to the return on average; 0 if that may be chance.

        It is 0, too, if the value came up often enough and never did anything: something announces
        it, and the policy gets out of its way.

        Args:
            change: the value.
            met: the rollouts in which it came up.
        """
        played, count = self.many
        rng = np.random.default_rng([self.seed, 6])
        time = rng.integers(self.horizon, size=count)
        if len(met.onsets):
            is_known = rng.random(count) * (len(met.onsets) + ANY_TIME) < len(met.onsets)
            time = np.where(is_known, rng.choice(met.onsets, size=count), time)
        state, time = self._met.draw(time, rng)
        if not len(time):
            return 0.0
        changes = self._play(change.of(state), time) - self._play(state, time)
        mean = float(changes.sum()) / count  # those that had ended change nothing
        error = math.sqrt(float(changes @ changes)) / count
        if abs(mean) <= BEYOND_DOUBT * error:
            return 0.0
        # As if it had come up in the first step: what comes late is discounted.
        along = changes * math.copysign(1.0, mean) / self.mdp.discount**time
        hits = along > along.max() / 2.0
        if met.scenarios is None or hits.sum() * len(met.scenarios) < OFTEN * count:
            return mean
        earned = returns_on(self.policy, self.mdp, met.scenarios)
        usual = np.median(returns_on(self.policy, self.mdp, self.scenarios.first(played)))
        away = (earned - usual) * math.copysign(1.0, mean) / self.mdp.discount**met.onsets_there
        return mean if (away > VISIBLE * along[hits].mean()).any() else 0.0

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
        """States of all steps."""
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
