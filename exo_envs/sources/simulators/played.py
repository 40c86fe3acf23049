"""Whether an environment is what its model says, by episodes of the environment itself.

A model of somebody else's environment makes claims that nobody has checked: that n and x are all
of its state, that x moves by itself, that n' does not look at x', and that the reward is what its
terms add up to. So the environment is played as it is (reset and step, no state is set), and every
step is compared with what the model says of the same state and action.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exo_envs.audit.pasts import SetStates, show_state
from exo_envs.core.arguments import check_level, real_numbers
from exo_envs.core.errors import ArgumentError, ContractError
from exo_envs.core.mdp import FloatArray
from exo_envs.core.statistics import Ranks, normal_quantile
from exo_envs.sources.access.episodes import NUM_SEEDS, Episodes
from exo_envs.sources.rewards import ScopesError
from exo_envs.sources.simulators.stepped import Choose, SteppedModel, find_chance
from exo_envs.sources.simulators.workers import Rows

#: Steps of the environment itself that are compared.
NUM_STEPS = 400
#: Seconds after which fewer steps are compared, but for a few.
SECONDS, FEW_STEPS = 10.0, 32
#: Steps that the model draws for each of them.
NUM_DRAWS = 6
#: The probability that a right model is refused.
ERROR_PROBABILITY = 1e-6
#: So many steps that differ decide, if the model leaves nothing to chance in any step. (What
#: happens once in 470 steps is six times in 400 that are played and never in 2,400 that are drawn
#: with a probability of 1e-6, and that is the worst case.)
CERTAIN_STEPS = 6
#: Steps in which rewards are compared, if each is averaged over several seeds.
NUM_NOISY = 64
#: Actions that are looked at one by one.
MAX_ACTIONS = 8
#: States in which it is looked for variables that pay only together.
NUM_BLAMED = 8
#: The probability that two equal mean returns are said to differ, by default.
AGREEMENT_ERROR = 1e-3


class Mismatch(NamedTuple):
    """A way in which the environment is not what its model says."""

    reason: str
    message: str
    variable: str = ""  # that is not what it was said to be

    def __str__(self) -> str:
        return f"{self.message} (reason: {self.reason})"


class PlayedDifferentlyError(ContractError):
    """Episodes of an adapted environment are not what its model says of them.

    Attributes:
        reason: "coarse state", "hidden state", "joint rewards", "noise in the reward",
            "exogeneity" or "looks ahead".
    """

    def __init__(self, difference: Mismatch) -> None:
        super().__init__("played", str(difference))
        self.reason = difference.reason


class PlayedDifferentlyWarning(UserWarning):
    """The same, of a model that is meant as an approximation."""


def find_differences(
    model: SteppedModel, *, choose: Choose | None = None, seed: int = 0
) -> Iterator[Mismatch]:
    """All that differs, the deepest cause first.

    What is certain is compared exactly, what depends on chance by tests that refuse a right model
    with a probability of at most 1e-6 each.

    Args:
        model: what is claimed.
        choose: takes a state, as a row, to an action; by default actions are random.
        seed: of the episodes.
    """
    start = time.perf_counter()
    episodes = model.record(FEW_STEPS, seed, choose)
    a_step = (time.perf_counter() - start) / len(episodes)
    affordable = int(SECONDS / (a_step * (2 + 2 * NUM_DRAWS)))
    episodes = model.record(max(FEW_STEPS, min(NUM_STEPS, affordable)), seed, choose)
    comparison = PlayedSteps(model, episodes, np.random.default_rng([seed, 1]))
    looks = (
        comparison.hidden_state,
        comparison.joint_rewards,
        comparison.noisy_rewards,
        comparison.exogeneity,
        comparison.looks_ahead,
    )
    yield from filter(None, (look() for look in looks))


def find_moved(model: SteppedModel, seed: int = 0) -> str | None:
    """An exogenous variable that does not move by itself, or whose next value n' looks at."""
    episodes = model.record(NUM_STEPS, seed)
    comparison = PlayedSteps(model, episodes, np.random.default_rng([seed, 1]))
    found = comparison.exogeneity() or comparison.looks_ahead()
    return None if found is None else found.variable


