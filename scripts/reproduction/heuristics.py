"""The mask by hand that "Greedy + heuristics" starts with (section 6.2)."""

from __future__ import annotations

from exo_envs import ExoMDP
from exo_envs.domains.crowd import CrowdMDP


def heuristic_mask(mdp: ExoMDP) -> tuple[str, ...]:
    """The mask that somebody would make by hand for ExoCrowd, for "Greedy + heuristics".

    The goal is one of the objects that porters carry, so these tell where to go. The robot has to
    get from its start to a table without running into anybody, so what matters of the floor is
    whether the straight ways are free: from the start along its row, then along the column of each
    table. (Argued before anything was run with it.)
    """
    if not isinstance(mdp, CrowdMDP) or mdp.parameters.goal != "movable":
        raise TypeError(f"the heuristics are for ExoCrowd with a movable goal, not for {mdp}")
    row, column = divmod(mdp.start, mdp.floor.columns)
    ways = set()
    for table in mdp.table_cells.tolist():
        last_row, last_column = divmod(table, mdp.floor.columns)
        ways |= {mdp.floor.cell(row, k) for k in _between(column, last_column)}
        ways |= {mdp.floor.cell(k, last_column) for k in _between(row, last_row)}
    occupancies = mdp.exogenous_names[mdp.occupancy_slice]
    wanted = {occupancies[cell] for cell in ways - {mdp.start}}
    wanted |= set(mdp.exogenous_names[mdp.object_slice][: mdp.num_porters])
    return tuple(name for name in mdp.exogenous_names if name in wanted)


def _between(first: int, last: int) -> range:
    """All numbers from the one to the other, both included."""
    return range(min(first, last), max(first, last) + 1)
