"""A second opinion on who predicts whom: bins against nearest neighbours.

Tests with bins (:class:`~planners.dependence.parents.ParentSearch`) have a hundred thousand
transitions, and cannot see what differs within a bin. Nearest neighbours see values as they are, in
far fewer samples. Where both say the same, bins were fine enough.

Where two variables have to do with each other, the k nearest neighbours of a sample in both are
nearer than as many neighbours by chance would be. Kraskov, Stoegbauer and Grassberger
(doi:10.1103/PhysRevE.69.066138, their first estimator) turn that into mutual information, Frenzel
and Pompe (doi:10.1103/PhysRevLett.99.204101) into conditional mutual information:

    I(x ; y | z) = psi(k) - mean of psi(n_xz + 1) + psi(n_yz + 1) - psi(n_z + 1),

where n counts the samples that are nearer, in some of the variables, than the k-th neighbour is in
all of them (the largest difference over the variables is the distance), and psi is the digamma
function.

Information does not change if each variable is replaced by a strictly increasing function of it. So
every variable is replaced by normal scores: the normal quantiles of its ranks. Equal values are
ranked by chance. That changes no information either, for which of the equal values comes first has
nothing to do with anything else; so whole variables can be mixed in.

The distribution where there is nothing to find is known only by permuting: x among all samples, or
with z only among samples that are near in z (Runge, arXiv:1709.01447), which leaves what both have
to do with z as it is. That takes samples that are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import as_array, as_generator, check_lanes, check_level, check_whole
from exo_envs.core.errors import ArgumentError
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP, FloatArray, IntArray
from planners.core.arrays import Ints
from planners.dependence.interventions import actors_of
from planners.dependence.parents import ParentSearch
from planners.discretization.bins import Bins
from planners.samples.rollouts import ExogenousData

#: k: the neighbour whose distance is looked at.
NUM_NEIGHBOURS = 5
#: k of a test: with more neighbours than an estimate takes, chance matters less.
NUM_TESTED = 20
#: Samples among which x is permuted where something is given.
NUM_EXCHANGED = 5
#: Permutations at most.
NUM_PERMUTATIONS = 1000
#: Permutations end as soon as so many of them had at least as much information as was found.
ENOUGH = 5
#: Permutations at least.
MIN_PERMUTATIONS = 200
#: Independent transitions by default.
NUM_SAMPLES = 1000

Verdict = Literal["agree", "only in bins", "only by neighbours"]


class NeighbourTest(NamedTuple):
    """What a test of conditional independence by nearest neighbours found."""

    information: float  # in nats; by chance it may be below 0
    p_value: float  # the probability of as much information where there is none
    num_permutations: int  # that it took


def neighbour_information(
    x: ArrayLike,
    y: ArrayLike,
    given: ArrayLike | None = None,
    *,
    num_neighbours: int = NUM_NEIGHBOURS,
    rng: np.random.Generator | int | None = None,
) -> float:
    """The information between x and y, given z or nothing, in nats.

    Each is one variable, shape (samples,), or several of them, shape (samples, variables). With
    more neighbours, the estimate varies less and has a larger bias.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(2000)
    >>> y = 0.8 * x + 0.6 * rng.standard_normal(2000)
    >>> exact = -0.5 * np.log(1 - 0.8**2)
    >>> round(float(exact), 2), bool(abs(neighbour_information(x, y) - exact) < 0.05)
    (0.51, True)
    """
    rng = as_generator("rng", rng, default=0)
    scores, y_scores, z = _scores(x, y, given, num_neighbours, rng)
    return _information(scores, y_scores, z, num_neighbours)


def neighbour_test(
    x: ArrayLike,
    y: ArrayLike,
    given: ArrayLike | None = None,
    *,
    num_neighbours: int = NUM_TESTED,
    num_permutations: int = NUM_PERMUTATIONS,
    rng: np.random.Generator | int | None = None,
) -> NeighbourTest:
    """Whether x and y have to do with each other, given z or nothing.

    The p-value is (1 + permutations with as much information) / (1 + permutations); with z it is
    one only as far as samples that are near in z have the same chances. Where there is clearly
    nothing, few permutations say so: they end with the ``ENOUGH``-th that has as much information
    (Besag and Clifford, doi:10.1093/biomet/78.2.301), and the p-value is then its share.

    The samples, as in :func:`neighbour_information`, have to be independent of each other: not the
    steps of one rollout.
    """
    rng = as_generator("rng", rng, default=0)
    most = check_whole("num_permutations", num_permutations, 1)
    scores, y_scores, z = _scores(x, y, given, num_neighbours, rng)
    found = _information(scores, y_scores, z, num_neighbours)
    near = _near(z) if z.shape[1] else None
    as_much = 0
    for done in range(1, most + 1):
        order = rng.permutation(len(z)) if near is None else exchange(near, rng)
        as_much += _information(scores[order], y_scores, z, num_neighbours) >= found
        if as_much == ENOUGH:
            return NeighbourTest(found, as_much / done, done)
    return NeighbourTest(found, (1 + as_much) / (1 + most), most)


def normal_scores(values: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Each column by the normal quantiles of its ranks; equal values are ranked by chance."""
    from scipy import special

    columns = np.asarray(values)
    count = len(columns)
    chance = rng.random(columns.shape)
    order = np.lexsort((chance, columns), axis=0)
    quantiles = special.ndtri((np.arange(count) + 0.5) / count)
    scores = np.empty(columns.shape)
    np.put_along_axis(scores, order, np.broadcast_to(quantiles[:, None], columns.shape), axis=0)
    return scores


