"""The command line of the benchmark, and the order of its parts."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gap.chains import nested_masks
from benchmarks.gap.domains import DOMAINS, Domain, Settings
from benchmarks.gap.masks import earned_by_masks, earned_by_rules, kept_time_limits
from benchmarks.gap.rivals import other_ways
from benchmarks.gap.small import small_models
from benchmarks.gap.tables import Table, encode
from benchmarks.gap.weights import weights_of_exogrid

PARTS = ("masks", "rivals", "chains", "weights", "small")


def add_command(commands: Any) -> None:
    """The sub-command ``gap`` of scripts/benchmark.py."""
    parser = commands.add_parser("gap", help="what masks are worth, and what anybody could earn")
    parser.add_argument("--rollouts", type=int, default=2000, help="that policies are judged on")
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="all of it, on few rollouts")
    parser.add_argument("--output", type=Path, help="a Markdown file; the JSON goes beside it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the tables as they are made, and write them to files."""
    start = time.perf_counter()
    settings = Settings(arguments.rollouts, arguments.seed)
    settings = settings.quick() if arguments.quick else settings
    print(f"\n{settings}", flush=True)
    domains = [Domain(name, settings) for name in arguments.domains]
    tables: list[Table] = []
    for table in made(arguments.parts, domains, settings):
        tables.append(table)
        print(f"\n{table.to_markdown()}", flush=True)
        if arguments.output is not None:
            save(tables, arguments.output)
    print(f"\nAll of it took {time.perf_counter() - start:.0f} s.")


def made(parts: Sequence[str], domains: Sequence[Domain], settings: Settings) -> Iterator[Table]:
    """The tables of the parts that were asked for."""
    priced = [domain for domain in domains if domain.cost_weight is not None]
    if "masks" in parts:
        yield from map(earned_by_masks, domains)
        yield earned_by_rules(priced)
        yield kept_time_limits(domains)
    if "rivals" in parts:
        yield from (other_ways(domain) for domain in domains if domain.rival_mask is not None)
    if "chains" in parts:
        yield nested_masks(domains)
    if "weights" in parts:
        yield from (weights_of_exogrid(domain) for domain in domains if domain.name == "ExoGrid")
    if "small" in parts:
        yield small_models(settings)


def save(tables: list[Table], path: Path) -> None:
    """Write what there is so far, for people and for programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(table.to_markdown() for table in tables) + "\n", "utf-8")
    records = [{"title": table.title, "rows": table.rows} for table in tables]
    text = json.dumps(records, default=encode, indent=1)
    path.with_suffix(".json").write_text(text + "\n", "utf-8")
