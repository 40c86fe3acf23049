"""Reading ``.npz`` archives that nobody vouches for.

An archive is looked at from the outside in: how it ends, its directory, the header of each array,
and only then the numbers. So nothing is allocated that the directory does not announce, and the
directory may not announce more than a limit. Only what :func:`numpy.savez_compressed` writes is
read, and no more of it than plain numbers and strings: no pickles, no expression is evaluated.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from exo_envs.core.errors import ArgumentError

#: Bytes that the members of an archive may have together, once they are no longer compressed.
MAX_BYTES = 2**30
#: Bytes that the directory of an archive may have: that of some 50,000 arrays.
MAX_DIRECTORY_BYTES = 2**22
#: Bytes of a member that holds text, at most.
MAX_TEXT_BYTES = 2**23
#: Bytes of the header of an array, at most.
MAX_HEADER_BYTES = 1_000
#: Bytes of an array that are read at a time.
CHUNK = 2**20

#: The last record of an archive without comments: signature, disks, entries, size, offset.
_END = struct.Struct("<4s4H2LH")
#: What stands before it if the archive is one of more than 4 GB or 65,535 members.
_LARGE, _LARGE_BYTES = b"PK\x06\x07", 20
#: The header of an array, as NumPy writes it.
_ARRAY_HEADER = re.compile(
    rb"\{'descr': '([<>|])([a-zA-Z])(\d{0,6})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:\d{1,18}(?:, \d{1,18})*,?)?)\), \} *\n"
)
_ARRAY_START = re.compile(rb"\x93NUMPY[\x01\x02\x03]\x00")
#: Truth values, whole numbers, real numbers and strings.
_KINDS = "biufU"


class Archive:
    """An open archive, whose directory was found to be in order.

    Args:
        file: an open binary file.
        max_bytes: how much its members may have together.

    Raises:
        Exception: of many kinds, if the file is damaged or was forged.
    """

    def __init__(self, file: IO[bytes], max_bytes: int = MAX_BYTES) -> None:
        _check_end(file)
        self._archive = zipfile.ZipFile(file)
        members = self._archive.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise ArgumentError("two of its members have the same name")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ArgumentError(f"{member.filename!r} is compressed in a way that is not read")
            if member.flag_bits & 1:
                raise ArgumentError(f"{member.filename!r} is encrypted")
            if not member.filename.endswith((".npy", ".json")):
                raise ArgumentError(f"{member.filename!r} is not an array")
        total = sum(member.file_size for member in members)
        if total > max_bytes:
            raise ArgumentError(
                f"its members have {total:,} bytes, and {max_bytes:,} are allowed; if you trust "
                "the file, allow more with max_bytes"
            )
        self._arrays: dict[str, NDArray[Any]] = {}

    @property
    def unread(self) -> set[str]:
        """The names of the arrays that were not asked for."""
        names = (name.removesuffix(".npy") for name in self._members if name.endswith(".npy"))
        return {name for name in names if name not in self._arrays}

    def text(self, name: str) -> str | None:
        """A member that is text, or None if there is none of that name."""
        member = self._members.get(name)
        if member is None:
            return None
        if member.file_size > MAX_TEXT_BYTES:
            raise ArgumentError(f"{name!r} has more than {MAX_TEXT_BYTES:,} bytes")
        return self._archive.read(member).decode()

    def array(self, name: str, max_bytes: int | None = None) -> NDArray[Any]:
        """An array, contiguous, in the byte order of this machine."""
        if name not in self._arrays:
            member = self._members.get(f"{name}.npy")
            if member is None:
                raise ArgumentError(f"there is no array {name!r}")
            if max_bytes is not None and member.file_size > max_bytes:
                raise ArgumentError(f"the array {name!r} has more than {max_bytes:,} bytes")
            with self._archive.open(member) as stream:
                self._arrays[name] = _read_array(name, stream, member.file_size)
        return self._arrays[name]


def _check_end(file: IO[bytes]) -> None:
    """Refuse what does not end as an archive does, or has too large a directory."""
    size = file.seek(0, 2)
    behind = min(size, _END.size + _LARGE_BYTES)
    file.seek(size - behind)
    end = file.read(behind)
    file.seek(0)
    if len(end) < _END.size or end[-_END.size :][:4] != b"PK\x05\x06":
        raise ArgumentError("it does not end as an archive does")
    *_, directory_bytes, _, comment_bytes = _END.unpack(end[-_END.size :])
    if comment_bytes or directory_bytes > MAX_DIRECTORY_BYTES or end.startswith(_LARGE):
        raise ArgumentError("its directory is too large, or is not at the end")


def _read_array(name: str, stream: IO[bytes], size: int) -> NDArray[Any]:
    start = stream.read(8)
    if not _ARRAY_START.fullmatch(start):
        raise ArgumentError(f"{name!r} is not an array")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    header = stream.read(length) if length <= MAX_HEADER_BYTES else b""
    found = _ARRAY_HEADER.fullmatch(header)
    if found is None:
        raise ArgumentError(f"the array {name!r} is not one of plain numbers (no pickles are read)")
    order, kind, bytes_each, is_fortran, shape_text = (part.decode() for part in found.groups())
    if kind not in _KINDS:
        raise ArgumentError(f"the array {name!r} has type {kind!r}: neither numbers nor strings")
    dtype = np.dtype(f"{order}{kind}{bytes_each}")
    shape = tuple(int(number) for number in re.findall(r"\d+", shape_text))
    wanted = math.prod(shape) * dtype.itemsize
    if not dtype.itemsize or wanted != size - len(start) - width - length:
        raise ArgumentError(f"the array {name!r} of shape {shape} does not have {wanted:,} bytes")
    raw = np.empty(wanted, dtype=np.uint8)
    for first in range(0, wanted, CHUNK):
        part = stream.read(min(CHUNK, wanted - first))
        raw[first : first + CHUNK] = np.frombuffer(part, dtype=np.uint8)
    stream.read(1)  # there is no more; at the end the checksum is compared
    if kind == "b" and raw.max(initial=0) > 1:
        raise ArgumentError(f"the array {name!r} has truth values that are neither true nor false")
    array = raw.view(dtype).reshape(shape, order="F" if is_fortran == "True" else "C")
    # Not ascontiguousarray, which makes a vector of a number.
    return array.astype(dtype.newbyteorder("="), order="C", copy=False)
