"""Files of arrays with a JSON head: how policies and models are saved, without pickle.

A file is one of `safetensors`: named arrays of plain numbers, and a text. The text is a checksum
and JSON: the name of the format, its version, the kind of thing that was saved, its content, where
the names of the arrays stand for them, and other texts that travel with it. Keys of dictionaries
are texts, whole numbers, or lists of whole numbers, which stand for tuples. Nothing in a file is
ever executed, and the same content gives the same bytes. A file that is damaged, forged, too large,
or not one of ours is refused with a ValueError that names the file and says what is wrong; what its
numbers mean is checked by the classes that are made of them.
"""

from __future__ import annotations

import inspect
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save
from typing_extensions import Self

from exo_envs.core.errors import ArgumentError, ArgumentTypeError

FORMAT = "exo-envs"
VERSION = 2
#: The name of the text in a file.
HEAD_NAME = "exo-envs"
#: Bytes that a file may have, unless its reader allows more.
MAX_BYTES = 2**30

T = TypeVar("T")

#: Kinds of numbers in arrays: truth values, whole numbers, real numbers.
NUMBER_KINDS = "biuf"
#: Letters of what is said about a file at most; some readers show the bytes that they do not like.
MAX_MESSAGE = 500
#: Records within records, at most.
MAX_NESTING = 20


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to be written, which then replaces ``path`` at once; after an error it does not.

    A symbolic link stays, and what it points to is replaced.

    Raises:
        ValueError: ``path`` names no file, or something that is none: a folder, a device, a pipe.
    """
    given = Path(path)
    if not given.name or "\0" in str(path):
        raise ArgumentError(f"{str(path)!r} names no file to write")
    target = Path(os.path.realpath(given))
    if target.is_symlink() or any(one.exists() and not one.is_file() for one in (given, target)):
        what = "a folder" if target.is_dir() else "no regular file, and would be replaced by one"
        raise ArgumentError(f"{str(path)!r} is {what}; name a file to write")
    # Not tempfile: its files are readable by their owner alone, whatever the umask says.
    temporary = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


class Loaded:
    """What is read from a file, which says what of its subclasses it holds."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Self:
        """Load what was saved: ``Policy.load`` a policy of any kind, alone or with a mask.

        Args:
            path: the file.
            max_bytes: bytes that the file may have.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, of another kind, or not one of ours.
        """
        kinds: dict[str, Callable[..., Any]] = {
            kind.__name__: kind
            for kind in _with_subclasses(cls)
            if issubclass(kind, Saved) and not inspect.isabstract(kind)
        }
        records = [record for kind in _with_subclasses(Saved) for record in kind.records]
        found: Self = read_file(path, cls.__name__, kinds, records, max_bytes=max_bytes)
        return found


class Saved(Loaded):
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
            texts: texts to keep in the same file, by their names (:func:`read_text`).
        """
        write_file(path, type(self).__name__, self.arguments(), texts)


def _with_subclasses(cls: type[T]) -> Iterator[type[T]]:
    yield cls
    for subclass in cls.__subclasses__():
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
        kind: what is saved, such as ``"TabularPolicy"``, which :func:`read_file` asks for.
        content: numbers, strings, None, arrays, and tuples, dictionaries and records of them.
        texts: texts to keep beside it, by their names.
    """
    arrays: dict[str, NDArray[Any]] = {}
    encoded = _encode(content, "content", arrays)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "content": encoded}
    text = json.dumps({**head, "texts": dict(texts or {})}, allow_nan=False)
    data = save(arrays, {HEAD_NAME: f"{checksum_of(text, arrays):08x} {text}"})
    with replacing(path) as temporary, temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def checksum_of(text: str, arrays: Mapping[str, NDArray[Any]]) -> int:
    """A number that nearly every change of the text or of an array changes."""
    checksum = zlib.crc32(text.encode())
    for name, array in sorted(arrays.items()):
        checksum = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), checksum)
        checksum = zlib.crc32(np.ravel(array).view(np.uint8).data, checksum)
    return checksum


def read_text(path: str | os.PathLike[str], name: str, *, max_bytes: int = MAX_BYTES) -> str | None:
    """A text that :func:`write_file` put into a file, or None if it has none of that name."""
    with Path(path).open("rb") as file, _blaming(path, f"is damaged or not a file of {FORMAT}"):
        text: str | None = _opened(file, max_bytes).head["texts"].get(name)
    return text


def read_file(
    path: str | os.PathLike[str],
    wanted: str,
    kinds: Mapping[str, Callable[..., Any]],
    records: Sequence[type] = (),
    *,
    max_bytes: int = MAX_BYTES,
) -> Any:
    """What is made of the content that :func:`write_file` was given; lists are tuples.

    Args:
        path: the file.
        wanted: what it should hold, for people.
        kinds: what it may hold: by the name of each kind a function that is called with the
            content, by name. Whatever the function raises is the file's fault.
        records: the classes that its records may have.
        max_bytes: bytes that the file may have.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, of another kind, or not one of ours.
    """
    with Path(path).open("rb") as file, _blaming(path, f"is damaged or not a file of {FORMAT}"):
        opened = _opened(file, max_bytes)
    kind = opened.head["kind"]
    if kind not in kinds:
        name = os.fspath(path)
        raise ArgumentError(f"{name!r} cannot be read as a {wanted}: it holds a {kind!r}")
    with _blaming(path, f"does not hold a whole {kind}"):
        classes = {record.__name__: record for record in records}
        content = opened.decode(opened.head["content"], classes)
        if not isinstance(content, dict):
            raise ArgumentError("its content has no names")
        unread = opened.arrays.keys() - opened.read
        if unread:
            raise ArgumentError(f"nothing refers to the array {min(unread)!r}")
        return kinds[kind](**content)


