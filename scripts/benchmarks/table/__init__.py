"""`python scripts/benchmark.py all`: one table of what is fast, before and now.

rows: what is measured, and what is to be reached · contests: how each row is measured, beside a
peer or a limit · child: the process that measures · trees: the sources of an earlier commit ·
runner: which process measures what, and when · report: the table.

Only ``child`` and what it calls import NumPy or the suite, once the cores are chosen.
"""

from benchmarks.table.command import add_command

__all__ = ["add_command"]
