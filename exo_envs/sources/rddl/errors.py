"""What is said of an RDDL description that cannot be a model of this suite, or hardly."""

from __future__ import annotations

from exo_envs.core.errors import ArgumentError


class RDDLRefusedError(ArgumentError):
    """The description cannot be represented exactly; ``reason`` is one short name of why.

    Attributes:
        reason: ``partially-observable``, ``unsupported-operation``, ``unbounded``,
            ``real-actions``, ``too-many-actions``, ``next-state``, ``shared-draw``, ``reward``,
            ``initial-state`` or ``cycle``.
    """

    def __init__(self, reason: str, message: str) -> None:
        """Name the reason and say which fluent it is about."""
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class NoExogenousFluentsWarning(UserWarning):
    """Every fluent of the description is moved by actions: there is nothing to mask."""
