"""What a Gymnasium shell or a tree search gets from a model: a step, and whether that is the end.

A single environment steps 80,000 times a second, so a whole step is looked at in one go. Only if
something is wrong is it taken apart, to find out which method it was.
"""

from __future__ import annotations

import numpy as np

from exo_envs.contract.answers import EPISODE, Question, check_answer, check_flags
from exo_envs.contract.checked_mdp import ask, checked
from exo_envs.core.mdp import BoolArray, ExoMDP, IntArray, State, Transition
from exo_envs.core.model import kernels


def check_terminal(mdp: ExoMDP, state: State) -> BoolArray:
    """Ask whether a batch of states is terminal; what comes back is an array of booleans."""
    return check_flags("is_terminal", mdp.is_terminal(state), (len(state.endogenous),))


def take_step(
    mdp: ExoMDP,
    state: State,
    action: IntArray,
    rng: np.random.Generator,
    exogenous_rng: np.random.Generator | None = None,
    terminal: BoolArray | None = None,
) -> Transition:
    """One step of a batch of states (:meth:`ExoMDP.transition`), checked."""
    try:
        step = mdp.transition(state, action, rng, exogenous_rng=exogenous_rng, terminal=terminal)
    except Exception:
        _explain_error(mdp, state, action)
        raise
    return check_transition(mdp, state, action, step)


def check_transition(
    mdp: ExoMDP, state: State, action: IntArray, transition: Transition
) -> Transition:
    """One step of a batch of states, in range, of the right shapes, with finite rewards.

    Args:
        mdp: the model.
        state: what it was asked about, (B, k) and (B, m).
        action: (B,).
        transition: what it returned.
    """
    (n, x), reward, terms = transition
    if not (mdp.endogenous_ranges.is_real or mdp.exogenous_ranges.is_real):
        k, m = mdp.endogenous_sizes, mdp.exogenous_sizes
        try:
            if kernels.is_fine(n, x, reward, terms, k, m, len(mdp.reward_scopes), len(action)):
                return transition
        except kernels.UNKNOWN_TO_KERNELS:  # most other types can be converted
            pass
    n, x, terms = (
        check_answer(mdp, method, answer, Question.to(method, state, action))
        for method, answer in (
            ("sample_endogenous", n),
            ("sample_exogenous", x),
            ("reward_terms", terms),
        )
    )
    asked = Question(*state, action)
    reward = check_answer(mdp, "endogenous_reward", reward, asked)
    return Transition(State(n, x), reward_terms=terms, reward=reward)


def _explain_error(mdp: ExoMDP, state: State, action: IntArray) -> None:
    """After an error amid a step: raise a clearer one if some method returns what it should not.

    Arrays of wrong shapes or types make the arithmetic of a step fail, far from where they came
    from. Each method is asked once more, by itself. If all is well, the error stays as it is.
    """
    model, rng = checked(mdp), np.random.default_rng(0)
    for method in EPISODE:
        ask(model, method, state, action, rng)
