"""Learned masks as files: JSON, with everything that says where a mask comes from."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from exo_envs import as_mdp
from planners import replacing

FORMAT, VERSION = "exo-envs mask", 1
PACKAGES = ("exo-envs", "gymnasium", "numba", "numpy")


@dataclass(frozen=True)
class SavedMask:
    """A mask, and how it was learned.

    Attributes:
        mask: the names of the variables that it keeps.
        names: all exogenous variables of the model.
        spec: of the environment, as Gymnasium writes it; None if there is none.
        seed: what all randomness was derived from.
        learner: the class and the hyper-parameters that JSON can hold.
        status: "finished", "time limit" or "interrupted".
        objective: J, the mean return and its standard error, and the rollouts they come from;
            None if the mask was never played.
        versions: of Python and of the packages that matter.
    """

    mask: tuple[str, ...]
    names: tuple[str, ...]
    spec: dict[str, Any] | None
    seed: int
    learner: dict[str, Any]
    status: str
    objective: dict[str, float | None] | None
    versions: dict[str, str]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file at once: whoever reads ``path`` finds the old one or the new."""
        text = json.dumps(
            {"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2, allow_nan=False
        )
        with replacing(path) as part:
            part.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedMask:
        """Read what :meth:`save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or holds something else.
        """
        where = os.fspath(path)
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{where!r} does not hold a mask: it is not JSON ({error})") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{where!r} does not hold a mask: its format is not {FORMAT!r}")
        if content.get("version") != VERSION:
            raise ValueError(
                f"{where!r} has version {content.get('version')!r} of the format; this is {VERSION}"
            )
        return cls._checked(where, content)

    @classmethod
    def _checked(cls, where: str, content: Mapping[str, Any]) -> SavedMask:
        wanted: dict[str, Any] = {
            "mask": list,
            "names": list,
            "spec": (dict, type(None)),
            "seed": int,
            "learner": dict,
            "status": str,
            "objective": (dict, type(None)),
            "versions": dict,
        }
        for name, kinds in wanted.items():
            value = content.get(name, ...)
            if not isinstance(value, kinds) or (name == "seed" and isinstance(value, bool)):
                raise ValueError(f"{where!r} does not hold a whole mask: {name!r} is missing")
            if name in ("mask", "names") and (
                not all(isinstance(entry, str) for entry in value) or len(set(value)) < len(value)
            ):
                raise ValueError(f"{where!r}: {name!r} is not a list of different names")
        parts = {name: content[name] for name in wanted}
        parts |= {name: tuple(content[name]) for name in ("mask", "names")}
        unknown = set(parts["mask"]).difference(parts["names"])
        if unknown:
            raise ValueError(f"{where!r} keeps {sorted(unknown)}, which it does not name")
        return cls(**parts)

    def check(self, mdp_or_env: Any) -> None:
        """Refuse a model with other exogenous variables than the mask was learned on."""
        names = as_mdp(mdp_or_env).exogenous_names
        if names != self.names:
            raise ValueError(
                f"the mask was learned on {len(self.names)} exogenous variables "
                f"({', '.join(self.names[:3])} ...), not on the {len(names)} of this model "
                f"({', '.join(names[:3])} ...)"
            )


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that matter."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
