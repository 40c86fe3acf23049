"""Folders that a script writes to: made, tried and kept for one run, before work begins."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import IO
from uuid import uuid4

from typing_extensions import Self

try:
    import fcntl
except ImportError:  # not on Windows, where nobody is kept out
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
#: Bytes that must fit on the disk when a run starts.
ROOM = 1 << 20
#: Names of what is being written: hidden, and with a number that nobody else has.
PART = re.compile(r"\..*[0-9a-f]{32}")


class FolderError(Exception):
    """A folder that cannot be written to."""


class Claim:
    """A folder that one run may write to, until it is closed or its process ends."""

    def __init__(self, folder: Path) -> None:
        """Make the folder and see that there is room in it.

        Raises:
            FolderError: if it cannot be written to, or another run is writing to it.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _try_out(folder)
            self._file = (folder / LOCK).open("a+", encoding="utf-8")
        except FileExistsError as error:
            raise FolderError(f"{folder} is a file, not a folder") from error
        except OSError as error:
            reason = error.strerror or error
            raise FolderError(f"cannot write to {folder}: {reason}") from error
        try:
            _lock(self._file, folder)
        except BaseException:
            self.close()
            raise
        remove_parts(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others in."""
        self._file.close()


def remove_parts(folder: Path) -> None:
    """Remove what was being written to a folder when a run was killed."""
    for path in folder.iterdir():
        if PART.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                path.unlink()


def _try_out(folder: Path) -> None:
    trial = folder / f".{uuid4().hex}"
    try:
        with trial.open("wb", buffering=0) as file:
            written = file.write(bytes(ROOM))
            while written < ROOM:  # a disk that is nearly full takes a part, then refuses
                written += file.write(bytes(ROOM - written))
            os.fsync(file.fileno())
    finally:
        trial.unlink(missing_ok=True)


def _lock(file: IO[str], folder: Path) -> None:
    """Keep others out until the file is closed, by whatever death."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        process = file.read().strip()
        who = f"another run (process {process})" if process else "another run"
        raise FolderError(f"{who} is writing to {folder}") from error
    except OSError:  # this disk has no locks
        return
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
