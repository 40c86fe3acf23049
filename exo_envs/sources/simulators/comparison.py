"""Steps that were played, beside what the model says of the same states and actions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.mdp import BoolArray, FloatArray
from exo_envs.sources.simulators.chance import find_chance
from exo_envs.sources.simulators.episodes import NUM_SEEDS, Episodes
from exo_envs.sources.simulators.exchange import Ranks
from exo_envs.sources.simulators.foreign import ForeignEnv, Steps
from exo_envs.sources.simulators.generators import set_noise
from exo_envs.sources.simulators.scopes import ScopesError

if TYPE_CHECKING:
    from exo_envs.sources.simulators.playing import PlayableMDP

#: Steps that the model draws for each of them.
NUM_DRAWS = 6
#: The probability that a right model is refused.
ERROR_PROBABILITY = 1e-6
#: So many steps that differ decide, if the model leaves nothing to chance in any step. (What
#: happens once in 350 steps is six times in 300 that are played and never in 1,800 that are drawn
#: with a probability of 1e-6, and that is the worst case.)
CERTAIN_STEPS = 6
#: Steps in which rewards that depend on chance are compared.
NUM_NOISY = 64
#: Numbers of an observation that are compared with the state that it is read as.
MAX_LEFT_OUT = 16
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


class Comparison:
    """Steps that were played, beside what the model says of them."""

    def __init__(self, mdp: PlayableMDP, episodes: Episodes, rng: np.random.Generator) -> None:
        self.mdp, self.episodes, self.rng = mdp, episodes, rng
        self.foreign: ForeignEnv = mdp.foreign
        self.k = len(self.foreign.parts[0])
        self.goes_on = ~episodes.terminated
        self._drawn: list[Steps] = []
        self._names = [variable.name for variable in self.foreign.ranges.variables]

    # --- n and x are all of the state -------------------------------------------------------

    def hidden_state(self) -> Difference | None:
        """Steps from a state that was set against the same steps in an episode."""
        if not self._repeat().any():
            return None  # under the same random numbers every step is the same
        played, drawn = self.episodes, self.draw()
        quantities: dict[str, tuple[NDArray[Any], list[NDArray[Any]]]] = {}
        quantities["the reward"] = played.rewards, [steps.reward for steps in drawn]
        ends = [steps.terminated for steps in drawn]
        quantities["the end of the episode"] = played.terminated, ends
        for j, name in enumerate(self._names):
            quantities[repr(name)] = (
                np.where(self.goes_on, played.following[:, j], 0),
                [np.where(s.terminated, 0, s.following[:, j]) for s in drawn],
            )
        early = np.where(played.steps > np.median(played.steps), 1.0, -1.0)
        left_out = self._left_out()
        limit = _limit((3 + len(left_out)) * len(quantities))
        for name, (own, others) in quantities.items():
            ranks = Ranks(own, np.column_stack(others))
            certain = ranks.alone[:, 0] & ranks.certain.all()
            after = np.where(played.steps > 0, np.roll(ranks.places[:, 0], 1), 0.0)
            weights = [None, early, after, *left_out]
            won = [ranks.evidence(weight) for weight in weights]
            if certain.sum() >= CERTAIN_STEPS or max(won) > limit:
                return self._hidden(name, np.asarray(own), np.column_stack(others), certain, won)
        return None

    def _left_out(self) -> list[FloatArray]:
        """Whether numbers of an observation are large or small for the state that it is read as.

        That is judged by other episodes: which state a number goes with, and its mean there.
        """
        if self._looks_alike() is None:
            return []
        shown = np.array(self.episodes.observations)
        other = self.mdp.record(len(self.episodes), int(self.rng.integers(NUM_SEEDS)))
        numbers, found = np.array(other.observations), []
        for c in np.flatnonzero(np.ptp(numbers, axis=0) > 0)[:MAX_LEFT_OUT]:
            shares = [_goes_with(numbers[:, c], values) for values in other.rows.T]
            j = int(np.argmax(shares))
            values, group = np.unique(other.rows[:, j], return_inverse=True)
            means = np.bincount(group, numbers[:, c]) / np.bincount(group)
            places = np.searchsorted(values, self.episodes.rows[:, j]).clip(0, len(values) - 1)
            known = values[places] == self.episodes.rows[:, j]
            found.append(np.where(known, np.sign(shown[:, c] - means[places]), 0.0))
        return [weight for weight in found if weight.any()]

    def _repeat(self) -> BoolArray:
        """Which steps differ from the same ones from a state that was set, if noise is the same."""
        played, env = self.episodes, self.foreign.env
        different = np.zeros(len(played), dtype=np.bool_)
        for i, (row, action) in enumerate(zip(played.rows, played.actions.tolist(), strict=True)):
            if self.foreign.tick is not None:
                self.foreign.tick()
            self.foreign.start(row, i)
            set_noise(env, played.noise[i])
            observation, reward, terminated, _, _ = env.step(action)
            same = terminated == played.terminated[i] and _is_close(reward, played.rewards[i])
            if same and not terminated:
                same = _is_close(self.foreign.read(observation), played.following[i])
            different[i] = not same
        return different

    def draw(self) -> list[Steps]:
        """Steps of the model from the states that were played, ``NUM_DRAWS`` from each."""
        for _ in range(NUM_DRAWS - len(self._drawn)):
            seeds = self.rng.integers(NUM_SEEDS, size=len(self.episodes))
            steps = self.foreign.step(self.episodes.rows, self.episodes.actions, seeds)
            self._drawn.append(steps)
        return self._drawn

    def _hidden(
        self, name: str, own: FloatArray, drawn: FloatArray, certain: BoolArray, won: list[float]
    ) -> Difference:
        off = np.abs(own - drawn.mean(axis=1))
        lane = int(np.flatnonzero(certain)[0] if certain.any() else off.argmax())
        seen = (
            f"from {self._show(lane)}, {name} was {own[lane]:g} in an episode and "
            f"{_spread(drawn[lane])} when the environment was put into that state"
        )
        alike = self._looks_alike()
        if alike is not None:
            one, two = (_shorten(self.episodes.observations[i]) for i in alike)
            return Difference(
                "coarse state",
                f"the state leaves out what matters: {seen}. Different observations are read as "
                f"one state, such as {one} and {two}, both {self._show(alike[0], action=False)}. "
                "Make finer bins, or none: Variable(name, low=..., high=...) is real",
            )
        clock = " It changes with the number of steps taken: is there a clock?" * (
            won[1] == max(won)
        )
        return Difference(
            "hidden state",
            f"n and x are not all of the state: {seen}. Something that set_state does not set "
            f"matters.{clock} Make it a variable that split (or get_state) reads and set_state "
            "writes",
        )

    def _looks_alike(self) -> tuple[int, int] | None:
        """Two observations that differ and are read as one state."""
        first: dict[bytes, int] = {}
        for i, (row, shown) in enumerate(
            zip(self.episodes.rows, self.episodes.observations, strict=True)
        ):
            j = first.setdefault(row.tobytes(), i)
            if not np.array_equal(shown, self.episodes.observations[j]):
                return j, i
        return None

    # --- the reward is what its terms add up to ------------------------------------------------

    def joint_rewards(self) -> Difference | None:
        """The reward of whole states against the sum of its terms, under the same seeds."""
        lanes = self._reward_lanes()
        rows, actions = self.episodes.rows[lanes], self.episodes.actions[lanes]
        paid, total = self.mdp.payment.rewards(rows, actions), self._total(lanes)
        wrong = np.flatnonzero(~_are_close(paid, total))
        if not len(wrong):
            return None
        lane = int(lanes[wrong[0]])
        try:
            few = wrong[:NUM_BLAMED]
            scopes = self.mdp.payment.joint_scopes(rows[few], actions[few])
        except ScopesError as error:
            hint = str(error)
        else:
            names = self.mdp.exogenous_names
            joint = [tuple(names[i] for i in sorted(scope)) for scope in scopes if len(scope) > 1]
            hint = (
                f"{' and '.join(map(str, joint))} pay only together: give reward_scopes="
                f"{[*joint, '...']}, a scope for each term"
            )
        return Difference(
            "joint rewards",
            f"the environment pays {paid[wrong[0]]:g} at {self._show(lane)}, but its terms add up "
            f"to {total[wrong[0]]:g}; {hint}",
        )

    def noisy_rewards(self) -> Difference | None:
        """The mean reward of states against what the model pays there."""
        samples = self.mdp.reward_samples
        hint = f"Give AdaptedMDP a larger reward_samples, such as {max(100, 4 * samples)}"
        chance = find_chance(self.mdp, len(self.episodes) * NUM_DRAWS)
        if chance is not None and chance.is_large(samples):
            row = self._name(chance.row)
            return Difference(
                "noise in the reward",
                f"the reward depends on chance: at {row}, action {chance.action}, it is between "
                f"{chance.low:g} and {chance.high:g}, so that its mean over "
                f"reward_samples={samples} seeds means little. {hint}",
            )
        drawn = np.column_stack([steps.reward for steps in self.draw()])
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
            error = math.hypot(values.std(ddof=1) / math.sqrt(len(values)), shared)
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
        for j, name in enumerate(self._names):
            drawn = np.column_stack([steps.following[:, j] for steps in self.draw()])
            moved = Ranks(self.episodes.following[:, j], drawn)
            together = (moved.places * rewards.places).mean(axis=1)
            error = together.std() / math.sqrt(len(together))
            if abs(together.mean()) > max(STANDARD_ERRORS * error, ROUNDING):
                return repr(name)
        return ""

    def _reward_lanes(self) -> NDArray[np.intp]:
        count = len(self.episodes)
        few = count if self.mdp.reward_samples == 1 else min(count, NUM_NOISY)
        return np.linspace(0, count - 1, few).astype(np.intp)

    def _total(self, lanes: NDArray[np.intp]) -> FloatArray:
        ongoing = np.zeros(len(lanes), dtype=np.bool_)
        rows = self.episodes.rows[lanes]
        state = self.mdp.as_state(rows, ongoing, (len(lanes),))
        return self.mdp.reward(state, self.episodes.actions[lanes])

    # --- x moves by itself ---------------------------------------------------------------------

    def exogeneity(self) -> Difference | None:
        """The x' that was played against P(x'|x) of the model."""
        self._exogenous = self._draw_exogenous()
        played, going = self.episodes, self.goes_on
        actions = range(min(self.mdp.num_actions, 8))
        weights = {"": np.ones(len(played))}
        weights |= {f" with action {a}": (played.actions == a).astype(float) for a in actions}
        for j, name in enumerate(self._names[: self.k]):
            own = played.rows[:, j]
            large = np.where(own > np.median(own), 1.0, -1.0)
            weights[f" with a large or small {name!r}"] = large
        limit = _limit(len(weights) * max(1, len(self._exogenous)))
        for i, ranks in enumerate(self._exogenous):
            certain = ranks.alone[:, 0] & ranks.certain.all()
            won = {where: ranks.evidence(weight[going]) for where, weight in weights.items()}
            where = max(won, key=won.__getitem__)
            if won[where] > limit or certain.sum() >= CERTAIN_STEPS:
                name = self.mdp.exogenous_names[i]
                return Difference(
                    "exogeneity",
                    f"{name!r} does not move by itself: with the same x, its next value is not "
                    f"what it is from the reference n = {self.mdp.reference.endogenous.tolist()} "
                    f"with its action {self.mdp.reference_action}{where}. If actions move it, make "
                    "it endogenous; the end of an episode may also depend on it",
                    name,
                )
        return None

    def _draw_exogenous(self) -> list[Ranks]:
        """Of each exogenous variable, the x' that was played among those that the model draws."""
        going = self.goes_on
        x = self.foreign.split_row(self.episodes.rows[going])[1]
        if not x.size:
            return []
        drawn = [self.mdp.sample_exogenous(x, self.rng) for _ in range(NUM_DRAWS)]
        following = self.episodes.following[going, self.k :]
        return [
            Ranks(following[:, i], np.column_stack([other[:, i] for other in drawn]))
            for i in range(x.shape[1])
        ]

    def looks_ahead(self) -> Difference | None:
        """Whether n' was played together with x' as if they were independent, given s and a."""
        going, drawn = self.goes_on, self.draw()
        limit = _limit(max(1, self.k * len(self._exogenous)))
        for j, name in enumerate(self._names[: self.k]):
            others = np.column_stack([steps.following[going, j] for steps in drawn])
            moved = Ranks(self.episodes.following[going, j], others)
            if moved.certain.all():
                continue  # nothing of it is left to chance
            for i, ranks in enumerate(self._exogenous):
                if moved.joint_evidence(ranks) > limit:
                    other = self.mdp.exogenous_names[i]
                    return Difference(
                        "looks ahead",
                        f"{name!r} looks at the next {other!r}: from the same state, their next "
                        f"values are not independent of each other. Make {other!r} endogenous, or "
                        "let the environment use what it showed before the step",
                        other,
                    )
        return None

    # --- words ---------------------------------------------------------------------------------

    def _show(self, lane: int, *, action: bool = True) -> str:
        last = f", action {self.episodes.actions[lane]}" if action else ""
        return f"{self._name(self.episodes.rows[lane])}{last}"

    def _name(self, row: NDArray[Any]) -> str:
        shown = [f"{name}={value:g}" for name, value in zip(self._names, row, strict=True)]
        return f"({', '.join(shown[:12])}{', ...' if len(shown) > 12 else ''})"


def _goes_with(numbers: FloatArray, values: FloatArray) -> float:
    """How much of the variance of numbers a linear function of values explains."""
    if np.ptp(values) == 0:
        return 0.0
    return float(np.corrcoef(numbers, values)[0, 1] ** 2)


def _limit(num_tests: int) -> float:
    """What may be won by chance, as a logarithm, in the best of several tests."""
    return math.log(num_tests / ERROR_PROBABILITY)


def _is_close(one: object, other: object) -> bool:
    return bool(np.all(_are_close(np.asarray(one), np.asarray(other))))


def _are_close(one: FloatArray, other: FloatArray) -> BoolArray:
    return np.isclose(one, other, rtol=ROUNDING, atol=ROUNDING)


def _spread(values: FloatArray) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _shorten(numbers: FloatArray) -> str:
    shown = ", ".join(f"{number:g}" for number in numbers[:8])
    return f"[{shown}{', ...' if len(numbers) > 8 else ''}]"
