"""Forecasts that are a sum of one function of each variable, for the first few steps.

A table looks at a handful of variables. Where many variables matter a little each, as all walkers
do for whether a cell will be occupied, a regression on all of them forecasts better:

    P(x_i = v at t + h | x_t) ≈ clip(b + sum over j of w_j(x_t^j)),  h = 1 ... MAX_STEPS.

One ridge regression on the *indicators* "variable j has value u" fits all atoms and all h together.
It takes the place of the table only where its squared error on held-out rollouts is clearly lower.

Only variables of two values are forecast like this: the sums for both values add up to one, and
still do when they are clipped. With more values they would not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs.compiled.functions import njit
from exo_envs.core.arguments import exact, exact_reals
from exo_envs.core.clock import tick
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import FloatArray
from planners.core.arrays import Ints
from planners.core.memory import Memory
from planners.forecasting.compiled_model import Atoms
from planners.forecasting.forecasts import Forecasts, Rollouts

#: Steps ahead that are forecast like this, at most. On ExoCrowd six steps earn as much as two with
#: recourse (12 ± 5 more than tables alone), and 20 to 40 less than two without.
MAX_STEPS = 2
#: What large weights cost, in samples.
RIDGE_SAMPLES = 20.0
#: Samples that the regression is fitted to, about.
MAX_SAMPLES = 45_000
#: Indicators that the regression has at most.
MAX_FEATURES = 2_000
#: Weights at most, over all indicators and all that is forecast.
MAX_WEIGHTS = 4_000_000
#: Values at most, over all variables.
MAX_ROWS = 2**28
#: Standard errors by which the error of a forecast must be below the table's.
MARGIN_ERRORS = 2.0
#: Held-out rollouts that it takes to tell.
MIN_HELD_OUT = 20
#: Samples that are counted between two looks at the clock.
SAMPLES_PER_BLOCK = 4_096
#: Held-out rollouts that are forecast between two looks at the clock.
ROLLOUTS_PER_BLOCK = 32
#: Rows and columns of a tile of the equations: products of tiles are too small for BLAS to start
#: threads, which takes longer than solving equations of some hundred unknowns.
TILE_ROWS = 48


class AdditiveForecasts(NamedTuple):
    """Weights of the values of all variables for some atoms some steps ahead, the *columns*."""

    offsets: Ints  # (m,): where the values of each variable begin in ``rows``
    rows: Ints  # (values of all variables,): the row of weights of each; -1 adds nothing
    weights: NDArray[np.float32]  # (rows, columns)
    constants: NDArray[np.float32]  # (columns,)
    steps: Ints  # (columns,): how far ahead
    atoms: Ints  # (columns,): which atom of the model

    @classmethod
    def none(cls, sizes: Ints) -> AdditiveForecasts:
        """Nothing is forecast, of variables of these sizes."""
        if sizes.sum() > MAX_ROWS:
            raise ArgumentError(
                f"variables of {sizes.sum()} values together are too many to forecast"
            )
        nothing, rows = np.zeros(0, dtype=np.int64), np.full(int(sizes.sum()), -1)
        weights = np.zeros((0, 0), dtype=np.float32)
        offsets = (np.cumsum(sizes) - sizes).astype(np.int64)
        return cls(offsets, rows, weights, weights.reshape(-1), nothing, nothing)

    def check(self, sizes: Ints, horizon: int, num_atoms: int) -> None:
        """Refuse arrays that do not belong together, such as those of a damaged file."""
        columns = len(exact("steps", self.steps, 1, horizon + 1))
        exact("atoms", self.atoms, 0, num_atoms, length=columns)
        exact_reals("constants", self.constants, (columns,))
        exact_reals("weights", self.weights, (len(self.weights), columns))
        rows = exact("rows", self.rows, -1, len(self.weights))
        offsets = exact("offsets", self.offsets, length=len(sizes))
        if (offsets != np.cumsum(sizes) - sizes).any():
            raise ArgumentError(f"offsets {offsets} are not where values of sizes {sizes} begin")
        if len(rows) != sum(sizes.tolist()):
            raise ArgumentError(f"there are {len(rows)} rows for values of sizes {sizes}")

    def keep(self, columns: NDArray[np.bool_]) -> AdditiveForecasts:
        return self._replace(
            weights=np.ascontiguousarray(self.weights[:, columns]),
            constants=self.constants[columns],
            steps=self.steps[columns],
            atoms=self.atoms[columns],
        )


def fit_additive(
    rollouts: Rollouts,
    held_out: NDArray[np.bool_],
    sizes: Ints,
    atoms: Atoms,
    parents: Mapping[int, Sequence[int]],
    horizon: int,
    memory: Memory,
) -> AdditiveForecasts:
    """Those additive forecasts that are better than tables.

    Both are fitted without the rollouts that are held out, and compared on these. What comes out
    is fitted to all rollouts. ``parents`` are those that the tables look at.

    Raises:
        OutOfTimeError: the time of a clock above is up.
    """
    # Half of a rollout at least is where samples begin, so that they are like what is met later.
    steps = min(MAX_STEPS, horizon, rollouts.shape[1] // 2)
    enough = np.count_nonzero(held_out) >= MIN_HELD_OUT
    of_two = np.flatnonzero(sizes[atoms.variables] == 2)
    if not enough or not steps or not len(of_two):
        return AdditiveForecasts.none(sizes)
    tick()
    atoms = Atoms(*(own[of_two] for own in atoms))
    fitted = rollouts[~held_out]
    tables = Forecasts.fit(fitted, sizes, parents, steps, memory)
    trial = regress(fitted, sizes, atoms, steps)
    gains = _gains(trial, rollouts[held_out], atoms, tables)
    variables = len(tables.variables)
    owner = atoms.forecasts[trial.atoms] + variables * (trial.steps - 1)  # both values or neither
    gains = gains @ (owner[:, None] == np.arange(variables * steps))
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    better = (gains.mean(axis=0) > MARGIN_ERRORS * errors)[owner]
    if not better.any():
        return AdditiveForecasts.none(sizes)
    found = regress(rollouts, sizes, atoms, steps).keep(better)
    return found._replace(atoms=of_two[found.atoms])


def regress(rollouts: Rollouts, sizes: Ints, atoms: Atoms, steps: int) -> AdditiveForecasts:
    """Additive forecasts of all atoms up to ``steps`` ahead, by ridge regression.

    Of each variable the most common value has no indicator, nor have values that do not occur. If
    there are more than ``MAX_FEATURES``, variables with the fewest values are taken first, and
    those for which there is no room are left out.
    """
    number, length = rollouts.shape[:2]  # samples are at least ``steps`` from the end of theirs
    samples = (np.arange(number)[:, None] * length + np.arange(length - steps)).reshape(-1)
    samples = samples[:: -(-len(samples) // MAX_SAMPLES)]
    values = np.ascontiguousarray(rollouts).reshape(-1, len(sizes))
    num_columns = steps * len(atoms.values)
    offsets, rows = _number_features(values[samples], sizes, MAX_WEIGHTS // num_columns)
    features = int(rows.max(initial=-1)) + 2  # with a constant, the last one
    # Counts of at most MAX_SAMPLES: exact, whatever the order they are added in.
    gram = np.zeros((features, features), dtype=np.int32)
    moments = np.zeros((features, num_columns), dtype=np.int32)
    for first in range(0, len(samples), SAMPLES_PER_BLOCK):
        tick()
        block = samples[first : first + SAMPLES_PER_BLOCK]
        _count(values, block, (offsets, rows), atoms.variables, atoms.values, gram, moments)
    penalties = np.full(features, RIDGE_SAMPLES)
    penalties[-1] = 0.0
    solution = _solve(gram + np.triu(gram, 1).T + np.diag(penalties), moments).astype(np.float32)
    ahead, which = np.divmod(np.arange(num_columns), len(atoms.values))
    return AdditiveForecasts(offsets, rows, solution[:-1], solution[-1], ahead + 1, which)


def _solve(matrix: NDArray[Any], sides: NDArray[Any]) -> FloatArray:
    """The solutions of equations with a positive definite matrix, by elimination tile by tile."""
    (size, columns), tile = sides.shape, TILE_ROWS
    rows, wide = -(-size // tile), -(-columns // tile)
    padded = np.eye(rows * tile, (rows + wide) * tile)
    padded[:size, :size] = matrix
    padded[:size, rows * tile : rows * tile + columns] = sides
    tiles = np.ascontiguousarray(padded.reshape(rows, tile, rows + wide, tile).swapaxes(1, 2))
    for k in range(rows):
        tick()
        tiles[k, k + 1 :] = np.linalg.inv(tiles[k, k]) @ tiles[k, k + 1 :]
        for below in tiles[k + 1 :]:
            below[k + 1 :] -= below[k] @ tiles[k, k + 1 :]
    for k in reversed(range(rows)):
        for above in tiles[:k]:
            above[rows:] -= above[k] @ tiles[k, rows:]
    solution: FloatArray = tiles[:, rows:].swapaxes(1, 2).reshape(rows * tile, -1)
    return solution[:size, :columns]


def _number_features(values: Rollouts, sizes: Ints, limit: int) -> tuple[Ints, Ints]:
    """Where the values of each variable begin, and the indicator of each value, or -1."""
    counts = [np.bincount(values[:, j], minlength=size) for j, size in enumerate(sizes)]
    for own in counts:
        own[own.argmax()] = 0
    numbers = np.array([np.count_nonzero(own) for own in counts])
    order = np.argsort(numbers, kind="stable")
    kept = np.zeros(len(sizes), dtype=np.bool_)
    kept[order] = numbers[order].cumsum() <= min(limit, MAX_FEATURES)
    seen = np.concatenate([(own > 0) & keep for own, keep in zip(counts, kept, strict=True)])
    rows = np.where(seen, seen.cumsum() - 1, -1)
    return (np.cumsum(sizes) - sizes).astype(np.int64), rows.astype(np.int64)


def _gains(
    additive: AdditiveForecasts,
    rollouts: Rollouts,
    atoms: Atoms,
    forecasts: Forecasts,
) -> NDArray[np.float64]:
    """By how much squared errors are below those of the tables, (rollouts, columns).

    Samples of the same rollout are not independent, so each rollout counts as one.
    """
    steps, num_atoms = forecasts.horizon, len(atoms.values)
    length = rollouts.shape[1] - steps
    by_variable = [np.flatnonzero(atoms.forecasts == f) for f in range(len(forecasts.variables))]
    gains = np.empty((len(rollouts), steps, num_atoms))
    for first in range(0, len(rollouts), ROLLOUTS_PER_BLOCK):
        tick()
        block = rollouts[first : first + ROLLOUTS_PER_BLOCK]
        x = block[:, :length].reshape(-1, block.shape[-1]).astype(np.int64)
        ours = np.zeros((steps + 1, num_atoms, len(x)), dtype=np.float32)
        write_additive(additive, x, ours)
        tables = np.zeros_like(ours)
        for f, own in enumerate(by_variable):
            chances = forecasts.probabilities(x, f)[:, :, atoms.values[own]]
            tables[1:, own] = np.moveaxis(chances, 0, -1)
        for h in range(1, steps + 1):
            later = block[:, h : h + length, atoms.variables] == atoms.values
            truth = later.reshape(-1, num_atoms).T
            gain = (tables[h] - ours[h]) * (tables[h] + ours[h] - 2 * truth)
            by_rollout = gain.reshape(num_atoms, len(block), length).mean(axis=-1)
            gains[first : first + len(block), h - 1] = by_rollout.T
    return gains.reshape(len(rollouts), -1)


@njit(cache=True)
def write_additive(additive: Any, x: Any, chances: Any) -> None:
    """In kernels: write the forecasts from a batch (B, m) to ``chances`` (steps, atoms, lanes)."""
    offsets, rows, weights = additive.offsets, additive.rows, additive.weights
    constants, steps, atoms = additive.constants, additive.steps, additive.atoms
    num_columns = len(constants)
    total = np.empty(num_columns, np.float32)
    for lane in range(len(x)):
        for c in range(num_columns):  # an assignment of arrays takes a second to compile
            total[c] = constants[c]
        for j in range(len(offsets)):
            row = rows[offsets[j] + x[lane, j]]
            if row >= 0:
                for c in range(num_columns):
                    total[c] += weights[row, c]
        for c in range(num_columns):
            chances[steps[c], atoms[c], lane] = min(max(total[c], np.float32(0)), np.float32(1))


@njit(cache=True)
def _count(
    values: Any,
    samples: Any,
    features: Any,
    variables: Any,
    wanted: Any,
    gram: Any,
    moments: Any,
) -> None:
    """Add how often indicators hold together, above the diagonal, and with each column later."""
    offsets, rows = features
    constant, num_atoms = len(gram) - 1, len(variables)
    steps = moments.shape[1] // max(num_atoms, 1)
    holds = np.empty(len(offsets) + 1, np.int64)
    for t in samples:
        found = 0
        for j in range(len(offsets)):
            row = rows[offsets[j] + values[t, j]]
            if row >= 0:
                holds[found] = row
                found += 1
        holds[found] = constant
        found += 1
        for a in range(found):
            for b in range(a, found):
                gram[holds[a], holds[b]] += 1
        for h in range(steps):
            for atom in range(num_atoms):
                if values[t + h + 1, variables[atom]] == wanted[atom]:
                    for a in range(found):
                        moments[holds[a], h * num_atoms + atom] += 1
