"""Reduced models (section 3.2 of the paper): the MDP of a mask, estimated from samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import (
    as_generator,
    check_flag,
    check_function,
    check_kind,
    check_names,
    check_positive,
    check_real,
    real_numbers,
)
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.masks import as_mask
from exo_envs.core.mdp import ExoMDP, FloatArray
from planners.core.memory import Memory
from planners.dependence.interventions import actors_of
from planners.dependence.parents import ParentSearch
from planners.discretization.coarse import Bins, coarsened
from planners.discretization.grid import Grid
from planners.reduced.factors import Fit, fit_factors
from planners.reduced.ignored_rewards import IgnoredRewards, check_ignored_rewards, masked_rewards
from planners.reduced.marginals import reduce_lists
from planners.reduced.survey import EndogenousSurvey, Reward, check_reward
from planners.samples.rollouts import ExogenousData
from planners.tables.factors import Factor

KnownParents = Callable[[Sequence[str]], Mapping[str, Collection[str]]]
Model = TypeVar("Model", bound="ReducedMDP")


class SampleCounts(NamedTuple):
    """How many samples a reduced model was estimated from."""

    exogenous: int  # transitions x, x' that the tables were counted in
    held_out: int  # held-out transitions, on which log_loss is measured
    endogenous: int  # n' drawn at states of our choice
    reward: int  # rewards asked for


class ReducedMDP(ExoMDP):
    """The endogenous part of a model and the exogenous variables of a mask.

    Make one with :meth:`estimate`. It is an :class:`~exo_envs.ExoMDP` again: it can be put into
    :class:`~exo_envs.ExoEnv`, planned in, trained in, or masked again.

    * **P(x'_i | x)** of each masked variable is a table given few parents inside the mask
      (:mod:`planners.dependence.parents`), counted in policy-free rollouts. Dropped variables are
      marginalised by not conditioning on them. Given x, the x'_i are taken to be independent of
      each other; if a dropped variable drives several of them, that link is lost.
    * **P(n' | n, a, x)** is marginalised over dropped variables. Where n can be enumerated the
      model is tabulated (:class:`~planners.reduced.tabulated.TabulatedReducedMDP`), elsewhere it
      is simulated (:class:`~planners.reduced.simulated.SimulatedReducedMDP`).
    * **R** has the terms of the masked variables. Those that look at a dropped variable pay their
      average given what is kept, or nothing, as in the paper
      (:mod:`planners.reduced.ignored_rewards`).

    Attributes:
        full_names: all exogenous variables of the model that was reduced, in its order: what a
            full observation for a policy planned here has. If that model was a reduced one
            itself, they are *its* variables; a policy for the model behind it has to be given that
            model's names, or come from a mask of that model.
        mask: the names of the masked variables, in the same order.
        columns: their positions in ``full_names``.
        data: the rollouts it was estimated from, restricted to the mask.
        samples: how many samples were used.
        smoothing: how many samples' worth of the table with one parent less each row got.
        ignored_rewards: what dropped variables pay, "average", "zero" or "optimistic"; see
            :meth:`estimate`. A file that does not say so is from before there was a choice, and
            means "zero".
        paying: the masked variables that pay, by themselves or together with others, masked or
            not. A masked variable that only tells about what dropped ones pay is not one of them.
        moving: the masked variables that some n' depends on (of the n that were surveyed).
    """

    paying: tuple[str, ...]
    moving: tuple[str, ...]

    def __init__(
        self,
        *,
        full_names: tuple[str, ...],
        data: ExogenousData,
        samples: SampleCounts,
        fit: Fit | Callable[[], Fit],
        smoothing: float,
        ignored_rewards: IgnoredRewards = "zero",
    ) -> None:
        check_ignored_rewards(ignored_rewards)
        check_kind("data", data, ExogenousData)
        check_kind("samples", samples, SampleCounts)
        self.full_names = check_names("full_names", full_names)
        self.mask = check_names("the names of the data", data.names, self.full_names)
        places = {name: i for i, name in enumerate(self.full_names)}
        self.columns = np.array([places[name] for name in self.mask], dtype=np.intp)
        self.data = data
        self.samples = samples
        self.smoothing = check_real("smoothing", smoothing, 0.0)
        self.ignored_rewards: IgnoredRewards = ignored_rewards
        self._fit = fit
        if not callable(fit):
            _check_fit(fit, len(self.mask))

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
        ignored_rewards: IgnoredRewards = "average",
        memory: Memory | None = None,
    ) -> ReducedMDP:
        """Estimate the reduced model of a mask from samples of ``mdp``.

        Args:
            mdp: the full model; only its generative interface is used.
            mask: names, patterns, indices or booleans; see :func:`exo_envs.core.masks.as_mask`.
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
                are all in the mask they are not looked for again. It asks the model nothing.
            reward: "terms" or "total", if ``survey`` is not given; see
                :meth:`EndogenousSurvey.collect`.
            ignored_rewards: what the terms of dropped variables pay. "average": their mean given n,
                a and the masked variables that tell about them, over the same rollouts, so that a
                model without any variable still knows what pays on average. "zero": nothing, as in
                the paper. "optimistic": their mean where that is a gain, for problems that are
                solved only to see where an agent may go. See
                :mod:`planners.reduced.ignored_rewards`.
            memory: what was counted for other masks with the same ``data`` and ``survey``. They are
                in the memory already, are given too, or are collected, and are in it from then on;
                by default nothing is shared.
        """
        # Here, not above: the two kinds of reduced models are subclasses of this one.
        from planners.reduced.simulated import SimulatedReducedMDP
        from planners.reduced.tabulated import TabulatedReducedMDP

        check_ignored_rewards(ignored_rewards)
        check_reward(reward)
        check_kind("data", data, ExogenousData, optional=True)
        check_kind("survey", survey, EndogenousSurvey, optional=True)
        check_kind("memory", memory, Memory, optional=True)
        check_function("known_parents", known_parents, optional=True)
        interventions = check_flag("interventions", interventions)
        mdp = checked(mdp)
        names, rng = as_mask(mdp, mask), as_generator("rng", rng)
        if memory is not None:
            data, survey = data or memory.data, survey or memory.survey
        smoothing = check_positive("smoothing", smoothing)
        if data is None:
            data = ExogenousData.collect(mdp, num_rollouts, rng)
        elif num_rollouts is not None:
            raise ArgumentError(f"give data or num_rollouts={num_rollouts}, not both")
        _check_names("data", data.names, mdp)
        mdp = coarsened(mdp, data.bins)
        data.check(mdp.exogenous_variables, mdp.endogenous_variables)
        counted = Memory() if memory is None else memory
        limits: dict[str, Any] = {"max_parents": max_parents, "min_samples": min_samples}
        search = ParentSearch(data, level=level, **limits, memory=counted)
        if survey is None:
            survey = EndogenousSurvey.collect(mdp, data, rng, reward=reward)
        counted.bind(data=data, survey=survey)
        _check_names("survey", survey.names, mdp)
        columns = [int(j) for j in mdp.exogenous_indices(names)]

        # The model is asked now, and never when somebody reads the tables.
        suspects: dict[int, dict[int, float]] = {}
        if interventions and len(columns) > 1:
            acting = actors_of(mdp, data, columns, memory=counted, among=columns)
            suspects = dict(zip(columns, acting, strict=True))

        def fit() -> Fit:
            known = known_parents(names) if known_parents is not None else {}
            if not isinstance(known, Mapping):
                raise ArgumentTypeError(f"known_parents returns a mapping of names, not {known!r}")
            parents = {
                i: tuple(data.positions(tuple(known[name])).tolist())
                if name in known and set(known[name]) <= set(names)
                else search.parents(i, columns, suspects.get(i))
                for i, name in zip(columns, names, strict=True)
            }
            return fit_factors(data, parents, smoothing, memory=counted)

        asked = {"endogenous": survey.endogenous_samples, "reward": survey.reward_samples}
        estimated: dict[str, Any] = {
            "full_names": mdp.exogenous_names,
            "data": data.restrict(names),
            "samples": SampleCounts(**_counted(data), **asked),
            "fit": fit,
            "smoothing": smoothing,
            "ignored_rewards": ignored_rewards,
        }
        if survey.is_complete:
            shared = memory and memory.part(np.array(columns, np.intp))
            lists = reduce_lists(survey, columns, level=level, memory=counted)
            rewards = masked_rewards(survey, columns, ignored_rewards, level=level, memory=counted)
            of_part = partial(
                cls.estimate,
                mdp,
                rng=0,  # of no use, since everything is given
                data=data,
                survey=survey,
                level=level,
                smoothing=smoothing,
                interventions=interventions,
                known_parents=known_parents,
                ignored_rewards=ignored_rewards,
                memory=counted,
                **limits,
            )
            return TabulatedReducedMDP.from_survey(
                mdp, survey, columns, lists, rewards, memory=shared, of_part=of_part, **estimated
            )
        return SimulatedReducedMDP(model=mdp, survey=survey, **estimated)

    def extend(self: Model, mdp: ExoMDP, num_rollouts: int, rng: np.random.Generator) -> Model:
        """The same model with more data: new rollouts of ``mdp`` are added to the counts.

        Parents, n' and rewards stay as they are, so this takes little more than the rollouts.
        """
        check_kind("mdp", mdp, ExoMDP)
        seen = coarsened(mdp, [own for own in self.bins if isinstance(own, Grid)])
        same_endogenous = seen.endogenous_variables == self.endogenous_variables
        if mdp.exogenous_names != self.full_names or not same_endogenous:
            raise ArgumentError(
                f"{mdp!r} is not the model that was reduced: that one has the variables "
                f"{_short((*(v.name for v in self.endogenous_variables), *self.full_names))}"
            )
        data = self.data.extend(mdp, num_rollouts, rng)
        parents = {i: factor.parents for i, factor in enumerate(self.fit.factors)}
        longer = {
            "data": data,
            "samples": self.samples._replace(**_counted(data)),
            "fit": fit_factors(data, parents, self.smoothing),
        }
        return type(self)(**{**self.arguments(), **longer})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> ReducedMDP:
        """Load what ``save`` wrote; a ValueError says what is wrong with a file."""
        from planners.reduced.tabulated import TabulatedReducedMDP

        return TabulatedReducedMDP.load(path)

    def arguments(self) -> dict[str, Any]:
        """What the constructor was given."""
        given = ("full_names", "data", "samples", "fit", "smoothing", "ignored_rewards")
        return {name: getattr(self, name) for name in given}

    @cached_property
    def fit(self) -> Fit:
        """The tables of the masked variables, and how well they predict.

        Estimated when they are first asked for: there are planners that do without.
        """
        if callable(self._fit):
            self._fit = self._fit()
        return self._fit

    @property
    def bins(self) -> tuple[Bins | Grid, ...]:
        """Of masked variables with very many values: the model has bins in place of the values.

        Of real variables of n it has the points of grids.
        """
        return self.data.bins

    @property
    def log_loss(self) -> FloatArray:
        """Of each table on held-out transitions, in nats, shape (m,).

        Not a number if the data is too small to hold anything out.
        """
        return self.fit.log_loss

    @property
    def marginal_log_loss(self) -> FloatArray:
        """The same for overall distributions."""
        return self.fit.marginal_log_loss

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each variable, by name."""
        return {
            name: tuple(self.mask[j] for j in factor.parents)
            for name, factor in zip(self.mask, self.fit.factors, strict=True)
        }

    def describe(self) -> str:
        """A summary for people: what was estimated from how much, and how well it predicts."""
        used, pays, moves = self.samples, self.paying, self.moving
        lines = [
            f"{self!r}: {len(self.mask)} of {len(self.full_names)} exogenous variables",
            f"{used.exogenous} transitions counted, {used.held_out} held out",
            f"{used.endogenous} next states and {used.reward} rewards asked for",
            f"what ignored variables pay: {self.ignored_rewards}",
        ]
        for i, (name, parents) in enumerate(self.parents.items()):
            roles = ["pays"] * (name in pays) + ["moves n"] * (name in moves)
            lines.append(
                f"  {name}: log-loss {self.log_loss[i]:.4f} ({self.marginal_log_loss[i]:.4f} "
                f"without parents); given {', '.join(parents) or 'nothing'}"
                + (f"; {', '.join(roles)}" if roles else "")
            )
        return "\n".join(lines)


def _check_fit(fit: Fit, variables: int) -> None:
    """Refuse what no fit of so many variables is; their tables are checked with the sizes."""
    check_kind("fit", fit, Fit)
    for factor in fit.factors:
        check_kind("a factor", factor, Factor)
    for name in ("log_loss", "marginal_log_loss"):  # not a number if nothing was held out
        real_numbers(name, getattr(fit, name), (variables,), finite=False)


def _check_names(what: str, names: tuple[str, ...], mdp: ExoMDP) -> None:
    if names != mdp.exogenous_names:
        raise ArgumentError(f"the {what} is of {_short(names)}, not of this model")


def _counted(data: ExogenousData) -> dict[str, int]:
    """How many transitions tables are counted in, and how many are held out."""
    rollouts = {"exogenous": len(data.fitted), "held_out": int(data.held_out.sum())}
    return {part: number * data.num_steps for part, number in rollouts.items()}


def _short(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown + (f" ... ({len(names)} in all)" if len(names) > 4 else "")
