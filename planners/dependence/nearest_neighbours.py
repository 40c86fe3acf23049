"""Information between real variables without bins, by distances to nearest neighbours.

Where two variables have to do with each other, the k nearest neighbours of a sample in both are
nearer than as many neighbours by chance would be. Kraskov, Stoegbauer and Grassberger
(doi:10.1103/PhysRevE.69.066138, their first estimator) turn that into mutual information, Frenzel
and Pompe (doi:10.1103/PhysRevLett.99.204101) into conditional mutual information:

    I(x ; y | z) = psi(k) - mean of psi(n_xz + 1) + psi(n_yz + 1) - psi(n_z + 1),

where n counts the samples that are nearer, in some of the variables, than the k-th neighbour is in
all of them (the largest difference over the variables is the distance), and psi is the digamma
function. There are no bins to choose, so this is a second opinion where tests with bins
(:mod:`planners.dependence.parents`) decide.

Information does not change if each variable is replaced by a strictly increasing function of it. So
every variable is replaced by normal scores: the normal quantiles of its ranks. Equal values are
ranked by chance. That changes no information either, for which of the equal values comes first has
nothing to do with anything else; so whole variables can be mixed in.

The distribution where there is nothing to find is known only by permuting: x among all samples, or
with z only among samples that are near in z (Runge, arXiv:1709.01447), which leaves what both have
to do with z as it is. That takes samples that are independent of each other.

SciPy's trees find the neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import as_array, as_generator, check_whole
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from planners.core.arrays import Ints

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

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(2000)
    >>> y = 0.8 * x + 0.6 * rng.standard_normal(2000)
    >>> exact = -0.5 * np.log(1 - 0.8**2)
    >>> round(float(exact), 2), bool(abs(neighbour_information(x, y) - exact) < 0.05)
    (0.51, True)

    Args:
        x: one variable, shape (samples,), or several of them, shape (samples, variables).
        y: the same samples of others.
        given: the same samples of what is known: z.
        num_neighbours: k; with more of them, the estimate varies less and has a larger bias.
        rng: ranks equal values; by default seed 0.

    Raises:
        ValueError: the samples do not belong together, are too few, or are not finite.
    """
    rng = as_generator("rng", rng, default=0)
    return _Samples(x, y, given, num_neighbours, rng).information()


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

    Args:
        x: one variable, shape (samples,), or several of them, shape (samples, variables). The
            samples have to be independent of each other: not the steps of one rollout.
        y: the same samples of others.
        given: the same samples of what is known: z.
        num_neighbours: k.
        num_permutations: at most; no p-value is below 1 / (1 + this).
        rng: draws the permutations, and ranks equal values; by default seed 0.

    Raises:
        ValueError: the samples do not belong together, are too few, or are not finite.
    """
    rng = as_generator("rng", rng, default=0)
    most = check_whole("num_permutations", num_permutations, 1)
    samples = _Samples(x, y, given, num_neighbours, rng)
    found = samples.information()
    as_much = 0
    for done in range(1, most + 1):
        as_much += samples.permuted(rng).information() >= found
        if as_much == ENOUGH:
            return NeighbourTest(found, as_much / done, done)
    return NeighbourTest(found, (1 + as_much) / (1 + most), most)


def normal_scores(values: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Each column by the normal quantiles of its ranks; equal values are ranked by chance.

    Args:
        values: shape (samples, variables).
        rng: decides which of several equal values comes first.
    """
    from scipy import special

    columns = np.asarray(values)
    count = len(columns)
    chance = rng.random(columns.shape)
    order = np.lexsort((chance, columns), axis=0)
    quantiles = special.ndtri((np.arange(count) + 0.5) / count)
    scores = np.empty(columns.shape)
    np.put_along_axis(scores, order, np.broadcast_to(quantiles[:, None], columns.shape), axis=0)
    return scores


class _Samples:
    """Samples of x, y and z as normal scores, and what is counted in them."""

    def __init__(
        self, x: Any, y: Any, given: Any, num_neighbours: int, rng: np.random.Generator
    ) -> None:
        parts = [_columns("x", x), _columns("y", y)]
        parts.append(np.empty((len(parts[0]), 0)) if given is None else _columns("given", given))
        if len({len(part) for part in parts}) > 1:
            raise ArgumentError(
                "x, y and given are of the same samples, not of "
                + ", ".join(str(len(part)) for part in parts)
            )
        self.neighbours = check_whole("num_neighbours", num_neighbours, 1)
        if len(parts[0]) <= max(self.neighbours, NUM_EXCHANGED):
            raise ArgumentError(
                f"{self.neighbours} neighbours take more than "
                f"{max(self.neighbours, NUM_EXCHANGED)} samples, not {len(parts[0])}"
            )
        self.x, self.y, self.z = (normal_scores(part, rng) for part in parts)
        self._near: Ints | None = None

    def information(self) -> float:
        """I(x ; y | z)."""
        from scipy import spatial
        from scipy.special import digamma as psi

        joint = np.concatenate([self.x, self.y, self.z], axis=1)
        tree = spatial.cKDTree(joint)
        radius = tree.query(joint, [self.neighbours + 1], p=np.inf)[0][:, 0]
        # What is as far as the neighbour itself is not nearer.
        radius = np.nextafter(radius, 0.0)
        with_x, with_y = (np.concatenate([part, self.z], axis=1) for part in (self.x, self.y))
        counts = psi(_within(with_x, radius)) + psi(_within(with_y, radius))
        own = psi(_within(self.z, radius)) if self.z.shape[1] else psi(len(joint))
        return float(psi(self.neighbours) - np.mean(counts - own))

    def permuted(self, rng: np.random.Generator) -> _Samples:
        """The same samples with x permuted, among samples that are near in z."""
        made = object.__new__(_Samples)
        vars(made).update(vars(self))
        if not self.z.shape[1]:
            made.x = self.x[rng.permutation(len(self.x))]
            return made
        if self._near is None:
            from scipy import spatial

            tree = spatial.cKDTree(self.z)
            near = tree.query(self.z, NUM_EXCHANGED, p=np.inf)[1]
            self._near = near.astype(np.int64)
        order = rng.permutation(len(self.x))
        made.x = self.x[exchange(rng.permuted(self._near, axis=1), order)]
        return made


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


@njit(cache=True)
def exchange(near: Any, order: Any) -> Any:
    """From which sample each one takes its x: from one of those near it that nobody took yet.

    Where all of them are taken, it is the last one again (Runge's algorithm).
    """
    taken = np.zeros(len(near), dtype=np.bool_)
    source = np.empty(len(near), dtype=np.int64)
    for i in order:
        chosen = near[i, 0]
        for candidate in near[i]:
            chosen = candidate
            if not taken[candidate]:
                break
        taken[chosen] = True
        source[i] = chosen
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
