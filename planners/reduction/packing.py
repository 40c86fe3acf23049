"""A tabulated reduced model as a header and arrays, the content of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exo_envs import Variable
from planners.arrays import join, starts_of
from planners.information import ExogenousData
from planners.reduction.factors import Fit
from planners.reduction.reduced_mdp import SampleCounts
from planners.tables import DecisionLists, Factor

#: Arrays of a factor, and their types.
FACTOR_ARRAYS = {"starts": np.int64, "values": np.int64, "probabilities": np.float64}

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def pack(arguments: Mapping[str, Any]) -> tuple[Header, Arrays]:
    """The header and the arrays of a model that was made with ``arguments``."""
    data: ExogenousData = arguments["data"]
    fit: Fit = arguments["fit"]
    tables: Mapping[str, Any] = arguments["tables"]
    header = {
        "endogenous_variables": [[v.name, int(v.size)] for v in tables["endogenous_variables"]],
        "exogenous_variables": [[v.name, int(v.size)] for v in tables["exogenous_variables"]],
        "full_names": arguments["full_names"],
        "num_actions": int(tables["num_actions"]),
        "discount": float(tables["discount"]),
        "horizon": int(tables["horizon"]),
        "samples": arguments["samples"]._asdict(),
        "smoothing": arguments["smoothing"],
        "data_seed": data.seed,
    }
    arrays: Arrays = {
        "data.values": data.values,
        "data.initial_endogenous": data.initial_endogenous,
        "log_loss": fit.log_loss,
        "marginal_log_loss": fit.marginal_log_loss,
        "base_reward": tables["base_reward"],
        "terminal": tables["terminal"],
        "parents": join([factor.parents for factor in fit.factors], np.int64),
        "parent_starts": starts_of([factor.parents for factor in fit.factors]),
        "factors.row_starts": starts_of([factor.starts for factor in fit.factors]),
        "factors.entry_starts": starts_of([factor.values for factor in fit.factors]),
    }
    for part, dtype in FACTOR_ARRAYS.items():
        arrays[f"factors.{part}"] = join([getattr(f, part) for f in fit.factors], dtype)
    arrays.update((f"terms.{i}", table) for i, table in tables["terms"].items())
    lists: DecisionLists = tables["decision_lists"]
    arrays.update(
        (f"decision_lists.{name}", np.asarray(array)) for name, array in lists._asdict().items()
    )
    return header, arrays


def unpack(header: Header, arrays: Arrays) -> dict[str, Any]:
    """The arguments that :func:`pack` was given."""
    endogenous, exogenous = (
        tuple(Variable(name, size) for name, size in header[f"{part}_variables"])
        for part in ("endogenous", "exogenous")
    )
    lists: dict[str, Any] = {
        name: arrays[f"decision_lists.{name}"] for name in DecisionLists._fields
    }
    for name in ("num_states", "num_actions"):
        lists[name] = int(lists[name])
    tables = {
        "endogenous_variables": endogenous,
        "exogenous_variables": exogenous,
        "decision_lists": DecisionLists(**lists),
        "terms": {
            int(name.removeprefix("terms.")): array
            for name, array in arrays.items()
            if name.startswith("terms.")
        },
        **{name: arrays[name] for name in ("base_reward", "terminal")},
        **{name: header[name] for name in ("num_actions", "discount", "horizon")},
    }
    return {
        "tables": tables,
        "full_names": tuple(header["full_names"]),
        "data": ExogenousData(
            tuple(v.name for v in exogenous),
            np.array([v.size for v in exogenous], dtype=np.int64),
            arrays["data.values"],
            arrays["data.initial_endogenous"],
            int(header["data_seed"]),
        ),
        "samples": SampleCounts(**header["samples"]),
        "fit": Fit(
            tuple(_factor(arrays, i) for i in range(len(exogenous))),
            arrays["log_loss"],
            arrays["marginal_log_loss"],
        ),
        "smoothing": header["smoothing"],
    }


def _factor(arrays: Arrays, i: int) -> Factor:
    """The factor of variable i."""
    parents, rows, entries = (
        slice(*arrays[name][i : i + 2].tolist())
        for name in ("parent_starts", "factors.row_starts", "factors.entry_starts")
    )
    return Factor(
        tuple(arrays["parents"][parents].tolist()),
        arrays["factors.starts"][rows],
        arrays["factors.values"][entries],
        arrays["factors.probabilities"][entries],
    )
