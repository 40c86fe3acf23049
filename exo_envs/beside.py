"""The packages that lie beside this one, ``planners`` and ``wrappers``, found by location.

Their names are common: in a folder with somebody's own ``wrappers.py``, ``import wrappers`` is that
file. ``exo_envs.planners``, ``exo_envs.wrappers`` and ``python -m exo_envs`` are always ours.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


@cache
def package_beside(name: str) -> ModuleType:
    """The package of that name beside this one, whatever else Python would find.

    A module of that name that was imported before stays the one that ``import`` gives. The rooms of
    our package find each other through its ``__path__``, to which our folder is added.
    """
    if name == "wrappers":
        package_beside("planners")  # which it imports by its name
    folder = Path(__file__).resolve().parents[1] / name
    other = sys.modules.get(name)
    if other is not None and Path(getattr(other, "__file__", None) or "").parent == folder:
        return other
    spec = spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no package {name!r} beside {__package__!r}")
    ours = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(ours)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        if other is not None:
            sys.modules[name] = other
    if other is not None:
        other.__path__ = [str(folder), *getattr(other, "__path__", ())]
    return ours
