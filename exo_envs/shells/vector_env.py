"""Many environments over one :class:`ExoMDP`: a ``gymnasium.vector.VectorEnv``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from exo_envs.contract.answers import check_initial
from exo_envs.contract.steps import check_terminal, take_step
from exo_envs.core.arguments import check_choice, check_flag, check_lanes, check_whole, optional
from exo_envs.core.batches import as_actions, as_state
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import BoolArray, ExoMDP, FloatArray, State
from exo_envs.shells.env import (
    MakeViewer,
    Observation,
    Shell,
    as_observation,
    check_options,
    observation_space,
    observe,
)
from exo_envs.shells.stepper import CompiledStepper

if TYPE_CHECKING:
    from exo_envs.rendering.viewer import Viewer

VectorStep = tuple[Observation, FloatArray, BoolArray, BoolArray, dict[str, Any]]


class ExoVectorEnv(Shell, VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """``num_envs`` lanes of an :class:`ExoMDP`, stepped as one batch.

    Observations, infos (see ``reward_terms``) and all three autoreset modes are those of
    Gymnasium's ``SyncVectorEnv`` over as many :class:`ExoEnv`; only the random numbers differ,
    because the lanes share their generators. Under one seed the exogenous noise of a lane does not
    depend on the actions; which initial state a lane gets when it is reset alone depends on the
    order of those resets.

    Args:
        mdp: the model.
        num_envs: the number of lanes.
        max_episode_steps: cuts episodes off before ``mdp.horizon`` does.
        autoreset_mode: an ``AutoresetMode`` or its value.
        render_mode: None, or one of ``metadata["render_modes"]`` that returns something:
            ``render()`` gives a tuple with one frame per lane.
        reward_terms: whether the infos have ``"reward_terms"``, as those of an :class:`ExoEnv` do:
            to hand them out takes as long as a step of a large batch.
        viewer: what draws the states, or a function that makes it, as in :class:`ExoEnv`.
    """

    def __init__(
        self,
        mdp: ExoMDP,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        viewer: Viewer | MakeViewer | None = None,
        reward_terms: bool = False,
    ) -> None:
        self._set_up(mdp, viewer, render_mode, not_offered=("human",))
        num_variables = len(mdp.endogenous_sizes) + len(mdp.exogenous_sizes)
        self.num_envs = check_lanes("num_envs", num_envs, num_variables, least=1)
        self._lanes = (self.num_envs,)
        max_steps = optional(check_whole)("max_episode_steps", max_episode_steps, 1)
        self.single_observation_space = observation_space(mdp)
        self.single_action_space = spaces.Discrete(mdp.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata["autoreset_mode"] = self.autoreset_mode
        limit = min(mdp.horizon, max_steps or mdp.horizon)
        # Arrays, because NumPy takes as long to make one of a number as to add a few.
        self._limits = np.full(self.num_envs, limit)
        self._one_step = np.ones(self.num_envs, dtype=np.int64)
        self._elapsed_steps = np.zeros(self.num_envs, dtype=np.int64)
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)
        self._shows_terms = check_flag("reward_terms", reward_terms)

    @cached_property
    def _stepper(self) -> CompiledStepper | None:
        return CompiledStepper.of(self.mdp, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in every lane, or in some.

        Args:
            seed: seeds ``np_random``, from which all lanes draw.
            options: ``{"state": s}`` starts in ``s``, one state for all lanes or a batch of
                ``num_envs``; ``{"reset_mask": lanes}``, boolean, resets only those lanes.
        """
        options = check_options(options, ("state", "reset_mask"))
        given = (
            as_state(self.mdp, options["state"], (self.num_envs,)) if "state" in options else None
        )
        if "reset_mask" in options:
            lanes = self._check_reset_mask(options["reset_mask"])
            if seed is not None:
                raise ArgumentError(
                    "lanes share their generators: a seed resets all of them or none"
                )
            if given is not None:
                given = State(given.endogenous[lanes], given.exogenous[lanes])
            self._restart((self._require_state(),), lanes, given)
            self._ended = self._ended & ~lanes
        else:
            if seed is not None and not isinstance(seed, (int, np.integer)):
                raise ArgumentTypeError(
                    f"lanes share their generators: a seed is one number, not {seed!r}"
                )
            super().reset(seed=seed)
            self._noise.reseed(self.np_random)
            vars(self).pop("_stepper", None)  # the model, or a method of it, may be another now
            self._state = given or self._sample_initial(self.num_envs)
            self._elapsed_steps[:] = 0
            self._ended[:] = False
        return observe(self._require_state()), {}

    def step(self, actions: Any) -> VectorStep:
        """Step every lane; lanes that ended are reset as ``autoreset_mode`` says."""
        state = self._require_state()
        actions = as_actions(self.mdp, actions, (self.num_envs,))
        restarted = self._ended
        some_restarted = bool(np.count_nonzero(restarted))
        if some_restarted and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"autoreset is disabled and lanes {np.flatnonzero(restarted).tolist()} have "
                'ended: reset them with reset(options={"reset_mask": ...})'
            )
        # Lanes that only wait for their reset are stepped too, for nothing: so the noise that
        # the other lanes get does not depend on them.
        noise, terms = self._noise, None
        if self._stepper is not None:
            if self._shows_terms:
                terms = self.mdp.reward_terms(state, actions)
                terms[self.mdp.is_terminal(state)] = 0.0
            self._state, shown, rewards, terminations = self._stepper.step(state, actions, noise)
        else:
            self._state, rewards, paid = take_step(
                self.mdp, state, actions, noise.endogenous, noise.exogenous
            )
            terms = paid if self._shows_terms else None
            shown = State(*map(np.copy, self._state))
            terminations = check_terminal(self.mdp, self._state)
        self._elapsed_steps += self._one_step
        truncations = self._elapsed_steps >= self._limits
        going_on = ~restarted
        if some_restarted:
            self._restart((self._state, shown), restarted)
            rewards[restarted] = 0.0
            terminations, truncations = terminations & going_on, truncations & going_on
        ended = terminations | truncations
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._ended = ended
            infos = infos_of(terms, going_on)
        else:
            infos = infos_of(terms, ~ended)
            if np.count_nonzero(ended):
                infos.update(self._final_infos(self._state, ended, terms))
                self._restart((self._state, shown), ended)
        return as_observation(shown), rewards, terminations, truncations, infos

    def close_extras(self, **kwargs: Any) -> None:
        if "viewer" in vars(self):
            self.viewer.close()

    def _restart(
        self, states: tuple[State, ...], lanes: BoolArray, given: State | None = None
    ) -> None:
        """Start new episodes in some lanes, which are written to all of ``states``."""
        (rows,) = lanes.nonzero()
        fresh = given or self._sample_initial(len(rows))
        for state in states:
            state.endogenous[rows] = fresh.endogenous
            state.exogenous[rows] = fresh.exogenous
        self._elapsed_steps[rows] = 0

    def _sample_initial(self, size: int) -> State:
        state = self.mdp.sample_initial(size, self.np_random)
        # A model with a compiled step promises that its values are in range.
        return check_initial(self.mdp, state, size) if self._stepper is None else state

    def _final_infos(
        self, state: State, ended: BoolArray, terms: FloatArray | None
    ) -> dict[str, Any]:
        final_obs = np.full(self.num_envs, None, dtype=object)
        for lane in ended.nonzero()[0]:
            final_obs[lane] = observe(State(state.endogenous[lane], state.exogenous[lane]))
        return {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": infos_of(terms, ended),
            "_final_info": ended.copy(),
        }

    def _check_reset_mask(self, lanes: Any) -> BoolArray:
        if not isinstance(lanes, np.ndarray) or lanes.dtype != np.bool_:
            raise ArgumentTypeError(f"options['reset_mask'] is an array of booleans, not {lanes!r}")
        if lanes.shape != (self.num_envs,) or not lanes.any():
            raise ArgumentError(
                f"options['reset_mask'] has shape ({self.num_envs},) and at least one lane, "
                f"not {lanes}"
            )
        return lanes


def infos_of(terms: FloatArray | None, lanes: BoolArray) -> dict[str, Any]:
    """Gymnasium's vector info of what the terms paid in some lanes, if they are shown."""
    if terms is None or not np.count_nonzero(lanes):
        return {}
    return {
        "reward_terms": np.where(lanes[:, None], terms, 0.0),
        "_reward_terms": lanes.copy(),
    }


class VectorTwin(ExoVectorEnv):
    """The vector twin of an environment class: of the same model, drawn by the same viewer.

    A domain names its environment as ``single``; the twin takes the arguments of both.
    """

    single: ClassVar[type[Any]]

    def __init_subclass__(cls) -> None:
        cls.metadata = cls.single.metadata

    def __init__(
        self,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        reward_terms: bool = False,
        **arguments: Any,
    ) -> None:
        env = type(self).single(**arguments)
        super().__init__(
            env.mdp,
            num_envs,
            max_episode_steps=max_episode_steps,
            autoreset_mode=autoreset_mode,
            render_mode=env.render_mode,
            viewer=env.drawn_by,
            reward_terms=reward_terms,
        )