class PlayedSteps:
    """Steps that were played, beside what the model says of them."""

    def __init__(self, model: SteppedModel, episodes: Episodes, rng: np.random.Generator) -> None:
        self.model, self.episodes, self.rng = model, episodes, rng
        self.k, self.names = model.k, model.names
        self.actions, self.goes_on = np.array(episodes.actions), ~episodes.terminated

    @cached_property
    def drawn(self) -> list[Rows]:
        """The states that follow in the model on those that were played, ``NUM_DRAWS`` times."""
        rows, draws = self.episodes.rows, (NUM_DRAWS, len(self.episodes))
        seeds = self.rng.integers(NUM_SEEDS, size=draws)
        return [self.model.step(rows, self.actions, own).following for own in seeds]

    @cached_property
    def exogenous(self) -> list[Ranks]:
        """Of each exogenous variable, the x' that was played among those that the model draws."""
        x = self.model.access.split_row(self.episodes.rows[self.goes_on])[1]
        if not x.size:
            return []
        seeds = self.rng.integers(NUM_SEEDS, size=(NUM_DRAWS, len(x)))
        drawn = np.stack([self.model.exogenous_after(x, own) for own in seeds], axis=-1)
        following = self.episodes.following[self.goes_on, self.k :]
        return [Ranks(following[:, i], drawn[:, i]) for i in range(x.shape[1])]

    # --- n and x are all of the state -------------------------------------------------------

    def hidden_state(self) -> Mismatch | None:
        """Steps from a state that was set against the same steps in an episode."""
        states = SetStates(self.model.env, self.model.access, self.episodes, self.rng)
        found = states.surely_hidden()
        found += states.hidden(states.uncertain, self.rng, ERROR_PROBABILITY)
        if not found:
            return None
        alike = states.looks_alike()
        if alike is not None:
            one, two = (_shorten(self.episodes.shown[i]) for i in alike)
            both = show_state(self.names, self.episodes.rows[alike[0]])
            return Mismatch(
                "coarse state",
                f"the state leaves out what matters: {found[0].seen}. Different observations are "
                f"read as one state, such as {one} and {two}, both {both}. "
                "Make finer bins, or none: Variable(name, low=..., high=...) is real",
            )
        return Mismatch(
            "hidden state",
            f"n and x are not all of the state: {found[0].seen}. Something that set_state does not "
            "set matters, such as a clock. Make it a variable that split (or get_state) reads and "
            "set_state writes",
        )

    # --- the reward is what its terms add up to ------------------------------------------------

    def joint_rewards(self) -> Mismatch | None:
        """The reward of whole states against the sum of its terms, under the same seeds."""
        count, model = len(self.episodes), self.model
        few = count if model.reward_samples == 1 else min(count, NUM_NOISY)
        lanes = np.linspace(0, count - 1, few).astype(np.intp)
        rows, actions = self.episodes.rows[lanes], self.actions[lanes]
        paid = model.pay(rows, actions)[0]
        total = model.endogenous(rows, actions) + model.terms(rows, actions).sum(axis=1)
        wrong = np.flatnonzero(~np.isclose(paid, total, rtol=1e-7, atol=1e-7))
        if not len(wrong):
            return None
        blamed = wrong[:NUM_BLAMED]
        try:
            scopes = model.joint_scopes(rows[blamed], actions[blamed])
        except ScopesError as error:
            hint = str(error)
        else:
            names = self.names[self.k :]
            joint = [tuple(names[i] for i in sorted(scope)) for scope in scopes if len(scope) > 1]
            hint = (
                f"{' and '.join(map(str, joint))} pay only together: give reward_scopes="
                f"{[*joint, '...']}, a scope for each term"
            )
        return Mismatch(
            "joint rewards",
            f"the environment pays {paid[wrong[0]]:g} at {show_state(self.names, rows[wrong[0]])}, "
            f"action {actions[wrong[0]]}, but its terms add up to {total[wrong[0]]:g}; {hint}",
        )

    def noisy_rewards(self) -> Mismatch | None:
        """Whether a mean reward still depends on chance, by much."""
        samples = self.model.reward_samples
        chance = find_chance(self.model, len(self.episodes) * NUM_DRAWS)
        if chance is None or not chance.is_large(samples):
            return None
        return Mismatch(
            "noise in the reward",
            f"the reward depends on chance: at {show_state(self.names, chance.row)}, action "
            f"{chance.action}, it is between {chance.low:g} and {chance.high:g}, so that its mean "
            f"over reward_samples={samples} seeds means little. Give AdaptedMDP a larger "
            f"reward_samples, such as {max(100, 4 * samples)}",
        )

    # --- x moves by itself ---------------------------------------------------------------------

    def exogeneity(self) -> Mismatch | None:
        """The x' that was played against P(x'|x) of the model."""
        played, going, model = self.episodes, self.goes_on, self.model
        weights = {"": np.ones(len(played))}
        for action in range(min(self.model.num_actions, MAX_ACTIONS)):
            weights[f" with action {action}"] = (self.actions == action).astype(float)
        for j, name in enumerate(self.names[: self.k]):
            own = played.rows[:, j]
            large = np.where(own > np.median(own), 1.0, -1.0)
            weights[f" with a large or small {name!r}"] = large
        limit = _limit(len(weights) * max(1, len(self.exogenous)))
        for name, ranks in zip(self.names[self.k :], self.exogenous, strict=False):
            certain = ranks.alone[:, 0] & ranks.certain.all()
            won = {where: ranks.evidence(weight[going]) for where, weight in weights.items()}
            where = max(won, key=won.__getitem__)
            if won[where] > limit or certain.sum() >= CERTAIN_STEPS:
                return Mismatch(
                    "exogeneity",
                    f"{name!r} does not move by itself: with the same x, its next value is not "
                    f"what it is from the reference n = {model.reference[: self.k].tolist()} "
                    f"with its action {model.reference_action}{where}. If actions move it, make "
                    "it endogenous; the end of an episode may also depend on it",
                    name,
                )
        return None

    def looks_ahead(self) -> Mismatch | None:
        """Whether n' was played together with x' as if they were independent, given s and a."""
        going, drawn = self.goes_on, self.drawn
        limit = _limit(max(1, self.k * len(self.exogenous)))
        for j, name in enumerate(self.names[: self.k]):
            others = np.column_stack([following[going, j] for following in drawn])
            moved = Ranks(self.episodes.following[going, j], others)
            if moved.certain.all():
                continue  # nothing of it is left to chance
            for other, ranks in zip(self.names[self.k :], self.exogenous, strict=False):
                if moved.joint_evidence(ranks) > limit:
                    return Mismatch(
                        "looks ahead",
                        f"{name!r} looks at the next {other!r}: from the same state, their next "
                        f"values are not independent of each other. Make {other!r} endogenous, or "
                        "let the environment use what it showed before the step",
                        other,
                    )
        return None


