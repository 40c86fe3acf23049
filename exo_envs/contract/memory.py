"""Rule ``memory``: whether a model's answers depend on what it was asked before.

The state, the action and the seed are the whole question, so the answer must be the same whatever
was asked before: that needs no statistics.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import DRAWN, EPISODE, METHODS
from exo_envs.contract.checked_mdp import ask
from exo_envs.contract.rules import Probe, differs, fail
from exo_envs.core.errors import UNCOPIABLE
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
    found = next(find_memory(probe.mdp, states, rng, rounds=rounds, max_calls=max_calls), None)
    if found is not None and not found.is_restless:
        asked = replace(probe, actions=np.full(len(probe.actions), found.action))
        fail("memory", f"{found.message}, {asked.show(found.lane)}")


class Query(NamedTuple):
    """A batch of states with actions, and the seed of the random numbers."""

    state: State  # (lanes, ...)
    action: IntArray  # (lanes,)
    seed: int
    order: IntArray  # (lanes,) which of the states they are

    @classmethod
    def draw(cls, mdp: ExoMDP, states: State, rng: np.random.Generator) -> Query:
        lanes = len(states.endogenous)
        order = rng.permutation(lanes)
        action = rng.integers(mdp.num_actions, size=lanes)
        seed = int(rng.integers(2**31))
        return cls(State(*(part[order] for part in states)), action, seed, order)

    def ask(self, mdp: ExoMDP) -> dict[str, NDArray[Any]]:
        """Every answer to the question, asked for in the order in which an episode asks."""
        answers = {}
        for k, method in enumerate(EPISODE):
            rng = np.random.default_rng([self.seed, k])
            state = State(*(part.copy() for part in self.state))
            answers[method] = np.array(ask(mdp, method, state, self.action.copy(), rng))
        return {method: answers[method] for method in METHODS}


class Remembered(NamedTuple):
    """An answer that depends on the past.

    Attributes:
        is_seeded: whether the answer is the same with the same seed and the same past.
        variable: a name, "the reward" or "the end of the episode".
        message: what was seen, for people.
        lane: of the states that were asked about.
        action: that was asked about with it.
        is_restless: whether the answer changes even if the question is only repeated.
    """

    is_seeded: bool
    variable: str
    message: str
    lane: int
    action: int
    is_restless: bool


def find_memory(
    mdp: ExoMDP, states: State, rng: np.random.Generator, *, rounds: int, max_calls: int
) -> Iterator[Remembered]:
    """What a model remembers: all that differs in the first round in which something does.

    Args:
        mdp: the model.
        states: that it is asked about, (lanes, ...).
        rng: draws actions, seeds and the number of calls.
        rounds: how often a question is asked after different pasts, each time another one.
        max_calls: calls in each of these pasts, at most.
    """
    for _ in range(rounds):
        query = Query.draw(mdp, states, rng)
        query.ask(mdp)
        first = query.ask(mdp)
        for pasts in range(4):
            if pasts:  # the first time nothing is in between
                calls = int(rng.integers(1, 1 + max_calls))
                others = [Query.draw(mdp, states, rng) for _ in range(calls)]
                mdp.sample_initial(len(query.order), np.random.default_rng(others[0].seed))
                for other in others:
                    other.ask(mdp)
            found = list(_differing(mdp, first, query.ask(mdp)))
            if found:
                yield from _explain(mdp, query, found, is_restless=not pasts)
                return


def find_all_memory(mdp: ExoMDP, rng: np.random.Generator) -> list[Remembered]:
    """Everything that a model remembers, one for each variable; states are those of episodes."""
    lanes = 32
    state = mdp.sample_initial(lanes, rng)
    for _ in range(min(mdp.horizon, 8)):
        state = mdp.sample_next(state, rng.integers(mdp.num_actions, size=lanes), rng)
    max_calls = MAX_CALLS
    if not mdp.is_batched:
        state, max_calls = State(*(part[:_ONE_BY_ONE] for part in state)), _ONE_BY_ONE
    found: dict[str, Remembered] = {}
    for remembered in find_memory(mdp, state, rng, rounds=4, max_calls=max_calls):
        found.setdefault(remembered.variable, remembered)
    return list(found.values())


def _explain(
    mdp: ExoMDP, query: Query, found: list[tuple[str, int, str]], *, is_restless: bool
) -> Iterator[Remembered]:
    """Say of each place that differed how it showed."""
    by_chance = set()  # what differs even between two copies with the same past
    with suppress(*UNCOPIABLE):
        one, two = (query.ask(copy.deepcopy(mdp)) for _ in range(2))  # if it can be copied
        by_chance = {(method, variable) for method, _, variable in _differing(mdp, one, two)}
    for method, lane, variable in found:
        is_seeded = (method, variable) not in by_chance
        how = "after other questions: something is stored between calls"
        if not is_seeded:
            how = "if it is asked twice: it does not take the generator's word"
        of = "" if variable in (THE_REWARD, THE_END) else f" of {variable!r}"
        yield Remembered(
            is_seeded,
            variable,
            f"{method} gives another value{of} for the same state, action and seed {how}",
            lane=int(query.order[lane]),
            action=int(query.action[lane]),
            is_restless=is_restless,
        )


def _differing(
    mdp: ExoMDP, one: dict[str, NDArray[Any]], two: dict[str, NDArray[Any]]
) -> Iterator[tuple[str, int, str]]:
    """The methods, lanes and variables in which answers differ; a lane for each variable.

    Answers of the wrong shape are somebody else's business.
    """
    for method, a in one.items():
        b = two[method]
        if a.shape != b.shape or a.ndim not in (1, 2) or {a.dtype.kind, b.dtype.kind} - {*"biuf"}:
            continue
        places = differs(a, b).reshape(len(a), -1) if len(a) else np.zeros((0, 0), np.bool_)
        names = [v.name for v in mdp.ranges_of(DRAWN[method]).variables] if method in DRAWN else []
        other = THE_END if method == "is_terminal" else THE_REWARD
        for column in np.flatnonzero(places.any(axis=0)).tolist():
            name = names[column] if column < len(names) else other
            yield method, int(places[:, column].argmax()), name
