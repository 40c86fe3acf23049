"""The audit: which variables actions move, and what depends on more than the state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from exo_envs.audit.kinds import kind_of_carried, kind_of_hidden, remembered_actions
from exo_envs.audit.meetings import find_carried
from exo_envs.audit.partition import find_partition
from exo_envs.audit.pasts import SetStates, outcome_names
from exo_envs.audit.reading import ModelState, Read, SetState
from exo_envs.audit.results import (
    CONSTANT,
    DIRECTLY,
    HIDDEN,
    LATE,
    LEAK,
    MOVED,
    OUT_OF_SIGHT,
    REMEMBERS,
    THROUGH_OTHERS,
    Audit,
    Finding,
    Problem,
)
from exo_envs.audit.subject import Subject, as_subject
from exo_envs.audit.trials import Trials
from exo_envs.contract.memory import find_all_memory
from exo_envs.core.arguments import as_generator, check_level, check_whole
from exo_envs.core.errors import ArgumentError
from exo_envs.shells.env import ExoEnv

#: States from which two actions are compared.
NUM_STATES = 120
#: As many at most; these take minutes.
MAX_STATES = 10_000
#: Numbers of all of them, at most: each is kept for every step of two episodes.
MAX_NUMBERS = 1_500_000
#: Steps of episodes that are compared with those from states that were set, for each of them.
STEPS_PER_STATE = 2
#: So many times as many steps are compared, if differences may be chance.
MORE_STEPS = 4
BETWEEN_EPISODES = "the same episode differs if another one was played before"
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
    subject = as_subject(mdp_or_env, rng, read=read, names=names, set_state=set_state)
    if count * len(subject.names) > MAX_NUMBERS:
        raise ArgumentError(
            f"{len(subject.names)} numbers in each of num_states={count} states are too many; take "
            "fewer states, or give read, which says what numbers matter"
        )
    trials = Trials(subject, rng, count)
    findings = find_partition(subject, trials, level / 2)
    problems = _memory(subject, findings, rng)
    problems += _hidden(subject, trials, findings, problems, rng, level / 2)
    problems += _claims(subject, findings, problems)
    changing = [f for f in findings if f.reason != CONSTANT]
    return Audit(
        tuple(f.variable for f in changing if f.is_moved),
        tuple(f.variable for f in changing if not f.is_moved),
        tuple(_with_claim(subject, f) for f in findings),
        tuple(problems),
        tuple(subject.remarks),
    )


def _with_claim(subject: Subject, finding: Finding) -> Finding:
    """Say so if a model has a variable in n that no action moves, as it may."""
    said = subject.way.exogenous
    if said is None or finding.is_moved or finding.reason == CONSTANT or finding.variable in said:
        return finding
    return finding._replace(reason=f"{finding.reason}; it is said to be endogenous, as it may be")


def _memory(subject: Subject, findings: list[Finding], rng: np.random.Generator) -> list[Problem]:
    """What a model remembers, whoever asks it."""
    way, own = subject.way, subject.env.unwrapped
    if not isinstance(way, ModelState) or not isinstance(own, ExoEnv):
        return []
    evidence = {f.variable: f for f in findings if f.is_moved}
    problems = []
    try:
        remembered = find_all_memory(own.mdp, rng)
    except (ValueError, TypeError, IndexError) as error:
        subject.remarks.append(
            f"the model was not asked about several states at once, which it refuses ({error}); "
            "check_mdp says more"
        )
        remembered = []
    for found in remembered:
        problem = Problem(found.kind, found.variable, found.message)
        shown = evidence.get(found.variable)
        if shown is None or problem.kind not in (LATE, REMEMBERS, LEAK):
            problems.append(problem)
        else:
            problems.append(problem._replace(steps=max(2, shown.steps), share=shown.share))
    return problems


def _hidden(
    subject: Subject,
    trials: Trials,
    findings: list[Finding],
    known: list[Problem],
    rng: np.random.Generator,
    level: float,
) -> list[Problem]:
    """What depends on more than the state and the action, but for what is known."""
    names = outcome_names(subject)
    named = {problem.variable for problem in known}
    problems: dict[str, Problem] = {}

    def add(problem: Problem) -> None:
        if problem.variable not in named:
            problems.setdefault(problem.variable, problem)

    for carried in find_carried(trials):
        add(_of_actions(names[carried.column], carried.steps, findings, carried.share, 0.0))
    if trials.is_carried and not known:
        for column, (kind, how) in kind_of_carried(subject, rng).items():
            add(Problem(kind, names[column], f"{BETWEEN_EPISODES}: {names[column]}: {how}"))
    if subject.way.puts:
        for problem in _not_in_the_state(subject, trials, findings, rng, level):
            add(problem)
    if trials.is_carried and not known and not problems:
        for column in np.flatnonzero(trials.restless).tolist():
            add(Problem(HIDDEN, names[column], f"{BETWEEN_EPISODES}: {names[column]}"))
    return list(problems.values())


def _not_in_the_state(
    subject: Subject,
    trials: Trials,
    findings: list[Finding],
    rng: np.random.Generator,
    level: float,
) -> Iterator[Problem]:
    """What differs between a state in an episode and the same state that was set."""
    count = STEPS_PER_STATE * len(trials.trials)
    states = SetStates(subject, count, rng)
    found = states.surely_hidden()
    if states.uncertain.any():  # more steps say whether that was chance
        unsure = np.flatnonzero(states.uncertain).tolist()
        states = SetStates(subject, MORE_STEPS * count, rng)
        found += states.hidden(unsure, level)
    names = outcome_names(subject)
    for hidden in found:
        name = names[hidden.column]
        steps = remembered_actions(subject, trials, hidden.column, states)
        if steps is not None:
            problem = _of_actions(name, steps, findings, hidden.share, hidden.p_value)
            yield problem._replace(message=f"{problem.message} ({hidden.seen})")
            continue
        kind, how = HIDDEN, "it depends on the past, by distribution"
        if trials.repeats:
            kind, how = kind_of_hidden(subject, states, hidden.column)
        message = (
            f"the same state and action give another future after another past: {hidden.seen}; "
            f"{how}"
        )
        steps = 2 if kind == REMEMBERS else 0
        yield Problem(kind, name, message, steps, hidden.share, hidden.p_value)


def _of_actions(
    name: str, steps: int, findings: list[Finding], share: float, p_value: float
) -> Problem:
    """An action shows after some steps, and no variable shows it in between."""
    direct = {f.variable for f in findings if f.way == DIRECTLY}
    is_late = name not in direct and name in {f.variable for f in findings}
    ago = f"{steps - 1} step{'s' * (steps > 2)}"
    what = f"reacts to an action {ago} late" if is_late else f"depends on the action {ago} before"
    message = (
        f"{name} {what}: the same state and action give another future after another past. The "
        "action is remembered by something that is not shown"
    )
    return Problem(LATE if is_late else REMEMBERS, name, message, steps, share, p_value)


def _claims(subject: Subject, findings: list[Finding], known: list[Problem]) -> list[Problem]:
    """Variables that are said to be exogenous and are moved, if nothing else explains it."""
    said = subject.way.exogenous or frozenset()
    named = {problem.variable for problem in known}
    problems = []
    for finding in findings:
        name = finding.variable
        if name not in said or not finding.is_moved or name in named:
            continue
        kind, how = MOVED, "actions move it"
        if finding.way == THROUGH_OTHERS:
            others = ", ".join(finding.through) or "variables that actions move"
            kind, how = LEAK, f"its next value depends on {others}"
        elif finding.way == OUT_OF_SIGHT:
            kind, how = LATE, "it reacts late: something that is not shown remembers actions"
        problems.append(
            Problem(
                kind,
                name,
                f"{name} is said to be exogenous, but {how}: {finding.reason}",
                finding.steps,
                finding.share,
                finding.p_value,
                is_hidden=kind == LATE,
            )
        )
    return problems
