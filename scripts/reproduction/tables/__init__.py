"""The results as tables: means and 95 % intervals over trials, the paper's figures beside.

table: what a table is · averages: results by their keys, and means of them · small_domain (section
6.1) · large_domains, growing_masks (6.2) · goals (6.3) · readings (5.3).
"""

from reproduction.tables.averages import (
    Records,
    average,
    cost_weights_of,
    methods_of,
    select,
)
from reproduction.tables.goals import differing_variables, goal_tables
from reproduction.tables.growing_masks import curve_of, curve_tables, turning_point
from reproduction.tables.large_domains import large_tables
from reproduction.tables.readings import reading_tables
from reproduction.tables.small_domain import growth, growth_table, small_tables
from reproduction.tables.table import Cell, Table, show

__all__ = [
    "Cell",
    "Records",
    "Table",
    "average",
    "cost_weights_of",
    "curve_of",
    "curve_tables",
    "differing_variables",
    "goal_tables",
    "growth",
    "growth_table",
    "large_tables",
    "methods_of",
    "reading_tables",
    "select",
    "show",
    "small_tables",
    "turning_point",
]
