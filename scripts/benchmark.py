"""Benchmarks: `python scripts/benchmark.py step`, `plan`, `information`, `planted`, `learn`, `gap`,
`rl`, `rddl`, `trace`, `refit`, `certify`, `coverage`; `all` is one table of what is to be fast,
before and now.

Timings on a shared machine are noisy, so contenders take turns and the best round of each counts;
compare figures of one run, as ratios.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np

import exo_envs
from benchmarks import (
    certify,
    coverage,
    gap,
    information,
    learn,
    plan,
    planted,
    rddl,
    refit,
    rl,
    step,
    table,
    trace,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for benchmark in (
        *(
            step,
            plan,
            information,
            planted,
            learn,
            gap,
            rl,
            rddl,
            trace,
            refit,
            certify,
            coverage,
            table,
        ),
    ):
        benchmark.add_command(commands)
    arguments = parser.parse_args()
    print(f"exo-envs {exo_envs.__version__}, gymnasium {gym.__version__}, numpy {np.__version__}")
    arguments.run(arguments)


if __name__ == "__main__":
    main()
