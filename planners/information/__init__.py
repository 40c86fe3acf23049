"""Who predicts whom, counted in rollouts of the exogenous variables.

* ``rollouts``: the data, rollouts of x that need no policy.
* ``contingency``: samples by joint value, information, conditional tables.
* ``g_statistic``: the G statistic, of a whole table or of its used cells.
* ``significance``: whether a G is more than chance.
* ``pairwise``: information of many candidates about one target.
* ``counting_kernels``: the loops behind both kinds of counting.
* ``duplicates``: variables that say the same.
* ``forward_selection``: choosing variables one by one.
* ``parents``: the parents of a variable, chosen and explained.
* ``closure``: adding parents of parents, as far as there is room.
* ``transitions``: what the search for parents counts.
* ``interventions``: which variables act on which, by changing them.
* ``same_process``: whether two models have the same exogenous process.
* ``resolution``: what bins of very many values hide.
* ``group_testing``: the same for many variables at once, by halving.
* ``nearest_neighbours``: information between real variables without bins.
* ``cross_check``: what bins and neighbours say about the same pairs.
"""

from planners.chi_squared import chi_squared_log_tail, chi_squared_quantile
from planners.information.closure import close_under_parents
from planners.information.contingency import (
    Cases,
    Rows,
    conditional_information,
    count_table,
    smooth,
)
from planners.information.duplicates import Duplicates
from planners.information.forward_selection import select_forward
from planners.information.group_testing import NUM_TESTS, Tiled, draw_probes, find_relevant
from planners.information.interventions import actors_of, influence, influence_given
from planners.information.nearest_neighbours import (
    NeighbourTest,
    neighbour_information,
    neighbour_test,
)
from planners.information.neighbour_check import CheckedEdge, CrossCheck, cross_check
from planners.information.pairwise import Columns, pairwise_information
from planners.information.parents import Evidence, ParentSearch
from planners.information.resolution import hidden_in_bins
from planners.information.rollouts import HOLD_OUT, ExogenousData
from planners.information.same_process import (
    ProcessComparison,
    ProcessDifference,
    compare_processes,
)
from planners.information.significance import (
    Information,
    Null,
    compare_histograms,
)
from planners.information.transitions import TransitionCounts

__all__ = [
    "HOLD_OUT",
    "NUM_TESTS",
    "Cases",
    "CheckedEdge",
    "Columns",
    "CrossCheck",
    "Duplicates",
    "Evidence",
    "ExogenousData",
    "Information",
    "NeighbourTest",
    "Null",
    "ParentSearch",
    "ProcessComparison",
    "ProcessDifference",
    "Rows",
    "Tiled",
    "TransitionCounts",
    "actors_of",
    "chi_squared_log_tail",
    "chi_squared_quantile",
    "close_under_parents",
    "compare_histograms",
    "compare_processes",
    "conditional_information",
    "count_table",
    "cross_check",
    "draw_probes",
    "find_relevant",
    "hidden_in_bins",
    "influence",
    "influence_given",
    "neighbour_information",
    "neighbour_test",
    "pairwise_information",
    "select_forward",
    "smooth",
]
