"""Who moves what: a variable is exogenous if no action reaches it, directly or through others."""

from __future__ import annotations

from exo_envs.sources.rddl.errors import RDDLRefusedError
from exo_envs.sources.rddl.nodes import leaves
from exo_envs.sources.rddl.process import Process


def find_exogenous(process: Process) -> tuple[str, ...]:
    """The variables that no action reaches, in the order of the description."""
    looks_at = {
        name: {node.value for op in ("state", "next") for node in leaves([root], op)}
        for name, root in process.following.items()
    }
    endogenous = {name for name, root in process.following.items() if leaves([root], "action")}
    while True:
        more = {name for name, seen in looks_at.items() if seen & endogenous} - endogenous
        if not more:
            return tuple(name for name in process.kinds if name not in endogenous)
        endogenous |= more


def check_shared_draws(process: Process, exogenous: tuple[str, ...]) -> None:
    """Refuse a draw that both n' and x' look at: given the state, they would not be independent.

    Draws that several exogenous variables share are noted; x' is drawn as a whole.
    """
    inside = {name: set(process.draws([process.following[name]])) for name in process.kinds}
    for name in process.kinds:
        if name in exogenous:
            continue
        for other in exogenous:
            shared = inside[name] & inside[other]
            if shared:
                distribution = next(iter(shared))[0]
                raise RDDLRefusedError(
                    "shared-draw",
                    f"one {distribution} draw moves both the endogenous {name!r} and the exogenous "
                    f"{other!r}; P(s'|s,a) would not be P(n'|n,a,x) P(x'|x)",
                )
    together = sorted(
        name
        for name in exogenous
        if any(inside[name] & inside[other] for other in exogenous if other != name)
        or leaves([process.following[name]], "next")
    )
    if together:
        process.notes.append(
            "given x, these are not drawn independently of each other: " + ", ".join(together)
        )


def parents_of(process: Process, exogenous: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The exogenous variables that each exogenous variable looks at."""
    settled = process.settled([process.following[name] for name in exogenous])
    return {
        name: tuple(other for other in exogenous if other in process.looks_at(root))
        for name, root in zip(exogenous, settled, strict=True)
    }
