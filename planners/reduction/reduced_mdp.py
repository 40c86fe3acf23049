"""Reduced models (section 3.2 of the paper): the MDP of a mask, estimated from samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exo_envs import ExoMDP, Variable
from exo_envs.inputs import as_mask
from exo_envs.mdp import FloatArray
from planners.files import read_file, write_file
from planners.information import ExogenousData, ParentSearch, influence
from planners.memory import MaskMemory, Memory
from planners.reduction.factors import Fit, fit_factors
from planners.reduction.marginals import reduce_lists
from planners.reduction.survey import EndogenousSurvey, Reward
from planners.tables.decision_lists import DecisionLists
from planners.tables.factored_mdp import Factor, FactoredMDP

KnownParents = Callable[[Sequence[str]], Mapping[str, Collection[str]]]


class Samples(NamedTuple):
    """How many samples a reduced model was estimated from."""

    exogenous: int  # transitions x, x' that the tables were counted in
    held_out: int  # transitions that only measured them
    endogenous: int  # n' drawn at states of our choice
    reward: int  # rewards asked for


class ReducedMDP(FactoredMDP):
    """The endogenous part of a model and the exogenous variables of a mask, as tables.

    Make one with :meth:`estimate`. It is an :class:`~exo_envs.ExoMDP` again: it can be put into
    :class:`~exo_envs.ExoEnv`, planned in, trained in, or masked again.

    * **P(x'_i | x)** of each masked variable is a table given few parents inside the mask
      (:mod:`planners.information.parents`), counted in policy-free rollouts. Dropped variables are
      marginalised by not conditioning on them. Given x, the x'_i are taken to be independent of
      each other; if a dropped variable drives several of them, that link is lost.
    * **P(n' | n, a, x)** is a decision list for each (n, a), learned by asking the model at states
      of our choice (:mod:`planners.reduction.survey`) and averaged over dropped variables
      (:mod:`planners.reduction.marginals`).
    * **R** has the terms of the masked variables; those of dropped variables are dropped, as in
      the paper.

    Attributes:
        full_names: all exogenous variables of the model that was reduced, in its order: what a
            full observation for a policy planned here has. If that model was a reduced one
            itself, they are *its* variables; a policy for the model behind it has to be given that
            model's names, or come from a mask of that model.
        mask: the names of the masked variables, in the same order.
        columns: their positions in ``full_names``.
        data: the rollouts it was estimated from, restricted to the mask.
        samples: how many samples were used.
        fit: the tables of the masked variables, and how well they predict. ``log_loss`` is not a
            number if the data is too small to hold anything out.
    """

    data: ExogenousData

    def __init__(
        self,
        *,
        full_names: tuple[str, ...],
        data: ExogenousData,
        samples: Samples,
        fit: Fit | Callable[[], Fit],
        smoothing: float,
        **tables: Any,
    ) -> None:
        """Take what :meth:`estimate` found; ``tables`` are those of a FactoredMDP."""
        self._fit = fit
        super().__init__(
            initial=data.initial(), factors=lambda: self.fit.factors, data=data, **tables
        )
        self.full_names = tuple(full_names)
        self.mask = self.exogenous_names
        places = {name: i for i, name in enumerate(self.full_names)}
        self.columns = np.array([places[name] for name in self.mask], dtype=np.intp)
        self.samples = samples
        self.smoothing = smoothing

    @cached_property
    def fit(self) -> Fit:
        """The factors, and how well they predict.

        Estimated when they are first asked for: there are planners that do without.
        """
        if callable(self._fit):
            self._fit = self._fit()
        return self._fit

    @property
    def log_loss(self) -> FloatArray:
        """Of each table on held-out transitions, in nats, shape (m,)."""
        return self.fit.log_loss

    @property
    def marginal_log_loss(self) -> FloatArray:
        """The same for overall distributions."""
        return self.fit.marginal_log_loss

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each variable, by name."""
        names = self.exogenous_names
        return {
            name: tuple(names[j] for j in factor.parents)
            for name, factor in zip(names, self.factors, strict=True)
        }

    @classmethod
    def estimate(
        cls,
        mdp: ExoMDP,
        mask: Any,
        *,
        rng: np.random.Generator | int,
        data: ExogenousData | None = None,
        survey: EndogenousSurvey | None = None,
        num_rollouts: int | None = None,
        level: float = 1e-3,
        max_parents: int = 6,
        min_samples: int = 20,
        smoothing: float = 1.0,
        interventions: bool = True,
        known_parents: KnownParents | None = None,
        reward: Reward = "terms",
        memory: Memory | None = None,
    ) -> ReducedMDP:
        """Estimate the reduced model of a mask from samples of ``mdp``.

        Args:
            mdp: the full model; only its generative interface is used.
            mask: names, indices or booleans.
            rng: a generator or a seed. It is used for the data and the survey only: with
                both given the result depends on nothing else.
            data: rollouts of all variables, to share between masks; by default new ones.
            survey: what was learned about n and the rewards, to share between masks; by default a
                new one.
            num_rollouts: how many rollouts to collect, if ``data`` is not given.
            level: of the tests for parents, over all candidates of a variable.
            max_parents: how many parents a variable may have.
            min_samples: how many samples the rows of its table must have on average.
            smoothing: how many samples' worth of the table with one parent less each row gets.
            interventions: whether to look for parents that act only together by changing
                variables one at a time.
            known_parents: a function that gives the parents of variables among all; where they
                are all in the mask they are not looked for again.
            reward: "terms" or "total", if ``survey`` is not given; see
                :meth:`EndogenousSurvey.collect`.
            memory: what was counted for other masks with the same ``data`` and ``survey``, which
                have to be given too; by default nothing is shared.
        """
        names, rng = as_mask(mdp, mask), np.random.default_rng(rng)
        if memory is not None and (data is None or survey is None):
            raise ValueError("a memory is about data and a survey; give both with it")
        if not smoothing > 0:
            raise ValueError(f"smoothing is positive, not {smoothing!r}")
        if data is None:
            data = ExogenousData.collect(mdp, num_rollouts, rng)
        elif num_rollouts is not None:
            raise ValueError(f"give data or num_rollouts={num_rollouts}, not both")
        if data.names != mdp.exogenous_names:
            raise ValueError(
                f"the data has the {len(data.names)} variables {_short(data.names)}, not the "
                f"{len(mdp.exogenous_names)} of the model"
            )
        counted = Memory() if memory is None else memory
        search = ParentSearch(
            data,
            level=level,
            max_parents=max_parents,
            min_samples=min_samples,
            memory=counted,
        )
        if survey is None:
            survey = EndogenousSurvey.collect(mdp, data, rng, reward=reward)
        elif survey.names != mdp.exogenous_names:
            raise ValueError(f"the survey is of {_short(survey.names)}, not of this model")

        columns = [int(j) for j in mdp.exogenous_indices(names)]
        place = {j: k for k, j in enumerate(columns)}

        def fit() -> Fit:
            known = known_parents(names) if known_parents is not None else {}
            effects: dict[int, FloatArray] = {}
            if interventions and len(columns) > 1:
                effects = {j: influence(mdp, data, data.names[j], memory=counted) for j in columns}
            parents = {
                i: tuple(data.positions(tuple(known[name])).tolist())
                if name in known and set(known[name]) <= set(names)
                else search.parents(i, columns, {j: float(e[i]) for j, e in effects.items()})
                for i, name in zip(columns, names, strict=True)
            }
            return fit_factors(data, parents, smoothing, memory=counted)

        restricted = data.restrict(names)
        decision_lists = DecisionLists.from_lists(
            reduce_lists(survey, columns, level=level, memory=counted),
            mdp.num_actions,
            restricted.sizes,
        )
        return cls(
            full_names=mdp.exogenous_names,
            data=restricted,
            samples=Samples(
                len(data.fitted) * data.num_steps,
                int(data.held_out.sum()) * data.num_steps,
                survey.moves_asked,
                survey.rewards_asked,
            ),
            smoothing=smoothing,
            endogenous_variables=mdp.endogenous_variables,
            exogenous_variables=tuple(mdp.exogenous_variables[j] for j in columns),
            num_actions=mdp.num_actions,
            discount=mdp.discount,
            horizon=mdp.horizon,
            decision_lists=decision_lists,
            base_reward=survey.base_reward,
            terms={place[j]: table for j, table in survey.terms.items() if j in place},
            terminal=survey.terminal,
            fit=fit,
            memory=None
            if memory is None
            else MaskMemory(memory, np.array(columns, np.intp), len(data.names)),
        )

    def extend(self, mdp: ExoMDP, num_rollouts: int, rng: np.random.Generator) -> ReducedMDP:
        """The same model with more data: new rollouts of ``mdp`` are added to the counts.

        Parents, moves and rewards stay as they are, so this takes little more than the rollouts.
        """
        if mdp.exogenous_names != self.full_names:
            raise ValueError(
                f"{mdp!r} is not the model that was reduced: that one has the variables "
                f"{_short(self.full_names)}"
            )
        data = self.data.extend(mdp, num_rollouts, rng)
        parents = {i: factor.parents for i, factor in enumerate(self.factors)}
        fit = fit_factors(data, parents, self.smoothing)
        samples = self.samples._replace(
            exogenous=len(data.fitted) * data.num_steps,
            held_out=int(data.held_out.sum()) * data.num_steps,
        )
        return ReducedMDP(
            full_names=self.full_names,
            data=data,
            samples=samples,
            smoothing=self.smoothing,
            endogenous_variables=self.endogenous_variables,
            exogenous_variables=self.exogenous_variables,
            num_actions=self.num_actions,
            discount=self.discount,
            horizon=self.horizon,
            decision_lists=self.decision_lists,
            base_reward=self.base_reward,
            terms=self.terms,
            terminal=self.terminal,
            fit=fit,
        )

    def describe(self) -> str:
        """A summary for people: what was estimated from how much, and how well it predicts."""
        used = self.samples
        lines = [
            f"{self!r}: {len(self.mask)} of {len(self.full_names)} exogenous variables",
            f"{used.exogenous} transitions counted, {used.held_out} held out",
            f"{used.endogenous} moves and {used.reward} rewards asked for",
        ]
        looked_at, pays = self.decision_lists.dependencies(), self.terms
        for i, (name, parents) in enumerate(self.parents.items()):
            roles = ["pays"] * (i in pays) + ["moves n"] * (i in looked_at)
            lines.append(
                f"  {name}: log-loss {self.log_loss[i]:.4f} ({self.marginal_log_loss[i]:.4f} "
                f"without parents); given {', '.join(parents) or 'nothing'}"
                + (f"; {', '.join(roles)}" if roles else "")
            )
        return "\n".join(lines)

    # --- files ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, its data included, to one file without pickle."""
        header = {
            "endogenous_variables": [[v.name, int(v.size)] for v in self.endogenous_variables],
            "exogenous_variables": [[v.name, int(v.size)] for v in self.exogenous_variables],
            "full_names": self.full_names,
            "num_actions": int(self.num_actions),
            "discount": float(self.discount),
            "horizon": int(self.horizon),
            "samples": self.samples._asdict(),
            "smoothing": self.smoothing,
            "data_seed": self.data.seed,
        }
        arrays: dict[str, NDArray[Any]] = {
            "data.values": self.data.values,
            "data.initial_endogenous": self.data.initial_endogenous,
            "log_loss": self.log_loss,
            "marginal_log_loss": self.marginal_log_loss,
            "base_reward": self.base_reward,
            "terminal": self.terminal,
            "parents": _joined([factor.parents for factor in self.factors]),
            "parent_starts": _starts([factor.parents for factor in self.factors]),
        }
        for part in ("starts", "values", "probabilities"):
            pieces = [getattr(factor, part) for factor in self.factors]
            arrays[f"factors.{part}"] = np.concatenate([*pieces, np.zeros(0, _kind(part))])
        arrays["factors.row_starts"] = _starts([factor.starts for factor in self.factors])
        arrays["factors.entry_starts"] = _starts([factor.values for factor in self.factors])
        arrays.update((f"terms.{i}", table) for i, table in self.terms.items())
        arrays.update(
            (f"decision_lists.{name}", np.asarray(array))
            for name, array in self.decision_lists._asdict().items()
        )
        write_file(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ReducedMDP:
        """Read what :meth:`save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or holds something else.
        """
        header, arrays = read_file(path, cls.__name__)
        try:
            return cls._unpack(header, arrays)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)!r} does not hold a whole {cls.__name__}: {error!r}"
            ) from error

    @classmethod
    def _unpack(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ReducedMDP:
        variables = {
            part: tuple(Variable(name, size) for name, size in header[f"{part}_variables"])
            for part in ("endogenous", "exogenous")
        }
        names = tuple(v.name for v in variables["exogenous"])
        sizes = np.array([v.size for v in variables["exogenous"]], dtype=np.int64)
        parents, rows, entries = (
            arrays[name] for name in ("parent_starts", "factors.row_starts", "factors.entry_starts")
        )
        factors = [
            Factor(
                tuple(arrays["parents"][parents[i] : parents[i + 1]].tolist()),
                arrays["factors.starts"][rows[i] : rows[i + 1]],
                arrays["factors.values"][entries[i] : entries[i + 1]],
                arrays["factors.probabilities"][entries[i] : entries[i + 1]],
            )
            for i in range(len(names))
        ]
        lists: dict[str, Any] = {
            name: arrays[f"decision_lists.{name}"] for name in DecisionLists._fields
        }
        for name in ("num_states", "num_actions"):
            lists[name] = int(lists[name])
        data = ExogenousData(
            names,
            sizes,
            arrays["data.values"],
            arrays["data.initial_endogenous"],
            int(header["data_seed"]),
        )
        return cls(
            full_names=tuple(header["full_names"]),
            data=data,
            samples=Samples(**header["samples"]),
            fit=Fit(tuple(factors), arrays["log_loss"], arrays["marginal_log_loss"]),
            smoothing=header["smoothing"],
            endogenous_variables=variables["endogenous"],
            exogenous_variables=variables["exogenous"],
            num_actions=header["num_actions"],
            discount=header["discount"],
            horizon=header["horizon"],
            decision_lists=DecisionLists(**lists),
            base_reward=arrays["base_reward"],
            terms={
                int(name.removeprefix("terms.")): array
                for name, array in arrays.items()
                if name.startswith("terms.")
            },
            terminal=arrays["terminal"],
        )


def _starts(pieces: Sequence[Any]) -> NDArray[np.int64]:
    return np.cumsum([0, *(len(piece) for piece in pieces)], dtype=np.int64)


def _joined(pieces: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.array([value for piece in pieces for value in piece], dtype=np.int64)


def _kind(part: str) -> Any:
    return np.float64 if part == "probabilities" else np.int64


def _short(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown + (f" ... ({len(names)} in all)" if len(names) > 4 else "")
