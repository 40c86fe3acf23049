"""What a bug is, and whether ``fit`` names it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from exo_envs import ExoMDP
from reliability.user_models import Changed, Ferry, Market

#: What takes (the model, the arguments, a function that gives the right answer) to an answer.
Change = Callable[[Any, tuple[Any, ...], Callable[[], Any]], Any]
MODELS: tuple[type[ExoMDP], ...] = (Market, Ferry)


@dataclass(frozen=True)
class Bug:
    """One mistake in one model.

    Attributes:
        kind: the kind of mistake.
        variant: which of the kind, for people.
        make: makes the model.
        words: regular expressions; all of them are in the message that names the bug.
        error: what ``fit`` should end in.
    """

    kind: str
    variant: str
    make: Callable[[], ExoMDP]
    words: tuple[str, ...]
    error: tuple[type[BaseException], ...] = (ValueError, TypeError)

    def __str__(self) -> str:
        return f"{self.kind}: {self.variant}"


def missed(bug: Bug, fit: Callable[[ExoMDP], Any]) -> str | None:
    """What is wrong with how ``fit`` takes a bug; None if it names it."""
    try:
        fit(bug.make())
    except bug.error as error:
        wanted = [word for word in bug.words if not re.search(word, str(error))]
        return f"{bug}: {str(error)!r} does not name {wanted}" if wanted else None
    except Exception as error:  # noqa: BLE001 - any other one is the finding
        return f"{bug}: {type(error).__name__}: {error}"
    return f"{bug}: not noticed"


def changed(
    kind: str, variant: str, model: type[ExoMDP], method: str, change: Change, *words: str
) -> Bug:
    """A model of which one method is another; its name is in the message, or the words are."""
    return Bug(
        kind,
        f"{variant} ({model.__name__})",
        lambda: Changed(model(), **{method: change}),
        words or (method,),
    )


def whole_answer(edit: Callable[[Any], Any]) -> Change:
    """Edit the whole answer of a method."""
    return lambda _, __, right: edit(np.array(right()))
