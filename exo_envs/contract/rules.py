"""A model under test, and the rules of the contract, one function each: they refuse it, or return.

Exact rules hold or do not at every state that is looked at. Those about distributions are
statistical: a model that keeps them fails with at most a stated probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.answers import (
    DRAWN,
    METHODS,
    NotFiniteError,
    Question,
    are_distributions,
    by_name,
    check_answer,
    check_initial,
    check_successors,
)
from exo_envs.contract.checked_mdp import ask, checked
from exo_envs.core.errors import ContractError
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray, State, Successors
from exo_envs.core.statistics import find_difference, hoeffding_margin

_SUBSETS = 16  # random subsets of x tried in `terms`; each dependency is missed by (3/4)^16
_OTHER_CALLS = 8  # of every method, between two calls that should give the same
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}  # a batch may be added up in another order
_BATCH_STATES = 4  # states whose samples `batching` compares
_KEPT = 8  # lanes that stay as they are, at most
_COLUMNS = 4  # variables of n and of x whose least and greatest value other lanes are given
_SEEDS = 16  # batches that are drawn to look at their noise
_STATES = 4  # states that many lanes of a batch are in, to look at their noise
_DISTRIBUTION_STATES = 12  # states whose n' is drawn many times


def fail(rule: str, message: str) -> NoReturn:
    raise ContractError(rule, message)


@dataclass(frozen=True)
class Probe:
    """A model with the states and actions to try it on."""

    mdp: ExoMDP
    states: State  # (B, ...)
    actions: NDArray[np.int64]  # (B,)
    rng: np.random.Generator

    @classmethod
    def of(cls, mdp: ExoMDP, states: State, rng: np.random.Generator) -> Probe:
        return cls(mdp, states, rng.integers(mdp.num_actions, size=len(states.endogenous)), rng)

    def strict(self) -> Probe:
        """The same, each answer looked at: a model may break the form of some now and then."""
        return replace(self, mdp=checked(self.mdp))

    def at(self, index: Any) -> tuple[State, NDArray[np.int64]]:
        """Copies of some states and actions."""
        state = State(self.states.endogenous[index].copy(), self.states.exogenous[index].copy())
        return state, np.array(self.actions[index])

    def show(self, index: Any) -> str:
        (n, x), action = self.at(index)
        named_n = by_name(self.mdp.endogenous_variables, n, 24)
        named_x = by_name(self.mdp.exogenous_variables, x, 24)
        return f"at n: {named_n}; x: {named_x}; action {action}"

    def ask(self, method: str, index: Any, rng: np.random.Generator | None = None) -> Any:
        """What a method returns for some states and actions, as it is."""
        return ask(self.mdp, method, *self.at(index), self.rng if rng is None else rng)

    def drawn(self, method: str, seed: int) -> Any:
        """What a method returns for all of them, with the generator of a seed."""
        return self.ask(method, EVERYTHING, np.random.default_rng(seed))

    def answer(self, method: str, index: Any) -> Any:
        """What :meth:`ask` returns, if it keeps the rules ``shapes`` and ``reward``."""
        return asked(self.mdp, method, *self.at(index), self.rng)


#: Leading dimensions of the states that a model is asked about.
BATCH_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (2, 3))
EVERYTHING = slice(None)


@contextmanager
def rule(name: str, *, not_finite: str = "reward") -> Iterator[None]:
    """What :mod:`exo_envs.contract` refuses within breaks this rule, or the one about numbers."""
    try:
        yield
    except (TypeError, ValueError) as error:
        broken = not_finite if isinstance(error, NotFiniteError) else name
        raise ContractError(broken, str(error)) from None


def draw_initial(mdp: ExoMDP, size: int, rng: np.random.Generator) -> State:
    """Initial states of the right shape and kind."""
    state = mdp.sample_initial(size, rng)
    with rule("shapes"):
        check_initial(mdp, state, size)
    return state


def asked(mdp: ExoMDP, method: str, state: State, action: Any, rng: np.random.Generator) -> Any:
    """What a method returns, if it keeps the rules ``shapes`` and ``reward``."""
    answer = ask(mdp, method, state, action, rng)
    with rule("shapes"):
        check_answer(mdp, method, answer, Question.to(method, state, action))
    return answer


def collect_states(
    mdp: ExoMDP, num_states: int, any_state: bool, rng: np.random.Generator
) -> State:
    """States met by a random walk of the agent, and half of them uniform if asked for.

    Of a model whose x was recorded none are uniform: nobody knows what follows any other x.
    """
    lanes, any_state = 8, any_state and not mdp.is_recorded
    state = draw_initial(mdp, lanes, rng)
    walk = [state]
    for _ in range(min(mdp.horizon, -(-num_states // lanes))):
        action = rng.integers(mdp.num_actions, size=lanes)
        # As sample_next does, but each answer is looked at before anything is made of it.
        ended, x, n = (
            asked(mdp, method, state, action, rng)
            for method in ("is_terminal", "sample_exogenous", "sample_endogenous")
        )
        parts = zip(state, (n, x), strict=True)
        state = State(*(np.where(ended[:, None], old, new) for old, new in parts))
        walk.append(state)
    joined = (np.concatenate(part) for part in zip(*walk, strict=True))
    met = State(*map(np.ndarray.astype, joined, map(mdp.dtype_of, State._fields)))
    chosen = rng.permutation(len(met.endogenous))[: num_states // 2 if any_state else num_states]
    met = State(met.endogenous[chosen], met.exogenous[chosen])
    if not any_state:
        return met
    anywhere = mdp.sample_uniform(num_states - len(chosen), rng)
    return State(*(np.concatenate(part) for part in zip(met, anywhere, strict=True)))


# --- exact rules -----------------------------------------------------------------------------


def check_shapes(probe: Probe, batch_shapes: tuple[tuple[int, ...], ...], repeats: int) -> None:
    """Rule ``shapes`` for every other method, last with all states at once."""
    everything = np.arange(len(probe.actions))
    for batch_shape in (*batch_shapes, *[everything.shape] * repeats):
        index = probe.rng.integers(len(probe.actions), size=batch_shape)
        if batch_shape == everything.shape:
            index = everything
        for method in METHODS:
            try:
                answer = probe.ask(method, index)
            except Exception as error:
                _explain_dimensions(probe, method, index, error)
                raise
            with rule("shapes"):
                check_answer(probe.mdp, method, answer, Question.to(method, *probe.at(index)))


def _explain_dimensions(probe: Probe, method: str, index: Any, error: Exception) -> None:
    """Refuse a method that fails, if it is written for batches of one dimension only."""
    if np.ndim(index) == 1:
        return
    try:
        probe.ask(method, np.reshape(index, -1))
    except Exception:  # noqa: BLE001 - then it was not the shape
        return
    what = f"a batch of shape {np.shape(index)}" if np.ndim(index) else "a single state"
    raise ContractError(
        "shapes",
        f"{method} fails for {what}, with x of shape {probe.at(index)[0].exogenous.shape}: "
        f"{error}. States have any leading dimensions, or none: write x[..., 0], not x[:, 0], "
        "and sum over axis=-1, not axis=1",
    ) from error


def check_purity_and_determinism(probe: Probe) -> None:
    """Rules ``purity`` and ``determinism``."""
    seed = int(probe.rng.integers(2**31))
    first: dict[str, Any] = {}
    for name in METHODS:
        state, action = probe.at(EVERYTHING)
        result = ask(probe.mdp, name, state, action, np.random.default_rng(seed))
        for given, kept in zip((*state, action), (*probe.states, probe.actions), strict=True):
            changed = np.argwhere(given != kept)
            if len(changed):
                fail("purity", f"{name} writes to its arguments {probe.show(changed[0][0])}")
        first[name] = np.array(result)
        if isinstance(result, np.ndarray) and result.flags.writeable:
            result[...] = 0  # what a model returns is the caller's to overwrite
    names, batched = [*first], probe.mdp.is_batched
    _ask_other_things(probe, _OTHER_CALLS if batched else 0)
    for k in range(len(names)):  # each method once right after other questions
        _ask_other_things(probe, 1)
        for name in (names[k:] + names[:k]) * 2 if batched else names[k : k + 1]:
            _compare_again(probe, name, first[name], seed)


def _compare_again(probe: Probe, name: str, first: Any, seed: int) -> None:
    """Rule ``determinism``: a method gives what it gave before."""
    again = np.array(probe.drawn(name, seed))
    if again.shape != first.shape or again.dtype.kind not in "biuf":
        fail(
            "shapes",
            f"{name} does not always return numbers of the same shape: {again.dtype} of shape "
            f"{again.shape} instead of {first.shape}",
        )
    changed = np.argwhere(differs(first, again))
    if len(changed):
        fail(
            "determinism",
            f"{name} gives another result for the same seed {probe.show(changed[0][0])} "
            "(does it keep a generator, a state, an action or an array that it returned?)",
        )


def differs(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two answers differ; what is no number twice does not."""
    return np.asarray((one != other) & ~(np.isnan(one) & np.isnan(other)))


