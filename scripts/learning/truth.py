"""What the variables of our domains do by the code of these domains, and nothing else.

It is written down here a second time, from the kernels, to hold explanations against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from exo_envs import ExoMDP
from exo_envs.domains.crowd import CrowdMDP
from exo_envs.domains.factory import FactoryMDP
from exo_envs.domains.grid import GridMDP
from wrappers import Explanation
from wrappers.reports.explanation import ExplainedVariable

Names = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True)
class Truth:
    """What each variable does.

    Attributes:
        pays: the variables with a reward term.
        moves: the endogenous variables that each moves.
        acts_on: the exogenous variables whose next value each changes, itself left out.
        tells: those about whose next value each may tell something, because it depends on a common
            cause, beside what it acts on.
        constant: the variables that never vary.
    """

    pays: Names
    moves: dict[str, Names]
    acts_on: dict[str, Names]
    tells: dict[str, Names]
    constant: Names = NOTHING

    @property
    def matters(self) -> Names:
        """What pays or moves, and all that acts on it, directly or through others."""
        found = {*self.pays, *(name for name, parts in self.moves.items() if parts)}
        while more := {n for n, targets in self.acts_on.items() if targets & found} - found:
            found |= more
        return frozenset(found)


def truth_of(mdp: ExoMDP) -> Truth:
    """What the code of a domain says."""
    if isinstance(mdp, FactoryMDP):
        return _factory(mdp)
    if isinstance(mdp, CrowdMDP):
        return _crowd(mdp)
    if isinstance(mdp, GridMDP):
        return _grid(mdp)
    raise ValueError(f"there is no truth written down about {mdp!r}")


def _grid(mdp: GridMDP) -> Truth:
    names = mdp.exogenous_names
    acts_on: dict[str, Names] = dict.fromkeys(names, NOTHING)
    acts_on |= {"carrier": frozenset({"object"}), "guard_intent": frozenset({"guard"})}
    pays = frozenset({"object", "guard"})
    moves = dict.fromkeys(names, NOTHING) | dict.fromkeys(pays, frozenset({"robot"}))
    return Truth(pays, moves, acts_on, acts_on)


def _factory(mdp: FactoryMDP) -> Truth:
    names = mdp.exogenous_names
    orders, machines = names[mdp.order_slice], names[mdp.machine_slice]
    technicians, clock = names[mdp.technician_slice], names[mdp.clock_index]
    acts_on: dict[str, Names] = dict.fromkeys(names, NOTHING)
    for live, behind in pairwise(orders):
        acts_on[behind] = frozenset({live})  # it moves up when the belt moves
    acts_on[clock] = frozenset(orders)  # they move when it runs out
    acts_on |= dict.fromkeys(technicians, frozenset(machines))  # which they mend
    flag = dict.fromkeys((orders[0], clock, *machines), frozenset({"fulfilled"}))
    pays = frozenset((orders[0], *machines))
    return Truth(pays, dict.fromkeys(names, NOTHING) | flag, acts_on, acts_on)


def _crowd(mdp: CrowdMDP) -> Truth:
    names = mdp.exogenous_names
    cells, objects = names[mdp.occupancy_slice], names[mdp.object_slice]
    agents = names[mdp.agent_slice]
    carried = objects[: mdp.num_porters]
    acts_on: dict[str, Names] = dict.fromkeys(names, NOTHING)
    constant = []
    for agent in range(len(agents) // 3):
        own = agents[3 * agent : 3 * agent + 3]
        if agent < mdp.num_porters:
            block = {*own, carried[agent]}  # each looks at all four to see what to do
        else:
            block = {*own[:2]}
            constant.append(own[2])  # wanderers carry nothing
        acts_on |= {name: frozenset(block - {name}) | frozenset(cells) for name in block}
    # Who is in a cell now is seen from its neighbours next; nothing else is left of it.
    tells = acts_on | {name: frozenset(cells) - {name} for name in cells}
    moves = dict.fromkeys(names, NOTHING)
    moves |= dict.fromkeys((*cells, *objects), frozenset({"robot"}))
    return Truth(frozenset((*cells, *objects)), moves, acts_on, tells, frozenset(constant))


def contradictions(explanation: Explanation, mdp: ExoMDP) -> list[str]:
    """What rows of an explanation say that the code of the domain does not; none if all is right.

    A row is right if it names all that is paid and moved and nothing else, claims no effect on
    another variable that there cannot be, and gives no other reason for dropping a variable than
    there is.
    """
    truth = truth_of(mdp)
    return [f"{row.variable}: {wrong}" for row in explanation for wrong in _wrong(row, truth, mdp)]


def _wrong(row: ExplainedVariable, truth: Truth, mdp: ExoMDP) -> Iterator[str]:
    name, acts_on = row.variable, frozenset(row.acts_on)
    pays, others = name in truth.pays, acts_on & frozenset(mdp.exogenous_names)
    if ("reward" in acts_on) != pays:
        yield f"that it acts on the reward is {not pays}"
    if acts_on - others - {"reward"} != truth.moves[name]:
        yield f"it moves {sorted(truth.moves[name])}"
    if others - truth.acts_on[name] - truth.tells[name]:
        yield f"it cannot tell about {sorted(others - truth.acts_on[name] - truth.tells[name])}"
    role = "pays" if pays else "moves" if truth.moves[name] else "predicts" if others else None
    if row.role != role:
        yield f"its role is {role}"
    if row.decision == "dropped: no sign" and name in truth.matters:
        yield "it matters"
    if (row.decision == "dropped: never varied") != (name in truth.constant):
        yield f"that it never varies is {name in truth.constant}"
    is_unseen = row.decision in ("dropped: no sign", "dropped: too little to see")
    if is_unseen and (row.effect or 0.0) > (row.detectable or 0.0):
        yield f"{row.effect} nats would have been found"
