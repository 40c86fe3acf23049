"""Files of arrays with a JSON header: how policies and models are saved, without pickle.

A file is one ``.npz`` archive. Beside the arrays it holds a member named ``header``: UTF-8 JSON
with the name of the format, its version, the kind of thing that was saved, and its content, where
the names of the arrays stand for them. Keys of dictionaries are texts, whole numbers, or lists of
whole numbers, which stand for tuples. Nothing in it is ever executed, and the same content gives
the same bytes. A file that is damaged, forged, too large, or not one of ours is refused with a
ValueError that names the file and says what is wrong, before anything is built from it: the archive
is checked by :mod:`planners.core.archive`, and what it holds by the classes that it is made into.
"""

from __future__ import annotations

import inspect
import json
import os
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import numpy as np
from typing_extensions import Self

from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from planners.core.archive import MAX_BYTES, MAX_TEXT_BYTES, Archive

FORMAT = "exo-envs"
VERSION = 1
HEADER = "header"

T = TypeVar("T")

#: Letters of what is said about a file at most; some readers show the bytes that they do not like.
MAX_MESSAGE = 500
#: Records within records, at most.
MAX_DEPTH = 20


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to be written, which then replaces ``path`` at once; after an error it does not.

    A symbolic link stays, and what it points to is replaced.

    Raises:
        ValueError: ``path`` names no file, or something that is none: a folder, a device, a pipe.
    """
    target = _regular_file(path)
    # Not tempfile: its files are readable by their owner alone, whatever the umask says.
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _regular_file(path: str | os.PathLike[str]) -> Path:
    """The file that is written to if ``path`` is; it need not exist."""
    given = Path(path)
    if not given.name or "\0" in str(path):
        raise ArgumentError(f"{str(path)!r} names no file to write")
    target = Path(os.path.realpath(given))
    if target.is_symlink() or any(one.exists() and not one.is_file() for one in (given, target)):
        what = "a folder" if target.is_dir() else "no regular file, and would be replaced by one"
        raise ArgumentError(f"{str(path)!r} is {what}; name a file to write")
    return target


class Saved:
    """What can be saved because it keeps the arguments of its constructor, under their names."""

    #: The classes of the records among the arguments: NamedTuples and dataclasses.
    records: ClassVar[tuple[type, ...]] = ()

    def arguments(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def save(self, path: str | os.PathLike[str], *, texts: Mapping[str, str] | None = None) -> None:
        """Save to one file, without pickle; an older file of that name is replaced at once.

        Args:
            path: where to; it is used as it is, no suffix is added.
            texts: texts to keep in the same file, by names that end in ``.json``
                (:func:`read_text`).
        """
        write_file(path, type(self).__name__, self.arguments(), texts)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Self:
        """Load what :meth:`save` wrote.

        Args:
            path: the file.
            max_bytes: how much the file may hold, once it is no longer compressed.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, of another kind, or not one of ours.
        """
        return load_saved(cls, path, max_bytes=max_bytes)


def load_saved(cls: type[T], path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> T:
    """Load what is saved in a file, if it is a ``cls``; the file says which of its subclasses."""
    kinds: dict[str, tuple[Callable[..., Any], tuple[type, ...]]] = {
        kind.__name__: (kind, kind.records)
        for kind in _with_subclasses(cls)
        if issubclass(kind, Saved) and not inspect.isabstract(kind)
    }
    found: T = _read(path, cls.__name__, kinds, max_bytes)
    return found


def _with_subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    subclasses: list[type[Any]] = cls.__subclasses__()
    for subclass in subclasses:
        yield from _with_subclasses(subclass)


def write_file(
    path: str | os.PathLike[str],
    kind: str,
    content: Mapping[str, Any],
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write a file at once: whoever reads ``path`` finds the old one or the new, never half.

    Args:
        path: where to; it is used as it is, no suffix is added.
        kind: what is saved, such as ``"TabularPolicy"``; :func:`read_file` asks for the same.
        content: numbers, strings, None, arrays, and tuples, dictionaries and records of them.
        texts: texts to keep beside it, by names that end in ``.json``.
    """
    arrays: dict[str, Any] = {}
    encoded = _encode(content, "content", arrays)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "content": encoded}
    arrays[HEADER] = np.frombuffer(json.dumps(head, allow_nan=False).encode(), dtype=np.uint8)
    with replacing(path) as temporary, temporary.open("x+b") as file:
        np.savez_compressed(file, **arrays)
        if texts:
            with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
                for name, text in texts.items():
                    # A ZipInfo of its own: with a name alone, the time would be written, too.
                    archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
        file.flush()
        os.fsync(file.fileno())


