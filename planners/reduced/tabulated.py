"""Reduced models whose every probability is a table: what the exact planners plan in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from exo_envs.contract.checked_mdp import checked
from exo_envs.core.arguments import check_kind, check_names
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, Variable
from planners.core.files import Saved
from planners.core.memory import Memory
from planners.core.policy import Mask
from planners.discretization.coarse import Bins
from planners.discretization.grid import Grid
from planners.reduced.factors import Fit
from planners.reduced.reduced_mdp import ReducedMDP, SampleCounts
from planners.reduced.rewards import Rewards
from planners.reduced.survey import EndogenousSurvey
from planners.reduced.surveyed_states import MAX_PAIRS, can_enumerate
from planners.samples.rollouts import ExogenousData
from planners.tables.decision_lists import DecisionLists
from planners.tables.factored_mdp import FactoredMDP
from planners.tables.factors import Factor
from planners.tables.rules import Rule
from planners.tables.scopes import variables_of


class TabulatedReducedMDP(Saved, ReducedMDP, FactoredMDP):
    """A reduced model as tables, of a model whose n can be enumerated.

    P(n' | n, a, x) is a decision list for each (n, a), learned by asking the model at states of our
    choice (:mod:`planners.reduced.survey`) and averaged over dropped variables
    (:mod:`planners.reduced.marginals`). The terms of dropped variables are averaged likewise, or
    forgotten (:mod:`planners.reduced.ignored_rewards`).

    Args:
        tables: what a :class:`FactoredMDP` takes, beside factors, data and initial states.
        paying: the masked variables that pay, by themselves or together with others; by default
            all that have a table of rewards, as in files from before ignored rewards were averaged.
        memory: what was counted in the data before, shared with models of other masks.
        of_part: gives the reduced model of part of the mask, from the samples that this one was
            estimated from; pickles and files leave it out.
        **estimated: what a :class:`ReducedMDP` takes.
    """

    records = (Bins, DecisionLists, ExogenousData, Factor, Fit, Grid, SampleCounts, Variable)
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
        if memory is not None:
            check_kind("memory", memory, Memory)
        if of_part is not None and not callable(of_part):
            raise ArgumentTypeError(f"of_part is a function, not {of_part!r}")
        self._of_part = of_part
        FactoredMDP.__init__(
            self,
            initial=self.data.initial(),
            factors=lambda: self.fit.factors,
            data=self.data,
            memory=memory,
            **tables,
        )
        self._tables = tables
        if paying is None:
            paying = tuple(self.mask[i] for i in variables_of(self.terms, self.joint_terms))
        self.paying = check_names("paying", paying, self.mask)
        self.moving = tuple(self.mask[i] for i in self.decision_lists.dependencies())
        if not callable(self._fit):
            self.check_tables()

    def part(self, names: Mask) -> ReducedMDP:
        """The reduced model of some of its variables, from the samples that it was estimated from.

        A model that was loaded or copied no longer has those; then it is reduced itself.
        """
        if self._of_part is not None:
            return self._of_part(names)
        rule = self.ignored_rewards
        return ReducedMDP.estimate(self, names, rng=0, data=self.data, ignored_rewards=rule)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what is shared with models of other masks."""
        return {**FactoredMDP.__getstate__(self), "_of_part": None}

    @classmethod
    def from_survey(
        cls,
        mdp: ExoMDP,
        survey: EndogenousSurvey,
        columns: Sequence[int],
        lists: Sequence[Sequence[Rule]],
        rewards: Rewards,
        **estimated: Any,
    ) -> TabulatedReducedMDP:
        """The tables of the variables in ``columns``; lists and rewards are in terms of these."""
        sizes = mdp.exogenous_sizes[list(columns)]
        tables = {
            "endogenous_variables": mdp.endogenous_variables,
            "exogenous_variables": tuple(mdp.exogenous_variables[j] for j in columns),
            "num_actions": mdp.num_actions,
            "discount": mdp.discount,
            "horizon": mdp.horizon,
            "decision_lists": DecisionLists.from_lists(lists, mdp.num_actions, sizes),
            "base_reward": rewards.base_reward,
            "terms": rewards.terms,
            "terminal": survey.terminal,
        }
        if rewards.joint_terms:  # files of models without are as they always were
            tables["joint_terms"] = rewards.joint_terms
        pays = set(survey.paying)
        paying = tuple(survey.names[j] for j in columns if survey.names[j] in pays)
        return cls(tables=tables, paying=paying, **estimated)

    def arguments(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {"tables": self._tables, "paying": self.paying, **ReducedMDP.arguments(self)}


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