def _ask_other_things(probe: Probe, rounds: int) -> None:
    """Ask every method about other states and actions, in batches of the same shape.

    A model that remembers an action, or counts its calls, answers differently afterwards. One that
    answers one state at a time remembers the last of them; it is asked about that one only.
    """
    lanes = slice(None) if probe.mdp.is_batched else slice(-1, None)
    order = np.roll(np.arange(len(probe.actions)), -1)[lanes]
    rng = np.random.default_rng(0)
    for k in range(rounds):
        state, action = probe.at(order)[0], probe.at(lanes)[1]
        action = (action + 1 + k) % probe.mdp.num_actions
        for method in METHODS:
            ask(probe.mdp, method, state, action, rng)


def check_single_states(probe: Probe) -> None:
    """Rule ``batching`` for what is certain: a lane is what the state gives by itself."""
    for name in ("reward_terms", "endogenous_reward", "is_terminal"):
        together = probe.ask(name, EVERYTHING)
        alone = np.stack([probe.ask(name, lane) for lane in range(len(probe.actions))])
        differ = np.argwhere(~np.isclose(together, alone, **ROUNDING, equal_nan=True))
        if len(differ):
            fail("batching", f"{name} gives something else in a batch {probe.show(differ[0][0])}")


def check_scopes(probe: Probe) -> None:
    """Rule ``terms``: change some variables, and the terms that look at others stay."""
    mdp, (state, action) = probe.mdp, probe.at(EVERYTHING)
    terms = mdp.reward_terms(state, action)
    looks_at = np.zeros((len(mdp.reward_scopes), len(mdp.exogenous_variables)), dtype=np.bool_)
    for column, scope in enumerate(mdp.scope_indices):
        looks_at[column, list(scope)] = True
    for _ in range(_SUBSETS):
        other = state.exogenous[probe.rng.permutation(len(action))]
        kept = probe.rng.random(state.exogenous.shape) < 0.5
        mixed = State(state.endogenous, np.where(kept, state.exogenous, other))
        paid = mdp.reward_terms(mixed, action)
        changed = ~np.isclose(paid, terms, **ROUNDING, equal_nan=True)
        if changed.any():
            lanes, columns = np.nonzero(changed)
            wrong = np.flatnonzero((kept[lanes] | ~looks_at[columns]).all(axis=1))
            if len(wrong):
                lane, column = lanes[wrong[0]], columns[wrong[0]]
                _blame(probe, int(lane), int(column), mixed.exogenous[lane])


