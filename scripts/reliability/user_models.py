"""Models as users write them, and what goes wrong in them.

Whatever raises in this file plays the user's own code: it should come out unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from exo_envs import ExoMDP, State, Successors, TraceMDP, Variable
from reliability.odd import Odd, raise_user_error

METHODS = (
    *("sample_initial", "sample_exogenous", "sample_endogenous"),
    *("reward_terms", "endogenous_reward", "is_terminal"),
)


class Market(ExoMDP):
    """A shop that holds stock: the price is a random walk, the season turns, the news are noise."""

    endogenous_variables = (Variable("stock", 4),)
    exogenous_variables = (Variable("price", 5), Variable("season", 3), Variable("news", 2))
    num_actions = 3  # sell, wait, buy
    discount = 0.9
    horizon = 6

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        return State(rng.integers(4, size=(size, 1)), rng.integers([5, 3, 2], size=(size, 3)))

    def sample_exogenous(self, exogenous: Any, rng: np.random.Generator) -> Any:
        following = np.array(exogenous, dtype=np.int64)
        step = rng.integers(-1, 2, size=following.shape[:-1])
        following[..., 0] = np.clip(following[..., 0] + step, 0, 4)
        turns = rng.random(following.shape[:-1]) < 0.3
        following[..., 1] = (following[..., 1] + turns) % 3
        following[..., 2] = rng.integers(2, size=following.shape[:-1])
        return following

    def sample_endogenous(self, state: State, action: Any, rng: np.random.Generator) -> Any:
        moved = np.clip(state.endogenous[..., 0] + np.asarray(action) - 1, 0, 3)
        kept = rng.random(moved.shape) < 0.1
        return np.where(kept, state.endogenous[..., 0], moved)[..., None]

    def reward_terms(self, state: State, action: Any) -> Any:
        terms = np.zeros(state.exogenous.shape)
        sold = (np.asarray(action) == 0) & (state.endogenous[..., 0] > 0)
        terms[..., 0] = state.exogenous[..., 0] * sold
        terms[..., 1] = (state.exogenous[..., 1] == 2) * state.endogenous[..., 0] * 0.5
        return terms

    def endogenous_reward(self, endogenous: Any, action: Any) -> Any:
        return -1.5 * (np.asarray(action) == 2)


class Ferry(ExoMDP):
    """A ferry that can arrive: two endogenous variables, an end, and P(n'|n,a,x) in full."""

    endogenous_variables = (Variable("place", 3), Variable("fuel", 2))
    exogenous_variables = (Variable("wind", 3), Variable("fog", 2))
    num_actions = 2
    discount = 0.95
    horizon = 5

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        return State(np.tile(np.array([0, 1]), (size, 1)), rng.integers([3, 2], size=(size, 2)))

    def sample_exogenous(self, exogenous: Any, rng: np.random.Generator) -> Any:
        wind = (exogenous[..., 0] + rng.integers(2, size=exogenous.shape[:-1])) % 3
        fog = np.where(rng.random(wind.shape) < 0.8, exogenous[..., 1], wind == 0)
        return np.stack([wind, fog], axis=-1).astype(np.int64)

    def sample_endogenous(self, state: State, action: Any, rng: np.random.Generator) -> Any:
        successors = self.endogenous_distribution(state, action)
        late = rng.random(state.endogenous.shape[:-1]) < successors.probabilities[..., 1]
        return np.where(late[..., None], *(successors.endogenous[..., k, :] for k in (1, 0)))

    def endogenous_distribution(self, state: State, action: Any) -> Successors:
        place, fuel = state.endogenous[..., 0], state.endogenous[..., 1]
        goes = np.asarray(action) * (fuel > 0)
        there = np.stack([np.minimum(place + goes, 2), fuel], axis=-1)
        here = np.stack([place, fuel * (goes == 0)], axis=-1)
        late = 0.2 + 0.3 * state.exogenous[..., 0] / 2
        both = np.stack([there, here], axis=-2).astype(np.int64)
        return Successors(both, np.stack([1 - late, late], axis=-1))

    def reward_terms(self, state: State, action: Any) -> Any:
        sails = np.asarray(action)[..., None] * np.array([-1.0, -3.0])
        return np.where(self.is_terminal(state)[..., None], 0.0, sails * (state.exogenous > 0))

    def endogenous_reward(self, endogenous: Any, action: Any) -> Any:
        return 10.0 * (endogenous[..., 0] == 1) * (np.asarray(action) == 1)

    def is_terminal(self, state: State) -> Any:
        return np.asarray(state.endogenous[..., 0] == 2)


class Wide(Market):
    """The same shop with more stock than can be enumerated: models of it simulate n."""

    endogenous_variables = (Variable("stock", 4), Variable("a", 10_000), Variable("b", 10_000))

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        n, x = super().sample_initial(size, rng)
        return State(np.concatenate([n, np.zeros((size, 2), dtype=np.int64)], axis=1), x)

    def sample_endogenous(self, state: State, action: Any, rng: np.random.Generator) -> Any:
        first = super().sample_endogenous(state, action, rng)
        rest = (state.endogenous[..., 1:] + np.asarray(action)[..., None]) % 10_000
        return np.concatenate([first, rest], axis=-1)


class Broad(Market):
    """The same shop with 2,000 prices, which are seen in bins."""

    exogenous_variables = (Variable("price", 2_000), Variable("season", 3), Variable("news", 2))

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        n, x = super().sample_initial(size, rng)
        x[:, 0] = rng.integers(2_000, size=size)
        return State(n, x)

    def sample_exogenous(self, exogenous: Any, rng: np.random.Generator) -> Any:
        following = super().sample_exogenous(exogenous, rng)
        step = rng.integers(-300, 301, size=following.shape[:-1])
        following[..., 0] = np.clip(exogenous[..., 0] + step, 0, 1_999)
        return following


class Harbour(gym.Env[Any, Any]):
    """Nobody's subclass but Gymnasium's: a boat on a quay, a signal and a tide."""

    observation_space = spaces.Dict(
        endogenous=spaces.MultiDiscrete([4]), exogenous=spaces.MultiDiscrete([3, 2])
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.n, self.x = np.zeros(1, dtype=np.int64), self.np_random.integers([3, 2])
        if options is not None:
            self.n = np.array(options["state"]["endogenous"])
            self.x = np.array(options["state"]["exogenous"])
        return self._observe(), {}

    def _observe(self) -> dict[str, Any]:
        return {"endogenous": self.n.copy(), "exogenous": self.x.copy()}

    def step(self, action: Any) -> Any:
        (cell,), (signal, tide) = self.n, self.x
        reward = float(cell * (signal == 1) - 2 * tide)
        if self.np_random.random() < (0.9, 0.5)[tide]:
            self.n[0] = min(max(cell + 2 * action - 1, 0), 3)
        self.x[0] = (signal + (self.np_random.random() < 0.3)) % 3
        self.x[1] ^= self.np_random.random() < 0.1
        return self._observe(), reward, bool(self.n[0] == 3 and signal == 0), False, {}


class Moody(Harbour):
    """The same, with a mood that pays, that grows, and that nobody sees."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.mood = 0.0
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        self.mood += 1.0
        observation, reward, *rest = super().step(action)
        return observation, reward + self.mood, *rest


class Changed(ExoMDP):
    """A model of which one method, or one attribute, is another.

    Args:
        model: the model as it should be.
        **changes: for a method, a function of the model, its arguments and its right answer; for
            an attribute, its value.
    """

    def __init__(self, model: ExoMDP, **changes: Any) -> None:
        self.model = model
        self.changes = {name: changes[name] for name in changes if name in METHODS}
        for name in ("endogenous_variables", "exogenous_variables", "num_actions"):
            setattr(self, name, changes.get(name, getattr(model, name)))
        for name in ("discount", "horizon"):
            setattr(self, name, changes.get(name, getattr(model, name)))
        self.distribution = changes.get("endogenous_distribution")

    def _answer(self, name: str, *args: Any) -> Any:
        change: Callable[..., Any] | None = self.changes.get(name)
        if change is None:
            return getattr(self.model, name)(*args)
        return change(self, args, lambda: getattr(self.model, name)(*args))

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        return self._answer("sample_initial", size, rng)

    def sample_exogenous(self, exogenous: Any, rng: np.random.Generator) -> Any:
        return self._answer("sample_exogenous", exogenous, rng)

    def sample_endogenous(self, state: State, action: Any, rng: np.random.Generator) -> Any:
        return self._answer("sample_endogenous", state, action, rng)

    def reward_terms(self, state: State, action: Any) -> Any:
        return self._answer("reward_terms", state, action)

    def endogenous_reward(self, endogenous: Any, action: Any) -> Any:
        return self._answer("endogenous_reward", endogenous, action)

    def is_terminal(self, state: State) -> Any:
        return self._answer("is_terminal", state)

    def endogenous_distribution(self, state: State, action: Any) -> Any:
        if self.distribution is None:
            return self.model.endogenous_distribution(state, action)
        right = self.model.endogenous_distribution(state, action)
        return self.distribution(self, (state, action), lambda: right)


def _spoiled(odd: Odd, method: str) -> Callable[..., Any]:
    """What makes an answer wrong, always or now and then."""
    how = odd.pick(("value", "value", "value", "shape", "dtype", "nothing", "raise", "finite"))
    share = odd.pick((1.0, 1.0, 0.3, 0.02))
    far = odd.pick((1, 1, 2, 50, 2**31, 2**40, -1, -(2**35), "size"))
    dtype = odd.pick(("f8", "f4", "?", "O", "U3", "c8", "u1", "i1"))
    shape = odd.pick(("T", "first", "wide", "none", "twice", "empty"))
    infinite = odd.pick((math.nan, math.inf, -math.inf, 1e308, -1e308))
    odd.remark(f"{method}: {how} {share} {far} {dtype} {shape} {infinite}")
    rng = np.random.default_rng(odd.below(1000))

    def edit(array: Any) -> Any:
        array = np.array(array)
        if rng.random() > share and how != "value":
            return array
        if how == "value" and array.size:
            wrong = rng.random(array.shape) < (share if share < 1 else 0.5)
            step = int(array.max()) + 1 if far == "size" else far
            return np.where(wrong, array + step, array)
        if how == "finite":
            return np.where(rng.random(array.shape) < 0.5, infinite, array)
        if how == "dtype":
            return array.astype(dtype)
        if how == "nothing":
            return odd_thing
        return {
            "T": lambda: array.T,
            "first": lambda: array[..., 0] if array.ndim else array,
            "wide": lambda: np.concatenate([array, array], axis=-1) if array.ndim else array,
            "none": lambda: array[..., None],
            "twice": lambda: np.concatenate([array, array]) if array.ndim else array,
            "empty": lambda: array[:0] if array.ndim else array,
        }[shape]()

    odd_thing = odd.pick((None, "state", 3, [], {}, object()))

    def change(_: Any, __: tuple[Any, ...], right: Callable[[], Any]) -> Any:
        if how == "raise":
            raise_user_error()
        answer = right()
        if not isinstance(answer, State):
            return edit(answer)
        part = odd_part
        return answer._replace(**{part: edit(getattr(answer, part))})

    odd_part = odd.pick(State._fields)
    return change


def buggy(odd: Odd) -> ExoMDP:
    """A model of which one method or one attribute is wrong, in any way."""
    model = odd.pick((Market, Market, Ferry, Ferry, Wide))()
    if odd.chance(0.15):
        name = odd.pick(("num_actions", "discount", "horizon"))
        value = odd.number_()
        too_much = isinstance(value, (int, np.integer)) and value > 1000
        return Changed(model, **{name: 7 if too_much else value})
    method = odd.pick((*METHODS, *METHODS, "endogenous_distribution"))
    if method == "endogenous_distribution":
        model = Ferry()
        spoil = _spoiled(odd, method)

        def change(changed: Any, args: tuple[Any, ...], right: Callable[[], Any]) -> Any:
            answer = right()
            which = int(odd.number % 2)
            edited = spoil(changed, args, lambda: answer[which])
            return answer._replace(**{answer._fields[which]: edited})

        return Changed(model, endogenous_distribution=change)
    return Changed(model, **{method: _spoiled(odd, method)})


class Battery(ExoMDP):
    """A battery of real charge that trades at real prices, which the wind drives."""

    endogenous_variables = (Variable("charge", low=0.0, high=4.0),)
    exogenous_variables = (
        Variable("price", low=0.0, high=200.0),
        Variable("wind", low=-np.inf, high=np.inf),
        Variable("day", 7),
    )
    num_actions, discount, horizon = 3, 0.9, 6

    def sample_initial(self, size: int, rng: Any) -> State:
        x = [rng.uniform(0, 200, size), rng.normal(size=size), rng.integers(7, size=size)]
        return State(rng.uniform(0, 4, (size, 1)), np.column_stack(x))

    def sample_exogenous(self, exogenous: Any, rng: Any) -> Any:
        price, wind, day = np.moveaxis(exogenous, -1, 0)
        noise = rng.normal(size=exogenous.shape)
        price = np.clip(price - 5 * wind + noise[..., 0], 0, 200)
        return np.stack([price, 0.5 * wind + noise[..., 1], (day + 1) % 7], axis=-1)

    def sample_endogenous(self, state: State, action: Any, rng: Any) -> Any:
        return np.clip(state.endogenous + np.asarray(action)[..., None] - 1, 0, 4)

    def reward_terms(self, state: State, action: Any) -> Any:
        terms = np.zeros(state.exogenous.shape)
        terms[..., 0] = (1 - np.asarray(action)) * state.exogenous[..., 0]
        return terms


def price_table(rows: int) -> Any:
    """Recorded prices, wind and noise."""
    rng = np.random.default_rng(0)
    wind = rng.normal(size=rows).cumsum()
    price = rng.integers(6, size=rows)
    return {"price": price, "wind": wind, "noise": rng.integers(2, size=rows)}


def battery_on_record(table: Any, **settings: Any) -> TraceMDP:
    """A battery of five charges on recorded prices."""
    given = {
        "endogenous": [Variable("charge", 5)],
        "actions": [-1, 0, 1],
        "step": lambda n, a, x: np.clip(n.charge + a, 0, 4),
        "reward": lambda n, a, x: -x.price * (np.clip(n.charge + a, 0, 4) - n.charge),
        "horizon": 6,
    }
    return TraceMDP.from_frame(table, **(given | settings))