def _scores(
    x: Any, y: Any, given: Any, num_neighbours: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Samples of x, y and z as normal scores, shape (samples, variables) each."""
    parts = [_columns("x", x), _columns("y", y)]
    parts.append(np.empty((len(parts[0]), 0)) if given is None else _columns("given", given))
    if len({len(part) for part in parts}) > 1:
        raise ArgumentError(
            "x, y and given are of the same samples, not of "
            + ", ".join(str(len(part)) for part in parts)
        )
    fewest = max(check_whole("num_neighbours", num_neighbours, 1), NUM_EXCHANGED)
    if len(parts[0]) <= fewest:
        raise ArgumentError(
            f"{num_neighbours} neighbours take more than {fewest} samples, not {len(parts[0])}"
        )
    return [normal_scores(part, rng) for part in parts]


def _information(x: FloatArray, y: FloatArray, z: FloatArray, num_neighbours: int) -> float:
    """I(x ; y | z)."""
    from scipy import spatial
    from scipy.special import digamma as psi

    joint = np.concatenate([x, y, z], axis=1)
    radius = spatial.cKDTree(joint).query(joint, [num_neighbours + 1], p=np.inf)[0][:, 0]
    radius = np.nextafter(radius, 0.0)  # a sample as far as the neighbour itself is not nearer
    with_x, with_y = (np.concatenate([part, z], axis=1) for part in (x, y))
    counts = psi(_within(with_x, radius)) + psi(_within(with_y, radius))
    own = psi(_within(z, radius)) if z.shape[1] else psi(len(joint))
    return float(psi(num_neighbours) - np.mean(counts - own))


def _within(points: FloatArray, radius: FloatArray) -> Ints:
    """How many points are within a radius of each, itself included, shape (points,)."""
    if points.shape[1] == 1:  # sorting is faster than a tree
        line = points[:, 0]
        ordered = np.sort(line)
        above = np.searchsorted(ordered, line + radius, side="right")
        return above - np.searchsorted(ordered, line - radius, side="left")
    from scipy import spatial

    tree = spatial.cKDTree(points)
    counts: Ints = tree.query_ball_point(points, radius, p=np.inf, return_length=True)
    return counts


def _near(z: FloatArray) -> Ints:
    """For each sample some that are near in z, itself included, shape (samples, NUM_EXCHANGED)."""
    from scipy import spatial

    near: Ints = spatial.cKDTree(z).query(z, NUM_EXCHANGED, p=np.inf)[1].astype(np.int64)
    return near


def exchange(near: IntArray, rng: np.random.Generator) -> list[int]:
    """From which sample each one takes its x: from one of those near it that nobody took yet.

    Where all of them are taken, it is the last one again (Runge's algorithm).
    """
    order = rng.permutation(len(near)).tolist()
    shuffled = rng.permuted(near, axis=1).tolist()
    taken = [False] * len(near)
    source = [0] * len(near)
    for i in order:
        free = (candidate for candidate in shuffled[i] if not taken[candidate])
        source[i] = next(free, shuffled[i][-1])
        taken[source[i]] = True
    return source


def _columns(name: str, values: Any) -> NDArray[Any]:
    array = as_array(name, values)
    if array.dtype.kind not in "iufb" or array.ndim not in {1, 2}:
        raise ArgumentError(
            f"{name} is an array of numbers, (samples,) or (samples, variables), not one of "
            f"{array.dtype} and of shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} has values that are not finite")
    return array[:, None] if array.ndim == 1 else array


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
    binned = {own.name for own in data.bins if isinstance(own, Bins)}
    edges = []
    for target in targets:
        (i,), given = data.positions([target]).tolist(), data.positions(known[target]).tolist()
        names = [*known[target], *(name for name in among if name not in known[target])]
        looked_at = [name for name in names if not binned.isdisjoint((target, name))]
        number = sum(name not in known[target] for name in looked_at)
        for name in looked_at:
            (j,) = data.positions([name]).tolist()
            others = [k for k in given if k != j]
            z = before[:, others] if others else None
            own_level = level if j in given else level / max(1, number)
            most = max(MIN_PERMUTATIONS, math.ceil(1.0 / own_level))
            x, y = before[:, j], after[:, i]
            p_value = neighbour_test(x, y, z, num_permutations=most, rng=rng).p_value
            verdict: Verdict = "agree"
            if (j in given) != (p_value <= own_level):
                verdict = "only in bins" if j in given else "only by neighbours"
            counts = search.all.information(i, others, j)
            told = max(0.0, counts.statistic - counts.freedom) / (2.0 * search.all.count)
            near = neighbour_information(x, y, z, rng=rng)
            edges.append(CheckedEdge(name, target, j in given, told, near, p_value, verdict))
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
