"""The sources that are measured: those here, and those of an earlier commit."""

from __future__ import annotations

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

#: The last commit before the rooms were put in order.
BEFORE = "74c3e86f50457b7db585e82c34f94fd223ee13cc"


def commit_of(revision: str) -> str | None:
    """The full hash of a revision; None if it is not here, or if there is no Git."""
    return git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") or None


def describe_now() -> str:
    """The commit of the sources here, and whether they were changed since."""
    commit = commit_of("HEAD")
    if commit is None:
        return "no commit"
    changed = git("status", "--porcelain", "--untracked-files=no")
    return commit[:12] + (", with changes" if changed else "")


def tree_of(commit: str, folder: Path) -> Path:
    """The sources of a commit, in a folder that is kept: what Numba compiles is beside them."""
    tree = folder / commit
    if not tree.exists():
        unfinished = folder / f"{commit}.part"
        shutil.rmtree(unfinished, ignore_errors=True)
        archive = subprocess.run(
            ["git", "archive", "--format=zip", commit], cwd=ROOT, check=True, capture_output=True
        ).stdout
        zipfile.ZipFile(io.BytesIO(archive)).extractall(unfinished)
        unfinished.rename(tree)
    return tree


def git(*arguments: str) -> str:
    """What Git prints about the repository here; nothing if it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
