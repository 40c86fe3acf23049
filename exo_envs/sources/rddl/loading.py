"""Finding and parsing a description, and the errors that say why it cannot be a model."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

from exo_envs.core.arguments import check_choice, shown
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, NoFileError, require


class RDDLRefusedError(ArgumentError):
    """The description cannot be represented exactly; ``reason`` is one short name of why.

    Attributes:
        reason: ``partially-observable``, ``unsupported-operation``, ``unbounded``,
            ``real-actions``, ``too-many-actions``, ``next-state``, ``shared-draw``, ``reward``,
            ``initial-state`` or ``cycle``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class NoExogenousFluentsWarning(UserWarning):
    """Every fluent of the description is moved by actions: there is nothing to mask."""


def load(domain: Any, instance: Any) -> Any:
    """The lifted model of pyRDDLGym; what it cannot find or read is refused."""
    rddl_module("pyRDDLGym")
    if _is_text(domain) and _is_text(instance):
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "domain.rddl"), Path(folder, "instance.rddl")
            for path, text in zip(paths, (domain, instance), strict=True):
                path.write_text(text, encoding="utf-8")
            return _parse(*paths)
    if _is_path(domain) and _is_path(instance):
        return _parse(Path(domain), Path(instance))
    if isinstance(domain, str) and not _is_text(domain):
        manager = rddl_module("rddlrepository.core.manager").RDDLRepoManager()
        check_choice("domain of rddlrepository", domain, manager.list_problems())
        problem, number = manager.get_problem(domain), str(instance)
        check_choice(f"instance of {domain}", number, problem.list_instances())
        return _parse(Path(problem.get_domain()), Path(problem.get_instance(number)))
    raise ArgumentTypeError(
        "domain and instance are a name of rddlrepository and the number of an instance, two "
        f"paths, or two texts of RDDL, not {shown(domain)} and {shown(instance)}"
    )


def rddl_module(name: str) -> Any:
    """A module of the extra ``rddl``, or an error that says how to get it."""
    package = name.partition(".")[0]
    needed = f"from_rddl needs {package}: pip install 'exo-envs[rddl]' (or {package} itself)"
    return require(name, needed)


def _is_text(source: Any) -> bool:  # neither a path nor a name has one of these
    return isinstance(source, str) and ("{" in source or "\n" in source)


def _is_path(source: Any) -> bool:
    return isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".rddl"))


def _parse(domain: Path, instance: Path) -> Any:
    for path in (domain, instance):
        if not path.is_file():
            raise NoFileError(f"there is no file {str(path)!r}")
    from pyRDDLGym.core.compiler.model import RDDLLiftedModel
    from pyRDDLGym.core.parser.parser import RDDLParser
    from pyRDDLGym.core.parser.reader import RDDLReader

    # The parser generator talks about tokens that no rule uses, and about its tables.
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser = RDDLParser(lexer=None, verbose=False)
        parser.build()
        try:
            text = RDDLReader(str(domain), str(instance)).rddltxt
            return RDDLLiftedModel(parser.parse(text))
        except Exception as error:  # a SyntaxError, or whatever it stumbles over
            what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            raise ArgumentError(
                f"this is not RDDL as pyRDDLGym reads it: {what} (it needs a domain, a block of "
                "non-fluents, which may be empty, and an instance)"
            ) from error
