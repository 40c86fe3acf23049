"""Worker processes that do not outlive whoever started them."""

from __future__ import annotations

import os
import signal
import threading
import time

#: Seconds between two looks at the parent.
LOOK = 0.5


def start_worker(parent: int) -> None:
    """What a new worker does first, given the process that started it.

    A worker ends soon after its parent, whatever ended that: also SIGKILL, of which nobody is
    told. (Linux could send a signal then, but does so when the *thread* ends that started the
    worker.) Ctrl-C reaches all processes of a terminal; what to do about it is the parent's
    business.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)
