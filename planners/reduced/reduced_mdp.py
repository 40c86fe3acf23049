"""Reduced models (section 3.2 of the paper): the MDP of a mask, estimated from samples.

:class:`ReducedMDP` is what every reduced model has. There are two kinds: one of tables, where n can
be enumerated, and one that asks the full model for n'. :meth:`ReducedMDP.estimate` gives either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

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
from exo_envs.core.batches import as_lanes, as_mask, as_pairs, as_size, as_values, exogenous_lanes
from exo_envs.core.errors import ArgumentError
from exo_envs.core.mdp import (
    BoolArray,
    ExoMDP,
    FloatArray,
    IntArray,
    State,
    Variable,
    as_pair,
)
from planners.core.files import Loaded, Saved
from planners.core.memory import Memory
from planners.core.policy import Mask
from planners.dependence.interventions import actors_of
from planners.dependence.parents import ParentSearch
from planners.discretization.bins import Bins, Grid
from planners.discretization.coarse import coarsened
from planners.reduced.ignored_rewards import (
    IgnoredRewards,
    SimulatedRewards,
    check_ignored_rewards,
    masked_rewards,
)
from planners.reduced.marginals import Informants, reduce_lists
from planners.reduced.rewards import Reward, check_reward
from planners.reduced.survey import MAX_PAIRS, EndogenousSurvey, can_enumerate
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import DecisionLists
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor, Factors, Fit, KnownParents, factors_later, fit_mask
from planners.tables.indexing import variables_of
from planners.tables.ragged import Ragged, SparseTables


class SampleCounts(NamedTuple):
    """How many samples a reduced model was estimated from."""

    exogenous: int  # transitions x, x' that the tables were counted in
    held_out: int  # held-out transitions, on which log_loss is measured
    endogenous: int  # n' drawn at states of our choice
    reward: int  # rewards asked for


class ReducedMDP(Loaded, ExoMDP):
    """The endogenous part of a model and the exogenous variables of a mask.

    Make one with :meth:`estimate`. It is an :class:`~exo_envs.ExoMDP` again: it can be put into
    :class:`~exo_envs.ExoEnv`, planned in, trained in, or masked again.

    * **P(x'_i | x)** of each masked variable is a table given few parents inside the mask
      (:mod:`planners.dependence.parents`), counted in policy-free rollouts. Dropped variables are
      marginalised by not conditioning on them. Given x, the x'_i are taken to be independent of
      each other; if a dropped variable drives several of them, that link is lost.
    * **P(n' | n, a, x)** is marginalised over dropped variables. Where n can be enumerated the
      model is tabulated (:class:`TabulatedReducedMDP`), elsewhere it is simulated
      (:class:`SimulatedReducedMDP`).
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
        bins: of its variables of very many values, and grids of real variables of n.
        samples: how many samples were used.
        smoothing: how many samples' worth of the table with one parent less each row got.
        ignored_rewards: what dropped variables pay, "average", "zero" or "optimistic"; see
            :meth:`estimate`. A file that does not say so means "zero".
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
        self.data, self.bins = data, data.bins
        self.samples = samples
        self.smoothing = check_real("smoothing", smoothing, 0.0)
        self.ignored_rewards: IgnoredRewards = ignored_rewards
        self._fit = fit
        if not callable(fit):
            check_kind("fit", fit, Fit)
            for factor in fit.factors:  # checked with the sizes of the variables later
                check_kind("a factor", factor, Factor)
            for name in ("log_loss", "marginal_log_loss"):  # not numbers if nothing was held out
                real_numbers(name, getattr(fit, name), (len(self.mask),), finite=False)

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
            mask: names, patterns, indices or booleans; see :func:`exo_envs.core.batches.as_mask`.
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
        check_ignored_rewards(ignored_rewards)
        check_reward(reward)
        check_kind("data", data, ExogenousData, optional=True)
        check_kind("survey", survey, EndogenousSurvey, optional=True)
        check_kind("memory", memory, Memory, optional=True)
        check_function("known_parents", known_parents, optional=True)
        interventions = check_flag("interventions", interventions)
        smoothing = check_positive("smoothing", smoothing)
        mdp = checked(mdp)
        names, rng = as_mask(mdp, mask), as_generator("rng", rng)
        is_shared = memory is not None
        memory = Memory() if memory is None else memory
        data, survey = data or memory.data, survey or memory.survey
        if data is None:
            data = ExogenousData.collect(mdp, num_rollouts, rng)
        elif num_rollouts is not None:
            raise ArgumentError(f"give data or num_rollouts={num_rollouts}, not both")
        _check_names("data", data.names, mdp)
        mdp = coarsened(mdp, data.bins)
        data.check(mdp.exogenous_variables, mdp.endogenous_variables)
        limits: dict[str, Any] = {"max_parents": max_parents, "min_samples": min_samples}
        search = ParentSearch(data, level=level, **limits, memory=memory)
        if survey is None:
            survey = EndogenousSurvey.collect(mdp, data, rng, reward=reward)
        memory.bind(data=data, survey=survey)
        _check_names("survey", survey.names, mdp)
        columns = [int(j) for j in mdp.exogenous_indices(names)]

        # The model is asked now, and never when somebody reads the tables.
        suspects: dict[int, dict[int, float]] = {}
        if interventions and len(columns) > 1:
            acting = actors_of(mdp, data, columns, memory=memory, among=columns)
            suspects = dict(zip(columns, acting, strict=True))

        samples = SampleCounts(
            exogenous=len(data.fitted) * data.num_steps,
            held_out=int(data.held_out.sum()) * data.num_steps,
            endogenous=survey.endogenous_samples,
            reward=survey.reward_samples,
        )
        estimated: dict[str, Any] = {
            "full_names": mdp.exogenous_names,
            "data": data.restrict(names),
            "samples": samples,
            "fit": cache(partial(fit_mask, search, names, suspects, known_parents, smoothing)),
            "smoothing": smoothing,
            "ignored_rewards": ignored_rewards,
        }
        if not survey.is_complete:
            return SimulatedReducedMDP(model=mdp, survey=survey, **estimated)
        informants = Informants(survey.backgrounds, columns, level, memory)
        again = partial(
            cls.estimate,
            mdp,
            rng=0,  # of no use, since data and survey are in the memory
            level=level,
            smoothing=smoothing,
            interventions=interventions,
            known_parents=known_parents,
            ignored_rewards=ignored_rewards,
            memory=memory,
            **limits,
        )
        pays = set(survey.paying)
        return TabulatedReducedMDP(
            tables=_tables(mdp, survey, informants, ignored_rewards),
            paying=tuple(name for name in names if name in pays),
            memory=memory.part(np.array(columns, np.intp)) if is_shared else None,
            of_part=again,
            **estimated,
        )

    def arguments(self) -> dict[str, Any]:
        """The arguments that make the same model again."""
        given = ("full_names", "data", "samples", "fit", "smoothing", "ignored_rewards")
        return {name: getattr(self, name) for name in given}

    @property
    def fit(self) -> Fit:
        """The tables of the masked variables, and how well they predict.

        Estimated when they are first asked for: there are planners that do without.
        """
        if callable(self._fit):
            self._fit = self._fit()
        return self._fit

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


class TabulatedReducedMDP(Saved, ReducedMDP, FactoredMDP):
    """A reduced model as tables, of a model whose n can be enumerated.

    P(n' | n, a, x) is a decision list for each (n, a), learned by asking the model at states of our
    choice (:mod:`planners.reduced.survey`) and averaged over dropped variables
    (:mod:`planners.reduced.marginals`).

    Args:
        tables: what a :class:`FactoredMDP` takes, beside factors, data and initial states.
        paying: the masked variables that pay, by themselves or together with others; by default
            all that have a table of rewards.
        memory: what was counted in the data before, shared with models of other masks.
        of_part: gives the reduced model of part of the mask, from the samples that this one was
            estimated from; pickles and files leave it out.
        **estimated: what a :class:`ReducedMDP` takes.
    """

    records = (
        *(Bins, DecisionLists, ExogenousData, Factor, Fit, Grid),
        *(Ragged, SampleCounts, SparseTables, Variable),
    )
    data: ExogenousData

    def __init__(
        self,
        *,
        tables: Mapping[str, Any],
        paying: tuple[str, ...] | None = None,
        memory: Memory | None = None,
        of_part: Callable[[Mask], ReducedMDP] | None = None,
        **estimated: Any,
    ) -> None:
        ReducedMDP.__init__(self, **estimated)
        check_kind("memory", memory, Memory, optional=True)
        check_function("of_part", of_part, optional=True)
        self._of_part, fit = of_part, self._fit
        FactoredMDP.__init__(
            self,
            initial=self.data.initial(),
            factors=factors_later(fit) if callable(fit) else fit.factors,
            data=self.data,
            memory=memory,
            **tables,
        )
        self._tables = tables
        if paying is None:
            paying = tuple(self.mask[i] for i in variables_of(self.scoped_terms))
        self.paying = check_names("paying", paying, self.mask)
        self.moving = tuple(self.mask[i] for i in self.decision_lists.dependencies())

    def part(self, names: Mask) -> ReducedMDP:
        """The reduced model of some of its variables, from the samples that it was estimated from.

        A model that was loaded or copied no longer has those; then it is reduced itself.
        """
        if self._of_part is not None:
            return self._of_part(names)
        rule = self.ignored_rewards
        return ReducedMDP.estimate(self, names, rng=0, data=self.data, ignored_rewards=rule)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what is shared with models of other masks, with the tables made."""
        self.fit  # noqa: B018
        return {**FactoredMDP.__getstate__(self), "_of_part": None}

    def arguments(self) -> dict[str, Any]:
        """The arguments that make the same model again."""
        return {"tables": self._tables, "paying": self.paying, **ReducedMDP.arguments(self)}


class SimulatedReducedMDP(ReducedMDP):
    """A reduced model to sample from, for tree search.

    x' of the masked variables is drawn from their tables. n' is that of the full model at (n, x),
    where the masked variables are as they are and all dropped ones are drawn together from the
    rollouts, anew in every step. So given (n, a) and the masked variables n' is random even if the
    full model leaves nothing to chance, and what the masked variables tell about dropped ones is
    not used.

    Rewards are those of the full model, too
    (:class:`~planners.reduced.ignored_rewards.SimulatedRewards`). The end of an episode depends on
    n alone; the survey checked that for the n that it asked about.

    Args:
        model: the full model.
        survey: of that model.
        **estimated: what :class:`ReducedMDP` takes.
    """

    def __init__(self, *, model: ExoMDP, survey: EndogenousSurvey, **estimated: Any) -> None:
        super().__init__(**estimated)
        self.model = model
        self.survey = survey
        self.endogenous_variables = model.endogenous_variables
        self.num_actions = model.num_actions
        self.discount = model.discount
        self.horizon = model.horizon
        self.exogenous_variables = tuple(model.exogenous_variables[j] for j in self.columns)
        self.paying = tuple(name for name in survey.paying if name in self.mask)
        self.moving = tuple(name for name in survey.moving if name in self.mask)
        self._asked_rewards = SimulatedRewards(model, survey, self.columns, self.ignored_rewards)
        self.reward_scopes = self._asked_rewards.scopes

    def __getstate__(self) -> dict[str, Any]:
        self.fit  # noqa: B018
        return self.__dict__

    @property
    def factors(self) -> tuple[Factor, ...]:
        return self.fit.factors

    @cached_property
    def _joined_factors(self) -> Factors:
        return Factors.of(self.factors, self.exogenous_sizes)

    def sample_initial(self, size: int, rng: np.random.Generator) -> State:
        initial = self.data.initial()
        chosen = rng.integers(self.data.num_rollouts, size=as_size(self, size))
        return State(initial.endogenous[chosen], initial.exogenous[chosen])

    def sample_exogenous(self, exogenous: IntArray, rng: np.random.Generator) -> IntArray:
        shape, x = exogenous_lanes(self, exogenous)
        return self._joined_factors.sample(x, rng.random(x.shape)).reshape(shape)

    def sample_endogenous(
        self, state: State, action: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """By the full model, dropped variables drawn from the rollouts."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        full = self._asked_rewards.fill_in(x, self.survey.backgrounds.data.sample(len(n), rng))
        following = self.model.sample_endogenous(State(n, full), actions, rng)
        return following.reshape(*shape, n.shape[-1])

    def reward_terms(self, state: State, action: IntArray) -> FloatArray:
        """The terms that look at masked variables, from the full model."""
        shape, (n, x, actions) = as_lanes(self, state, action)
        terms = self._asked_rewards.terms(n, x, actions)
        return terms.reshape(*shape, terms.shape[-1])

    def endogenous_reward(self, endogenous: IntArray, action: IntArray) -> FloatArray:
        """From the full model, with what dropped variables pay on average, or nothing."""
        shape, n, actions = as_pairs(self, endogenous, action)
        return self._asked_rewards.base(n, actions).reshape(shape)

    def is_terminal(self, state: State) -> BoolArray:
        """From the full model, which does not look at x here."""
        state = as_pair(state)
        n = as_values("endogenous", state.endogenous, self.endogenous_variables, in_range=False)
        anything = np.zeros(n.shape[:-1], dtype=np.int64)
        shape, (n, x, _) = as_lanes(self, State(n, state.exogenous), anything)
        return self.model.is_terminal(self._asked_rewards.anywhere(n, x)).reshape(shape)


def _tables(
    mdp: ExoMDP, survey: EndogenousSurvey, informants: Informants, rule: IgnoredRewards
) -> dict[str, Any]:
    """What a :class:`FactoredMDP` takes for a mask, of a model whose survey has all n."""
    lists, sizes = reduce_lists(survey, informants), mdp.exogenous_sizes[informants.columns]
    rewards = masked_rewards(survey, informants, rule)
    terms, joint_terms = {}, {}
    for scope, table in sorted(rewards.scoped_terms.items()):
        if len(scope) == 1:
            terms[scope[0]] = table
        else:
            joint_terms[scope] = table
    tables = {
        "endogenous_variables": mdp.endogenous_variables,
        "exogenous_variables": tuple(mdp.exogenous_variables[j] for j in informants.columns),
        "num_actions": mdp.num_actions,
        "discount": mdp.discount,
        "horizon": mdp.horizon,
        "decision_lists": DecisionLists.from_lists(lists, mdp.num_actions, sizes),
        "base_reward": rewards.base_reward,
        "terms": terms,
        "terminal": survey.terminal,
    }
    # Files of models without are as they always were.
    return tables | ({"joint_terms": joint_terms} if joint_terms else {})


def tabulate(mdp: ExoMDP, rng: np.random.Generator) -> FactoredMDP:
    """The model as tables: as it is if it has them, else estimated with all its variables.

    Raises:
        ValueError: its n cannot be enumerated.
    """
    if isinstance(mdp, FactoredMDP):
        return mdp
    mdp = checked(mdp)
    model = ReducedMDP.estimate(mdp, mdp.exogenous_names, rng=rng) if can_enumerate(mdp) else None
    if not isinstance(model, TabulatedReducedMDP):
        raise ArgumentError(
            f"{mdp!r} has more than {MAX_PAIRS:,} pairs (n, a), so there are no tables to plan in; "
            "plan with UCT, which does not enumerate them, or with DefaultPlanner, which chooses "
            "by size"
        )
    return model


def _check_names(what: str, names: tuple[str, ...], mdp: ExoMDP) -> None:
    if names != mdp.exogenous_names:
        raise ArgumentError(f"the {what} is of {_short(names)}, not of this model")


def _short(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown + (f" ... ({len(names)} in all)" if len(names) > 4 else "")
