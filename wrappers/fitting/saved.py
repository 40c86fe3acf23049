"""Learned masks as files: JSON, with everything that says where a mask comes from.

A file with a policy is the policy's own (:mod:`planners.core.files`), in which the JSON is a text
named ``mask.json``. So one file has both, and ``Policy.load`` reads it too.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exo_envs.core.arguments import check_real
from exo_envs.core.batches import as_actions
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import ExoMDP
from exo_envs.sources.simulators.conversion import as_mdp
from planners.core.files import Saved, read_text, replacing
from planners.core.policy import Policy

FORMAT, VERSION = "exo-envs mask", 1
#: The name of the mask in a file that has the policy, too.
MEMBER = "mask.json"
#: Bytes of the JSON at most.
MAX_BYTES = 2**23
#: States that a loaded policy is asked about, to see whether its actions are the model's.
NUM_TRIED = 64


@dataclass(frozen=True)
class SavedMask:
    """A mask, and how it was learned.

    Attributes:
        mask: the names of the variables that it keeps.
        names: all exogenous variables of the model.
        spec: of the environment, as Gymnasium writes it; None if there is none.
        seed: what all randomness was derived from.
        learner: the class and the hyper-parameters that JSON can hold.
        status: "finished", "plans cut short", "time limit" or "interrupted".
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

    def save(self, path: str | os.PathLike[str], *, policy: Policy | None = None) -> None:
        """Write the file at once: whoever reads ``path`` finds the old one or the new.

        Args:
            path: where to; it is used as it is, whatever its suffix.
            policy: the policy that was planned with the mask, to be kept in the same file. If it is
                of a kind that no file can hold, a warning says so, and the mask is saved alone.
        """
        text = json.dumps(
            {"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2, allow_nan=False
        )
        saveable: object = policy
        if isinstance(saveable, Saved):
            saveable.save(path, texts={MEMBER: text + "\n"})
            return
        with replacing(path) as part:
            part.write_text(text + "\n", encoding="utf-8")
        if policy is not None:
            warnings.warn(
                f"{os.fspath(path)!r} holds the mask alone: a {type(policy).__name__} cannot be "
                "saved with it",
                stacklevel=3,
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SavedMask:
        """Read what :meth:`save` wrote; the policy, if there is one, is :meth:`load_policy`'s.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or holds something else.
        """
        where = os.fspath(path)
        archived = read_text(path, MEMBER) if _has_policy(path) else ""
        if archived is None:
            raise ArgumentError(f"{where!r} does not hold a mask: there is no {MEMBER} in it")
        try:
            content = json.loads(archived or _read_json(path), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(
                f"{where!r} does not hold a mask: it is not JSON ({error})"
            ) from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ArgumentError(f"{where!r} does not hold a mask: its format is not {FORMAT!r}")
        if content.get("version") != VERSION:
            raise ArgumentError(
                f"{where!r} has version {content.get('version')!r} of the format; this is {VERSION}"
            )
        return cls._checked(where, content)

    def load_policy(self, path: str | os.PathLike[str], mdp: ExoMDP) -> Policy | None:
        """The policy that was saved with this mask, or None if there is none in the file.

        Raises:
            ValueError: the file is damaged, or its policy is for another mask or model.
        """
        if not _has_policy(path):
            return None
        policy = Policy.load(path)
        if policy.full != self.names or not set(policy.mask) <= set(self.mask):
            raise ArgumentError(
                f"{os.fspath(path)!r} does not hold a whole mask: its policy looks at "
                f"{policy.mask[:3]} ..., and the mask keeps {self.mask[:3]} ..."
            )
        known = (policy.variables or mdp.endogenous_variables)[: policy.endogenous_size]
        sizes = [variable.size for variable in known]
        if sizes != mdp.endogenous_sizes.tolist():
            raise ArgumentError(
                f"the policy in {os.fspath(path)!r} is for endogenous variables of sizes {sizes}, "
                f"not for those of this model, {mdp.endogenous_sizes.tolist()}"
            )
        own = {variable.name: variable.size for variable in mdp.exogenous_variables}
        for variable in (policy.variables or ())[policy.endogenous_size :]:
            # A policy that ignores a variable of its mask takes any value of it for 0.
            if variable.size not in (1, own[variable.name]):
                raise ArgumentError(
                    f"the policy in {os.fspath(path)!r} is for {variable.name!r} with "
                    f"{variable.size} values, not with the {own[variable.name]} of this model"
                )
        anywhere = mdp.sample_uniform(NUM_TRIED, np.random.default_rng(0))
        try:
            as_actions(mdp, policy(anywhere), (NUM_TRIED,))
        except ArgumentError as error:
            raise ArgumentError(
                f"the policy in {os.fspath(path)!r} is not one for this model: {error}"
            ) from error
        return policy

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
                raise ArgumentError(f"{where!r} does not hold a whole mask: {name!r} is missing")
            if name in ("mask", "names") and (
                not all(isinstance(entry, str) for entry in value) or len(set(value)) < len(value)
            ):
                raise ArgumentError(f"{where!r}: {name!r} is not a list of different names")
        parts = {name: content[name] for name in wanted}
        parts |= {name: tuple(content[name]) for name in ("mask", "names")}
        if parts["seed"] < 0:
            raise ArgumentError(f"{where!r}: the seed of the mask is {parts['seed']}")
        try:
            for name, value in (parts["objective"] or {}).items():
                if value is not None:
                    check_real(name, value)
        except ValueError as error:
            raise ArgumentError(f"{where!r} does not hold a whole mask: {error}") from error
        unknown = set(parts["mask"]).difference(parts["names"])
        if unknown:
            raise ArgumentError(f"{where!r} keeps {sorted(unknown)}, which it does not name")
        return cls(**parts)

    def check(self, mdp_or_env: Any) -> None:
        """Refuse a model with other exogenous variables than the mask was learned on."""
        names = as_mdp(mdp_or_env).exogenous_names
        if names != self.names:
            raise ArgumentError(
                f"the mask was learned on {len(self.names)} exogenous variables "
                f"({', '.join(self.names[:3])} ...), not on the {len(names)} of this model "
                f"({', '.join(names[:3])} ...)"
            )


def _has_policy(path: str | os.PathLike[str]) -> bool:
    """Whether it is no JSON: other files begin with a number of eight bytes, not all of them."""
    with Path(path).open("rb") as file:
        return b"\0" in file.read(8)


def _read_json(path: str | os.PathLike[str]) -> str:
    with Path(path).open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ArgumentError(f"it has more than {MAX_BYTES:,} bytes")
    return content.decode("utf-8")


def _refuse(constant: str) -> None:
    raise ArgumentError(f"it holds {constant}")
