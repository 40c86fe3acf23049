"""The contract of :class:`ExoMDP` as a check that users run on their own models.

>>> import numpy as np
>>> from exo_envs.grid import GridMDP
>>> check_mdp(GridMDP(), rng=np.random.default_rng(0))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exo_envs.adapter import AdaptedMDP
from exo_envs.mdp import ExoMDP, IntArray, State, Variable

_BATCH_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (2, 3))
_SUBSETS = 16  # random subsets of x tried in `terms`; each dependency is missed by (3/4)^16
_STATES_COMPARED = 3  # states whose samples are compared in the statistical rules


class ContractError(AssertionError):
    """A model broke a rule of the contract; ``rule`` names it."""

    def __init__(self, rule: str, message: str) -> None:
        """Name the rule and say what was seen."""
        super().__init__(f"rule {rule!r} is broken: {message}")
        self.rule = rule


def check_mdp(
    mdp: ExoMDP,
    *,
    rng: np.random.Generator | int | None = None,
    num_states: int = 64,
    num_samples: int = 300,
    error_probability: float = 1e-6,
    any_state: bool | None = None,
) -> None:
    """Check that ``mdp`` keeps the contract of :class:`ExoMDP`.

    The rules, in the order they are checked:

    - ``declaration``: variables, actions, discount and horizon make sense.
    - ``shapes``: every method takes any leading dimensions and returns arrays of the right shape,
      kind and range.
    - ``purity``: arguments are not written to, and what is returned is the caller's to write to.
    - ``determinism``: the same seed gives the same result, whatever was called in between.
    - ``terms``: reward term i depends on no x^j but x^i.
    - ``reward``: the reward is finite and the sum of its terms; for an adapted environment, what
      the environment itself pays.
    - ``terminal``: terminal states are absorbing and pay nothing.
    - ``batching``: a batch has the distribution of as many single calls (a statistical test).
    - ``exogeneity``: x' depends neither on n nor on the action (adapted environments only, by a
      statistical test: any other model cannot break it).

    A model that keeps the contract fails a statistical rule with at most ``error_probability``
    in all (Hoeffding's inequality, divided among all comparisons).

    Args:
        mdp: the model.
        rng: a generator or a seed; by default the same one each time.
        num_states: how many states the exact rules look at.
        num_samples: how many samples of each state the statistical rules compare.
        error_probability: of a statistical rule failing by chance.
        any_state: whether to include states drawn uniformly from the whole space, reachable or
            not; by default yes, except for adapted environments.

    Raises:
        ContractError: names the rule and shows the state that breaks it.
    """
    rng = np.random.default_rng(0 if rng is None else rng)
    _check_declaration(mdp)
    _check_initial(mdp, rng)
    if any_state is None:
        any_state = not isinstance(mdp, AdaptedMDP)
    _check_shapes(_Probe.of(mdp, mdp.sample_initial(8, rng), rng))  # before walking on from them
    probe = _Probe.of(mdp, _collect_states(mdp, num_states, any_state, rng), rng)
    _check_shapes(probe)
    _check_purity_and_determinism(probe)
    _check_terms(probe)
    _check_reward(probe)
    _check_terminal(probe)
    budget = error_probability / (2 if isinstance(mdp, AdaptedMDP) else 1)
    _check_batching(probe, num_samples, budget)
    if isinstance(mdp, AdaptedMDP):
        _check_exogeneity(probe, mdp, num_samples, budget)


@dataclass(frozen=True)
class _Probe:
    """A model with the states and actions to try it on."""

    mdp: ExoMDP
    states: State  # (B, ...)
    actions: NDArray[np.int64]  # (B,)
    rng: np.random.Generator

    @classmethod
    def of(cls, mdp: ExoMDP, states: State, rng: np.random.Generator) -> _Probe:
        """The states, each with a random action."""
        return cls(mdp, states, rng.integers(mdp.num_actions, size=len(states.endogenous)), rng)

    def at(self, index: Any) -> tuple[State, NDArray[np.int64]]:
        """Copies of some states and actions."""
        state = State(self.states.endogenous[index].copy(), self.states.exogenous[index].copy())
        return state, np.array(self.actions[index])

    def show(self, index: Any) -> str:
        """Some state and action, by name."""
        state, action = self.at(index)
        parts = []
        for variables, values in zip(
            (self.mdp.endogenous_variables, self.mdp.exogenous_variables), state, strict=True
        ):
            shown = [f"{v.name}={x}" for v, x in zip(variables, values, strict=True)]
            parts.append(", ".join(shown[:24]) + (", ..." if len(shown) > 24 else ""))
        return f"at n: {parts[0]}; x: {parts[1]}; action {action}"

    def calls(self) -> dict[str, Callable[[State, Any, np.random.Generator], Any]]:
        """Every method of the model, called alike."""
        mdp = self.mdp
        return {
            "sample_exogenous": lambda s, a, rng: mdp.sample_exogenous(s.exogenous, rng),
            "sample_endogenous": mdp.sample_endogenous,
            "reward_terms": lambda s, a, rng: mdp.reward_terms(s, a),
            "endogenous_reward": lambda s, a, rng: mdp.endogenous_reward(s.endogenous, a),
            "is_terminal": lambda s, a, rng: mdp.is_terminal(s),
        }


def _fail(rule: str, message: str) -> NoReturn:
    raise ContractError(rule, message)


def _check_declaration(mdp: ExoMDP) -> None:
    rule = "declaration"
    if not isinstance(mdp, ExoMDP):
        raise TypeError(f"check_mdp takes an ExoMDP, not {type(mdp).__name__}")
    for attribute in ("endogenous_variables", "exogenous_variables"):
        variables = getattr(mdp, attribute, None)
        if not isinstance(variables, tuple) or not all(isinstance(v, Variable) for v in variables):
            _fail(rule, f"{attribute} should be a tuple of Variable, not {variables!r}")
    names = [v.name for v in mdp.endogenous_variables + mdp.exogenous_variables]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        _fail(rule, f"two variables are called {twice!r}")
    for attribute, valid, wanted in (
        ("num_actions", _is_count, "a whole number, at least 1"),
        ("horizon", _is_count, "a whole number, at least 1"),
        ("discount", lambda x: isinstance(x, (int, float)) and 0 < x <= 1, "in (0, 1]"),
    ):
        value = getattr(mdp, attribute, None)
        if not valid(value):
            _fail(rule, f"{attribute} should be {wanted}, not {value!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def _check_initial(mdp: ExoMDP, rng: np.random.Generator) -> None:
    for size in (1, 5):
        state = mdp.sample_initial(size, rng)
        if not isinstance(state, State):
            _fail("shapes", f"sample_initial returns {type(state).__name__}, not State")
        _check_values("sample_initial", mdp, state.endogenous, (size,), endogenous=True)
        _check_values("sample_initial", mdp, state.exogenous, (size,), endogenous=False)


def _check_values(
    method: str, mdp: ExoMDP, values: Any, batch_shape: tuple[int, ...], *, endogenous: bool
) -> None:
    """Integers of the right shape, each in the range of its variable."""
    variables = mdp.endogenous_variables if endogenous else mdp.exogenous_variables
    _check_array(method, values, (*batch_shape, len(variables)), "iu", "whole numbers")
    wrong = (values < 0) | (values >= np.array([v.size for v in variables], dtype=np.int64))
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        variable = variables[where[-1]]
        _fail(
            "shapes",
            f"{method} gives {variable.name!r} the value {values[where]}; "
            f"its values are 0 ... {variable.size - 1}",
        )


def _check_array(method: str, array: Any, shape: tuple[int, ...], kinds: str, what: str) -> None:
    # A NumPy scalar is what most operations make of an array without dimensions.
    if not isinstance(array, (np.ndarray, np.generic)):
        _fail("shapes", f"{method} returns {type(array).__name__}, not an array")
    if array.dtype.kind not in kinds:
        _fail("shapes", f"{method} returns an array of {array.dtype}; it should hold {what}")
    if array.shape != shape:
        _fail("shapes", f"{method} returns shape {array.shape}; it should be {shape}")


def _collect_states(
    mdp: ExoMDP, num_states: int, any_state: bool, rng: np.random.Generator
) -> State:
    """States met by a random walk of the agent, and half of them uniform if asked for."""
    lanes = 8
    state = mdp.sample_initial(lanes, rng)
    walk = [state]
    for _ in range(min(mdp.horizon, -(-num_states // lanes))):
        state = mdp.sample_next(state, rng.integers(mdp.num_actions, size=lanes), rng)
        walk.append(state)
    met = State(*(np.concatenate(part).astype(np.int64) for part in zip(*walk, strict=True)))
    chosen = rng.permutation(len(met.endogenous))[: num_states // 2 if any_state else num_states]
    met = State(met.endogenous[chosen], met.exogenous[chosen])
    if not any_state:
        return met
    anywhere = mdp.sample_uniform(num_states - len(chosen), rng)
    return State(*(np.concatenate(part) for part in zip(met, anywhere, strict=True)))


def _check_shapes(probe: _Probe) -> None:
    mdp = probe.mdp
    for batch_shape in _BATCH_SHAPES:
        index = probe.rng.integers(len(probe.actions), size=batch_shape)
        state, action = probe.at(index)
        results = {name: call(state, action, probe.rng) for name, call in probe.calls().items()}
        terms_shape = (*batch_shape, len(mdp.exogenous_variables))
        for part in ("endogenous", "exogenous"):
            method = f"sample_{part}"
            _check_values(
                method, mdp, results[method], batch_shape, endogenous=part == "endogenous"
            )
        _check_array("reward_terms", results["reward_terms"], terms_shape, "f", "floats")
        _check_array("endogenous_reward", results["endogenous_reward"], batch_shape, "f", "floats")
        _check_array("is_terminal", results["is_terminal"], batch_shape, "b", "booleans")


def _check_purity_and_determinism(probe: _Probe) -> None:
    everything = slice(None)
    seed = int(probe.rng.integers(2**31))
    first: dict[str, Any] = {}
    for name, call in probe.calls().items():
        state, action = probe.at(everything)
        result = call(state, action, np.random.default_rng(seed))
        for given, kept in zip((*state, action), (*probe.states, probe.actions), strict=True):
            changed = np.argwhere(given != kept)
            if len(changed):
                _fail("purity", f"{name} writes to its arguments {probe.show(changed[0][0])}")
        first[name] = np.array(result)
        if isinstance(result, np.ndarray) and result.flags.writeable:
            result[...] = 0  # what a model returns is the caller's to overwrite
    for name, call in reversed(probe.calls().items()):
        state, action = probe.at(everything)
        again = np.array(call(state, action, np.random.default_rng(seed)))
        changed = np.argwhere(again != first[name])
        if len(changed):
            _fail(
                "determinism",
                f"{name} gives another result for the same seed {probe.show(changed[0][0])} "
                "(does it keep a generator, a state or an array that it returned?)",
            )


def _check_terms(probe: _Probe) -> None:
    state, action = probe.at(slice(None))
    terms = probe.mdp.reward_terms(state, action)
    for _ in range(_SUBSETS):
        other = state.exogenous[probe.rng.permutation(len(action))]
        kept = probe.rng.random(state.exogenous.shape) < 0.5
        mixed = State(state.endogenous, np.where(kept, state.exogenous, other))
        wrong = np.argwhere(kept & (probe.mdp.reward_terms(mixed, action) != terms))
        if len(wrong):
            lane, i = wrong[0]
            _fail(
                "terms",
                f"the reward term of {probe.mdp.exogenous_names[i]!r} changes when only other "
                f"exogenous variables do, {probe.show(lane)}",
            )


def _check_reward(probe: _Probe) -> None:
    mdp, (state, action) = probe.mdp, probe.at(slice(None))
    total = mdp.reward_terms(state, action).sum(axis=-1)
    total = total + mdp.endogenous_reward(state.endogenous, action)
    total = np.where(mdp.is_terminal(state), 0.0, total)
    infinite = np.argwhere(~np.isfinite(total))
    if len(infinite):
        _fail("reward", f"the reward is not finite {probe.show(infinite[0][0])}")
    rewards = {"reward() gives": mdp.reward(state, action)}
    if isinstance(mdp, AdaptedMDP):
        rewards["the environment pays"] = mdp.observed_step(state, action, probe.rng)[1]
    for source, reward in rewards.items():
        wrong = np.argwhere(~np.isclose(reward, total, rtol=1e-9, atol=1e-9))
        if len(wrong):
            lane = wrong[0][0]
            _fail(
                "reward",
                f"{source} {reward[lane]:g} but the terms add up to {total[lane]:g} "
                f"{probe.show(lane)}",
            )


def _check_terminal(probe: _Probe) -> None:
    mdp, (state, action) = probe.mdp, probe.at(slice(None))
    ended = np.flatnonzero(mdp.is_terminal(state))
    if not len(ended):
        return
    state, action = probe.at(ended)
    following = mdp.sample_next(state, action, probe.rng)
    moved = (following.endogenous != state.endogenous).any(axis=-1) | (
        following.exogenous != state.exogenous
    ).any(axis=-1)
    paid = mdp.reward(state, action) != 0
    for wrong, what in ((moved, "moves on"), (paid, "pays")):
        if wrong.any():
            _fail("terminal", f"a terminal state {what} {probe.show(ended[wrong.argmax()])}")


def _check_batching(probe: _Probe, num_samples: int, error_probability: float) -> None:
    """A batch of N identical states against N calls without a batch."""
    mdp, rng = probe.mdp, probe.rng

    def comparisons() -> Iterator[tuple[str, str, Any, Any, bool]]:
        singles = [mdp.sample_initial(1, rng) for _ in range(num_samples)]
        batch = mdp.sample_initial(num_samples, rng)
        for part, endogenous in (("endogenous", True), ("exogenous", False)):
            one_by_one = np.concatenate([getattr(single, part) for single in singles])
            yield "sample_initial", "", getattr(batch, part), one_by_one, endogenous
        calls = probe.calls()
        for lane in rng.integers(len(probe.actions), size=_STATES_COMPARED):
            state, action = probe.at(lane)
            batch_state, batch_action = probe.at(np.full(num_samples, lane))
            for name, endogenous in (("sample_endogenous", True), ("sample_exogenous", False)):
                together = calls[name](batch_state, batch_action, rng)
                apart = np.array([calls[name](state, action, rng) for _ in range(num_samples)])
                yield name, probe.show(lane), together, apart, endogenous

    share = error_probability / (2 * (1 + _STATES_COMPARED))
    for method, where, together, apart, endogenous in comparisons():
        variables = mdp.endogenous_variables if endogenous else mdp.exogenous_variables
        found = _distributions_differ(together, apart, variables, share)
        if found:
            _fail(
                "batching",
                f"{method} has another distribution in a batch than one by one: {found} {where} "
                "(do the lanes share their noise?)",
            )


def _check_exogeneity(
    probe: _Probe, mdp: AdaptedMDP, num_samples: int, error_probability: float
) -> None:
    """X' from the environment's own steps, with one x but two different n and actions."""
    num_lanes = len(probe.actions)
    alive = np.flatnonzero(~mdp.is_terminal(probe.states))
    pairs = 4 * _STATES_COMPARED
    for _ in range(pairs):
        lane, other = probe.rng.choice(alive, size=2) if len(alive) else (0, num_lanes - 1)
        state, _ = probe.at(np.full(num_samples, lane))
        elsewhere, _ = probe.at(np.full(num_samples, other))
        actions = probe.rng.integers(mdp.num_actions, size=2)
        samples = [
            mdp.observed_step(State(n, state.exogenous), np.full(num_samples, action), probe.rng)[
                0
            ].exogenous
            for n, action in zip((state.endogenous, elsewhere.endogenous), actions, strict=True)
        ]
        found = _distributions_differ(
            samples[0], samples[1], mdp.exogenous_variables, error_probability / pairs
        )
        if found:
            _fail(
                "exogeneity",
                f"with the same x, {found} under action {actions[0]} {probe.show(lane)} than "
                f"under action {actions[1]} with n = {elsewhere.endogenous[0].tolist()}",
            )


def _distributions_differ(
    first: IntArray, second: IntArray, variables: tuple[Variable, ...], error_probability: float
) -> str | None:
    """Compare the frequency of each value of each variable in two samples, (N, v) and (M, v).

    By Hoeffding's inequality two frequencies of the same probability differ by more than
    sqrt(log(2 / p) / 2 * (1 / N + 1 / M)) with a probability of at most p.
    """
    comparisons = sum(int(v.size) for v in variables)
    if not comparisons:
        return None
    spread = 1 / len(first) + 1 / len(second)
    bound = math.sqrt(math.log(2 * comparisons / error_probability) / 2 * spread)
    for i, variable in enumerate(variables):
        counts = [
            np.bincount(sample[:, i], minlength=variable.size) / len(sample)
            for sample in (first, second)
        ]
        value = int(np.abs(counts[0] - counts[1]).argmax())
        if abs(counts[0][value] - counts[1][value]) > bound:
            return (
                f"{variable.name!r} is {value} in {counts[0][value]:.0%} against "
                f"{counts[1][value]:.0%} of the samples"
            )
    return None
