"""Section 6.2: large domains, the paper's figures beside ours."""

from __future__ import annotations

from reproduction.settings import CROWD, FACTORY, METHODS, PAPER
from reproduction.tables.averages import Records, average, difference, methods_of, select
from reproduction.tables.growing_masks import curve_tables
from reproduction.tables.table import Cell, Table

#: What the paper's table says about each domain, and what we add to it: every one earns less than
#: the next.
_FULL = (("first phase", "paper"), ("first phase", "ours"), ("paper", "ours"))
ORDERINGS = {
    FACTORY: (("greedy", "first phase"), *_FULL),
    CROWD: (("greedy + heuristics", "first phase"), *_FULL),
}


def large_tables(records: Records) -> list[Table]:
    """The paper's table, and whether its orderings hold."""
    large = [r for r in select(records, experiment="large") if r["key"]["method"] != "curve"]
    if not large:
        return []
    rows: list[tuple[Cell, ...]] = []
    for domain in (FACTORY, CROWD):
        there = select(large, domain=domain)
        for method in methods_of(there):
            found = select(there, method=method)
            published = PAPER.get((domain, method))
            rows.append(
                (
                    METHODS[method],
                    domain,
                    average(found, "returns"),
                    None if published is None else published.mean_return,
                    average(found, "seconds"),
                    None if published is None else published.seconds,
                    average(found, "variables"),
                    average(found, "J"),
                    found[0]["key"]["cost_weight"],
                    len(found),
                )
            )
    columns = (
        *("algorithm", "domain", "average true returns", "the paper's returns"),
        *("seconds for a run", "the paper's seconds", "variables", "J", "λ", "trials"),
    )
    tables = [Table("Large domains", columns, tuple(rows)), *curve_tables(records)]
    orderings = orderings_table(large)
    return tables if orderings is None else [tables[0], orderings, *tables[1:]]


def orderings_table(records: Records) -> Table | None:
    """Whether the paper's orderings hold."""
    rows: list[tuple[Cell, ...]] = []
    for domain, pairs in ORDERINGS.items():
        for low, high in pairs:
            less, more = (select(records, domain=domain, method=m) for m in (low, high))
            if not less or not more:
                continue
            first, second = average(less, "returns"), average(more, "returns")
            ratio = second.mean / first.mean if first.mean > 0 else None
            rows.append(
                (
                    domain,
                    f"{METHODS[low]} < {METHODS[high]}",
                    difference(more, less, "returns"),
                    difference(more, less, "J"),
                    difference(more, less, "seconds"),
                    "yes" if first.high < second.low else "no",
                    None if ratio is None else round(ratio, 2),
                )
            )
    columns = (
        *("domain", "ordering", "difference of returns", "of J", "of seconds"),
        *("disjoint intervals of returns", "ratio of returns"),
    )
    note = "Differences are paired by trial, because methods share seeds; intervals are not."
    return Table("Orderings", columns, tuple(rows), note) if rows else None
