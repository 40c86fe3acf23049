"""Models' methods called directly, with states, actions and sizes that are not theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from exo_envs import ExoMDP, State, Successors, TraceMDP
from exo_envs.contract.checked_mdp import CountedMDP
from planners import ReducedMDP
from planners.discretization.coarse import CoarseMDP
from planners.reduced.reduced_mdp import SimulatedReducedMDP, TabulatedReducedMDP
from reliability import subjects
from reliability.odd import Odd, Wrong
from reliability.registry import Attempt, entry
from reliability.user_models import Battery, Market

SHAPES = ((), (1,), (3,), (2, 2), (0,))


def try_methods(odd: Odd, mdp: Any) -> None:
    """One method of a model with sound arguments, of which one may be damaged."""
    rng = np.random.default_rng(odd.below(100))
    method = odd.pick(
        (
            *("sample_exogenous", "sample_endogenous", "reward_terms", "endogenous_reward") * 2,
            *("is_terminal", "endogenous_distribution", "reward", "sample_next", "transition") * 2,
            *("sample_initial", "sample_uniform", "exogenous_indices", "sizes"),
        )
    )
    if method in ("sample_initial", "sample_uniform"):
        size = odd.sound_or(3)
        if isinstance(size, (int, np.integer)) and size > 10**6:
            size = 5  # asks for that much memory, and gets it
        _check(mdp, odd.call(getattr(mdp, method), size, rng))
    elif method == "exogenous_indices":
        odd.call(mdp.exogenous_indices, odd.pick((mdp.exogenous_names, ("x",), 3, None, [3], "x")))
    elif method == "sizes":
        odd.must_work(lambda: (mdp.num_states, mdp.endogenous_sizes))
        odd.must_work(lambda: (mdp.compiled_step(), mdp.compiled_exogenous()))
    else:
        _try_on_states(odd, mdp, method, rng)


def _try_on_states(odd: Odd, mdp: Any, method: str, rng: np.random.Generator) -> None:
    shape = odd.pick(SHAPES)
    n, x = subjects.sound_state(mdp, shape, rng)
    parts = {"n": n, "x": x, "a": rng.integers(mdp.num_actions, size=shape)}
    sizes = {"n": mdp.endogenous_sizes, "x": mdp.exogenous_sizes, "a": mdp.num_actions}
    given: dict[str, Any] = dict(parts)
    which = odd.pick(("n", "x", "a", None))
    if which:
        given[which] = odd.damaged(parts[which], sizes[which])
    state = State(given["n"], given["x"])
    if which is None and odd.chance(0.1):
        state, which = odd.anything(), "state"
    arguments = {
        "sample_exogenous": (given["x"], rng),
        "sample_endogenous": (state, given["a"], rng),
        "sample_next": (state, given["a"], rng),
        "transition": (state, given["a"], rng),
        "endogenous_reward": (given["n"], given["a"]),
        "is_terminal": (state,),
    }.get(method, (state, given["a"]))
    call = odd.call if which else odd.must_work
    _check(mdp, call(getattr(mdp, method), *arguments), state)
    if isinstance(mdp, CoarseMDP) and which is None:
        columns = np.arange(x.shape[-1])
        odd.must_work(lambda: mdp.refine_some(x, columns, rng))


def _check(mdp: ExoMDP, answer: Any, given: Any = (None, None)) -> None:
    """Whatever a model was given, what it answers is in range: else it has left its arrays.

    A state that is terminal stays as it was given.
    """
    if isinstance(mdp, (CountedMDP, Market, Battery, TraceMDP)):
        return  # that is the user's affair
    if isinstance(answer, State):
        ranges_of = mdp.endogenous_ranges, mdp.exogenous_ranges
        parts = list(zip(answer, ranges_of, given, strict=True))
        if isinstance(mdp, CoarseMDP):
            parts = parts[1:]  # n is passed on to the user's model, and comes from it
        for part, ranges, before in parts:
            values = np.asarray(part)
            wrong = ~((values >= ranges.low) & (values <= ranges.high))
            if np.shape(before) == values.shape:
                wrong &= values != before
            if wrong.any():
                raise Wrong("answers with values out of range")
    elif isinstance(answer, Successors):
        values = np.asarray(answer.probabilities)
        if values.size and not ((values >= 0) & (values <= 1 + 1e-9)).all():
            raise Wrong("answers with what is no probability")


def _entry(name: str) -> Attempt:
    def run(odd: Odd) -> None:
        try_methods(odd, subjects.model(name))

    return entry(f"models/{name}")(run)


for _name in subjects.MODELS:
    if _name not in ("ferry", "wide", "broad", "battery"):  # what they add is the user's own
        _entry(_name)


@entry("models/reduced", weight=0.5)
def try_reduced(odd: Odd) -> None:
    """What only reduced models have."""
    mdp = subjects.model(odd.pick(("tabulated", "blind", "simulated")))
    kind = odd.below(4)
    if kind == 0:
        odd.must_work(mdp.describe)
        odd.must_work(lambda: (mdp.parents, mdp.log_loss, mdp.marginal_log_loss, mdp.arguments()))
    elif kind == 1 and isinstance(mdp, TabulatedReducedMDP):
        odd.call(mdp.part, odd.pick(((), mdp.mask, ("x",), mdp.mask[:1], "guard", None)))
    elif kind == 2 and isinstance(mdp, TabulatedReducedMDP):
        n = subjects.sound_state(mdp, (3,), odd.rng).endogenous
        odd.call(mdp.endogenous_index, odd.damaged(n, mdp.endogenous_sizes))
    else:
        cls = odd.pick((ReducedMDP, SimulatedReducedMDP, TabulatedReducedMDP))
        odd.call(
            cls, **{name: odd.anything() for name in ("model", "survey", "tables")[: odd.below(4)]}
        )


@entry("models/adapted-own", weight=0.5)
def try_adapted(odd: Odd) -> None:
    """What only adapted environments have."""
    mdp = subjects.model("adapted")
    sizes = {"endogenous": [4], "exogenous": [3, 2]}
    observation: Any = {part: odd.rng.integers(size) for part, size in sizes.items()}
    sound = odd.chance(0.2)
    if not sound:
        part = odd.pick(sorted(sizes))
        observation[part] = odd.damaged(observation[part], sizes[part])
        observation = observation if odd.chance(0.8) else odd.anything()
    call = odd.must_work if sound else odd.call
    _check(mdp, call(mdp.state_of, observation))


@entry("models/synthetic-own", weight=0.5)
def try_synthetic(odd: Odd) -> None:
    """What only planted problems have."""
    mdp = subjects.model(odd.pick(("synthetic", "planted")))
    names = mdp.exogenous_names
    method = odd.pick(("closure", "node", "table", "endogenous_outcomes", "decode"))
    if method == "closure":
        odd.call(mdp.closure, odd.pick((names, names[:2], ("x",), "x", 3, None, [0], [None])))
    elif method in ("node", "table"):
        odd.call(getattr(mdp, method), odd.pick((names[0], "x", "", 3, None, [], names)))
    elif method == "decode":
        crowd = subjects.model("crowd")
        odd.call(crowd.decode_object, odd.pick((odd.array((3,)), 3, [1, 2], None, "x")))
    else:
        _try_on_states(odd, mdp, "endogenous_outcomes", odd.rng)
