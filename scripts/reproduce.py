"""The paper's experiments (section 6), as one command, in parallel.

    python scripts/reproduce.py all              # with the paper's settings
    python scripts/reproduce.py all --quick      # small: two minutes
    python scripts/reproduce.py small --trials 10         # section 6.1 alone
    python scripts/reproduce.py large --backend dask --address tcp://host:8786

Results go to a folder, one line for each finished trial. The same command
again goes on where the last one stopped or was killed; other parameters need
another folder. In the end there are tables (Markdown), plots and a report
(HTML) in it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction.backends import BACKENDS, BackendError
from reproduction.output import write_tables
from reproduction.report import write_report
from reproduction.results import ResultsError
from reproduction.runner import run
from reproduction.settings import EXPERIMENTS, Settings
from shared.script import run_script, this_command

#: Trials at a time at most: each has a process.
MOST_JOBS = 1024


def main() -> None:
    arguments = parse()
    folder = arguments.output or Path("outputs") / (
        "reproduction-quick" if arguments.quick else "reproduction"
    )
    trials = arguments.trials or (2 if arguments.quick else Settings.trials)
    experiments = EXPERIMENTS if arguments.experiment == "all" else (arguments.experiment,)
    try:
        settings = Settings(trials=trials, seed=arguments.seed)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from error
    try:
        run(
            settings.quick() if arguments.quick else settings,
            experiments,
            folder,
            backend=arguments.backend,
            jobs=arguments.jobs,
            address=arguments.address,
            command=this_command(folder),
        )
    except (ResultsError, BackendError) as error:
        raise SystemExit(f"error: {error}") from error
    for path in (*write_tables(folder), write_report(folder)):
        print(path)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", choices=(*EXPERIMENTS, "all"))
    parser.add_argument("--trials", type=positive, help="of each method (50; 2 with --quick)")
    parser.add_argument("--quick", action="store_true", help="small enough for a test")
    parser.add_argument("--output", type=Path, help="the folder of the results")
    parser.add_argument(
        "--jobs", type=jobs, default=-1, help="trials at a time (default: as many as cores)"
    )
    parser.add_argument("--backend", choices=BACKENDS, default="loky")
    parser.add_argument("--address", help="of a Dask or Ray cluster")
    parser.add_argument("--seed", type=int, default=0, help="all trials' seeds follow from it")
    return parser.parse_args()


def positive(text: str) -> int:
    """A whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return number


def jobs(text: str) -> int:
    """A whole number above 0, or -1 for all cores."""
    number = -1 if text == "-1" else positive(text)
    if number > MOST_JOBS:
        raise argparse.ArgumentTypeError(f"there are at most {MOST_JOBS}, not {text}")
    return number


if __name__ == "__main__":
    run_script(main)