def _blame(probe: Probe, lane: int, column: int, other: IntArray) -> NoReturn:
    """Say which variable a term looks at that it should not, and what to do about it."""
    mdp, (state, action) = probe.mdp, probe.at(lane)
    term = mdp.reward_terms(state, action)[column]
    culprit, scope = "other exogenous variables", mdp.reward_scopes[column]
    for j in np.flatnonzero(other != state.exogenous):
        alone = state.exogenous.copy()
        alone[j] = other[j]
        paid = mdp.reward_terms(State(state.endogenous, alone), action)[column]
        if abs(paid - term) > ROUNDING["atol"] and mdp.exogenous_names[j] not in scope:
            culprit = repr(mdp.exogenous_names[j])
            break
    fail(
        "terms",
        f"the reward term of {' and '.join(map(repr, scope))} changes when only {culprit} changes, "
        f"{probe.show(lane)}. A term looks at the variables of its scope alone, by default at one. "
        "If some pay only together (price times load), give them a term of their own: "
        'reward_scopes = (("price", "load"), ...), a scope for each column of reward_terms',
    )


def check_finite(probe: Probe) -> None:
    """Rule ``reward``."""
    terms, fees, ended = (
        probe.answer(name, EVERYTHING)
        for name in ("reward_terms", "endogenous_reward", "is_terminal")
    )
    total = np.where(ended, 0.0, terms.sum(axis=-1) + fees)
    infinite = np.argwhere(~np.isfinite(total))
    if len(infinite):
        fail("reward", f"the reward is not finite {probe.show(infinite[0][0])}")


