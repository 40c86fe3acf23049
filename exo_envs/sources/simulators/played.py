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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.clock import tick
from exo_envs.core.errors import ContractError
from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.core.statistics import Ranks
from exo_envs.sources.access.noise import NUM_SEEDS, set_noise
from exo_envs.sources.rewards import ScopesError
from exo_envs.sources.simulators.chance import find_chance
from exo_envs.sources.simulators.foreign import Choose, Episodes, Steps
from exo_envs.sources.simulators.stepped import SteppedModel

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
#: Steps in which rewards that depend on chance are compared.
NUM_NOISY = 64
#: Numbers of an observation that are compared with the state that it is read as.
MAX_LEFT_OUT = 16
#: Actions that are looked at one by one.
MAX_ACTIONS = 8
#: States in which it is looked for variables that pay only together.
NUM_BLAMED = 8
#: Standard errors that two means are apart: by chance with a probability below ERROR_PROBABILITY.
STANDARD_ERRORS = 5.0
ROUNDING = 1e-7


class Difference(NamedTuple):
    """A way in which the environment is not what its model says."""

    reason: str
    message: str
    variable: str = ""  # that is not what it was said to be

    def __str__(self) -> str:
        """For people."""
        return f"{self.message} (reason: {self.reason})"


class PlayedDifferentlyError(ContractError):
    """Episodes of an adapted environment are not what its model says of them.

    Attributes:
        reason: "coarse state", "hidden state", "joint rewards", "noise in the reward",
            "exogeneity" or "looks ahead".
    """

    def __init__(self, difference: Difference) -> None:
        """Say why the model is not what is played."""
        super().__init__("played", str(difference))
        self.reason = difference.reason


class PlayedDifferentlyWarning(UserWarning):
    """The same, of a model that is meant as an approximation."""


def find_differences(
    model: SteppedModel, *, choose: Choose | None = None, seed: int = 0
) -> Iterator[Difference]:
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
    comparison = Comparison(model, episodes, np.random.default_rng([seed, 1]))
    for look in (
        comparison.hidden_state,
        comparison.joint_rewards,
        comparison.noisy_rewards,
        comparison.exogeneity,
        comparison.looks_ahead,
    ):
        found = look()
        if found is not None:
            yield found


def find_moved(model: SteppedModel, seed: int = 0) -> str | None:
    """An exogenous variable that does not move by itself, or whose next value n' looks at."""
    episodes = model.record(NUM_STEPS, seed)
    comparison = Comparison(model, episodes, np.random.default_rng([seed, 1]))
    found = comparison.exogeneity() or comparison.looks_ahead()
    return None if found is None else found.variable


