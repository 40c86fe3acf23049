"""The shape that all mask learners share, in scikit-learn's vocabulary."""

from __future__ import annotations

import inspect
import math
import os
import platform
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from exo_envs import __version__
from exo_envs.core.arguments import (
    Constraints,
    check_fields,
    check_flag,
    check_function,
    optional,
    real,
    shown,
    whole,
)
from exo_envs.core.clock import OutOfTimeError, check_time_limit
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import ExoMDP
from planners.core.planner import Planner, check_planner
from planners.reduced.ignored_rewards import IgnoredRewards, check_ignored_rewards
from planners.reduced.rewards import Reward, check_reward
from planners.worth import Cost, cost_function
from wrappers.fitting.history import Callback, Record
from wrappers.fitting.refitting import take_over
from wrappers.fitting.saved import SavedMask
from wrappers.fitting.session import FittedLearner, NotFittedError, Session
from wrappers.fitting.study import Study
from wrappers.reports.doubts import UndecidedWarning, doubts_about
from wrappers.reports.explanation import Explanation, explain
from wrappers.reports.ignoring import CostOfIgnoring
from wrappers.reports.path import MaskPath, find_path


@dataclass(kw_only=True)
class MaskLearner(FittedLearner, ABC):
    """Chooses the exogenous variables that are worth reasoning about.

    Hyper-parameters are stored as they are and checked by :meth:`fit`, which also makes Python's
    own numbers of NumPy's; results end in ``_``.

    Args:
        cost_weight: the paper's lambda: what a mask pays for each unit of its cost.
        cost: the number of variables ("size"), the planning time in seconds ("time", with which
            the same seed may not give the same mask), or a function of the mask and the plan.
        n_rollouts: episodes for each estimate of J.
        n_data_rollouts: rollouts of x that models and tests are estimated from; by default about
            100,000 transitions' worth.
        planner: by default one that chooses by size.
        planning_time_limit: for one plan, in seconds. The time for compiling, on the first use
            ever, does not count. A mask whose plan was cut short by it is not taken to be worth
            less than another one; see ``status_``.
        time_limit: for learning, in seconds by the clock on the wall, the final estimate of J
            included. When it has passed the best mask so far is kept, with a
            :class:`LearningStoppedWarning`; a question that the model is just answering is waited
            for. What is compiled on the first use ever takes its time from this limit: a mask that
            was not planned with by then decides nothing.
        reward: "terms" if the model tells what each variable pays, "total" if it is a black box.
        ignored_rewards: what the variables outside a mask pay in its reduced model. With "average"
            they pay their mean (:meth:`~planners.ReducedMDP.estimate`), so a mask is worth what
            it gains over knowing nothing. With "zero" they pay nothing, as in the paper; that is
            the default of the paper's learners. ("optimistic" is for relaxed problems.)
        max_parents: variables that a variable may be predicted from at most: its table grows with
            each of them.
        callback: is called with a :class:`Progress` now and then, and after each step.
        check: whether :meth:`fit` first looks if the model keeps its contract
            (:func:`exo_envs.testing.check_quickly`), which takes a second at most. A mask that was
            learned on a broken model is wrong and does not look it.

    Attributes:
        mask_: the names of the chosen variables, in the model's order.
        objective_: J of the mask, on trajectories that had no part in choosing it. If learning was
            stopped it is what was known by then, or None.
            ``objective_.bracket`` is what no policy can exceed, worked out when it is read.
        policy_: the policy planned with the mask; None as ``objective_`` is.
        cost_of_ignoring_: what the policy gives up against everything, worked out when it is read.
        history_: one :class:`Record` for each step; ``history_.to_pandas()`` is a table.
        status_: "finished", "time limit" or "interrupted"; or "plans cut short" if learning was
            finished, but some plans ran out of time (``planning_time_limit``). Which of their masks
            is best is not known then, and there is a :class:`~planners.PlanCutShortWarning`.
        doubts_: what the data could not decide, for people; each was an :class:`UndecidedWarning`.
        seconds_: how long learning took, without the final estimate of J.
        study_: what was estimated, to share with other learners: ``other.fit(learner.study_)``.
        feature_names_in_: all exogenous variables; ``n_features_in_`` is their number.
    """

    cost_weight: float = 0.0
    cost: Cost = "size"
    n_rollouts: int = 500
    n_data_rollouts: int | None = None
    planner: Planner | None = None
    planning_time_limit: float | None = 60.0
    time_limit: float | None = None
    reward: Reward = "terms"
    ignored_rewards: IgnoredRewards = "average"
    max_parents: int = 6
    callback: Callback | None = None
    check: bool = True

    #: Hyper-parameters that are those of a :class:`Study`.
    _of_the_study: ClassVar[tuple[str, ...]] = (
        *("n_rollouts", "n_data_rollouts", "planner", "planning_time_limit"),
        *("reward", "ignored_rewards", "max_parents"),
    )
    constraints: ClassVar[Constraints] = {
        "cost_weight": real(0.0),
        "n_rollouts": whole(1),
        "n_data_rollouts": optional(whole(1)),
        "check": check_flag,
        "max_parents": whole(1),
        "planning_time_limit": partial(check_time_limit, positive=True),
        "time_limit": partial(check_time_limit, positive=True),
    }

    def fit(
        self,
        mdp_or_env: ExoMDP | gym.Env[Any, Any] | Study,
        rng: np.random.Generator | int | None = None,
        *,
        check: bool | None = None,
    ) -> Self:
        """Learn the mask of a model.

        If the end of an episode depends on x, the mask is that of :func:`exo_envs.carry_end` of the
        model, with an :class:`EndCarriedWarning`. ``policy_`` takes observations of either.

        Args:
            mdp_or_env: the model, an environment over it, or a :class:`Study` of it. A study has
                settings of its own for everything but the prices, ``ignored_rewards`` included.
            rng: a generator or a seed; by default seed 0. A study has its own.
            check: instead of the learner's own ``check``.

        Raises:
            ContractError: the model breaks a rule of :class:`exo_envs.ExoMDP`, which is a
                ValueError that names the rule and shows the state.
        """
        self._check()
        if isinstance(mdp_or_env, Study):
            study = mdp_or_env
        else:
            settings = {name: getattr(self, name) for name in self._of_the_study}
            study = Study(mdp_or_env, rng, **settings)
        return self._fit(Session(self, study), check)

    def refit(
        self,
        mdp_or_env: ExoMDP | gym.Env[Any, Any],
        *,
        with_policy: bool = False,
        check: bool | None = None,
    ) -> Self:
        """Learn the mask of another task over the same exogenous process, in less time.

        The task is another goal, another reward, or other moves of n. What was found out about x
        holds for it too (:mod:`wrappers.fitting.refitting`); only what pays, what moves n and
        what x begins with is asked anew. The mask is that of :meth:`fit` with the same seed, but
        for what chance decides.

        Args:
            mdp_or_env: the model of the task, or an environment over it.
            with_policy: plan and estimate J now. By default both are left for later:
                ``objective_`` and ``policy_`` are worked out when one of them is first read.
            check: instead of the learner's own ``check``.

        Returns:
            Another learner with the same hyper-parameters and seed; this one stays as it is.

        Raises:
            ValueError: the model has other exogenous variables, or its P(x' | x) is another one:
                then the message says to fit anew. A process that is the same is taken for another
                one with a probability of 1 in 10,000.
        """
        later = not check_flag("with_policy", with_policy)
        learner = self.clone()
        learner._check()
        session = Session(learner, self.study_.of_task(mdp_or_env), plans_later=later)
        return learner._fit(session, check, self.study_)

    def _fit(self, session: Session, check: bool | None, earlier: Study | None = None) -> Self:
        """Learn, with what an earlier study of another task found out about x."""
        check = self.check if check is None else check_flag("check", check)
        with session.clock.above():
            try:
                if check:
                    session.study.check()
                session.study = session.study.with_carried_end()
                if earlier is not None:
                    session.report("comparing with the task before")
                    take_over(earlier, session.study)
                for record in self._steps(session):
                    session.keep(record)
            except OutOfTimeError:
                session.status = "time limit"
            except KeyboardInterrupt:
                if not session.history:
                    raise
                session.status = "interrupted"
            session.clock.ends = math.inf if self.time_limit is None else self.time_limit
            self.study_, self.history_ = session.study, session.history
            self.status_, self.doubts_ = session.status, ()
            self.feature_names_in_ = self.study_.mdp.exogenous_names
            self.n_features_in_ = len(self.feature_names_in_)
            self.mask_ = self.history_[-1].mask if self.history_ else ()
            self.seconds_ = session.clock.seconds()
            self.__dict__.pop("cost_of_ignoring_", None)
            self._plans_later = session.plans_later and self.status_ == "finished"
            self._conclude(session, later=self._plans_later)
        return self

    def _plan_now(self) -> None:
        session = Session(self, self.study_)
        with session.clock.above():
            self._conclude(session, later=False)

    def _conclude(self, session: Session, *, later: bool) -> None:
        """Plan with the mask and estimate J, unless that is left for later; tell of doubts."""
        if not later:
            self.objective_ = session.conclude(self.mask_)
            self.policy_ = None if self.objective_ is None else self.objective_.plan.policy
            self.status_, self._plans_later = session.status, False
        doubts = session.doubts
        try:
            doubts += doubts_about(session.study, self.mask_, self.__dict__.get("objective_"))
        except OutOfTimeError:
            doubts.append(
                f"time_limit={self.time_limit} seconds passed before it was known what else the "
                "data cannot decide"
            )
        news = tuple(doubt for doubt in doubts if doubt not in self.doubts_)
        self.doubts_ += news
        for warning in (*session.warnings, *map(UndecidedWarning, news)):
            warnings.warn(warning, stacklevel=4)

    @abstractmethod
    def _steps(self, session: Session) -> Iterator[Record]:
        """Learn, one record after another; the mask of the last one is the result."""

    # --- hyper-parameters ---------------------------------------------------------------------

    def clone(self) -> Self:
        """Another learner with the same hyper-parameters, not fitted."""
        return replace(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The hyper-parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters and return this learner."""
        for name, value in params.items():
            if name not in self.get_params():
                raise unknown_name("hyper-parameter", name, self.get_params())
            setattr(self, name, value)
        return self

    def _check(self) -> None:
        check_fields(self)
        cost_function(self.cost)
        check_reward(self.reward)
        check_ignored_rewards(self.ignored_rewards)
        check_planner(self.planner)
        check_function("callback", self.callback, optional=True)
        if self.callback is not None:
            try:
                inspect.signature(self.callback).bind(None)
            except TypeError as error:
                raise ArgumentTypeError(
                    f"callback={shown(self.callback)} cannot be called with a Progress: {error}"
                ) from None
            except ValueError:
                pass  # a builtin does not say what it takes

    # --- results ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """Plan if that was left for later, or say what to do about results that are not there."""
        if name in ("objective_", "policy_") and self.__dict__.get("_plans_later", False):
            self._plan_now()
            return self.__dict__[name]
        results = (*FittedLearner.__annotations__, "cost_of_ignoring_", "reasons_")
        if name.endswith("_") and name in results:
            raise NotFittedError(f"{type(self).__name__} has no {name} yet: call fit first")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def explain(self, *, try_alone: bool = False) -> Explanation:
        """Why each variable was kept or dropped: one row for every exogenous variable.

        It tells what the learner found out, in tests at the study's level and in comparisons of
        masks. What the tests say of variables that they did not find is counted now. The model is
        asked only if the learner made no tests of its own. If learning was stopped, nothing is
        counted or asked, and the rows say so.

        Args:
            try_alone: plan once more for each variable that matters, with the mask but for this
                one (or with this one, too), so that each has a worth of its own.
        """
        try_alone = check_flag("try_alone", try_alone)
        return explain(self, try_alone=try_alone)

    def path(
        self, cost_weights: Sequence[float] | None = None, max_size: int | None = None
    ) -> MaskPath:
        """The price curve: which mask is best at which λ, and what it earns.

        It is made from this one fit: what was estimated and planned before is used again. Masks
        are chosen on the shared trajectories, and those that are best at some λ are played on
        fresh ones. That takes some plans more: one for each mask if there are few, or else about
        one for each quarter of the mask that is dropped and three for each of its last variables.

        Args:
            cost_weights: the λ to look at; by default all of them, and each mask that is best
                somewhere comes with the range of λ for which it is.
            max_size: the number of variables that a mask may have at most.
        """
        return find_path(self, cost_weights, max_size)

    @property
    def reasons_(self) -> dict[str, Record]:
        """The step that found each variable of the mask: why it matters, its score and test."""
        found = {record.candidate[0]: record for record in self.history_ if record.action == "find"}
        return {name: found[name] for name in self.mask_ if name in found}

    @cached_property
    def cost_of_ignoring_(self) -> CostOfIgnoring:
        """The loss of ``policy_`` against policies that may look at everything: an interval.

        Worked out when it is first read, and remembered: it plans with all variables, and makes
        ``objective_.bracket``. Both are judged on trajectories that had no part in the choice.

        Raises:
            ValueError: there is no policy, because learning was stopped too early.
        """
        if self.objective_ is None:
            raise ArgumentError(
                f"learning was stopped ({self.status_}) before there was a policy, so it is not "
                "known what it gives up"
            )
        thorough = self.status_ in ("finished", "plans cut short")
        is_known = thorough and self.objective_.rollouts is not None  # a copy has none
        own = self.objective_ if is_known else None
        return CostOfIgnoring.of_mask(self.study_.evaluator, self.mask_, own, thorough=thorough)

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Which variables the mask has: booleans, or indices if asked for."""
        indices = check_flag("indices", indices)
        mask = np.array(self.mask_, dtype=np.str_)
        support = np.isin(np.array(self.feature_names_in_), mask)
        return np.flatnonzero(support) if indices else support

    def saved(self) -> SavedMask:
        """The mask and how it was learned, as it is written to files."""
        mask, objective = self.mask_, self.objective_
        simple = (bool, int, float, str, type(None))
        hyper = {k: value for k, value in self.get_params().items() if isinstance(value, simple)}
        hyper["ignored_rewards"] = self.study_.ignored_rewards  # may be a study of somebody else
        return SavedMask(
            mask=mask,
            names=self.feature_names_in_,
            spec=self.study_.spec,
            seed=self.study_.seed,
            learner={"class": type(self).__name__, **hyper},
            status=self.status_,
            objective=None
            if objective is None
            else {
                "value": objective.value,
                "mean_return": objective.mean_return,
                "standard_error": objective.standard_error if len(objective.returns) > 1 else None,
                "n_rollouts": len(objective.returns),
            },
            versions={
                "python": platform.python_version(),
                "exo-envs": __version__,
                **{name: version(name) for name in ("gymnasium", "numba", "numpy")},
            },
        )

    def save(self, path: str | os.PathLike[str], *, with_policy: bool = False) -> None:
        """Write the mask to a JSON file; :meth:`SavedMask.load` reads it.

        With ``with_policy`` it is a ``safetensors`` file that holds ``policy_``, too.
        """
        self.saved().save(path, policy=self.policy_ if with_policy else None)
