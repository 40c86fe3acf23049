"""Hyper-parameters of learners, in scikit-learn's vocabulary: the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from typing_extensions import Self

from exo_envs.core.errors import unknown_name


@dataclass(kw_only=True)
class HyperParameters:
    """What a learner is told: its fields, which are stored as they are."""

    def clone(self) -> Self:
        """Another learner with the same hyper-parameters, not fitted."""
        return replace(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The hyper-parameters."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters."""
        for name, value in params.items():
            if name not in self.get_params():
                raise unknown_name("hyper-parameter", name, self.get_params())
            setattr(self, name, value)
        return self
