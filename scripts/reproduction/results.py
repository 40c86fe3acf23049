"""A folder of results, in which nothing is lost.

``settings.json`` says what made the results, ``results.jsonl`` has a line for each finished trial,
written at once. A run that was killed leaves at most a part of a line, which the next run drops.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from typing_extensions import Self

from reproduction.provenance import commit, machine, versions
from reproduction.settings import Settings

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

RESULTS, SETTINGS = "results.jsonl", "settings.json"


class ResultsError(Exception):
    """A results folder that cannot be used."""


class ResultsFolder:
    """Results that are being added to; a context manager, which keeps other runs out.

    Attributes:
        path: the folder.
        notes: what was repaired.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        """Make the folder, or take up one that the same settings and code have made.

        Raises:
            ResultsError: if other settings or other code made it, or another run is using it.
        """
        self.path = path
        self.notes: list[str] = []
        path.mkdir(parents=True, exist_ok=True)
        self._file = (path / RESULTS).open("a+b")
        try:
            _lock(self._file, path)
            self._check(settings)
            self._records = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

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
        self._file.seek(0)
        if self._file.read() != b"".join(lines):
            # A new file under the old name: there is no moment without the results.
            _replace(self.path / RESULTS, b"".join(lines))

    def _check(self, settings: Settings) -> None:
        file = self.path / SETTINGS
        ours = {"parameters": json.loads(json.dumps(settings.as_dict())), "versions": versions()}
        if not file.exists():
            if os.fstat(self._file.fileno()).st_size:
                raise ResultsError(
                    f"{self.path} has results but no {SETTINGS}: nobody can tell how"
                )
            informative = {"commit": commit(), "machine": machine()}
            _replace(file, json.dumps(ours | informative, indent=2).encode() + b"\n")
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

    def _read(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The finished trials; a part of a line at the end is dropped."""
        self._file.seek(0)
        content = self._file.read()
        records, good = _parse(content, self.path)
        if good < len(content):
            self._file.truncate(good)
            self.notes.append(
                f"the last line of {RESULTS} was not complete ({len(content) - good} bytes): "
                "it is dropped, its trial is run again"
            )
        return {_identity(record["key"]): record for record in records}


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The finished trials of a folder, in the order of their keys."""
    file = folder / RESULTS
    return in_order(_parse(file.read_bytes(), folder)[0]) if file.exists() else []


def read_settings(folder: Path) -> dict[str, Any]:
    """What made the results: "parameters", "versions", "commit", "machine"."""
    file = folder / SETTINGS
    try:
        settings: dict[str, Any] = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ResultsError(f"{file} cannot be read: {error}") from error
    return settings


def without_times(records: Iterable[dict[str, Any]]) -> bytes:
    """What the same seeds give everywhere: the lines in order, without what was measured."""
    lines = [
        _line({name: value for name, value in record.items() if name != "measured"})
        for record in in_order(records)
    ]
    return b"".join(lines)


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


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _parse(content: bytes, folder: Path) -> tuple[list[dict[str, Any]], int]:
    """The records, and how many bytes of the content are complete lines."""
    records: list[dict[str, Any]] = []
    good = 0
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError("no end of line")
            record = json.loads(line)
            _identity(record["key"])
        except (ValueError, KeyError, TypeError) as error:
            if good + len(line) == len(content):
                break
            raise ResultsError(f"{folder / RESULTS}, line {number}: no result ({error})") from error
        records.append(record)
        good += len(line)
    return records, good


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep others out until the file is closed, by whatever death."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ResultsError(f"another run is writing to {path}") from error


def _replace(file: Path, content: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    new = file.with_name(file.name + ".new")
    with new.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
