"""The first layer of a network on whole numbers: rows of tables, looked up and added.

A one-hot input has a single 1 per variable, so its product with a matrix is a sum of rows. The
kernels here do what would take many passes over large arrays in a single one, without the GIL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn

Observation = dict[str, NDArray[np.int64]]


class Indices:
    """Observations as rows of tables: those of n in one, those of x in another.

    Value 0 of a variable of x has no row: the bias speaks for it, which halves the work where most
    variables are 0. Not so for n, whose gates are too different to share one.
    """

    def __init__(self, space: Any) -> None:
        self.sizes = [
            space[part].nvec if part in space.spaces else np.zeros(0, dtype=np.int64)
            for part in ("endogenous", "exogenous")
        ]
        n_sizes, x_sizes = self.sizes
        self.rows = [1 + int(n_sizes.sum()), 1 + int((x_sizes - 1).sum())]
        #: The narrower, the more samples are in the caches of a processor.
        self.dtype = np.dtype(np.int16 if max(self.rows) < 2**15 else np.int32)
        self._n_first = (1 + np.cumsum(n_sizes) - n_sizes).astype(self.dtype)
        self._x_before = (np.cumsum(x_sizes - 1) - (x_sizes - 1)).astype(self.dtype)
        self._sizes = [sizes.astype(self.dtype) for sizes in self.sizes]

    def __call__(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """The rows, (B, k) and (B, m)."""
        n = observation["endogenous"].astype(self.dtype)
        x = observation.get("exogenous", np.zeros((len(n), 0))).astype(self.dtype)
        if any(
            ((part < 0) | (part >= size)).any()
            for part, size in zip((n, x), self._sizes, strict=True)
        ):
            raise ValueError("an observation is not in its space")  # kernels do not check rows
        return torch.from_numpy(n + self._n_first), torch.from_numpy((x + self._x_before) * (x > 0))


class Rows(nn.Module):
    """A table whose rows are looked up, and what is added to their sum."""

    def __init__(self, table: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.table, self.bias = nn.Parameter(table), nn.Parameter(bias)


class Lookup(NamedTuple):
    """What was looked up for B samples, as far as gradients need it."""

    n: Tensor  # (samples, k), rows of the tables of n
    chosen: Tensor  # (B,), the samples
    rows: Tensor  # of the table of x, those of all chosen samples one after another
    starts: Tensor  # (B + 1,), where in rows each sample begins
    readings: Tensor  # (B, width)
    features: Tensor  # (B, width)


def look_up(weights: Sequence[Tensor], n: Tensor, x: Tensor, chosen: Tensor) -> Lookup:
    """Features of the chosen samples: relu(shift + gate * reading).

    The readings are sums of rows for x; gates and shifts are sums of rows for n.

    Args:
        weights: tables and biases of readings, gates and shifts.
        n: rows of the samples, (samples, k).
        x: rows of the samples, (samples, m); row 0 stands for nothing.
        chosen: which samples, (B,).
    """
    table, *others = weights
    rows = torch.empty(len(chosen) * x.shape[1], dtype=torch.int32)
    starts = torch.zeros(len(chosen) + 1, dtype=torch.int32)
    pack(x.numpy(), chosen.numpy(), rows.numpy(), starts.numpy())
    rows = rows[: int(starts[-1])]
    readings = add_rows(table, rows, starts)
    features = torch.empty_like(readings)
    weigh(n.numpy(), chosen.numpy(), arrays(others), readings.numpy(), features.numpy())
    return Lookup(n, chosen, rows, starts, readings, features)


def look_up_back(
    found: Lookup, d_features: Tensor, weights: Sequence[Tensor], d_weights: Sequence[Tensor]
) -> None:
    """Set the gradients of the weights. This can be done once: it overwrites the readings."""
    n, chosen, rows, starts, readings, features = found
    _, *others = weights
    d_table, *d_others = d_weights
    for part in d_others:
        part.zero_()
    forward = readings.numpy(), features.numpy(), d_features.numpy()
    weigh_back(n.numpy(), chosen.numpy(), arrays(others), *forward, arrays(d_others))
    users, firsts = torch.empty_like(rows), torch.empty(len(d_table) + 1, dtype=torch.int32)
    transpose(rows.numpy(), starts.numpy(), users.numpy(), firsts.numpy())
    d_table.copy_(add_rows(readings, users, firsts))


def add_rows(table: Tensor, rows: Tensor, starts: Tensor) -> Tensor:
    """Sums of rows of a table: those from each start to the next."""
    return nn.functional.embedding_bag(rows, table, starts, mode="sum", include_last_offset=True)


def arrays(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """The same memory, for kernels."""
    return tuple(tensor.numpy() for tensor in tensors)


@njit(cache=True, nogil=True)
def pack(x: Any, chosen: Any, rows: Any, starts: Any) -> None:
    """Put the rows of the chosen samples one after another, without any row 0."""
    end = 0
    for b in range(len(chosen)):
        for row in x[chosen[b]]:
            rows[end] = row
            end += row > 0
        starts[b + 1] = end


@njit(cache=True, nogil=True)
def transpose(rows: Any, starts: Any, users: Any, firsts: Any) -> None:
    """The samples that look up row 0, those that look up row 1, and so on, one after another."""
    free = np.zeros(len(firsts), dtype=np.int32)
    for row in rows:
        free[row] += 1
    end = 0
    for row in range(len(free)):
        firsts[row] = end
        end, free[row] = end + free[row], end
    for b in range(len(starts) - 1):
        for row in rows[starts[b] : starts[b + 1]]:
            users[free[row]] = b
            free[row] += 1


@njit(cache=True, nogil=True, fastmath=True)
def weigh(n: Any, chosen: Any, weights: Any, readings: Any, features: Any) -> None:
    """Features from readings, to which their bias is added in place."""
    read_bias, gates, gate_bias, shifts, shift_bias = weights
    gate = np.empty_like(gate_bias)
    for b in range(len(chosen)):
        reading, feature = readings[b], features[b]
        for h in range(len(gate)):
            gate[h] = gate_bias[h]
            feature[h] = shift_bias[h]
        for row in n[chosen[b]]:
            gate_row, shift_row = gates[row], shifts[row]
            for h in range(len(gate)):
                gate[h] += gate_row[h]
                feature[h] += shift_row[h]
        for h in range(len(gate)):
            reading[h] += read_bias[h]
            feature[h] = max(np.float32(0), feature[h] + gate[h] * reading[h])


@njit(cache=True, nogil=True, fastmath=True)
def weigh_back(
    n: Any, chosen: Any, weights: Any, readings: Any, features: Any, d_features: Any, d_weights: Any
) -> None:
    """Add to the gradients of weigh; those of the readings take the place of the readings."""
    _, gates, gate_bias, _, _ = weights
    d_read_bias, d_gates, d_gate_bias, d_shifts, d_shift_bias = d_weights
    gate, d_gate, d_shift = gate_bias.copy(), gate_bias.copy(), gate_bias.copy()
    for b in range(len(chosen)):
        reading, feature, d_feature = readings[b], features[b], d_features[b]
        for h in range(len(gate)):
            gate[h] = gate_bias[h]
        for row in n[chosen[b]]:
            gate_row = gates[row]
            for h in range(len(gate)):
                gate[h] += gate_row[h]
        for h in range(len(gate)):
            d_shift[h] = d_feature[h] if feature[h] > 0 else np.float32(0)
            d_gate[h] = d_shift[h] * reading[h]
            reading[h] = d_shift[h] * gate[h]
        for h in range(len(gate)):
            d_read_bias[h] += reading[h]
            d_gate_bias[h] += d_gate[h]
            d_shift_bias[h] += d_shift[h]
        for row in n[chosen[b]]:
            gate_row, shift_row = d_gates[row], d_shifts[row]
            for h in range(len(gate)):
                gate_row[h] += d_gate[h]
                shift_row[h] += d_shift[h]


@njit(cache=True, nogil=True, fastmath=True)
def relu_back(outputs: Any, gradients: Any, d_bias: Any) -> None:
    """Zero the gradients where a relu is 0, and set those of the bias before it, their sums."""
    for h in range(len(d_bias)):
        d_bias[h] = 0
    for b in range(len(outputs)):
        output, gradient = outputs[b], gradients[b]
        for h in range(len(d_bias)):
            gradient[h] = gradient[h] if output[h] > 0 else np.float32(0)
            d_bias[h] += gradient[h]
