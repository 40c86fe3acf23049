"""Files as somebody with bad luck or bad intentions would change them."""

from __future__ import annotations

import copy
import json

import numpy as np
from safetensors.numpy import load, save

from planners.core.files import HEAD_NAME, checksum_of

#: What a number, a string or a list of a header may be replaced with.
ODD_VALUES = (
    *(None, True, -1, 0, 1, 3, 2**31, 2**63, 10**30, 0.5, -0.5, 1e308, "", "x", "done"),
    *([], [[]], {}, {"dict": []}, {"array": "content.actions"}, {"array": 3}, {"Variable": []}),
    *({"dict": [["memory", 3]]}, {"dict": [["a", 1], ["a", 2]]}, [1, 2, 3], "\ud800"),
)


def parts_of(content):
    """The head of a file, and its arrays by name."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"][HEAD_NAME].partition(" ")[2]), load(content)


def file_of(head, arrays):
    """The bytes of a file, with the checksum that belongs to them; a head may be any text."""
    text = head if isinstance(head, str) else json.dumps(head)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(arrays, {HEAD_NAME: f"{checksum_of(text, arrays):08x} {text}"})


def _places(value, path=()):
    """The paths of everything in nested lists and dictionaries."""
    yield path
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*path, key))


def change_json(head, rng):
    """One thing in a JSON document is another, is missing, or is there twice."""
    head = copy.deepcopy(head)
    places = [path for path in _places(head) if path]
    *above, last = places[rng.integers(len(places))]
    parent = head
    for key in above:
        parent = parent[key]
    how = rng.integers(4)
    if how == 0:
        del parent[last]
    elif how == 1 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[last]))
    elif how == 2 and isinstance(parent, list) and len(parent) > 1:
        other = int(rng.integers(len(parent)))
        parent[last], parent[other] = parent[other], parent[last]
    else:
        parent[last] = copy.deepcopy(ODD_VALUES[rng.integers(len(ODD_VALUES))])
    return head


def _one_value(array, rng, value):
    out = array.copy()
    with np.errstate(all="ignore"):
        out.reshape(-1)[rng.integers(out.size)] = np.array(value).astype(out.dtype)
    return out


def change_array(array, rng):
    """An array that is wrong in one way."""
    ways = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: array[:0],
        lambda: array[::-1],
        lambda: rng.permutation(array),
        lambda: array.reshape(-1, 1),
        lambda: array.reshape(-1)[0],
        lambda: array.reshape(1, -1),
        lambda: array.astype(rng.choice(["<f8", "<f4", "<i4", "<u8", "|u1", "|b1", "<c8"])),
        lambda: array + array.dtype.type(1),
        lambda: np.zeros_like(array),
        lambda: _one_value(array, rng, rng.choice([-1, -(2**40), 2**31, 2**62, 1, 0, 7, 100])),
        lambda: _one_value(array, rng, rng.integers(-(2**63), 2**63 - 1)),
        lambda: _one_value(array, rng, rng.choice([np.nan, np.inf, -0.5, 1.5])),
        lambda: rng.integers(-3, 12, array.shape).astype(array.dtype),
        lambda: np.full(8, 77, np.uint8).view(bool),
    ]
    with np.errstate(all="ignore"):
        try:
            return np.asarray(ways[rng.integers(len(ways))]())
        except (IndexError, ValueError, TypeError):  # of an array without entries
            return np.arange(3)


def change_parts(head, arrays, rng):
    """A head or arrays missing, renamed, exchanged or changed."""
    arrays, names = dict(arrays), sorted(arrays)
    name = names[rng.integers(len(names))] if names else "content.none"
    how = rng.integers(10)
    if how == 0:
        arrays.pop(name, None)
    elif how == 1:
        arrays[name + "x"] = arrays.pop(name, np.arange(3))
    elif how == 2 and len(names) > 1:
        other = names[rng.integers(len(names))]
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif how <= 5:
        head = change_json(head, rng) if isinstance(head, dict) else head
    elif how == 6:
        head = str(rng.choice(["[" * 100_000, "{", "null", "9" * 10_000, "[NaN]"]))
    else:
        arrays[name] = change_array(arrays.get(name, np.arange(3)), rng)
    return head, arrays


def forge(content, rng):
    """The bytes of a file, wrong in one way or another: one with arrays, or JSON."""
    how = rng.integers(10)
    if how == 0:  # damaged
        out = bytearray(content)
        for place in rng.integers(len(out), size=rng.integers(1, 4)):
            out[place] ^= 1 << int(rng.integers(8))
        return bytes(out)
    if how == 1:
        return content[: rng.integers(len(content))]
    if b"\0" not in content[:8]:
        return json.dumps(change_json(json.loads(content), rng)).encode()
    parts = change_parts(*parts_of(content), rng)
    if rng.random() < 0.5:
        parts = change_parts(*parts, rng)
    return file_of(*parts)
