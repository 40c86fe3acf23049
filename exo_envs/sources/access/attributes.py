"""What an environment keeps in its attributes: numbers, random generators, and anything else.

All of these are found by one walk (:func:`contents`), which enters lists, dictionaries and objects.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from exo_envs.sources.access.state_access import Env

#: Levels below an environment in which it is looked for numbers, and of a value that are compared.
NUMBER_DEPTH, COMPARED_DEPTH = 3, 8
#: Entries of an array, list or dictionary that are looked at.
MAX_ENTRIES = 20_000
#: Beginnings of the names of attributes that are no part of a state.
LEFT_OUT = ("_np_random", "action_space", "observation_space", "spec", "metadata")
#: Random generators that may be an environment's own.
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)

#: Names of attributes, subscripts of lists and dictionaries, and at last an index of an array.
Path: TypeAlias = tuple[Any, ...]


class Subscript(NamedTuple):
    """A key of a dictionary or a position in a list, on the way to a value."""

    key: Any


def contents(own: Any, depth: int, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """An object and what can be written to in it, so many levels down, with the way there."""
    yield path, own
    if len(path) >= depth:
        return
    parts: Iterable[tuple[Any, Any]] = attributes_of(own)
    if isinstance(own, (list, dict)):
        items = own.items() if isinstance(own, dict) else enumerate(own)
        parts = [(Subscript(key), value) for key, value in islice(items, MAX_ENTRIES)]
    for part, value in parts:
        yield from contents(value, depth, (*path, part))


def attributes_of(own: Any) -> list[tuple[str, Any]]:
    """The attributes of an object, those in slots included; none of what is called."""
    held, slots = getattr(own, "__dict__", {}), getattr(type(own), "__slots__", ())
    if not (held or slots) or callable(own) or isinstance(own, GENERATORS):
        return []
    names = (slots,) if isinstance(slots, str) else slots
    all_held = {name: getattr(own, name) for name in names if hasattr(own, name)} | held
    return [(name, all_held[name]) for name in all_held if not name.startswith(LEFT_OUT)]


# --- numbers --------------------------------------------------------------------------------------


def numbers_in(own: Any) -> Iterator[tuple[Path, float]]:
    """All numbers among what an object holds, with the way that leads there."""
    for path, value in contents(own, NUMBER_DEPTH):
        if isinstance(value, (int, float, np.number)):
            yield path, float(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
            indices = np.ndindex(value.shape) if value.size <= MAX_ENTRIES else ()
            yield from (((*path, index), float(value[index])) for index in indices)


def write_number(own: Any, path: Path, value: float) -> None:
    """Write a number where :func:`numbers_in` found one, in the type that it has there."""
    *way, last = path
    for part in way:
        own = own[part.key] if isinstance(part, Subscript) else getattr(own, part)
    if isinstance(last, Subscript):
        own[last.key] = type(own[last.key])(value)
    elif isinstance(last, tuple):
        own[last] = value
    else:
        setattr(own, last, type(getattr(own, last))(value))


# --- anything -------------------------------------------------------------------------------------


def likeness(value: Any, depth: int = COMPARED_DEPTH) -> Hashable:
    """Something that is equal for values that are alike, and else is not."""
    return tuple((path, _mark(own, depth - len(path))) for path, own in contents(value, depth))


def _mark(own: Any, depth: int) -> Hashable:
    """The value of what has no parts that can be written to, and else its type."""
    if isinstance(own, (bool, int, float, str, bytes, type(None))):
        return own
    if isinstance(own, (np.ndarray, np.generic)):
        return (own.shape, own.dtype.str, own.tobytes())
    if isinstance(own, (tuple, set, frozenset)) and depth > 0:
        whole = tuple if isinstance(own, tuple) else frozenset
        return whole(likeness(part, depth - 1) for part in own)
    return type(own).__name__


# --- random numbers -------------------------------------------------------------------------------


def generators(env: Env) -> list[Any]:
    """Gymnasium's generator first, then those in attributes, and in attributes of these."""
    own = env.unwrapped
    found: dict[int, Any] = {id(own.np_random): own.np_random}
    for _, value in attributes_of(own):
        for candidate in (value, *(inner for _, inner in attributes_of(value))):
            if isinstance(candidate, GENERATORS):
                found.setdefault(id(candidate), candidate)
    return list(found.values())


def noise_of(env: Env) -> list[Any]:
    """The states of all generators: what the next random numbers will be."""
    return [_state(generator) for generator in generators(env)]


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate()


def set_noise(env: Env, states: list[Any]) -> None:
    """Go on with the same random numbers as when :func:`noise_of` was asked."""
    for generator, state in zip(generators(env), states, strict=False):
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = state
        elif isinstance(generator, np.random.RandomState):
            generator.set_state(state)
        else:
            generator.setstate(state)


def reseed(env: Env, seed: int) -> None:
    """Go on with other random numbers, which follow from the seed."""
    for i, generator in enumerate(generators(env)):
        if isinstance(generator, np.random.Generator):
            kind = type(generator.bit_generator)
            generator.bit_generator.state = kind([seed, i]).state
        else:
            generator.seed(seed + i)