@contextmanager
def _blaming(path: str | os.PathLike[str], problem: str) -> Iterator[None]:
    """Whatever goes wrong is the fault of a file: one error, which names the file and says why."""
    try:
        yield
    except Exception as error:
        said = str(error) if isinstance(error, ValueError) and str(error) else repr(error)
        shown = said if len(said) <= MAX_MESSAGE else f"{said[:MAX_MESSAGE]} ..."
        raise ArgumentError(f"{os.fspath(path)!r} {problem}: {shown}") from error


def _encode(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value for JSON; what is more than a number, a string or a list says what it is."""

    def encode_all(parts: Any) -> list[Any]:
        return [[key, _encode(part, f"{name}.{key}", arrays)] for key, part in parts]

    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in NUMBER_KINDS:
            raise ArgumentError(f"the array {name!r} is of {value.dtype}; files hold plain numbers")
        arrays[name] = np.array(value, value.dtype.newbyteorder("="), order="C")
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


@dataclass
class _Opened:
    """A file that is whole: its head, its arrays, and those that something referred to."""

    head: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    read: set[str] = field(default_factory=set)

    def decode(self, value: Any, classes: Mapping[str, type], depth: int = 0) -> Any:
        """What :func:`_encode` was given."""
        if depth > MAX_NESTING:
            raise ArgumentError(f"its head is nested more than {MAX_NESTING} deep")
        if isinstance(value, list):
            return tuple(self.decode(part, classes, depth + 1) for part in value)
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ArgumentError(f"its head has a value of {len(value)} kinds")
        [(kind, parts)] = value.items()
        if kind == "array":
            if parts not in self.arrays:
                raise ArgumentError(f"there is no array {parts!r}")
            self.read.add(parts)
            return self.arrays[parts]
        if kind != "dict" and kind not in classes:
            raise ArgumentError(f"its head has a {kind!r}, which does not belong there")
        if not isinstance(parts, list) or not all(map(_is_entry, parts)):
            raise ArgumentError(f"its head has a {kind!r} that is no list of names and values")
        decoded: dict[Any, Any] = {
            tuple(key) if isinstance(key, list) else key: self.decode(part, classes, depth + 1)
            for key, part in parts
        }
        if len(decoded) < len(parts):
            raise ArgumentError(f"its head has a {kind!r} that names something twice")
        return decoded if kind == "dict" else classes[kind](**decoded)


def _is_entry(part: Any) -> bool:
    """Whether it is a key and a value; a key is a text, a whole number, or several numbers."""
    if not isinstance(part, list) or len(part) != 2:
        return False
    key = part[0]
    return isinstance(key, (str, int)) or (
        isinstance(key, list) and all(isinstance(number, int) for number in key)
    )


def _opened(file: BinaryIO, max_bytes: int) -> _Opened:
    """Read a file and check that it is whole; its meaning is not looked at yet."""
    if os.fstat(file.fileno()).st_size > max_bytes:
        raise ArgumentError(
            f"it has more than the {max_bytes:,} bytes that are allowed; if you trust the file, "
            "allow more with max_bytes"
        )
    data = file.read(max_bytes)
    arrays = {name: np.require(array, requirements="W") for name, array in load(data).items()}
    metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
    checksum, _, text = metadata.get(HEAD_NAME, "").partition(" ")
    if not text:
        raise ArgumentError("it has no head")
    if checksum != f"{checksum_of(text, arrays):08x}":
        raise ArgumentError("its checksum is wrong")
    head = json.loads(text, parse_constant=_refuse)
    _check_head(head)
    for name, array in arrays.items():
        if array.dtype.kind not in NUMBER_KINDS:
            raise ArgumentError(f"the array {name!r} is of {array.dtype}, not of plain numbers")
        if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ArgumentError(
                f"the array {name!r} has truth values that are neither true nor false"
            )
    return _Opened(head, arrays)


def _refuse(constant: str) -> NoReturn:
    raise ArgumentError(f"its head holds {constant}")


def _check_head(head: Any) -> None:
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ArgumentError(f"its head is not one of {FORMAT}")
    if head.get("version") != VERSION:
        raise ArgumentError(f"its version is {head.get('version')!r}; this release reads {VERSION}")
    texts = head.get("texts")
    if (
        head.keys() != {"format", "version", "kind", "content", "texts"}
        or not isinstance(head["kind"], str)
        or not isinstance(texts, dict)
        or not all(isinstance(text, str) for text in texts.values())
    ):
        raise ArgumentError("its head is not whole")
