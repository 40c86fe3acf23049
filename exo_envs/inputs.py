"""What users hand in: parameters, states and actions, checked and turned into arrays."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from exo_envs.errors import unknown_name
from exo_envs.mdp import ExoMDP, IntArray, State, Variable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", bound="DataclassInstance")
PARTS = State._fields


def as_state(mdp: ExoMDP, state: Any, batch_shape: tuple[int, ...]) -> State:
    """Check a state of ``mdp`` and copy it into integer arrays of shape (*batch_shape, ...).

    Args:
        mdp: the model whose variables the state has.
        state: a :class:`State`, or a mapping with its two fields (an observation, say); an
            unbatched one is repeated over the batch. A part with no variables may be missing.
        batch_shape: the leading dimensions wanted.

    Raises:
        TypeError: if it is neither, or if its numbers are not whole.
        ValueError: if a field, a shape or a value is wrong.
    """
    if isinstance(state, Mapping):
        for key in state:
            if key not in PARTS:
                raise unknown_name("part of a state", key, PARTS)
        given = dict(state)
    elif isinstance(state, tuple) and len(state) == len(PARTS):
        given = dict(zip(PARTS, state, strict=True))
    else:
        raise TypeError(
            f"a state is a State or a mapping with the keys {PARTS}, not {type(state).__name__}"
        )
    return State(
        _as_part("endogenous", given, mdp.endogenous_variables, batch_shape),
        _as_part("exogenous", given, mdp.exogenous_variables, batch_shape),
    )


def _as_part(
    part: str,
    given: dict[str, Any],
    variables: tuple[Variable, ...],
    batch_shape: tuple[int, ...],
) -> NDArray[np.int64]:
    if part not in given:
        if variables:
            raise ValueError(f"the state has no {part!r} part; it needs both of {PARTS}")
        return np.zeros((*batch_shape, 0), dtype=np.int64)
    values = as_integers(f"the {part} part of the state", given[part])
    shape = (*batch_shape, len(variables))
    if values.shape not in (shape, shape[-1:]):
        wanted = f"{shape[-1:]}" + ("" if batch_shape == (1,) else f" or {shape}")
        raise ValueError(
            f"the {part} part of the state has shape {values.shape}; it should be {wanted}"
        )
    sizes = np.array([v.size for v in variables], dtype=np.int64)
    wrong = (values < 0) | (values >= sizes)
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0])
        variable = variables[where[-1]]
        raise ValueError(
            f"{part} variable {variable.name!r} cannot be {values[where]}; "
            f"its values are 0 ... {variable.size - 1}"
        )
    return np.array(np.broadcast_to(values, shape), dtype=np.int64)


def as_mask(mdp: ExoMDP, mask: Any) -> tuple[str, ...]:
    """Check a mask over the exogenous variables of ``mdp``: names, indices or booleans.

    Returns:
        The names of the variables that the mask keeps, in the order of the model.
    """
    if isinstance(mask, str):
        raise TypeError(f"a mask is a sequence of names, not the string {mask!r}")
    names = mdp.exogenous_names
    entries = list(mask)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != len(names):
            raise ValueError(f"a boolean mask has {len(names)} entries, not {len(entries)}")
        return tuple(name for name, kept in zip(names, entries, strict=True) if kept)
    if entries and all(isinstance(entry, (int, np.integer)) for entry in entries):
        wrong = [index for index in entries if not 0 <= index < len(names)]
        if wrong:
            raise ValueError(f"there is no variable {wrong[0]}; indices are 0 ... {len(names) - 1}")
        indices = [int(index) for index in entries]
    else:
        indices = [int(index) for index in mdp.exogenous_indices(entries)]
    if len(set(indices)) != len(indices):
        twice = next(index for index in indices if indices.count(index) > 1)
        raise ValueError(f"the mask names {names[twice]!r} more than once")
    return tuple(names[index] for index in sorted(indices))


def as_parameters(cls: type[P], given: Mapping[str, Any]) -> P:
    """Build a domain's parameters from keyword arguments, with a helpful error for a wrong one."""
    names = [field.name for field in dataclasses.fields(cls)]
    for name in given:
        if name not in names:
            raise unknown_name(f"parameter of {cls.__name__}", name, names)
    return cls(**given)


def check_whole(
    name: str, number: Any, least: int, most: int | None = None, *, optional: bool = False
) -> None:
    """Refuse a parameter that is not a whole number, or not from ``least`` to ``most``.

    An ``optional`` one may be None.
    """
    if optional and number is None:
        return
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or number < least or (most is not None and number > most):
        choices = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is a whole number, {choices}, not {number!r}")


def check_real(name: str, number: Any, least: float = -math.inf) -> None:
    """Refuse a parameter that is not a finite number, or one below ``least``."""
    real = isinstance(number, (int, float, np.integer, np.floating))
    if not real or isinstance(number, bool) or not math.isfinite(number) or number < least:
        choices = "" if least == -math.inf else f", at least {least:g}"
        raise ValueError(f"{name} is a finite number{choices}, not {number!r}")


def check_probability(name: str, number: Any) -> None:
    """Refuse a parameter that is not a probability."""
    check_real(name, number)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} is a probability, 0 ... 1, not {number!r}")


def check_level(name: str, number: Any) -> None:
    """Refuse what cannot be the level of a test or of an interval."""
    check_real(name, number)
    if not 0 < number < 1:
        raise ValueError(f"{name} is a probability between 0 and 1, not {number!r}")


def check_discount(number: Any) -> None:
    """Refuse what cannot be the paper's gamma."""
    check_real("discount", number)
    if not 0 < number <= 1:
        raise ValueError(f"discount is in (0, 1], not {number!r}")


def as_action(mdp: ExoMDP, action: Any) -> int:
    """Check one action of ``mdp``."""
    try:
        index = operator.index(action)
    except TypeError:
        raise TypeError(f"an action is a whole number, not {action!r}") from None
    if not 0 <= index < mdp.num_actions:
        raise _unknown_action(mdp, index)
    return index


def as_actions(mdp: ExoMDP, actions: Any, batch_shape: tuple[int, ...]) -> IntArray:
    """Check a batch of actions of ``mdp``."""
    array = as_integers("the batch of actions", actions)
    if array.shape != batch_shape:
        raise ValueError(f"the actions have shape {array.shape}; they should have {batch_shape}")
    if array.size and (array.min() < 0 or array.max() >= mdp.num_actions):
        wrong = (array < 0) | (array >= mdp.num_actions)
        raise _unknown_action(mdp, int(array[wrong][0]))
    return array


def _unknown_action(mdp: ExoMDP, action: int) -> ValueError:
    return ValueError(f"there is no action {action}; actions are 0 ... {mdp.num_actions - 1}")


def as_integers(what: str, values: Any) -> IntArray:
    """Turn ``values`` into an integer array; whole floats pass, NaN and fractions do not."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array) | (array != np.floor(array))
        if not wrong.any():
            return array.astype(np.int64)
        raise ValueError(f"{what} holds {array[wrong][0]}, which is not a whole number")
    raise TypeError(f"{what} has dtype {array.dtype}; it should hold whole numbers")
