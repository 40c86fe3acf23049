"""A survey of another task: what pays is asked anew, and whether n moves as it did before.

If only the goal or the reward is another one, every (n, a) leads where it led. So the two models
are asked about the same (n, a) and x with the same noise, as often as a round of group tests asks
(:mod:`planners.dependence.group_testing`): a pair (n, a) that differs in a share q of the states
is missed with probability (1 - q) ** NUM_TESTS. If nothing differs, the decision lists stay: they
say where n goes for any x. Where x is not as it was before, it is also looked whether n' changes if
all variables do that the pair is not known to depend on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from exo_envs.core.mdp import BoolArray, ExoMDP
from planners.core.arrays import Ints, chunks
from planners.dependence.group_testing import draw_probes
from planners.discretization.coarse import coarsened
from planners.reduced.backgrounds import Backgrounds
from planners.reduced.rewards import reward_terms, terminal_states
from planners.reduced.successors import SuccessorSampler
from planners.reduced.survey import EndogenousSurvey, Reward, tests_per_pair
from planners.reduced.total_rewards import total_rewards
from planners.samples.counted import CountedMDP
from planners.samples.rollouts import ExogenousData

#: States in one question to a model: few enough that memory is used again and not asked for anew.
BLOCK = 8_192
#: Comparisons for what the survey before did not find are this many times fewer than it had.
FEWER = 4


def survey_again(
    survey: EndogenousSurvey,
    before: ExoMDP,
    mdp: ExoMDP,
    data: ExogenousData,
    rng: np.random.Generator,
    *,
    reward: Reward = "terms",
) -> EndogenousSurvey | None:
    """The survey of a model in which n moves as in the one that was surveyed before.

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
    if reward == "terms":
        rewards = reward_terms(mdp, survey.endogenous, terminal)
    else:
        rewards = total_rewards(mdp, survey.endogenous, terminal, data, rng)
    backgrounds = Backgrounds.draw(data, rng)
    earlier, sampler = (SuccessorSampler(each, survey.endogenous, rng) for each in (before, mdp))
    alive = np.flatnonzero(~np.repeat(terminal, mdp.num_actions))
    tests = tests_per_pair(mdp, len(alive), is_complete=True)
    others = tests // FEWER if data.values is not survey.backgrounds.data.values else 0
    if not _same_moves(earlier, sampler, alive, data, tests):
        return None
    if others and _depend_on_others(sampler, alive, survey.relevant, data, others):
        return None
    return replace(
        survey,
        base_reward=rewards.base_reward,
        terms=rewards.terms,
        joint_terms=rewards.joint_terms,
        backgrounds=backgrounds,
        undecided={pair: _in_backgrounds(sampler, pair, backgrounds) for pair in survey.undecided},
        endogenous_samples=mdp.endogenous_samples,
        reward_samples=mdp.reward_samples,
    )


def _same_moves(
    first: SuccessorSampler,
    second: SuccessorSampler,
    pairs: Ints,
    data: ExogenousData,
    tests: int,
) -> bool:
    """Whether two models draw the same n' for all pairs, in states that occur and in any others."""
    probes = draw_probes(data, tests, second.rng)
    for asked, test in _questions(pairs, tests):
        x, seed = probes[test], second.seed()
        if not np.array_equal(first.draw(asked, x, seed), second.draw(asked, x, seed)):
            return False
    return True


def _depend_on_others(
    sampler: SuccessorSampler, pairs: Ints, known: BoolArray, data: ExogenousData, tests: int
) -> bool:
    """Whether some n' changes if all variables do that a pair is not known to depend on."""
    x, y = (draw_probes(data, tests, sampler.rng) for _ in range(2))
    for asked, test in _questions(pairs, tests):
        here = x[test]
        there = np.where(known[asked], here, y[test])
        if sampler.differ(asked, here, there, sampler.seed()).any():
            return True
    return False


def _questions(pairs: Ints, tests: int) -> Iterator[tuple[Ints, Ints]]:
    """Every pair with every test, in blocks of pairs and of numbers of tests."""
    for start in range(0, len(pairs) * tests, BLOCK):
        question = np.arange(start, min(start + BLOCK, len(pairs) * tests))
        yield pairs[question // tests], question % tests


def _in_backgrounds(sampler: SuccessorSampler, pair: int, backgrounds: Backgrounds) -> Ints:
    """The n' of one pair that its list leaves undecided, shape (backgrounds,)."""
    parts = chunks(len(backgrounds), len(backgrounds.data.sizes))
    drawn = [
        sampler.draw(np.full(part.stop - part.start, pair), backgrounds.rows(part))
        for part in parts
    ]
    return np.concatenate(drawn)