def read_file(
    path: str | os.PathLike[str],
    kind: str,
    make: Callable[..., T],
    records: tuple[type, ...] = (),
    *,
    max_bytes: int = MAX_BYTES,
) -> T:
    """What ``make`` makes of the content that :func:`write_file` was given; lists are tuples.

    Args:
        path: the file.
        kind: what it should hold.
        make: is called with the content, by name. Whatever it raises is the file's fault.
        records: the classes that its records may have.
        max_bytes: how much the file may hold, once it is no longer compressed.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, of another kind, or not one of ours.
    """
    made: T = _read(path, kind, {kind: (make, records)}, max_bytes)
    return made


def read_text(path: str | os.PathLike[str], name: str, *, max_bytes: int = MAX_BYTES) -> str | None:
    """A text that :func:`write_file` put into a file, or None if it has none of that name."""
    with Path(path).open("rb") as file, _blaming(path, f"is damaged or not a file of {FORMAT}"):
        return Archive(file, max_bytes).text(name)


def _read(
    path: str | os.PathLike[str],
    wanted: str,
    kinds: Mapping[str, tuple[Callable[..., Any], tuple[type, ...]]],
    max_bytes: int,
) -> Any:
    with Path(path).open("rb") as file:
        with _blaming(path, f"is damaged or not a file of {FORMAT}"):
            archive = Archive(file, max_bytes)
            head = _read_header(archive)
        problem = _problem(head, kinds)
        if problem:
            raise ArgumentError(f"{os.fspath(path)!r} cannot be read as a {wanted}: {problem}")
        make, records = kinds[head["kind"]]
        with _blaming(path, f"does not hold a whole {head['kind']}"):
            classes = {record.__name__: record for record in records}
            content = _decode(head["content"], archive, classes)
            if not isinstance(content, dict):
                raise ArgumentError("its content has no names")
            if archive.unread:
                raise ArgumentError(f"nothing refers to the array {min(archive.unread)!r}")
            return make(**content)


@contextmanager
def _blaming(path: str | os.PathLike[str], problem: str) -> Iterator[None]:
    """Whatever goes wrong is the fault of a file: one error, which names the file and says why."""
    try:
        yield
    except Exception as error:
        said = str(error) if isinstance(error, ValueError) and str(error) else repr(error)
        shown = said if len(said) <= MAX_MESSAGE else f"{said[:MAX_MESSAGE]} ..."
        raise ArgumentError(f"{os.fspath(path)!r} {problem}: {shown}") from error


def _encode(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """A value for JSON; what is more than a number, a string or a list says what it is."""

    def encode_all(parts: Any) -> list[Any]:
        return [[key, _encode(part, f"{name}.{key}", arrays)] for key, part in parts]

    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise ArgumentError(f"the array {name!r} holds Python objects, which need pickle")
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
    raise ArgumentTypeError(f"{name!r} is a {type(value).__name__}, which no file can hold")


def _decode(value: Any, archive: Archive, classes: Mapping[str, type], depth: int = 0) -> Any:
    """What :func:`_encode` was given."""
    if depth > MAX_DEPTH:
        raise ArgumentError(f"its header is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return tuple(_decode(part, archive, classes, depth + 1) for part in value)
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ArgumentError(f"its header has a value of {len(value)} kinds")
    [(kind, parts)] = value.items()
    if kind == "array":
        return archive.array(parts)
    if kind != "dict" and kind not in classes:
        raise ArgumentError(f"its header has a {kind!r}, which does not belong there")
    if not isinstance(parts, list) or not all(map(_is_entry, parts)):
        raise ArgumentError(f"its header has a {kind!r} that is no list of names and values")
    decoded = {_key(key): _decode(part, archive, classes, depth + 1) for key, part in parts}
    if len(decoded) < len(parts):
        raise ArgumentError(f"its header has a {kind!r} that names something twice")
    return decoded if kind == "dict" else classes[kind](**decoded)


def _is_entry(part: Any) -> bool:
    """Whether it is a key and a value; a key is a text, a whole number, or several numbers."""
    if not isinstance(part, list) or len(part) != 2:
        return False
    key = part[0]
    return isinstance(key, (str, int)) or (
        isinstance(key, list) and all(isinstance(number, int) for number in key)
    )


def _key(key: Any) -> Any:
    """A key of a dictionary: JSON has lists in place of tuples."""
    return tuple(key) if isinstance(key, list) else key


def _read_header(archive: Archive) -> Any:
    if HEADER not in archive.unread:
        raise ArgumentError("it has no header")
    header = archive.array(HEADER, MAX_TEXT_BYTES)
    if header.dtype != np.uint8 or header.ndim != 1:
        raise ArgumentError("its header is no text")
    return json.loads(header.tobytes().decode(), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ArgumentError(f"its header holds {constant}")


def _problem(head: Any, kinds: Collection[str]) -> str | None:
    """What is wrong with a file that could be read, if anything."""
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        return f"its header is not one of {FORMAT}"
    version = head.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        return f"its version is {version!r}; this release reads 1 to {VERSION}"
    kind = head.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        return f"it holds a {kind!r}"
    return None if "content" in head else "its header has no content"
