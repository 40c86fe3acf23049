"""One environment over an :class:`ExoMDP`: a ``gymnasium.Env``."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from exo_envs.drawing.viewer import Viewer
from exo_envs.errors import unknown_name
from exo_envs.inputs import as_action, as_mask, as_state
from exo_envs.mdp import BoolArray, ExoMDP, State
from exo_envs.noise import Noise

Observation: TypeAlias = dict[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything an environment needs to go on exactly as it would have, generators included."""

    state: State
    elapsed_steps: Any  # int, or (num_envs,) in a vector environment
    noise: Noise
    np_random: np.random.Generator
    np_random_seed: int | None
    ended: Any = False  # (num_envs,) in a vector environment: lanes that wait for a reset


def observation_space(mdp: ExoMDP) -> spaces.Dict:
    """``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)``; an empty part is left out."""
    sizes = {"endogenous": mdp.endogenous_sizes, "exogenous": mdp.exogenous_sizes}
    return spaces.Dict(
        {part: spaces.MultiDiscrete(size) for part, size in sizes.items() if len(size)}
    )


def observe(state: State) -> Observation:
    """The observation of a state: its parts, copied; an empty part is left out."""
    return {
        part: np.array(values, dtype=np.int64)
        for part, values in zip(State._fields, state, strict=True)
        if values.shape[-1]
    }


def check_model(mdp: Any) -> ExoMDP:
    """The model, or an error that says what it is instead."""
    if not isinstance(mdp, ExoMDP):
        what = f"the class {mdp.__name__}" if isinstance(mdp, type) else repr(mdp)
        raise TypeError(f"an environment is made of an ExoMDP, not of {what}")
    return mdp


def check_options(options: dict[str, Any] | None, choices: tuple[str, ...]) -> dict[str, Any]:
    """The options of a reset, or an error for one that does not exist."""
    for option in options or {}:
        if option not in choices:
            raise unknown_name("reset option", option, choices)
    return options or {}


def check_render_mode(render_mode: str | None, choices: list[str]) -> str | None:
    """The render mode, or an error for one that the environment does not have."""
    if render_mode is not None and render_mode not in choices:
        raise unknown_name("render mode", render_mode, choices)
    return render_mode


class ExoEnv(gym.Env[Observation, np.int64]):
    """A Gymnasium environment over an :class:`ExoMDP`.

    Observations are ``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)``, actions are
    ``Discrete``. An episode terminates where the model says so and is truncated after
    ``mdp.horizon`` steps. ``info["reward_terms"]`` holds what each exogenous variable paid.

    Each reset derives a generator for the exogenous and one for the endogenous noise from
    ``np_random``, which also draws the initial state. So the k-th episode after a seeding meets
    the same exogenous trajectory whatever the agent does in it or did before.

    Args:
        mdp: the model.
        render_mode: one of ``metadata["render_modes"]``, or None.
        viewer: what draws the states; by default they are drawn as text.
    """

    metadata: ClassVar[dict[str, Any]] = Viewer.metadata  # type: ignore[misc]

    def __init__(
        self, mdp: ExoMDP, render_mode: str | None = None, *, viewer: Viewer | None = None
    ) -> None:
        self.mdp = mdp = check_model(mdp)
        self.observation_space: spaces.Dict = observation_space(mdp)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(mdp.num_actions)
        self.viewer = Viewer(mdp) if viewer is None else viewer
        self.metadata = dict(self.viewer.metadata)  # type: ignore[misc]
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self._state: State | None = None  # a batch of one
        self._terminal: BoolArray | None = None  # whether it is terminal, once that was asked
        self._elapsed_steps = 0
        self._noise = Noise.unseeded()

    @property
    def state(self) -> State:
        """The current state (a copy)."""
        state = self._require_state()
        return State(state.endogenous[0].copy(), state.exogenous[0].copy())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds ``np_random``.
            options: ``{"state": s}`` starts in ``s``, any :class:`State` or mapping with its two
                parts whose values are in range, reachable or not.
        """
        options = check_options(options, ("state",))
        given = as_state(self.mdp, options["state"], (1,)) if "state" in options else None
        super().reset(seed=seed)
        self._noise.reseed(self.np_random)
        self._state = self.mdp.sample_initial(1, self.np_random) if given is None else given
        self._terminal = None
        self._elapsed_steps = 0
        if self.render_mode == "human":
            self.render()
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one step; at a terminal state nothing moves and nothing is paid."""
        state = self._require_state()
        actions = np.array([as_action(self.mdp, action)])
        self._state, reward, terms = self.mdp.transition(
            state,
            actions,
            self._noise.endogenous,
            exogenous_rng=self._noise.exogenous,
            terminal=self._terminal,
        )
        self._elapsed_steps += 1
        self._terminal = self.mdp.is_terminal(self._state)
        terminated = bool(self._terminal[0])
        truncated = self._elapsed_steps >= self.mdp.horizon
        if self.render_mode == "human":
            self.render()
        info = {"reward_terms": np.array(terms[0])}
        return self._observe(), float(reward[0]), terminated, truncated, info

    def get_state(self) -> Snapshot:
        """A snapshot from which :meth:`set_state` continues exactly, random numbers included."""
        self._require_state()
        return Snapshot(
            self.state,
            self._elapsed_steps,
            copy.deepcopy(self._noise),
            copy.deepcopy(self.np_random),
            self._np_random_seed,
        )

    def set_state(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot; to start at a plain :class:`State`, give it to :meth:`reset`."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(
                f"set_state takes what get_state returned, not {type(snapshot).__name__}; "
                'to start at a state use reset(options={"state": state})'
            )
        self._state = as_state(self.mdp, snapshot.state, (1,))
        self._terminal = None
        self._elapsed_steps = snapshot.elapsed_steps
        self._noise = copy.deepcopy(snapshot.noise)
        self._np_random = copy.deepcopy(snapshot.np_random)
        self._np_random_seed = snapshot.np_random_seed

    def render(self) -> Any:
        """Draw the current state as ``render_mode`` says."""
        if self.render_mode is None:
            gym.logger.warn(
                "render() without a render mode draws nothing; give one to gym.make: "
                f"{self.metadata['render_modes']}"
            )
            return None
        if self.render_mode == "ansi":
            return self.viewer.text(self.state)
        if self.render_mode == "rgb_array":
            return self.viewer.draw(self.state)
        return self.viewer.show(self.state)

    def show_mask(self, mask: Any) -> None:
        """Draw a mask (names, indices or booleans) over the picture; None takes it away."""
        self.viewer.mask = None if mask is None else as_mask(self.mdp, mask)

    def close(self) -> None:
        """Free what drawing needed."""
        self.viewer.close()

    def _observe(self) -> Observation:
        endogenous, exogenous = self._require_state()
        return observe(State(endogenous[0], exogenous[0]))

    def _require_state(self) -> State:
        if self._state is None:
            raise ResetNeeded("call reset() first: the environment has no state yet")
        return self._state
