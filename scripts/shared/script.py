"""How a script ends: with one line about what stopped it, and with an exit code that tells.

0 is success and 1 a failure. 2 is a mistake in what was given, found before any work. 130 and 143
are what a shell reports of Ctrl-C and of SIGTERM.
"""

from __future__ import annotations

import errno
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

FAILED, MISTAKE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
#: What is wrong with a disk or a folder, not with a program.
DISK_ERRORS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    errno.EEXIST,
    *(errno.EMFILE, errno.ENFILE, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ESTALE),
}


class ScriptError(Exception):
    """Something that was asked for cannot be done, for a reason that one line tells."""


def this_command(output: Path) -> str:
    """What was typed to start this script, for a shell; it names the folder it writes to."""
    typed = sys.orig_argv
    named = any(part.split("=")[0] == "--output" for part in typed)
    return shlex.join([*typed, *([] if named else ["--output", str(output)])])


def run_script(main: Callable[[], int | None]) -> NoReturn:
    """Run a script that can be stopped at any moment and goes on when it is started again.

    SIGTERM ends it as Ctrl-C does: what is open is closed, workers are ended.

    Args:
        main: the script. It raises SystemExit with a text about a mistake in what was given.
    """
    _silence()
    stopped_by = {"Ctrl-C": INTERRUPTED}

    def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing shall disturb the clearing up
        stopped_by.clear()
        stopped_by["SIGTERM"] = TERMINATED
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    kept = f"What is finished is kept. To go on: {shlex.join(sys.orig_argv)}"
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        ((name, code),) = stopped_by.items()
        print(f"\nstopped by {name}. {kept}", file=sys.stderr)
        sys.stdout.flush()
        os._exit(code)  # what libraries do at exit may wait for what was interrupted
    except SystemExit as error:
        if not isinstance(error.code, str):
            raise
        line, code = error.code, MISTAKE
    except ScriptError as error:
        line, code = f"error: {error} {kept}", FAILED
    except MemoryError:
        line, code = f"error: out of memory. {kept}", FAILED
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        line, code = f"error: cannot read or write ({reason}); that is lost. {kept}", FAILED
    print(line, file=sys.stderr)
    sys.exit(code)


def _silence() -> None:
    """Keep what libraries say of themselves out of the output; errors are exceptions."""
    logging.disable(logging.CRITICAL)
    # Those that clear up after a killed run would complain, in processes of their own.
    modules = ("joblib.externals.loky.backend.resource_tracker", "multiprocessing.resource_tracker")
    ignored = ",".join(f"ignore::UserWarning:{module}" for module in modules)
    os.environ.setdefault("PYTHONWARNINGS", ignored)
