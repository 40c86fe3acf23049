"""The audit: which variables actions move, and what depends on more than the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from exo_envs.audit.partition import find_partition
from exo_envs.audit.pasts import Hidden, SetStates
from exo_envs.audit.results import (
    CONSTANT,
    HIDDEN,
    LEAK,
    MOVED,
    OUT_OF_SIGHT,
    THROUGH_OTHERS,
    UNSEEDED,
    Audit,
    Finding,
    Problem,
)
from exo_envs.audit.subject import Subject, as_subject
from exo_envs.audit.trials import Trials
from exo_envs.contract.memory import THE_END, THE_REWARD, find_all_memory
from exo_envs.core.arguments import as_generator, check_function, check_level, check_whole
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.sources.access.episodes import Episodes
from exo_envs.sources.access.state_access import Read, SetState

#: States from which two actions are compared.
NUM_STATES = 120
#: As many at most; these take minutes.
MAX_STATES = 10_000
#: Numbers of all of them, at most: each is kept for every step of two episodes.
MAX_NUMBERS = 1_500_000
#: Steps of an episode that is compared with steps from states that were set, at most.
MAX_EPISODE = 30
#: What hidden state does, for people.
ANOTHER_FUTURE = "the same state and action give another future after another past"
#: The probability that something is said that is not so.
ERROR_PROBABILITY = 1e-6


def audit(
    mdp_or_env: Any,
    *,
    rng: np.random.Generator | int = 0,
    num_states: int = NUM_STATES,
    error_probability: float = ERROR_PROBABILITY,
    read: Read | None = None,
    names: Sequence[str] | None = None,
    set_state: SetState | None = None,
) -> Audit:
    """Find out by experiments which variables of an environment actions move.

    A variable that is moved only through another one is found as well, if that takes no more than
    a few steps. What was never seen to be moved is called exogenous: more ``num_states`` see more.

    It is also looked for what a state does not show: whether the same state and action give
    different futures after different pasts. That takes a model, or an environment that can be put
    into a state: one with ``reset(options={"state": ...})``, one for which
    :meth:`AdaptedMDP.from_env` finds a way, or any with ``set_state``.

    >>> from exo_envs.domains.grid import GridMDP
    >>> audit(GridMDP()).endogenous
    ('robot',)

    Args:
        mdp_or_env: a Gymnasium environment, or a model. An :class:`AdaptedMDP` is audited where its
            claims come from: in the environment.
        rng: draws states and actions.
        num_states: from how many states two actions are compared.
        error_probability: that anything is said to be moved, or remembered, which is not.
        read: the numbers that describe where an environment is, from the environment and what it
            showed; by default its observation's, or those that were found to be its state.
        names: of these numbers; by default they follow from the observation space.
        set_state: ``set_state(env.unwrapped, numbers)`` puts an environment that was just reset
            into the state that such numbers describe.

    Returns:
        The names of what actions move and of what moves by itself, with the evidence, and what is
        wrong. Numbers that never changed are in neither.
    """
    rng = as_generator("rng", rng)
    count = check_whole("num_states", num_states, 1, MAX_STATES)
    level = check_level("error_probability", error_probability)
    check_function("read", read, optional=True)
    check_function("set_state", set_state, optional=True)
    if read is not None and names is None:
        raise ArgumentTypeError("with read, names says what the numbers that it returns are called")
    subject = as_subject(mdp_or_env, rng, read=read, names=names, set_state=set_state)
    if count * len(subject.names) > MAX_NUMBERS:
        raise ArgumentError(
            f"{len(subject.names)} numbers in each of num_states={count} states are too many; take "
            "fewer states, or give read, which says what numbers matter"
        )
    trials = Trials.play(subject, rng, count)
    findings = find_partition(subject, trials, level / 2)
    problems: dict[str, Problem] = {}
    for problem in _problems(subject, trials, findings, rng, level / 2):
        problems.setdefault(problem.variable, problem)  # the first one explains the others
    changing = [f for f in findings if f.reason != CONSTANT]
    return Audit(
        tuple(f.variable for f in changing if f.is_moved),
        tuple(f.variable for f in changing if not f.is_moved),
        tuple(_with_claim(subject, f) for f in findings),
        tuple(problems.values()),
        tuple(subject.remarks),
    )


def _with_claim(subject: Subject, finding: Finding) -> Finding:
    """Say so if a model has a variable in n that no action moves, as it may."""
    said = subject.exogenous
    if said is None or finding.is_moved or finding.reason == CONSTANT or finding.variable in said:
        return finding
    return finding._replace(reason=f"{finding.reason}; it is said to be endogenous, as it may be")


def _problems(
    subject: Subject,
    trials: Trials,
    findings: list[Finding],
    rng: np.random.Generator,
    level: float,
) -> Iterator[Problem]:
    """Everything that is wrong; the deepest cause comes first."""
    names = [*subject.names, THE_REWARD, THE_END]
    remembered = list(_remembered(subject, rng))
    yield from remembered
    if trials.is_carried and not remembered:
        for column in np.flatnonzero(trials.restless).tolist():
            said = f"the same episode differs if another one was played before: {names[column]}"
            yield Problem(HIDDEN, names[column], said)
    for own in findings:
        if own.way == OUT_OF_SIGHT:
            ago = f"{own.steps - 1} step{'s' * (own.steps > 2)}"
            said = f"{own.variable} reacts to an action {ago} late: {ANOTHER_FUTURE}"
            yield Problem(HIDDEN, own.variable, said, own.steps, own.share, own.p_value)
    if subject.puts:
        for hidden in _not_in_the_state(subject, 2 * len(trials.pairs), rng, level):
            said = f"{ANOTHER_FUTURE}: {hidden.seen}"
            yield Problem(HIDDEN, hidden.name, said, 0, hidden.share, hidden.p_value)
    for own in findings:
        if own.is_moved and own.variable in (subject.exogenous or ()):
            kind, how = MOVED, "actions move it"
            if own.way == THROUGH_OTHERS:
                others = ", ".join(own.through) or "variables that actions move"
                kind, how = LEAK, f"its next value depends on {others}"
            said = f"{own.variable} is said to be exogenous, but {how}: {own.reason}"
            yield Problem(kind, own.variable, said, own.steps, own.share, own.p_value)


def _remembered(subject: Subject, rng: np.random.Generator) -> Iterator[Problem]:
    """What a model remembers, whoever asks it."""
    if subject.mdp is None:
        return
    try:
        found = find_all_memory(subject.mdp, rng)
    except (ValueError, TypeError, IndexError) as error:
        subject.remarks.append(
            f"the model was not asked about several states at once, which it refuses ({error}); "
            "check_mdp says more"
        )
        return
    for memory in found:
        kind = HIDDEN if memory.is_seeded else UNSEEDED
        yield Problem(kind, memory.variable, memory.message)


def _not_in_the_state(
    subject: Subject, count: int, rng: np.random.Generator, level: float
) -> list[Hidden]:
    """Differences between a state in an episode and the same state that was set."""
    env, access = subject.env, subject.access

    def compared(num_steps: int) -> SetStates:
        played = Episodes.record(env, access, rng, num_steps, max_episode=MAX_EPISODE)
        return SetStates(env, access, played, rng)

    states = compared(count)
    found = states.surely_hidden()
    if states.uncertain:  # more steps say whether that was chance
        found += compared(4 * count).hidden(states.uncertain, rng, level)
    return found