class Comparison:
    """Steps that were played, beside what the model says of them."""

    def __init__(self, model: SteppedModel, episodes: Episodes, rng: np.random.Generator) -> None:
        self.model, self.episodes, self.rng = model, episodes, rng
        self.foreign, self.k, self.names = model.foreign, model.k, model.names
        self.goes_on = ~episodes.terminated
        self._drawn: list[Steps] = []
        self._exogenous: list[Ranks] | None = None

    # --- what the model draws ---------------------------------------------------------------

    def drawn(self) -> list[Steps]:
        """Steps of the model from the states that were played, ``NUM_DRAWS`` from each."""
        for _ in range(NUM_DRAWS - len(self._drawn)):
            seeds = self.rng.integers(NUM_SEEDS, size=len(self.episodes))
            steps = self.foreign.step(self.episodes.rows, self.episodes.actions, seeds)
            self._drawn.append(steps)
        return self._drawn

    def exogenous(self) -> list[Ranks]:
        """Of each exogenous variable, the x' that was played among those that the model draws."""
        if self._exogenous is None:
            going = self.goes_on
            x = self.foreign.access.split_row(self.episodes.rows[going])[1]
            seeds = self.rng.integers(NUM_SEEDS, size=(NUM_DRAWS, len(x)))
            drawn = [self.model.exogenous_after(x, own) for own in seeds] if x.size else []
            following = self.episodes.following[going, self.k :]
            self._exogenous = [
                Ranks(following[:, i], np.column_stack([other[:, i] for other in drawn]))
                for i in range(x.shape[1] if x.size else 0)
            ]
        return self._exogenous

    # --- n and x are all of the state -------------------------------------------------------

    def hidden_state(self) -> Difference | None:
        """Steps from a state that was set against the same steps in an episode."""
        if not self._some_differ():
            return None  # under the same random numbers every step is the same
        played, drawn = self.episodes, self.drawn()
        quantities: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {
            "the reward": (played.rewards, np.column_stack([steps.reward for steps in drawn])),
            "the end of the episode": (
                played.terminated,
                np.column_stack([steps.terminated for steps in drawn]),
            ),
        }
        for j, name in enumerate(self.names):
            quantities[repr(name)] = (
                np.where(self.goes_on, played.following[:, j], 0),
                np.column_stack([np.where(s.terminated, 0, s.following[:, j]) for s in drawn]),
            )
        early = np.where(played.elapsed > np.median(played.elapsed), 1.0, -1.0)
        left_out = self._left_out()
        limit = _limit((3 + len(left_out)) * len(quantities))
        for name, (own, others) in quantities.items():
            ranks = Ranks(own, others)
            certain = ranks.alone[:, 0] & ranks.certain.all()
            after = np.where(played.elapsed > 0, np.roll(ranks.places[:, 0], 1), 0.0)
            won = [ranks.evidence(weight) for weight in (None, early, after, *left_out)]
            if certain.sum() >= CERTAIN_STEPS or max(won) > limit:
                off = np.abs(own - others.mean(axis=1))
                lane = int(np.flatnonzero(certain)[0] if certain.any() else off.argmax())
                seen = (
                    f"from {self._show(lane)}, {name} was {own[lane]:g} in an episode and "
                    f"{_spread(others[lane])} when the environment was put into that state"
                )
                return self._hidden(seen, clock=won[1] == max(won))
        return None

    def _left_out(self) -> list[FloatArray]:
        """How large numbers of an observation are for the state that it is read as.

        Other episodes say how large they are to be expected there, by least squares.
        """
        if self._looks_alike() is None:
            return []
        other = self.model.record(len(self.episodes), int(self.rng.integers(NUM_SEEDS)))
        shown, rows = np.array(other.observations)[:, :MAX_LEFT_OUT], _with_one(other.rows)
        fit = np.linalg.lstsq(rows, shown, rcond=None)[0]
        own = np.array(self.episodes.observations)[:, :MAX_LEFT_OUT]
        off = own - _with_one(self.episodes.rows) @ fit
        large = np.abs(off) > ROUNDING * np.abs(own).max(axis=0)
        return list(np.where(large, off / off.std(axis=0), 0.0).T[large.any(axis=0)])

    def _some_differ(self) -> bool:
        """Whether any step differs from the same one from a state that was set, with its noise."""
        played, env, access = self.episodes, self.foreign.env, self.foreign.access
        for i, (row, action) in enumerate(zip(played.rows, played.actions.tolist(), strict=True)):
            tick()
            access.put(env, row, i)
            set_noise(env, played.noise[i])
            observation, reward, terminated, _, _ = env.step(action)
            same = terminated == played.terminated[i] and _are_close(reward, played.rewards[i])
            if same and not terminated:
                same = _are_close(access.read(env, observation), played.following[i]).all()
            if not same:
                return True
        return False

    def _hidden(self, seen: str, *, clock: bool) -> Difference:
        alike = self._looks_alike()
        if alike is not None:
            one, two = (_shorten(self.episodes.observations[i]) for i in alike)
            both = self._name(self.episodes.rows[alike[0]])
            return Difference(
                "coarse state",
                f"the state leaves out what matters: {seen}. Different observations are read as "
                f"one state, such as {one} and {two}, both {both}. "
                "Make finer bins, or none: Variable(name, low=..., high=...) is real",
            )
        hint = " It changes with the number of steps taken: is there a clock?" if clock else ""
        return Difference(
            "hidden state",
            f"n and x are not all of the state: {seen}. Something that set_state does not set "
            f"matters.{hint} Make it a variable that split (or get_state) reads and set_state "
            "writes",
        )

    def _looks_alike(self) -> tuple[int, int] | None:
        """Two observations that differ and are read as one state."""
        first: dict[bytes, int] = {}
        shown = self.episodes.observations
        for i, row in enumerate(self.episodes.rows):
            j = first.setdefault(row.tobytes(), i)
            if not np.array_equal(shown[i], shown[j]):
                return j, i
        return None

    # --- the reward is what its terms add up to ------------------------------------------------

    def joint_rewards(self) -> Difference | None:
        """The reward of whole states against the sum of its terms, under the same seeds."""
        lanes = self._reward_lanes()
        rows, actions = self.episodes.rows[lanes], self.episodes.actions[lanes]
        paid, total = self.model.pay(rows, actions)[0], self._total(lanes)
        wrong = np.flatnonzero(~_are_close(paid, total))
        if not len(wrong):
            return None
        few = wrong[:NUM_BLAMED]
        try:
            scopes = self.model.joint_scopes(rows[few], actions[few])
        except ScopesError as error:
            hint = str(error)
        else:
            names = self.names[self.k :]
            joint = [tuple(names[i] for i in sorted(scope)) for scope in scopes if len(scope) > 1]
            hint = (
                f"{' and '.join(map(str, joint))} pay only together: give reward_scopes="
                f"{[*joint, '...']}, a scope for each term"
            )
        return Difference(
            "joint rewards",
            f"the environment pays {paid[wrong[0]]:g} at {self._show(int(lanes[wrong[0]]))}, but "
            f"its terms add up to {total[wrong[0]]:g}; {hint}",
        )

    def noisy_rewards(self) -> Difference | None:
        """The mean reward of states against what the model pays there."""
        samples = self.model.reward_samples
        hint = f"Give AdaptedMDP a larger reward_samples, such as {max(100, 4 * samples)}"
        chance = find_chance(self.model, len(self.episodes) * NUM_DRAWS)
        if chance is not None and chance.is_large(samples):
            return Difference(
                "noise in the reward",
                f"the reward depends on chance: at {self._name(chance.row)}, action "
                f"{chance.action}, it is between {chance.low:g} and {chance.high:g}, so that its "
                f"mean over reward_samples={samples} seeds means little. {hint}",
            )
        drawn = np.column_stack([steps.reward for steps in self.drawn()])
        ranks = Ranks(self.episodes.rewards, drawn)
        if ranks.certain.all() and not ranks.alone.any():
            return None
        lanes = self._reward_lanes()
        drawn = np.column_stack([self.episodes.rewards[lanes], drawn[lanes]])
        off = drawn - self._total(lanes)[:, None]
        # All states are asked about under the same seeds, so their errors do not average out.
        shared = math.sqrt(float(drawn.var(axis=1, ddof=1).mean()) / samples)
        half = off.shape[1] // 2
        first, second = off[:, :half].mean(axis=1), off[:, half:].mean(axis=1)
        for values in (off.mean(axis=1), np.sign(first) * second):
            error = math.hypot(_standard_error(values), shared)
            if abs(values.mean()) > max(STANDARD_ERRORS * error, ROUNDING):
                break
        else:
            return None
        lane = int(lanes[np.ptp(drawn, axis=1).argmax()])
        follows = self._follows(ranks)
        looks = f" It moves with the next {follows}: the reward looks at s'." if follows else ""
        return Difference(
            "noise in the reward",
            f"the reward depends on chance: at {self._show(lane)} it is between "
            f"{drawn.min():g} and {drawn.max():g}, and the mean over reward_samples={samples} "
            f"seeds is off by {abs(values.mean()):.3g} a step (± {error:.2g}).{looks} {hint}",
        )

    def _follows(self, rewards: Ranks) -> str:
        """A variable whose next value the reward moves with, if there is one."""
        for j, name in enumerate(self.names):
            drawn = np.column_stack([steps.following[:, j] for steps in self.drawn()])
            moved = Ranks(self.episodes.following[:, j], drawn)
            together = (moved.places * rewards.places).mean(axis=1)
            if abs(together.mean()) > max(STANDARD_ERRORS * _standard_error(together), ROUNDING):
                return repr(name)
        return ""

    def _reward_lanes(self) -> NDArray[np.intp]:
        count = len(self.episodes)
        few = count if self.model.reward_samples == 1 else min(count, NUM_NOISY)
        return np.linspace(0, count - 1, few).astype(np.intp)

    def _total(self, lanes: NDArray[np.intp]) -> FloatArray:
        rows, actions = self.episodes.rows[lanes], self.episodes.actions[lanes]
        terms = self.model.terms(rows, actions).sum(axis=1)
        return np.asarray(self.model.endogenous(rows, actions) + terms)

    # --- x moves by itself ---------------------------------------------------------------------

    def exogeneity(self) -> Difference | None:
        """The x' that was played against P(x'|x) of the model."""
        played, going, model = self.episodes, self.goes_on, self.model
        weights = {"": np.ones(len(played))}
        for action in range(min(self.foreign.num_actions, MAX_ACTIONS)):
            weights[f" with action {action}"] = (played.actions == action).astype(float)
        for j, name in enumerate(self.names[: self.k]):
            own = played.rows[:, j]
            large = np.where(own > np.median(own), 1.0, -1.0)
            weights[f" with a large or small {name!r}"] = large
        limit = _limit(len(weights) * max(1, len(self.exogenous())))
        for name, ranks in zip(self.names[self.k :], self.exogenous(), strict=False):
            certain = ranks.alone[:, 0] & ranks.certain.all()
            won = {where: ranks.evidence(weight[going]) for where, weight in weights.items()}
            where = max(won, key=won.__getitem__)
            if won[where] > limit or certain.sum() >= CERTAIN_STEPS:
                return Difference(
                    "exogeneity",
                    f"{name!r} does not move by itself: with the same x, its next value is not "
                    f"what it is from the reference n = {model.reference[: self.k].tolist()} "
                    f"with its action {model.reference_action}{where}. If actions move it, make "
                    "it endogenous; the end of an episode may also depend on it",
                    name,
                )
        return None

    def looks_ahead(self) -> Difference | None:
        """Whether n' was played together with x' as if they were independent, given s and a."""
        going, drawn = self.goes_on, self.drawn()
        limit = _limit(max(1, self.k * len(self.exogenous())))
        for j, name in enumerate(self.names[: self.k]):
            others = np.column_stack([steps.following[going, j] for steps in drawn])
            moved = Ranks(self.episodes.following[going, j], others)
            if moved.certain.all():
                continue  # nothing of it is left to chance
            for other, ranks in zip(self.names[self.k :], self.exogenous(), strict=False):
                if moved.joint_evidence(ranks) > limit:
                    return Difference(
                        "looks ahead",
                        f"{name!r} looks at the next {other!r}: from the same state, their next "
                        f"values are not independent of each other. Make {other!r} endogenous, or "
                        "let the environment use what it showed before the step",
                        other,
                    )
        return None

    # --- words ---------------------------------------------------------------------------------

    def _show(self, lane: int) -> str:
        return f"{self._name(self.episodes.rows[lane])}, action {self.episodes.actions[lane]}"

    def _name(self, row: NDArray[Any]) -> str:
        shown = [f"{name}={value:g}" for name, value in zip(self.names, row, strict=True)]
        return f"({', '.join(shown[:12])}{', ...' if len(shown) > 12 else ''})"


def _limit(num_tests: int) -> float:
    """What may be won by chance, as a logarithm, in the best of several tests."""
    return math.log(num_tests / ERROR_PROBABILITY)


def _with_one(rows: NDArray[Any]) -> FloatArray:
    """Rows with a column of ones."""
    return np.column_stack([np.ones(len(rows)), rows])


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def _are_close(one: Any, other: Any) -> BoolArray:
    return np.asarray(np.isclose(one, other, rtol=ROUNDING, atol=ROUNDING))


def _spread(values: FloatArray) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _shorten(numbers: FloatArray) -> str:
    shown = ", ".join(f"{number:g}" for number in numbers[:8])
    return f"[{shown}{', ...' if len(numbers) > 8 else ''}]"
