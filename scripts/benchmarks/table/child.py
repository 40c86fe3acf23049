"""The process that measures one row on one tree: `python child.py JOB`, a job as JSON.

The packages and the training scripts are those of the tree. The table is that of the folder that
this file is in. What it measures with (``benchmarks.step`` and the like) is that of a tree that has
a table, too, because it imports from rooms, which move. The last line of the output is JSON.
"""

from __future__ import annotations

import contextlib
import cProfile
import gc
import importlib.util
import json
import os
import pstats
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.table.contests import Contest

SCRIPTS = Path(__file__).resolve().parents[2]
#: Functions of a profile.
MOST_FUNCTIONS = 10


def main() -> None:
    """Do the job, and print what came of it."""
    job = json.loads(sys.argv[1])
    choose_cores(job["cores"])  # before NumPy and Numba count them
    sys.path[0] = str(SCRIPTS)
    import benchmarks
    from benchmarks.table.contests import CONTESTS

    tree = Path(job["tree"]).resolve()
    sys.path[0] = str(tree / "scripts")
    if (tree / "scripts" / "benchmarks" / "table").is_dir():
        benchmarks.__path__.insert(0, str(tree / "scripts" / "benchmarks"))
    check_tree(tree)
    with contextlib.redirect_stdout(sys.stderr):
        contest = CONTESTS[job["contest"]](seconds=job["seconds"], **job["options"])
        result = profiled(contest) if job["profile"] else measured(contest, job["rounds"])
    print(json.dumps(result))


def choose_cores(number: int | None) -> None:
    """Use so many of the cores that this process may use, or all of them."""
    if number is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])


def check_tree(tree: Path) -> None:
    """The packages must be those of the tree, not of an installation."""
    found = importlib.util.find_spec("exo_envs")
    if found is None or found.origin is None or not Path(found.origin).is_relative_to(tree):
        place = None if found is None else found.origin
        raise SystemExit(f"error: exo_envs is imported from {place}, not from {tree}")


def measured(contest: Contest, rounds: int) -> dict[str, Any]:
    """All rounds of ours and of the peers, which take turns."""
    contest.warm_up()
    gc.collect()
    gc.freeze()  # or each pays for the garbage collector's walks through the others
    ours: list[float] = []
    peers: dict[str, list[float]] = {name: [] for name in contest.peers}
    for _ in range(rounds):
        ours.append(contest.ours())
        for name, run in contest.peers.items():
            peers[name].append(run())
    return {"ours": ours, "peers": peers, **vars(contest.remark()), "peak": peak_memory()}


def peak_memory() -> float | None:
    """Megabytes of this process at its peak; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def profiled(contest: Contest) -> dict[str, Any]:
    """The functions of one round of ours that take most time themselves."""
    if contest.profile is not None:
        return {"profile": contest.profile()}
    contest.warm_up()
    profiler = cProfile.Profile()
    profiler.runcall(contest.ours)
    rows = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in rows.values())
    slowest = sorted(rows.items(), key=lambda item: -item[1][2])[:MOST_FUNCTIONS]
    lines = [f"{total:9.3f} s  in all"]
    for (file, line, function), (_, calls, own, _, _) in slowest:
        place = "" if file == "~" else f"  {short(file)}:{line}"
        lines.append(f"{own:9.3f} s  {calls:>9,} calls  {function}{place}")
    return {"profile": lines}


def short(file: str) -> str:
    """The last three parts of a path."""
    return "/".join(Path(file).parts[-3:])


if __name__ == "__main__":
    main()
