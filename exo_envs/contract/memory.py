"""Rule ``memory``: whether a model's answers depend on what it was asked before.

The state, the action and the seed are the whole question, so the answer must be the same whatever
was asked before: that needs no statistics.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import DRAWN, EPISODE, METHODS
from exo_envs.contract.checked_mdp import ask
from exo_envs.contract.rules import Probe, differs, fail
from exo_envs.core.mdp import ExoMDP, IntArray, State

#: Calls between two questions, at most.
MAX_CALLS = 40

#: What is named if no variable, but what is paid, depends on the past; the same for the end.
THE_REWARD, THE_END = "the reward", "the end of the episode"
#: Of a model that answers one state at a time, as many are asked about, and as often in between.
_ONE_BY_ONE = 4


def check_memory(probe: Probe, *, rounds: int, max_calls: int) -> None:
    """Rule ``memory``: the same question has the same answer, whatever was asked before.

    A model whose answers change even if a question is only repeated breaks the rule
    ``determinism``, which is not looked at here.
    """
    states, rng = probe.states, np.random.default_rng(0)
    if not probe.mdp.is_batched:
        states = State(*(part[:_ONE_BY_ONE] for part in states))
        rounds, max_calls = 1, min(2, max_calls)
    found = find_memory(probe.mdp, states, rng, rounds=rounds, max_calls=max_calls)
    if found is not None and not found.is_restless:
        asked = replace(probe, actions=np.full(len(probe.actions), found.action))
        fail("memory", f"{found.message}, {asked.show(found.lane)}")


class Query(NamedTuple):
    """A batch of states with actions, and the seed of the random numbers."""

    state: State  # (lanes, ...)
    action: IntArray  # (lanes,)
    seed: int
    order: IntArray  # (lanes,) which of the states they are


class Remembered(NamedTuple):
    """An answer that depends on the past.

    Attributes:
        is_seeded: whether the answer is the same with the same seed and the same past.
        variable: a name, "the reward" or "the end of the episode".
        message: what was seen, for people.
        method: the method that answered.
        lane: of the states that were asked about.
        action: that was asked about with it.
        is_restless: whether the answer changes even if the question is only repeated.
    """

    is_seeded: bool
    variable: str
    message: str
    method: str
    lane: int
    action: int
    is_restless: bool


def find_memory(
    mdp: ExoMDP,
    states: State,
    rng: np.random.Generator,
    *,
    rounds: int = 3,
    max_calls: int = MAX_CALLS,
) -> Remembered | None:
    """Something that a model remembers, or None.

    Args:
        mdp: the model.
        states: that it is asked about, (lanes, ...).
        rng: draws actions, seeds and the number of calls.
        rounds: how often a question is asked after different pasts, each time another one.
        max_calls: calls in each of these pasts, at most.
    """
    study = _Study(mdp, states, rng, max_calls)
    return next(study.remembered(rounds), None)


def find_all_memory(mdp: ExoMDP, rng: np.random.Generator, lanes: int = 32) -> list[Remembered]:
    """Everything that a model remembers, one for each variable; states are those of episodes."""
    state = mdp.sample_initial(lanes, rng)
    for _ in range(min(mdp.horizon, 8)):
        state = mdp.sample_next(state, rng.integers(mdp.num_actions, size=lanes), rng)
    lanes = lanes if mdp.is_batched else 4
    state = State(*(part[:lanes] for part in state))
    study = _Study(mdp, state, rng, MAX_CALLS if mdp.is_batched else 4)
    found: dict[str, Remembered] = {}
    for remembered in study.remembered(rounds=4):
        found.setdefault(remembered.variable, remembered)
    return list(found.values())


class _Study:
    def __init__(
        self, mdp: ExoMDP, states: State, rng: np.random.Generator, max_calls: int
    ) -> None:
        self.mdp, self.states, self.rng, self.max_calls = mdp, states, rng, max_calls
        self.lanes = len(states.endogenous)

    def remembered(self, rounds: int) -> Iterator[Remembered]:
        """What differs, all that was seen in one round together."""
        for _ in range(rounds):
            query = self._query()
            self._ask(self.mdp, query)
            first = self._ask(self.mdp, query)
            found = list(_differing(first, self._ask(self.mdp, query)))  # nothing was in between
            if found:
                yield from self._explain(query, found, is_restless=True)
                return
            for _ in range(3):
                self._perform(int(self.rng.integers(1, 1 + self.max_calls)))
                found = list(_differing(first, self._ask(self.mdp, query)))
                if found:
                    yield from self._explain(query, found, is_restless=False)
                    return

    # --- questions ----------------------------------------------------------------------------

    def _query(self) -> Query:
        order = self.rng.permutation(self.lanes)
        state = State(*(part[order] for part in self.states))
        action = self.rng.integers(self.mdp.num_actions, size=self.lanes)
        return Query(state, action, int(self.rng.integers(2**31)), order)

    def _ask(self, mdp: ExoMDP, query: Query) -> dict[str, NDArray[Any]]:
        """Every answer to a question, in the order in which an episode asks."""
        answers = {}
        for k, method in enumerate(EPISODE):
            rng = np.random.default_rng([query.seed, k])
            state = State(*(part.copy() for part in query.state))
            answers[method] = np.array(ask(mdp, method, state, query.action.copy(), rng))
        return {method: answers[method] for method in METHODS}

    def _perform(self, calls: int) -> None:
        """Begin anew, and ask one question after another."""
        past = [self._query() for _ in range(calls)]
        self.mdp.sample_initial(self.lanes, np.random.default_rng(past[0].seed))
        for query in past:
            self._ask(self.mdp, query)

    # --- what is remembered ---------------------------------------------------------------------

    def _explain(
        self, query: Query, found: list[tuple[str, int, int]], *, is_restless: bool
    ) -> Iterator[Remembered]:
        """Say of each place that differed how it showed."""
        by_chance = self._by_chance(query)
        for method, lane, column in found:
            variable = self._name(method, column)
            is_seeded = (method, variable) not in by_chance
            how = "after other questions: something is stored between calls"
            if not is_seeded:
                how = "if it is asked twice: it does not take the generator's word"
            of = "" if variable in (THE_REWARD, THE_END) else f" of {variable!r}"
            yield Remembered(
                is_seeded,
                variable,
                f"{method} gives another value{of} for the same state, action and seed {how}",
                method,
                lane=int(query.order[lane]),
                action=int(query.action[lane]),
                is_restless=is_restless,
            )

    def _by_chance(self, query: Query) -> set[tuple[str, str]]:
        """What differs even between two copies with the same past: methods and variables."""
        try:
            one, two = (self._ask(copy.deepcopy(self.mdp), query) for _ in range(2))
        except (TypeError, ValueError, AttributeError, NotImplementedError, RecursionError):
            return set()  # it cannot be copied
        return {(method, self._name(method, column)) for method, _, column in _differing(one, two)}

    def _name(self, method: str, column: int) -> str:
        variables = self.mdp.ranges_of(DRAWN[method]).variables if method in DRAWN else ()
        if column < len(variables):
            return variables[column].name
        return THE_END if method == "is_terminal" else THE_REWARD


def _differing(
    one: dict[str, NDArray[Any]], two: dict[str, NDArray[Any]]
) -> Iterator[tuple[str, int, int]]:
    """The methods, lanes and columns in which answers differ; a lane for each column.

    Answers of the wrong shape are somebody else's business.
    """
    for method, a in one.items():
        b = two[method]
        if a.shape != b.shape or a.ndim not in (1, 2) or {a.dtype.kind, b.dtype.kind} - {*"biuf"}:
            continue
        places = differs(a, b).reshape(len(a), -1) if len(a) else np.zeros((0, 0), np.bool_)
        for column in np.flatnonzero(places.any(axis=0)).tolist():
            yield method, int(places[:, column].argmax()), column
