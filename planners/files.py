"""Files of arrays with a JSON header: how policies and models are saved, without pickle.

A file is one ``.npz`` archive. Beside the arrays it holds a member named ``header``: UTF-8 JSON
with the name of the format, its version, the kind of thing that was saved, and what that kind
adds. Nothing in it is ever executed, the same content gives the same bytes, and a file that is
damaged, or not one of ours, is refused with an error that says so.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

FORMAT = "exo-envs"
VERSION = 1
HEADER = "header"

#: What the readers of zip and npy raise on bytes that are not what they expect.
_DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to be written, which then replaces ``path`` at once; after an error it does not."""
    target = Path(path)
    # Not tempfile: its files are readable by their owner alone, whatever the umask says.
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_file(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file at once: whoever reads ``path`` finds the old one or the new, never half.

    Args:
        path: where to; it is used as it is, no suffix is added.
        kind: what is saved, such as ``"TabularPolicy"``; :func:`read_file` asks for the same.
        header: what JSON can hold.
        arrays: arrays of numbers, booleans or fixed-width strings, by name.
    """
    members = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in members.items():
        if name == HEADER:
            raise ValueError(f"an array cannot be named {HEADER!r}: that is the header's place")
        if array.dtype.hasobject:
            raise ValueError(f"the array {name!r} holds Python objects, which need pickle")
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "arrays": {name: [array.dtype.str, array.shape] for name, array in members.items()},
        "content": dict(header),
    }
    encoded = np.frombuffer(json.dumps(head, allow_nan=False).encode(), dtype=np.uint8)
    everything: dict[str, Any] = {HEADER: encoded, **members}
    with replacing(path) as temporary, temporary.open("xb") as file:
        np.savez_compressed(file, **everything)
        file.flush()
        os.fsync(file.fileno())


def read_file(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays that :func:`write_file` was given.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, of another kind, or not one of ours.
    """
    with Path(path).open("rb") as file:
        try:
            head, arrays = _read_members(file)
        except _DAMAGE as error:
            raise ValueError(
                f"{os.fspath(path)!r} is damaged or not a file of {FORMAT}: "
                f"{str(error) or type(error).__name__}"
            ) from error
    problem = _problem(head, arrays, kind)
    if problem:
        raise ValueError(f"{os.fspath(path)!r} cannot be read as a {kind}: {problem}")
    return head["content"], arrays


def _read_members(file: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(file) as archive:
        bad = archive.testzip()
        if bad is not None:
            raise ValueError(f"the checksum of {bad!r} is wrong")
    file.seek(0)
    with np.load(file, allow_pickle=False) as members:
        arrays = {name: members[name] for name in members.files}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # NumPy hands other members out as bytes
            raise ValueError(f"{name!r} is not an array")
    if HEADER not in arrays:
        raise ValueError("it has no header")
    return json.loads(arrays.pop(HEADER).tobytes().decode()), arrays


def _problem(head: Any, arrays: dict[str, NDArray[Any]], kind: str) -> str | None:
    """What is wrong with a file that could be read, if anything."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        return f"its header is not one of {FORMAT}"
    version = head.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        return f"its version is {version!r}; this release reads 1 to {VERSION}"
    if head.get("kind") != kind:
        return f"it holds a {head.get('kind')!r}"
    if not isinstance(head.get("content"), dict):
        return "its header has no content"
    found = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    if head.get("arrays") != found:
        return f"it should hold the arrays {head.get('arrays')}, not {found}"
    return None
