"""What a policy looks at, and how it reads that in observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.arguments import check_kind, check_names, check_whole, kind_of
from exo_envs.core.batches import PARTS
from exo_envs.core.ends import DONE
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, IntArray, Ranges, State, Variable

INT64 = np.dtype(np.int64)
#: Whole numbers beyond this are not looked at as such: floating-point numbers skip some of them.
MOST_EXACT = 2**53


class Observer:
    """Looks at the endogenous part of observations and at some of the exogenous variables.

    The arguments are those of a :class:`~planners.Policy`.
    """

    def __init__(
        self,
        mask: tuple[str, ...],
        full: tuple[str, ...],
        endogenous_size: int,
        *,
        variables: Sequence[Variable] | None = None,
    ) -> None:
        self.full = check_names("full", full)
        self.mask = check_names("mask", mask, self.full)
        self.endogenous_size = check_whole("endogenous_size", endogenous_size, 0)
        self.variables = None if variables is None else tuple(variables)
        given = self.endogenous_size + len(self.mask)
        if self.variables is not None and len(self.variables) != given:
            raise ArgumentError(
                f"there are {len(self.variables)} variables; there should be {given}"
            )
        #: The parts in which values may be real: those are not rounded.
        self.real_parts = frozenset(
            part for part, own in zip(PARTS, self._split(), strict=True) if Ranges(own).is_real
        )
        last = self.endogenous_size - 1
        self._hides_done = self.variables is not None and last >= 0 and self.variables[last] == DONE
        position = {name: i for i, name in enumerate(self.full)}
        self._columns = np.array([position[name] for name in self.mask], dtype=np.intp)

    def _split(self) -> tuple[tuple[Variable, ...], ...]:
        """The variables of n and those of the mask, as far as they are known."""
        known, k = self.variables or (), self.endogenous_size
        return known[:k], known[k:]

    @classmethod
    def names_of(cls, mdp: ExoMDP) -> tuple[tuple[str, ...], tuple[str, ...], int]:
        """The names a policy planned in ``mdp`` has: a reduced model knows what it reduces."""
        check_kind("mdp", mdp, ExoMDP)
        mask = mdp.exogenous_names
        return mask, getattr(mdp, "full_names", mask), len(mdp.endogenous_variables)

    @classmethod
    def variables_of(cls, mdp: ExoMDP) -> tuple[Variable, ...]:
        """The variables that a policy planned in ``mdp`` looks at."""
        return (*mdp.endogenous_variables, *mdp.exogenous_variables)

    def as_batch(
        self, endogenous: NDArray[Any], exogenous: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Whole numbers (B, k) and, of the mask, (B, len(mask)); other arrays are refused."""
        widths, lanes = (self.endogenous_size, len(self.mask)), endogenous.shape[:1]
        plain = endogenous.dtype is INT64 is exogenous.dtype
        if plain and endogenous.shape + exogenous.shape == lanes + widths[:1] + lanes + widths[1:]:
            return endogenous, exogenous  # as they are, which most are
        for part, values, width in zip(PARTS, (endogenous, exogenous), widths, strict=True):
            if values.shape != (*lanes, width) or values.dtype.kind not in "iu":
                raise ArgumentError(
                    f"the {part} part of a batch holds whole numbers, of shape (B, {width}) for "
                    f"B lanes, not {values.dtype} of shape {values.shape}"
                )
        return endogenous.astype(np.int64, copy=False), exogenous.astype(np.int64, copy=False)

    def check_range(self, endogenous: IntArray, exogenous: IntArray) -> None:
        """Refuse values that a variable does not have: (B, k) and the masked (B, len(mask))."""
        if self.variables is None:
            return
        for part, values, own in zip(PARTS, (endogenous, exogenous), self._split(), strict=True):
            ranges = Ranges(own)
            wrong = ~((values >= ranges.low) & (values <= ranges.high))
            if wrong.any():
                raise self._wrong(part, values, wrong)

    def _parts(
        self, observation: Mapping[str, Any] | State
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What it looks at: n, (..., k), and the masked x, (..., len(mask))."""
        if isinstance(observation, Mapping):
            n, x = observation.get("endogenous"), observation.get("exogenous")
        elif isinstance(observation, tuple) and len(observation) == len(PARTS):
            n, x = observation
        else:
            raise ArgumentTypeError(
                f"an observation is a mapping with the keys {PARTS}, or a State, "
                f"not {kind_of(observation)}"
            )
        endogenous, exogenous = self._numbers("endogenous", n), self._numbers("exogenous", x)
        # An empty part is left out of an observation.
        if endogenous is None or exogenous is None:
            shown = exogenous if endogenous is None else endogenous
            nothing = np.zeros((*(() if shown is None else shown.shape[:-1]), 0), dtype=np.int64)
            endogenous = nothing if endogenous is None else endogenous
            exogenous = nothing if exogenous is None else exogenous
        if self._hides_done and endogenous.shape[-1] == self.endogenous_size - 1:
            not_done = np.zeros((*endogenous.shape[:-1], 1), dtype=np.int64)
            endogenous = np.concatenate([endogenous, not_done], axis=-1)
        if endogenous.shape[-1] != self.endogenous_size:
            wanted = f"its last dimension should be {self.endogenous_size}"
            raise self._wrong_shape("endogenous", n, endogenous, wanted)
        if exogenous.shape[-1] == len(self.full):
            exogenous = exogenous[..., self._columns]
        elif exogenous.shape[-1] != len(self.mask):
            wanted = f"it should have the {len(self.mask)} of the mask or all {len(self.full)}"
            raise self._wrong_shape("exogenous", x, exogenous, wanted)
        if endogenous.shape[:-1] != exogenous.shape[:-1]:
            raise ArgumentError(
                f"the parts of the observation are batches of different shapes: the endogenous one "
                f"of {endogenous.shape[:-1]} and the exogenous one of {exogenous.shape[:-1]}"
            )
        return self.as_seen("endogenous", endogenous), self.as_seen("exogenous", exogenous)

    def as_seen(self, part: str, values: NDArray[Any]) -> NDArray[Any]:
        """What the policy looks at, in the type in which it does: whole numbers, if none is real.

        Args:
            part: "endogenous" or "exogenous".
            values: the n of an observation, (..., k), or the x of its mask, (..., len(mask)).
        """
        if part in self.real_parts:
            return values.astype(np.float64, copy=False)
        if values.dtype.kind == "f" or values.dtype == np.uint64:
            wrong = ~((np.abs(values) <= MOST_EXACT) & (np.floor(values) == values))
            if wrong.any():
                raise self._wrong(part, values, wrong)
        return values.astype(np.int64, copy=False)

    def _numbers(self, part: str, values: Any) -> NDArray[Any] | None:
        """One part of an observation as numbers, shape (..., variables); None if it is missing."""
        if values is None or (type(values) is np.ndarray and values.dtype is INT64 and values.ndim):
            return values  # as it is, which most are
        try:
            array = np.asarray(values)
        except Exception as error:
            message = f"the {part} part of the observation is no array of numbers: {error}"
            raise ArgumentTypeError(message) from error
        if array.dtype.kind not in "biuf":
            raise ArgumentTypeError(
                f"the {part} part of the observation has dtype {array.dtype}; it should hold "
                "numbers"
            )
        if array.ndim == 0:
            raise ArgumentError(
                f"the {part} part of the observation is {array}; it should be an array with one "
                "number for each variable"
            )
        if array.dtype.kind == "f":
            array = array.astype(np.float64)  # half precision does not know large numbers
            wrong = ~np.isfinite(array)
            if wrong.any():  # also of a variable that it does not look at
                raise self._wrong(part, array, wrong)
            return array
        return array if array.dtype == np.uint64 else array.astype(np.int64, copy=False)

    def _wrong_shape(self, part: str, given: Any, values: IntArray, wanted: str) -> ValueError:
        if given is None:
            return ArgumentError(f"the observation has no {part!r} part; it needs both of {PARTS}")
        return ArgumentError(
            f"the {part} part has {values.shape[-1]} variables; {wanted} (its shape in the "
            f"observation is {values.shape})"
        )

    def _wrong(self, part: str, values: NDArray[Any], wrong: NDArray[np.bool_]) -> ValueError:
        """An error for the first of some wrong numbers in a part: where it is, and what may be."""
        where = tuple(np.argwhere(wrong)[0].tolist())
        known = {variable.name: variable for variable in self.variables or ()}
        names = {"endogenous": tuple(known)[: self.endogenous_size], "exogenous": self.mask}[part]
        if part == "exogenous" and values.shape[-1] == len(self.full):
            names = self.full
        name = names[where[-1]] if where[-1] < len(names) else str(where[-1])
        choices = f"it should be a {'' if part in self.real_parts else 'whole '}number"
        if name in known and known[name].size > 1:  # of one value are also those that are ignored
            choices = f"its values are {known[name].range}"
        lane = f" in lane {where[:-1]}" if where[:-1] else ""
        return ArgumentError(f"{part} variable {name!r} cannot be {values[where]}{lane}; {choices}")


def as_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names of so many endogenous variables; those that none were given are numbered."""
    if names is None:
        return tuple(f"endogenous_{i}" for i in range(count))
    found = check_names("endogenous_names", names)
    if len(found) != count:
        raise ArgumentError(f"endogenous_names has {len(found)} names; there should be {count}")
    return found
