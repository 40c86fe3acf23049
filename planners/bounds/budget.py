"""How often a bound asks the model, for models that answer one state at a time.

A model that answers a thousand states as fast as one is asked millions of times within seconds. An
adapted environment, which is stepped state by state, would take the better part of an hour.
"""

from __future__ import annotations

from typing import NamedTuple

from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP
from planners.bounds.questions import gives_successors
from planners.tables.indexing import num_endogenous_states

#: Questions that a model which answers one state at a time is asked at most: about 20 seconds.
MAX_QUESTIONS = 200_000

#: Draws of n' for each (t, n, a), unless told otherwise; and from models that are slow to answer.
NUM_SUCCESSORS, FEW_SUCCESSORS = 16, 2

#: Draws of x' for each x, and trajectories on which the penalty is fitted, unless told otherwise.
NUM_FRESH, TRAINING_ROLLOUTS = 128, 100


def default_successors(mdp: ExoMDP) -> int:
    """How many n' are drawn for each (t, n, a), unless told otherwise."""
    return NUM_SUCCESSORS if mdp.is_batched else FEW_SUCCESSORS


class Budget(NamedTuple):
    """What a bound asks: for each trajectory, and to fit the penalty before."""

    each: int  # questions for one trajectory
    fitting: int  # questions for the training trajectories, all of them

    @classmethod
    def of(
        cls,
        mdp: ExoMDP,
        horizon: int,
        *,
        num_functions: int,
        training_rollouts: int = TRAINING_ROLLOUTS,
        num_fresh: int = NUM_FRESH,
        num_successors: int | None = None,
    ) -> Budget:
        """The budget of a bound; see :func:`planners.bracket` for the arguments.

        Each (t, n, a) is asked for its reward and its n', each t for draws of x' if there is a
        penalty. Several value functions are fitted in several passes.
        """
        successors = default_successors(mdp) if num_successors is None else num_successors
        draws = 1 if gives_successors(mdp) else successors
        pairs = num_endogenous_states(mdp) * mdp.num_actions
        each = horizon * (pairs * (1 + draws) + (num_fresh if num_functions else 0))
        passes = num_functions if num_functions < 2 else 2 * num_functions
        return cls(each, passes * training_rollouts * each)

    def questions(self, n_rollouts: int) -> int:
        """How many there are for so many trajectories."""
        return self.fitting + n_rollouts * self.each

    def affordable(self, max_questions: float) -> int:
        """How many trajectories can be had for so many questions."""
        return max(0, int((max_questions - self.fitting) // self.each))


def check_affordable(
    mdp: ExoMDP,
    n_rollouts: int,
    horizon: int,
    max_questions: float,
    *,
    num_functions: int,
    **settings: int,
) -> None:
    """Refuse what would take too long, and say what would not; ``settings`` are the budget's."""
    if mdp.is_batched:
        return
    planned, plain = (
        Budget.of(mdp, horizon, num_functions=k, **settings) for k in (num_functions, 0)
    )
    if planned.questions(n_rollouts) > max_questions:
        raise ArgumentError(
            f"{mdp!r} answers one state at a time, and the bound would ask it "
            f"{planned.questions(n_rollouts):,} questions; {max_questions:,.0f} (max_questions) "
            f"are enough for {planned.affordable(max_questions)} rollouts, or for "
            f"{plain.affordable(max_questions)} without a penalty (values=())"
        )
