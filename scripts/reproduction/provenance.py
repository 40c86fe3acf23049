"""What made the results: versions, a fingerprint of the code, the commit."""

from __future__ import annotations

import hashlib
import inspect
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import exo_envs
import planners
import wrappers
from reproduction import curve, experiments, heuristics


def versions() -> dict[str, str]:
    """All that decides what a trial finds; the same here and on every worker."""
    return {
        "python": platform.python_version(),
        "exo-envs": exo_envs.__version__,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "code": _fingerprint(),
    }


@cache
def _fingerprint() -> str:
    """A hash of the sources that a trial runs through, as they were when this process asked."""
    code = hashlib.sha256()
    for package in (exo_envs, planners, wrappers):
        root = Path(inspect.getfile(package)).parent
        for path in sorted(root.rglob("*.py")):
            code.update(path.relative_to(root).as_posix().encode())
            code.update(path.read_bytes().replace(b"\r\n", b"\n"))
    for module in (experiments, curve, heuristics):  # on a cluster they come out of an archive
        code.update(inspect.getsource(module).encode())
    return code.hexdigest()[:16]


def commit() -> str | None:
    """The commit that is checked out, if that can be told."""
    git = Path(__file__).resolve().parents[2] / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        if (git / name).exists():
            return (git / name).read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)


def machine() -> dict[str, Any]:
    """Where times were measured."""
    import joblib

    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": joblib.cpu_count(),
    }
