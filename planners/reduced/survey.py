"""Endogenous dynamics and rewards, learned by asking the model at states of our choice.

Nothing here depends on a mask: an :class:`EndogenousSurvey` finds out once, for all variables,
which of them each (n, a) depends on and how, and what each of them pays. The reduced dynamics of
any mask follow from it and from the rollouts, without further questions to the model
(:mod:`planners.reduced.marginals`).

Where n cannot be enumerated, a sample of n is surveyed. That still tells which variables pay and
which move n; how n moves is left to the model itself (:mod:`planners.reduced.simulated`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import as_generator, check_choice, check_kind, check_whole, optional
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray
from planners.core.arrays import Ints
from planners.dependence.group_testing import NUM_TESTS, find_relevant
from planners.discretization.coarse import coarsened
from planners.reduced.backgrounds import Backgrounds
from planners.reduced.decision_list_estimation import DecisionListEstimator
from planners.reduced.rewards import reward_terms, terminal_states
from planners.reduced.successors import SuccessorSampler
from planners.reduced.surveyed_states import survey_states
from planners.reduced.total_rewards import total_rewards
from planners.samples.counted import CountedMDP
from planners.samples.rollouts import ExogenousData
from planners.tables.rules import Rule
from planners.tables.scopes import Scope, along, by_scope, variables_of

Reward = Literal["terms", "total"]

#: Comparisons in one round of group tests, over all pairs.
MAX_TESTS = 4_000_000
#: Comparisons in one round of group tests over the pairs of a sample of n.
MAX_SAMPLE_TESTS = 1_000_000
#: Comparisons in one round of group tests that each pair has at least.
MIN_TESTS = 32
#: Comparisons per pair and round with a model that answers one question at a time.
SLOW_TESTS = 32


def check_reward(reward: str) -> None:
    """Refuse what is no kind of reward, and name the choices."""
    check_choice("kind of reward", reward, ("terms", "total"))


def tests_per_pair(mdp: ExoMDP, num_pairs: int, is_complete: bool) -> int:
    """Comparisons per pair and round, for so many pairs of all n or of a sample of them."""
    if not mdp.is_batched:
        return SLOW_TESTS
    affordable = (MAX_TESTS if is_complete else MAX_SAMPLE_TESTS) // max(1, num_pairs)
    return max(MIN_TESTS, min(NUM_TESTS, affordable))


@dataclass(frozen=True, eq=False)
class EndogenousSurvey:
    """How n moves and what is paid, for all exogenous variables of a model.

    S is the number of surveyed n. A *pair* is ``s * num_actions + a``, with s the position of n
    among them; if the survey is complete, that is the flat index of n.

    Attributes:
        names: the exogenous variables.
        endogenous: the surveyed n.
        is_complete: whether these are all n, in the order of their flat index.
        relevant: whether each pair depends on variable j.
        lists: the decision list of each pair; positions of variables are those of the model.
            There are none in a survey that is not complete.
        undecided: of the pairs whose list does not decide everything, the n' drawn in all
            backgrounds.
        terminal: which n are terminal.
        base_reward: R(n, a).
        terms: the R^i of the variables that pay.
        joint_terms: what several variables pay together.
        backgrounds: the x that occur, over which dropped variables are averaged.
        endogenous_samples: how many n' were drawn.
        reward_samples: how many rewards were asked for.
        common_noise: whether the model honours common random numbers.
    """

    names: tuple[str, ...]
    endogenous: Ints  # (S, k)
    is_complete: bool
    relevant: BoolArray  # (S * A, m)
    lists: list[list[Rule]]
    undecided: dict[int, Ints]  # pair -> (backgrounds,)
    terminal: BoolArray  # (S,)
    base_reward: FloatArray  # (S, A)
    terms: dict[int, FloatArray]  # (size, S, A)
    joint_terms: dict[Scope, FloatArray]  # (joint values, S, A)
    backgrounds: Backgrounds
    endogenous_samples: int
    reward_samples: int
    common_noise: bool

    @classmethod
    def collect(
        cls,
        mdp: ExoMDP,
        data: ExogenousData,
        rng: np.random.Generator,
        *,
        reward: Reward = "terms",
        num_tests: int | None = None,
        num_draws: int | None = None,
    ) -> EndogenousSurvey:
        """Ask ``mdp`` about every (n, a), or about a sample, where x is as in ``data``.

        Args:
            mdp: the model.
            data: rollouts of all its exogenous variables.
            rng: where the randomness comes from.
            reward: "terms" to use ``mdp.reward_terms``, which is exact; "total" for a black box
                that has a total reward only (see :mod:`planners.reduced.total_rewards`),
                if its n can be enumerated.
            num_tests: comparisons per pair and round when looking for what it depends on; fewer
                for a model that is slow to ask.
            num_draws: how many n' to draw for each row of a table, where n' is left to chance.
        """
        check_reward(reward)
        check_kind("data", data, ExogenousData)
        if data.names != mdp.exogenous_names:
            raise ArgumentError(
                f"the data has {len(data.names)} variables, not the "
                f"{len(mdp.exogenous_names)} of the model; collect it for the whole model"
            )
        num_tests = optional(check_whole)("num_tests", num_tests, 1)
        num_draws = optional(check_whole)("num_draws", num_draws, 1)
        mdp, rng = CountedMDP(coarsened(checked(mdp), data.bins)), as_generator("rng", rng)
        data.check(mdp.exogenous_variables, mdp.endogenous_variables)

        endogenous, is_complete = survey_states(mdp, rng)
        if reward == "total" and not is_complete:
            raise ArgumentError(
                f"{mdp!r} has too many n to find out what each of them pays from reward='total'; "
                "use reward='terms'"
            )
        terminal = terminal_states(mdp, endogenous, data, rng)
        if reward == "terms":
            rewards = reward_terms(mdp, endogenous, terminal)
        else:
            rewards = total_rewards(mdp, endogenous, terminal, data, rng)
        backgrounds = Backgrounds.draw(data, rng)
        sampler = SuccessorSampler(mdp, endogenous, rng)
        alive = np.flatnonzero(~np.repeat(terminal, mdp.num_actions))  # pairs
        tests = num_tests or tests_per_pair(mdp, len(alive), is_complete)
        is_noisy = sampler.look_at_noise(alive, data, tests)
        num_pairs = len(endogenous) * mdp.num_actions
        relevant = find_relevant(
            sampler.differ_refined,
            num_pairs,
            data,
            rng,
            questions=alive,
            num_tests=tests,
            prepare=sampler.refine,
        )
        estimator = DecisionListEstimator(sampler, relevant, backgrounds, is_noisy, num_draws)
        lists, undecided = estimator.estimate(alive) if is_complete else ([], {})
        return cls(
            names=data.names,
            endogenous=endogenous,
            is_complete=is_complete,
            relevant=relevant,
            lists=lists,
            undecided=undecided,
            terminal=terminal,
            backgrounds=backgrounds,
            base_reward=rewards.base_reward,
            terms=rewards.terms,
            joint_terms=rewards.joint_terms,
            endogenous_samples=mdp.endogenous_samples,
            reward_samples=mdp.reward_samples,
            common_noise=sampler.common_noise,
        )

    @property
    def moving(self) -> tuple[str, ...]:
        """The variables that some n' depends on."""
        return tuple(self.names[j] for j in np.flatnonzero(self.relevant.any(axis=0)))

    @property
    def paying(self) -> tuple[str, ...]:
        """The variables that pay, by themselves or together with others."""
        return tuple(self.names[j] for j in variables_of(self.terms, self.joint_terms))

    def terms_of(self, j: int) -> list[tuple[Scope, FloatArray]]:
        """The terms that variable j pays by, alone or with others.

        Of each the other variables, and the table by the values of j, the joint values of the
        others, n and a: shape (size, others, S, A).
        """
        sizes = self.backgrounds.data.sizes
        return [
            (tuple(i for i in scope if i != j), along(table, scope, sizes, j))
            for scope, table in self.scoped_terms.items()
            if j in scope
        ]

    @property
    def scoped_terms(self) -> dict[Scope, FloatArray]:
        """``terms`` and ``joint_terms`` by their scopes."""
        return by_scope(self.terms, self.joint_terms)
