"""Rules about distributions. A model that keeps them fails with at most a stated probability."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from exo_envs.contract.comparison import find_difference
from exo_envs.contract.form import check_answer, draw_initial
from exo_envs.contract.probe import Probe, fail
from exo_envs.core.mdp import State

_BATCH_STATES = 4  # states whose samples `batching` compares


def check_batching(probe: Probe, num_samples: int, error_probability: float) -> None:
    """A batch in which each of several states has N lanes against N calls of each alone."""
    mdp, rng = probe.mdp, probe.rng

    def comparisons() -> Iterator[tuple[str, str, State, State]]:
        singles = [draw_initial(mdp, 1, rng) for _ in range(num_samples)]
        apart = State(*(np.concatenate(part) for part in zip(*singles, strict=True)))
        yield "sample_initial", "", draw_initial(mdp, num_samples, rng), apart
        lanes = rng.integers(len(probe.actions), size=_BATCH_STATES)
        batch = _draw(probe, *probe.at(np.tile(lanes, num_samples)))
        for k, lane in enumerate(lanes):
            singles = [_draw(probe, *probe.at(lane)) for _ in range(num_samples)]
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


def _draw(probe: Probe, state: State, action: Any) -> State:
    """Both parts of the next state, also of a terminal one."""
    mdp = probe.mdp
    n = mdp.sample_endogenous(state, action, probe.rng)
    check_answer(mdp, "sample_endogenous", n, state, action)
    x = mdp.sample_exogenous(state.exogenous, probe.rng)
    check_answer(mdp, "sample_exogenous", x, state, action)
    return State(n, x)