# --- lanes of a batch ------------------------------------------------------------------------


def check_neighbours(probe: Probe, num_samples: int, error_probability: float) -> None:
    """Rule ``batching``: lanes have the distribution that they have beside other lanes.

    A few lanes keep their states and actions, and all others are moved to one state. Under one
    seed those that are kept should stay as they are. A model whose noise depends on the state
    may do otherwise for good reasons, so only then ``num_samples`` of both are compared. A good
    model fails with at most ``error_probability``.
    """
    lanes = np.arange(len(probe.actions))
    order, few = probe.rng.permutation(len(lanes)), min(_KEPT, len(lanes) // 2)
    others = [
        (kept, _with_others(probe, np.delete(lanes, kept), place))
        for kept in (order[:few], order[few : 2 * few])  # so each lane is moved at least once
        for place in _extreme_lanes(probe)
    ]
    if not others:  # there is no variable
        return
    for method in DRAWN:
        seed = int(probe.rng.integers(2**31))
        drawn = probe.drawn(method, seed)
        changes = [(there.drawn(method, seed) != drawn)[kept] for kept, there in others]
        most = int(np.argmax([np.count_nonzero(changed) for changed in changes]))
        kept, there = others[most]
        places = np.argwhere(changes[most]).tolist()
        if not places:
            continue
        seeds = probe.rng.integers(2**31, size=(2, num_samples))
        first, second = (
            np.stack([batch.drawn(method, int(k))[kept] for k in own])  # (N, lanes, variables)
            for batch, own in zip((probe, there), seeds, strict=True)
        )
        share = error_probability / len(DRAWN) / len(places)
        for lane, column in places:
            found = find_difference(first[:, lane, column], second[:, lane, column], share)
            if found:
                variable = probe.mdp.ranges_of(DRAWN[method]).variables[column]
                fail(
                    "batching",
                    f"{method} looks at other lanes of the batch: {variable.name!r} is "
                    f"{found.value} in {found.first:.0%} of the samples {probe.show(kept[lane])}, "
                    f"but in {found.second:.0%} if other lanes are in another state",
                )


def _extreme_lanes(probe: Probe) -> list[int]:
    """Lanes whose states have the least and the greatest values of some variables."""
    found = set()
    for part in probe.states:
        for column in probe.rng.permutation(part.shape[-1])[:_COLUMNS]:
            found |= {int(part[:, column].argmin()), int(part[:, column].argmax())}
    return sorted(found)


def _with_others(probe: Probe, moved: IntArray, place: int) -> Probe:
    """The batch with some lanes in the state of one of them, all with its action."""
    state, action = probe.at(EVERYTHING)
    for values in (*state, action):
        values[moved] = values[place]
    return replace(probe, states=state, actions=action)


def shares_noise(probe: Probe) -> bool:
    """Whether lanes seem to be drawn with the same noise, or without that of the generator.

    Lanes of one state should not all be drawn alike while seeds differ, and not differ while all
    seeds give the same batch. This only says where a statistical test is worth its time.
    """
    seed, count = int(probe.rng.integers(2**31)), min(_STATES, len(probe.actions))
    same = np.arange(len(probe.actions)) % count
    for method in DRAWN:
        seeds = range(seed, seed + _SEEDS)
        drawn = np.stack([probe.ask(method, same, np.random.default_rng(k)) for k in seeds])
        for state in range(count):
            lanes = drawn[:, state::count]
            alike = (lanes == lanes[:, :1]).all(axis=(0, 1))
            fixed = (lanes == lanes[:1]).all(axis=(0, 1))
            if (alike != fixed).any():
                return True
    return False


def check_batching(probe: Probe, num_samples: int, error_probability: float) -> None:
    """A batch in which each of several states has N lanes against N calls of each alone."""
    mdp, rng = probe.mdp, probe.rng

    def comparisons() -> Iterator[tuple[str, str, State, State]]:
        singles = [draw_initial(mdp, 1, rng) for _ in range(num_samples)]
        apart = State(*(np.concatenate(part) for part in zip(*singles, strict=True)))
        yield "sample_initial", "", draw_initial(mdp, num_samples, rng), apart
        lanes = rng.integers(len(probe.actions), size=_BATCH_STATES)
        batch = _draw_next(probe, np.tile(lanes, num_samples))
        for k, lane in enumerate(lanes):
            singles = [_draw_next(probe, lane) for _ in range(num_samples)]
            apart = State(*(np.array(part) for part in zip(*singles, strict=True)))
            together = State(*(part[k::_BATCH_STATES] for part in batch))
            yield "sample_{part}", probe.show(lane), together, apart

    parts = {"endogenous": mdp.endogenous_variables, "exogenous": mdp.exogenous_variables}
    share = error_probability / ((1 + _BATCH_STATES) * max(1, sum(map(len, parts.values()))))
    for method, where, together, apart in comparisons():
        for part, variables in parts.items():
            for i, variable in enumerate(variables):
                found = find_difference(
                    getattr(together, part)[:, i], getattr(apart, part)[:, i], share
                )
                if found:
                    fail(
                        "batching",
                        f"{method.format(part=part)} has another distribution in a batch than one "
                        f"by one: {variable.name!r} is {found.value} in {found.first:.0%} against "
                        f"{found.second:.0%} of the samples {where} (do lanes share their "
                        "noise, or look at each other?)",
                    )


def _draw_next(probe: Probe, index: Any) -> State:
    """Both parts of the next state, also of a terminal one."""
    n, x = (probe.answer(method, index) for method in ("sample_endogenous", "sample_exogenous"))
    return State(n, x)


# --- probabilities of n' ---------------------------------------------------------------------


def gives_distribution(probe: Probe) -> bool:
    """Whether the model gives probabilities of n' at all."""
    return probe.mdp.endogenous_distribution(*probe.at(EVERYTHING)) is not None


def check_given(probe: Probe) -> Successors:
    """Shapes, kinds and sums; what is given at all states."""
    for shape in ((), (2, 3)):
        _ask_distribution(probe, probe.rng.integers(len(probe.actions), size=shape))
    return _ask_distribution(probe, np.arange(len(probe.actions)))


def check_distribution(probe: Probe, num_samples: int, error_probability: float) -> None:
    """Every n' that is drawn is among those given, and as often as is said."""
    everything = np.arange(len(probe.actions))
    found = check_given(probe)
    drawn = probe.ask("sample_endogenous", everything)
    for lane in everything:
        alone = _table(_ask_distribution(probe, lane))
        _frequencies(probe, lane, drawn[lane : lane + 1], alone)
        together = _table(Successors(found.endogenous[lane], found.probabilities[lane]))
        if alone.keys() != together.keys() or not np.allclose(
            [*alone.values()], [together[n] for n in alone], rtol=1e-9, atol=0.0
        ):
            fail(
                "distribution",
                f"endogenous_distribution gives something else in a batch {probe.show(lane)}",
            )
    share = error_probability / _DISTRIBUTION_STATES
    for lane in probe.rng.integers(len(probe.actions), size=_DISTRIBUTION_STATES):
        drawn = probe.ask("sample_endogenous", np.full(num_samples, lane))
        _compare_frequencies(probe, lane, drawn, share)


def _ask_distribution(probe: Probe, index: Any) -> Successors:
    """What the model gives, of the right shape and kind."""
    state, action = probe.at(index)
    found = probe.mdp.endogenous_distribution(state, action)
    method = "endogenous_distribution"
    if not isinstance(found, Successors):
        what = type(found).__name__
        fail(
            "distribution",
            f"{method} returns {what}; it should be Successors in all states, or None",
        )
    states, actions = probe.at(index)
    for given, kept in zip((*state, action), (*states, actions), strict=True):
        if not np.array_equal(given, kept):
            fail("purity", f"{method} writes to its arguments")
    with rule("shapes", not_finite="distribution"):
        check_successors(probe.mdp, found, Question(*state, action))
    if not are_distributions(found.probabilities):
        fail("distribution", f"the probabilities of {method} are negative or do not sum to 1")
    return found


def _table(found: Successors) -> dict[tuple[int, ...], float]:
    """The probability of each n' of one state; what was given in parts is added up."""
    table: dict[tuple[int, ...], float] = {}
    for n, probability in zip(found.endogenous.tolist(), found.probabilities, strict=True):
        if probability > 0:
            table[tuple(n)] = table.get(tuple(n), 0.0) + float(probability)
    return table


def _compare_frequencies(
    probe: Probe, lane: Any, drawn: IntArray, error_probability: float
) -> None:
    """Frequencies against probabilities.

    A third of the draws chooses the n' that are more frequent than they should be, the rest tests
    whether they are: by more than sqrt(log(1 / p) / (2 N)) with a probability of at most p
    (Hoeffding's inequality).
    """
    table, cut = _table(_ask_distribution(probe, lane)), len(drawn) // 3
    first, rest = (_frequencies(probe, lane, part, table) for part in (drawn[:cut], drawn[cut:]))
    said = np.array(list(table.values()))
    event = first > said
    excess = (rest - said)[event].sum()
    if excess > hoeffding_margin(error_probability, max(1, len(drawn) - cut)):
        most = int(np.abs(rest - said).argmax())
        fail(
            "distribution",
            f"n' = {list(table)[most]} has the probability {said[most]:.1%} by "
            f"endogenous_distribution, but {rest[most]:.1%} of the draws {probe.show(lane)}",
        )


def _frequencies(
    probe: Probe, lane: Any, drawn: IntArray, table: dict[tuple[int, ...], float]
) -> FloatArray:
    """How often each n' of a table was drawn; one that is not there is refused."""
    place = {n: k for k, n in enumerate(table)}
    for n in drawn.tolist():
        if tuple(n) not in place:
            fail(
                "distribution",
                f"sample_endogenous gives n' = {n}, to which endogenous_distribution gives no "
                f"probability, {probe.show(lane)}",
            )
    codes = [place[tuple(n)] for n in drawn.tolist()]
    return np.bincount(codes, minlength=len(place)) / max(1, len(codes))
