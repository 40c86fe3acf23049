"""Files of arrays with a JSON header: how policies and models are saved, without pickle.

A file is one ``.npz`` archive. Beside the arrays it holds a member named ``header``: UTF-8 JSON
with the name of the format, its version, the kind of thing that was saved, and its content, where
the names of the arrays stand for them. Nothing in it is ever executed, the same content gives the
same bytes, and a file that is damaged, or not one of ours, is refused with an error that says so.
"""

from __future__ import annotations

import inspect
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

FORMAT = "exo-envs"
VERSION = 1
HEADER = "header"

T = TypeVar("T")
S = TypeVar("S", bound="Saved")

#: What the readers of zip and npy raise on bytes that are not what they expect.
_DAMAGE = (
    *(EOFError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError),
    *(zipfile.BadZipFile, zlib.error),
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


class Saved:
    """What can be saved because it keeps the arguments of its constructor, under their names."""

    #: The classes of the records among the arguments: NamedTuples and dataclasses.
    records: ClassVar[tuple[type, ...]] = ()

    def arguments(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to one file, without pickle; an older file of that name is replaced at once."""
        write_file(path, type(self).__name__, self.arguments())

    @classmethod
    def load(cls: type[S], path: str | os.PathLike[str]) -> S:
        """Load what :meth:`save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, of another kind, or not one of ours.
        """
        return read_file(path, cls.__name__, cls, cls.records)


def write_file(path: str | os.PathLike[str], kind: str, content: Mapping[str, Any]) -> None:
    """Write a file at once: whoever reads ``path`` finds the old one or the new, never half.

    Args:
        path: where to; it is used as it is, no suffix is added.
        kind: what is saved, such as ``"TabularPolicy"``; :func:`read_file` asks for the same.
        content: numbers, strings, None, arrays, and tuples, dictionaries and records of them.
    """
    arrays: dict[str, Any] = {}
    encoded = _encode(content, "content", arrays)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "content": encoded}
    arrays[HEADER] = np.frombuffer(json.dumps(head, allow_nan=False).encode(), dtype=np.uint8)
    with replacing(path) as temporary, temporary.open("xb") as file:
        np.savez_compressed(file, **arrays)
        file.flush()
        os.fsync(file.fileno())


def read_file(
    path: str | os.PathLike[str],
    kind: str,
    make: Callable[..., T],
    records: tuple[type, ...] = (),
) -> T:
    """What ``make`` makes of the content that :func:`write_file` was given; lists are tuples.

    Args:
        path: the file.
        kind: what it should hold.
        make: is called with the content, by name.
        records: the classes that its records may have.

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
    problem = _problem(head, kind)
    if problem:
        raise ValueError(f"{os.fspath(path)!r} cannot be read as a {kind}: {problem}")
    classes = {record.__name__: record for record in records}
    try:
        return make(**_decode(head["content"], arrays, classes))
    except _DAMAGE as error:
        raise ValueError(f"{os.fspath(path)!r} does not hold a whole {kind}: {error!r}") from error


def _encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """A value for JSON; what is more than a number, a string or a list says what it is."""

    def encode_all(parts: Any) -> list[Any]:
        return [[key, _encode(part, f"{name}.{key}", arrays)] for key, part in parts]

    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ValueError(f"the array {name!r} holds Python objects, which need pickle")
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"dict": encode_all(value.items())}
    if hasattr(value, "_asdict"):
        return {type(value).__name__: encode_all(value._asdict().items())}
    if is_dataclass(value):
        parts = [(field.name, getattr(value, field.name)) for field in fields(value)]
        return {type(value).__name__: encode_all(parts)}
    if isinstance(value, (tuple, list)):
        return [part for _, part in encode_all(enumerate(value))]
    raise TypeError(f"{name!r} is a {type(value).__name__}, which no file can hold")


def _decode(value: Any, arrays: dict[str, NDArray[Any]], classes: Mapping[str, type]) -> Any:
    """What :func:`_encode` was given."""
    if isinstance(value, list):
        return tuple(_decode(part, arrays, classes) for part in value)
    if not isinstance(value, dict):
        return value
    [(kind, parts)] = value.items()
    if kind == "array":
        return arrays[parts]
    decoded = {key: _decode(part, arrays, classes) for key, part in parts}
    return decoded if kind == "dict" else classes[kind](**decoded)


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


def _problem(head: Any, kind: str) -> str | None:
    """What is wrong with a file that could be read, if anything."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        return f"its header is not one of {FORMAT}"
    version = head.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        return f"its version is {version!r}; this release reads 1 to {VERSION}"
    if head.get("kind") != kind:
        return f"it holds a {head.get('kind')!r}"
    return None if "content" in head else "its header has no content"
