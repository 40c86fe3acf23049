"""Endogenous dynamics and rewards, learned by asking the model at states of our choice.

Nothing here depends on a mask: an :class:`EndogenousSurvey` finds out once, for all variables,
which of them each (n, a) depends on and how, and what each of them pays. The reduced dynamics of
any mask follow from it and from the rollouts, without further questions to the model
(:mod:`planners.reduced.marginals`).

Where n cannot be enumerated, a sample of n is surveyed. That still tells which variables pay and
which move n; how n moves is left to the model itself
(:class:`~planners.reduced.reduced_mdp.SimulatedReducedMDP`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from exo_envs.contract.checked_mdp import CountedMDP, checked
from exo_envs.core.arguments import as_generator, check_kind, check_whole, optional
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray
from planners.core.arrays import Ints, joint_values
from planners.core.evaluation import walk
from planners.discretization.bins import fewest_endogenous_states
from planners.discretization.coarse import coarsened
from planners.reduced.decision_list_learning import DecisionListEstimator
from planners.reduced.questions import NUM_TESTS, SuccessorSampler, draw_probes, find_relevant
from planners.reduced.rewards import Reward, check_reward, find_rewards, terminal_states
from planners.samples.rollouts import Backgrounds, ExogenousData
from planners.tables.decision_lists import Rule
from planners.tables.indexing import Scope, along, num_endogenous_states, variables_of

#: Pairs (n, a) up to which all n are asked about.
MAX_PAIRS = 100_000
#: Different n that a sample has at most: met on rollouts, and drawn uniformly.
NUM_MET, NUM_UNIFORM = 1_500, 500
#: A sample for a model that answers one question at a time is smaller by this factor.
SLOW_MODEL_DIVISOR = 10
#: Steps taken for each n that is wanted from rollouts, since many n are met repeatedly.
STEPS_PER_STATE = 4
#: Comparisons in one round of group tests, over all pairs of all n, or of a sample of n.
MAX_TESTS, MAX_SAMPLE_TESTS = 4_000_000, 1_000_000
#: Comparisons in one round of group tests that each pair has at least; and those that it has with
#: a model that answers one question at a time.
MIN_TESTS = SLOW_TESTS = 32
#: A survey of another task asks about at most this many states at once: memory is used again.
BLOCK_STATES = 8_192
#: Its comparisons for what the survey before did not find are this many times fewer.
FEWER_TESTS_DIVISOR = 4


def can_enumerate(mdp: ExoMDP) -> bool:
    """Whether all pairs (n, a) can be asked about, with real variables of n on grids."""
    return fewest_endogenous_states(mdp) * mdp.num_actions <= MAX_PAIRS


def all_endogenous(mdp: ExoMDP) -> Ints:
    """Every n in the order of its flat index, shape (N, k)."""
    return joint_values(np.arange(num_endogenous_states(mdp)), mdp.endogenous_sizes)


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
        scoped_terms: the R^i of the variables that pay, and what several pay together, by their
            scopes.
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
    scoped_terms: dict[Scope, FloatArray]  # (joint values, S, A)
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
    ) -> EndogenousSurvey:
        """Ask ``mdp`` about every (n, a), or about a sample, where x is as in ``data``.

        Args:
            mdp: the model.
            data: rollouts of all its exogenous variables.
            rng: where the randomness comes from.
            reward: "terms" to use ``mdp.reward_terms``, which is exact; "total" for a black box
                that has a total reward only (see :mod:`planners.reduced.rewards`), if its n can be
                enumerated.
            num_tests: comparisons per pair and round when looking for what it depends on; fewer
                for a model that is slow to ask.
        """
        check_reward(reward)
        check_kind("data", data, ExogenousData)
        if data.names != mdp.exogenous_names:
            raise ArgumentError(
                f"the data has {len(data.names)} variables, not the "
                f"{len(mdp.exogenous_names)} of the model; collect it for the whole model"
            )
        num_tests = optional(check_whole)("num_tests", num_tests, 1)
        mdp, rng = CountedMDP(coarsened(checked(mdp), data.bins)), as_generator("rng", rng)
        data.check(mdp.exogenous_variables, mdp.endogenous_variables)

        is_complete = can_enumerate(mdp)
        endogenous = all_endogenous(mdp) if is_complete else _some_endogenous(mdp, rng)
        if reward == "total" and not is_complete:
            raise ArgumentError(
                f"{mdp!r} has too many n to find out what each of them pays from reward='total'; "
                "use reward='terms'"
            )
        terminal = terminal_states(mdp, endogenous, data, rng)
        rewards = find_rewards(mdp, endogenous, terminal, data, rng, reward)
        backgrounds = Backgrounds.draw(data, rng)
        sampler = SuccessorSampler(mdp, endogenous, rng)
        alive = np.flatnonzero(~np.repeat(terminal, mdp.num_actions))  # pairs
        tests = num_tests or _tests_per_pair(mdp, len(alive), is_complete)
        is_noisy = sampler.look_at_noise(alive, data, tests)
        relevant = find_relevant(
            sampler.differ,
            len(endogenous) * mdp.num_actions,
            data,
            rng,
            questions=alive,
            num_tests=tests,
            prepare=sampler.refine,
        )
        estimator = DecisionListEstimator(sampler, relevant, backgrounds, is_noisy)
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
            scoped_terms=rewards.scoped_terms,
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
        return tuple(self.names[j] for j in variables_of(self.scoped_terms))

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


def _some_endogenous(mdp: ExoMDP, rng: np.random.Generator) -> Ints:
    """Different n to ask about where there are too many: met by random actions, and uniform."""
    share = 1 if mdp.is_batched else SLOW_MODEL_DIVISOR
    affordable = max(2, MAX_PAIRS // mdp.num_actions)
    num_met, num_uniform = (min(own // share, affordable // 2) for own in (NUM_MET, NUM_UNIFORM))
    num_steps = STEPS_PER_STATE * num_met
    lanes, length = math.ceil(num_steps / mdp.horizon), min(mdp.horizon, num_steps)
    met: Ints = walk(mdp, lanes, length, rng).endogenous.astype(np.int64)
    met = rng.permutation(np.unique(met, axis=0))[:num_met]
    uniform = rng.integers(mdp.endogenous_sizes, size=(num_uniform, met.shape[1]))
    return np.unique(np.concatenate([met, uniform]), axis=0)


def _tests_per_pair(mdp: ExoMDP, num_pairs: int, is_complete: bool) -> int:
    """Comparisons per pair and round, for so many pairs of all n or of a sample of them."""
    if not mdp.is_batched:
        return SLOW_TESTS
    affordable = (MAX_TESTS if is_complete else MAX_SAMPLE_TESTS) // max(1, num_pairs)
    return max(MIN_TESTS, min(NUM_TESTS, affordable))


def survey_again(
    survey: EndogenousSurvey,
    before: ExoMDP,
    mdp: ExoMDP,
    data: ExogenousData,
    rng: np.random.Generator,
    *,
    reward: Reward = "terms",
) -> EndogenousSurvey | None:
    """The survey of another task in which n moves as in the one that was surveyed before.

    What pays is asked anew. If only the goal or the reward is another one, every (n, a) leads where
    it led. So both models are asked about the same (n, a) and x with the same noise, as often as a
    round of group tests asks: a pair that differs in a share q of the states is missed with
    probability (1 - q) ** NUM_TESTS. If nothing differs, the decision lists stay: they say where n
    goes for any x. Where x is not as it was before, n' must not change either if all variables do
    that the pair is not known to depend on.

    Args:
        survey: the survey of the model before.
        before: that model.
        mdp: the model.
        data: rollouts of its exogenous variables, in the same bins as those of the survey.
        rng: where the randomness comes from; that of :meth:`EndogenousSurvey.collect` gives the
            same backgrounds as there.
        reward: "terms" or "total"; see :meth:`EndogenousSurvey.collect`.

    Returns:
        None if n moves otherwise, has other values, or ends episodes elsewhere, and if that cannot
        be told: n was not enumerated, or the model does not honour common random numbers.
    """
    same_n = before.endogenous_variables == mdp.endogenous_variables
    if not (same_n and before.num_actions == mdp.num_actions):
        return None
    if not (survey.is_complete and survey.common_noise):
        return None
    before, mdp = coarsened(before, data.bins), CountedMDP(coarsened(mdp, data.bins))
    terminal = terminal_states(mdp, survey.endogenous, data, rng)
    if not np.array_equal(terminal, survey.terminal):
        return None
    rewards = find_rewards(mdp, survey.endogenous, terminal, data, rng, reward)
    backgrounds = Backgrounds.draw(data, rng)
    earlier, sampler = (SuccessorSampler(each, survey.endogenous, rng) for each in (before, mdp))
    pairs = np.flatnonzero(~np.repeat(terminal, mdp.num_actions))
    tests = _tests_per_pair(mdp, len(pairs), is_complete=True)
    probes = draw_probes(data, tests, rng)
    for asked, test in _blocks(pairs, tests):
        x, seed = probes[test], sampler.seed()
        if not np.array_equal(earlier.draw(asked, x, seed), sampler.draw(asked, x, seed)):
            return None
    if data.values is not survey.backgrounds.data.values:
        tests //= FEWER_TESTS_DIVISOR
        x, y = (draw_probes(data, tests, rng) for _ in range(2))
        for asked, test in _blocks(pairs, tests):
            other, seed = np.where(survey.relevant[asked], x[test], y[test]), sampler.seed()
            # The same noise for both, in the choice of values of bins, too.
            here, there = (sampler.refine(z, np.random.default_rng(seed)) for z in (x[test], other))
            if sampler.differ(asked, here, there, seed).any():
                return None
    return replace(
        survey,
        base_reward=rewards.base_reward,
        scoped_terms=rewards.scoped_terms,
        backgrounds=backgrounds,
        undecided={pair: sampler.draw_in(pair, backgrounds) for pair in survey.undecided},
        endogenous_samples=mdp.endogenous_samples,
        reward_samples=mdp.reward_samples,
    )


def _blocks(pairs: Ints, tests: int) -> Iterator[tuple[Ints, Ints]]:
    """Every pair with every test, in blocks of pairs and of numbers of tests."""
    for start in range(0, len(pairs) * tests, BLOCK_STATES):
        question = np.arange(start, min(start + BLOCK_STATES, len(pairs) * tests))
        yield pairs[question // tests], question % tests
