"""A folder of results, in which nothing is lost.

``settings.json`` says what made the results, ``results.jsonl`` has a line for each finished trial,
written at once. A run that was killed leaves at most a part of a line. The next run drops lines
that are no results, says so, and runs their trials again.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from typing_extensions import Self

from reproduction.provenance import commit, machine, versions
from reproduction.settings import EXPERIMENTS, METHODS, Settings
from shared.folders import Claim, FolderError

RESULTS, SETTINGS = "results.jsonl", "settings.json"
#: The last field of a line, which tells whether the others are as they were written.
CHECKSUM = "crc32"


class ResultsError(Exception):
    """A results folder that cannot be used."""


class ResultsFolder:
    """Results that are being added to; a context manager, which keeps other runs out.

    Attributes:
        path: the folder.
        notes: what was repaired.
    """

    def __init__(self, path: Path, settings: Settings, command: str | None = None) -> None:
        """Make the folder, or take up one that the same settings and code have made.

        Args:
            path: the folder.
            settings: what is to be run.
            command: what a user typed for it; the folder keeps all of them.

        Raises:
            ResultsError: if other settings or other code made it, it cannot be written to, or
                another run is using it.
        """
        self.path = path
        self.notes: list[str] = []
        try:
            with ExitStack() as stack:
                stack.enter_context(Claim(path))
                self._check(settings, command)
                self._records = self._read()
                self._file = stack.enter_context((path / RESULTS).open("ab"))
                self._stack = stack.pop_all()
        except (FolderError, OSError) as error:
            raise ResultsError(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def has(self, key: dict[str, Any]) -> bool:
        """Whether a trial is finished."""
        return _identity(key) in self._records

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write finished trials, and wait until they are on the disk."""
        records = list(records)
        self._file.write(b"".join(_line(record) for record in records))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._records.update((_identity(record["key"]), record) for record in records)

    def sort(self) -> None:
        """Put the lines into the order of their keys, whenever they were finished."""
        lines = [_line(record) for record in in_order(self._records.values())]
        if _content(self.path) != b"".join(lines):
            # A new file under the old name: there is no moment without the results.
            _replace(self.path / RESULTS, b"".join(lines))

    def _check(self, settings: Settings, command: str | None) -> None:
        file = self.path / SETTINGS
        ours = {"parameters": json.loads(json.dumps(settings.as_dict())), "versions": versions()}
        if not file.exists():
            if _content(self.path):
                raise ResultsError(
                    f"{self.path} has results but no {SETTINGS}: nobody can tell how"
                )
            informative = {"commit": commit(), "machine": machine()}
            _replace(file, _described(ours | informative, command))
            return
        theirs = read_settings(self.path)
        for part, kind in (("parameters", "other parameters"), ("versions", "other code")):
            there, here = theirs.get(part, {}), ours[part]
            differences = [
                f"{name}: {there.get(name)!r} there, {here.get(name)!r} here"
                for name in sorted({*there, *here})
                if there.get(name) != here.get(name)
            ]
            if differences:
                raise ResultsError(
                    f"{self.path} holds results of {kind}, which are not mixed with these "
                    f"({'; '.join(differences)}). Choose another folder (--output)"
                )
        if command is not None and command not in theirs["commands"]:
            _replace(file, _described(theirs, command))

    def _read(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The finished trials; lines that are none are dropped."""
        records, damaged = _parse(_content(self.path))
        if damaged:
            self.notes.append(
                f"{RESULTS} has lines that are damaged: {', '.join(map(str, damaged))}; they are "
                "dropped, their trials are run again"
            )
            _replace(self.path / RESULTS, b"".join(map(_line, records)))
        return {_identity(record["key"]): record for record in records}


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The finished trials of a folder, in the order of their keys."""
    return in_order(_parse(_content(folder))[0])


def read_settings(folder: Path) -> dict[str, Any]:
    """What made the results: "parameters", "versions", "commit", "machine", "commands"."""
    file = folder / SETTINGS
    try:
        settings: Any = json.loads(file.read_bytes())
        parts = {"parameters": dict, "versions": dict, "commands": list}
        for name, kind in parts.items():
            if not isinstance(settings.setdefault(name, kind()), kind):
                raise ValueError(f"{name!r} is {settings[name]!r}")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ResultsError(f"{file} cannot be read: {error}") from error
    return settings


def without_times(records: Iterable[dict[str, Any]]) -> bytes:
    """What the same seeds give everywhere: the lines in order, without what was measured."""
    lines = [
        _json({name: value for name, value in record.items() if name != "measured"})
        for record in in_order(records)
    ]
    return b"".join(line + b"\n" for line in lines)


def in_order(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records by their keys."""
    return sorted(records, key=lambda record: _identity(record["key"]))


def _identity(key: dict[str, Any]) -> tuple[Any, ...]:
    return (
        key["experiment"],
        key["domain"],
        key["goal"] or "",
        key["method"],
        key["cost_weight"],
        key["trial"],
    )


def _json(record: dict[str, Any]) -> bytes:
    return json.dumps(record, allow_nan=False).encode()


def _line(record: dict[str, Any]) -> bytes:
    return _json({**record, CHECKSUM: zlib.crc32(_json(record))}) + b"\n"


def _content(folder: Path) -> bytes:
    file = folder / RESULTS
    return file.read_bytes() if file.exists() else b""


def _described(settings: dict[str, Any], command: str | None) -> bytes:
    """The content of settings.json, with one more command that made the results."""
    commands = [*settings.get("commands", []), *([] if command is None else [command])]
    return json.dumps({**settings, "commands": commands}, indent=2).encode() + b"\n"


def _parse(content: bytes) -> tuple[list[dict[str, Any]], list[int]]:
    """The records, and the numbers of lines that are none."""
    records: list[dict[str, Any]] = []
    damaged: list[int] = []
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        record = _record_of(line)
        if record is None:
            damaged.append(number)
        else:
            records.append(record)
    return records, damaged


def _record_of(line: bytes) -> dict[str, Any] | None:
    """What a line says; None if it is damaged."""
    try:
        record: dict[str, Any] = json.loads(line, parse_constant=_refuse)
        checksum = record.pop(CHECKSUM, None)
        _identity(record["key"])
        numbers = [record[name] for name in ("mean_return", "standard_error", "value")]
        numbers.append(record["measured"]["seconds"])
        whole = (
            line.endswith(b"\n")
            and all(map(math.isfinite, numbers))
            and record["key"]["experiment"] in EXPERIMENTS
            and record["key"]["method"] in METHODS
            # Lines that somebody else wrote have no checksum.
            and checksum in (None, zlib.crc32(_json(record)))
        )
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None
    return record if whole else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _replace(file: Path, content: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    new = file.with_name(file.name + ".new")
    with new.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
