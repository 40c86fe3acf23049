"""A second opinion on who predicts whom: bins against nearest neighbours.

Tests with bins (:class:`~planners.dependence.ParentSearch`) have a hundred thousand transitions,
and cannot see what differs within a bin. Nearest neighbours
(:mod:`planners.dependence.nearest_neighbours`) see values as they are, in far fewer samples. Where
both say the same, bins were fine enough.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import as_generator, check_lanes, check_level
from exo_envs.core.errors import ArgumentError
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP
from planners.dependence.interventions import actors_of
from planners.dependence.nearest_neighbours import neighbour_information, neighbour_test
from planners.dependence.parents import ParentSearch
from planners.discretization.coarse import Bins
from planners.samples.rollouts import ExogenousData

#: Permutations at least.
MIN_PERMUTATIONS = 200
#: Independent transitions by default.
NUM_SAMPLES = 1000

Verdict = Literal["agree", "only in bins", "only by neighbours"]


@dataclass(frozen=True)
class CheckedEdge:
    """What bins and neighbours say about one variable that may predict another one.

    Attributes:
        parent: the variable that may predict.
        target: the variable whose next value may be predicted.
        found: whether the search in bins took it for a parent.
        binned: information in nats by counting bins, given the other parents, less its bias.
        neighbours: the same by nearest neighbours.
        p_value: of the neighbours' test.
        verdict: "agree", "only in bins" or "only by neighbours".
    """

    parent: str
    target: str
    found: bool
    binned: float
    neighbours: float
    p_value: float
    verdict: Verdict


@dataclass(frozen=True)
class CrossCheck:
    """All pairs that were looked at."""

    edges: tuple[CheckedEdge, ...]

    @cached_property
    def disagreements(self) -> tuple[CheckedEdge, ...]:
        """Where bins and neighbours differ."""
        return tuple(edge for edge in self.edges if edge.verdict != "agree")

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with a row for each pair (needs pandas)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pd.DataFrame([asdict(edge) for edge in self.edges])


def cross_check(
    mdp: ExoMDP,
    mask: Any,
    *,
    parents: Mapping[str, Collection[str]] | None = None,
    candidates: Any = None,
    data: ExogenousData | None = None,
    num_samples: int = NUM_SAMPLES,
    level: float = 0.05,
    rng: np.random.Generator | int | None = None,
) -> CrossCheck:
    """Look for the parents of some variables again, by nearest neighbours.

    A pair is looked at if one of the two is seen in bins. What the search in bins found is tested
    given the other parents, at ``level``: "only in bins" may be a parent too weak for so few
    samples, or one that stands in for what bins hide. Everything else is tested given all parents,
    at ``level`` divided by the number of candidates: where the parents are all there is, a variable
    is found "only by neighbours" with at most this probability for each target. Two variables that
    act only together are not seen by neighbours either, unless one of them was found.

    Args:
        mdp: the model. Its trajectories have to be independent of each other; those of a record
            overlap, so that p-values are too small there.
        mask: the variables whose parents are looked at; see :func:`exo_envs.core.masks.as_mask`.
        parents: name -> its parents, for all of the mask, as ``study.parents(mask)`` has them; by
            default they are searched in ``data``.
        candidates: what may be a parent, as a mask; by default all variables.
        data: rollouts, in bins; by default they are collected.
        num_samples: transitions, each from a trajectory of its own.
        level: of the tests.
        rng: a seed or a generator; by default seed 0.

    Raises:
        ImportError: SciPy is not installed.
    """
    rng = as_generator("rng", rng, default=0)
    level = check_level("level", level)
    targets = as_mask(mdp, mask)
    among = mdp.exogenous_names if candidates is None else as_mask(mdp, candidates)
    num_samples = check_lanes("num_samples", num_samples, len(mdp.exogenous_names), 50)
    data = ExogenousData.collect(mdp, rng=rng) if data is None else data
    search = ParentSearch(data, level=level / max(1, len(data.names)))
    known = _search(mdp, search, targets) if parents is None else _given(targets, parents)
    before, after = _transitions(mdp, num_samples, rng)
    checker = _Checker(search, before, after, level, rng)
    edges = [edge for target in targets for edge in checker.edges(target, known[target], among)]
    return CrossCheck(tuple(edges))


def _search(
    mdp: ExoMDP, search: ParentSearch, targets: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """What the search in bins finds, with all variables as candidates."""
    data = search.data
    places = data.positions(targets).tolist()
    acting = [{} for _ in places] if mdp.is_recorded else actors_of(mdp, data, places)
    everything = range(len(data.names))
    return {
        target: tuple(data.names[j] for j in search.parents(i, everything, suspects))
        for target, i, suspects in zip(targets, places, acting, strict=True)
    }


def _given(
    targets: tuple[str, ...], parents: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    for target in targets:
        if target not in parents:
            raise ArgumentError(f"parents says nothing about {target!r}, which the mask has")
    return {target: tuple(parents[target]) for target in targets}


def _transitions(
    mdp: ExoMDP, size: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values of x and of x', shape (size, m) each: one transition of each trajectory, any step."""
    mdp = checked(mdp)
    step = rng.integers(mdp.horizon, size=size)
    state, following = mdp.trajectories(size, int(step.max()) + 1, rng)
    x = np.asarray(state.exogenous)
    before, after = x.copy(), x.copy()
    for t, x_next in enumerate(following):
        here = step == t
        before[here], after[here] = x[here], x_next[here]
        x = x_next
    return before, after


class _Checker:
    """Compares what bins and neighbours say about single pairs."""

    def __init__(
        self,
        search: ParentSearch,
        before: NDArray[Any],
        after: NDArray[Any],
        level: float,
        rng: np.random.Generator,
    ) -> None:
        self.search = search
        self.before = before
        self.after = after
        self.level = level
        self.rng = rng
        self.binned = {own.name for own in search.data.bins if isinstance(own, Bins)}

    def edges(
        self, target: str, parents: tuple[str, ...], among: tuple[str, ...]
    ) -> list[CheckedEdge]:
        """Everything that may predict one target."""
        data = self.search.data
        (i,), given = data.positions([target]).tolist(), data.positions(parents).tolist()
        looked_at = [
            j
            for j in data.positions([*parents, *(n for n in among if n not in parents)]).tolist()
            if not self.binned.isdisjoint((target, data.names[j]))
        ]
        number = len([j for j in looked_at if j not in given])
        return [self._edge(i, j, given, number) for j in looked_at]

    def _edge(self, i: int, j: int, parents: list[int], number: int) -> CheckedEdge:
        found = j in parents
        others = [k for k in parents if k != j]
        level = self.level if found else self.level / max(1, number)
        z = self.before[:, others] if others else None
        x, y = self.before[:, j], self.after[:, i]
        most = max(MIN_PERMUTATIONS, math.ceil(1.0 / level))
        p_value = neighbour_test(x, y, z, num_permutations=most, rng=self.rng).p_value
        counts = self.search.all.information(i, others, j)
        verdict: Verdict = "agree"
        if found != (p_value <= level):
            verdict = "only in bins" if found else "only by neighbours"
        return CheckedEdge(
            parent=self.search.data.names[j],
            target=self.search.data.names[i],
            found=found,
            binned=max(0.0, counts.statistic - counts.freedom) / (2.0 * self.search.all.count),
            neighbours=neighbour_information(x, y, z, rng=self.rng),
            p_value=p_value,
            verdict=verdict,
        )
