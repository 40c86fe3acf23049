"""Files as somebody with bad luck or bad intentions would change them."""

from __future__ import annotations

import copy
import io
import json
import struct
import warnings
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

#: What a number, a string or a list of a header may be replaced with.
ODD_VALUES = (
    *(None, True, -1, 0, 1, 3, 2**31, 2**63, 10**30, 0.5, -0.5, 1e308, "", "x", "done"),
    *([], [[]], {}, {"dict": []}, {"array": "content.actions"}, {"array": 3}, {"Variable": []}),
    *({"dict": [["memory", 3]]}, {"dict": [["a", 1], ["a", 2]]}, [1, 2, 3], "\ud800"),
)


def members_of(path):
    """The members of an archive in their order: (name, bytes)."""
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def archive_of(members, compression=zipfile.ZIP_DEFLATED):
    """The bytes of an archive; names may occur twice."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def array_bytes(array, **pickled):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), **pickled)
    return file.getvalue()


def npy_bytes(description, content=b""):
    """An array file with any header at all."""
    header = description.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def with_header(members, change):
    """The members with the JSON header changed."""
    out = []
    for name, content in members:
        if name == "header.npy":
            head = json.loads(np.load(io.BytesIO(content)).tobytes())
            text = json.dumps(change(head)).encode()
            out.append((name, array_bytes(np.frombuffer(text, np.uint8))))
        else:
            out.append((name, content))
    return out


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
    """The bytes of an array that is wrong in one way."""
    as_they_are = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: array[:0],
        lambda: array[::-1],
        lambda: rng.permutation(array),
        lambda: array.reshape(-1, 1),
        lambda: array.reshape(-1)[0],
        lambda: np.asfortranarray(array.reshape(1, -1)),
        lambda: array.astype(rng.choice(["<f8", "<f4", "<i4", "<u8", "|u1", "|b1", "<U3", "<c16"])),
        lambda: array.astype(array.dtype.newbyteorder()),
        lambda: array + array.dtype.type(1),
        lambda: np.zeros_like(array),
        lambda: _one_value(array, rng, rng.choice([-1, -(2**40), 2**31, 2**62, 1, 0, 7, 100])),
        lambda: _one_value(array, rng, rng.integers(-(2**63), 2**63 - 1)),
        lambda: _one_value(array, rng, rng.choice([np.nan, np.inf, -0.5, 1.5])),
        lambda: rng.integers(-3, 12, array.shape).astype(array.dtype),
    ]
    if rng.random() < 0.15:
        odd = [
            array_bytes(np.array([{}], dtype=object), allow_pickle=True),
            npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (999999999999,), }"),
            npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
            npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (" + "9" * 900 + "), }"),
            npy_bytes("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }"),
            npy_bytes("(" * 900),
            b"text",
            b"",
        ]
        return odd[rng.integers(len(odd))]
    with np.errstate(all="ignore"):
        try:
            return array_bytes(as_they_are[rng.integers(len(as_they_are))]())
        except (IndexError, ValueError, TypeError):  # of an array without entries
            return array_bytes(np.arange(3))


def change_members(members, rng):
    """An archive with members missing, twice, renamed, exchanged or changed."""
    members = list(members)
    at = int(rng.integers(len(members)))
    name, content = members[at]
    how = rng.integers(10)
    if how == 0:
        del members[at]
    elif how == 1:
        members.append((name, content))
    elif how == 2:
        members[at] = name + rng.choice([".npy", "x", ".json"]), content
    elif how == 3:
        other = int(rng.integers(len(members)))
        members[at], members[other] = (name, members[other][1]), (members[other][0], content)
    elif how <= 5 or name.endswith(".json"):
        members = with_header(members, lambda head: change_json(head, rng))
    elif name == "header.npy":
        deep = rng.choice([b"[" * 100_000, b"{", b"null", b"\xff", b"9" * 10_000, b"[NaN]"])
        members[at] = name, array_bytes(np.frombuffer(deep, np.uint8))
    else:
        members[at] = name, change_array(np.load(io.BytesIO(content)), rng)
    return members


def forge(content, rng):
    """The bytes of a file, wrong in one way or another: an archive of ours, or JSON."""
    how = rng.integers(10)
    if how == 0:  # damaged
        out = bytearray(content)
        for place in rng.integers(len(out), size=rng.integers(1, 4)):
            out[place] ^= 1 << int(rng.integers(8))
        return bytes(out)
    if how == 1:
        return content[: rng.integers(len(content))]
    if content[:2] != b"PK":
        return json.dumps(change_json(json.loads(content), rng)).encode()
    members = change_members(members_of(io.BytesIO(content)), rng)
    if members and rng.random() < 0.5:
        with suppress(Exception):  # of what is no longer an archive
            members = change_members(members, rng)
    stored = zipfile.ZIP_STORED if rng.random() < 0.2 else zipfile.ZIP_DEFLATED
    return archive_of(members, zipfile.ZIP_BZIP2 if rng.random() < 0.02 else stored)


def bomb(path, array_name, size):
    """Add an array of ``size`` bytes of zeros to an archive, without ever having them."""
    start = npy_bytes(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}")
    deflate, block = zlib.compressobj(9, zlib.DEFLATED, -15), bytes(2**20)
    first = deflate.compress(start) + deflate.flush(zlib.Z_FULL_FLUSH)
    again = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    count = size >> 20
    checksum = zlib.crc32(start)
    for _ in range(count):
        checksum = zlib.crc32(block, checksum)
    with zipfile.ZipFile(path, "a") as archive:
        # It is written as it is, and called compressed in the directory.
        archive.writestr(
            zipfile.ZipInfo(f"{array_name}.npy"), first + again * count + deflate.flush()
        )
        member = archive.filelist[-1]
        member.compress_type = zipfile.ZIP_DEFLATED
        member.file_size = len(start) + (count << 20)
        member.CRC = checksum
    return Path(path).stat().st_size