def _limit(num_tests: int) -> float:
    """What may be won by chance, as a logarithm, in the best of several tests."""
    return math.log(num_tests / ERROR_PROBABILITY)


def _shorten(numbers: FloatArray) -> str:
    shown = ", ".join(f"{number:g}" for number in numbers[:8])
    return f"[{shown}{', ...' if len(numbers) > 8 else ''}]"


# --- returns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreement:
    """Mean returns of one policy, in the model and in the environment that it was made of.

    Attributes:
        claimed: the mean in the model.
        claimed_error: its standard error.
        played: the mean in episodes of the environment itself.
        played_error: its standard error.
        difference_error: the standard error of the difference, if both have one distribution.
        error_probability: that two equal means are said to differ (normal approximation).
    """

    claimed: float
    claimed_error: float
    played: float
    played_error: float
    difference_error: float
    error_probability: float = AGREEMENT_ERROR

    @classmethod
    def of(
        cls,
        claimed: FloatArray,
        played: FloatArray,
        error_probability: float = AGREEMENT_ERROR,
    ) -> Agreement:
        """From returns, of the model and of the environment.

        >>> found = Agreement.of([1.0, 2.0, 3.0, 2.0], [8.0, 9.0, 8.0, 7.0])
        >>> found.agrees
        False
        """
        level = check_level("error_probability", error_probability)
        samples = [real_numbers("claimed", claimed), real_numbers("played", played)]
        for name, values in zip(("claimed", "played"), samples, strict=True):
            if len(values) < 2:
                raise ArgumentError(
                    f"{name} has shape {values.shape}; two returns are needed at least"
                )
        sums = [((values - values.mean()) ** 2).sum() for values in samples]
        (one, other), degrees = map(len, samples), sum(map(len, samples)) - 2
        pooled = math.sqrt(sum(sums) / degrees * (1 / one + 1 / other))
        mean, paid = (float(values.mean()) for values in samples)
        error, paid_error = (float(own.std(ddof=1) / math.sqrt(len(own))) for own in samples)
        return cls(mean, error, paid, paid_error, pooled, level)

    @property
    def agrees(self) -> bool:
        """Whether the difference may well be chance."""
        limit = normal_quantile(1 - self.error_probability / 2) * self.difference_error
        rounding = 1e-9 * (1 + abs(self.claimed) + abs(self.played))
        return abs(self.claimed - self.played) <= limit + rounding

    def __str__(self) -> str:
        """Both means, with halves of their 95 % intervals."""
        half = normal_quantile(0.975)
        return (
            f"the model claims {self.claimed:.4g} ± {half * self.claimed_error:.2g} where the "
            f"environment itself pays {self.played:.4g} ± {half * self.played_error:.2g}"
        )
