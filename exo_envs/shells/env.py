"""One environment over an :class:`ExoMDP`: a ``gymnasium.Env``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from exo_envs.contract.answers import check_declaration, check_initial
from exo_envs.contract.steps import check_terminal, take_step
from exo_envs.core.arguments import as_array, check_choice, check_whole, kind_of, shown
from exo_envs.core.batches import PARTS, as_action, as_mask, as_state
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.kernels import Noise
from exo_envs.core.mdp import BoolArray, ExoMDP, State

if TYPE_CHECKING:
    from exo_envs.rendering.viewer import Viewer

Observation: TypeAlias = dict[str, NDArray[Any]]
MakeViewer: TypeAlias = "Callable[[Any], Viewer]"

#: What an environment says that has no viewer of its own.
TEXT_ONLY = {"render_modes": ["ansi"], "render_fps": 4}


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
    """``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)``; an empty part is left out.

    A part with a real variable is a ``Box``.
    """
    parts: dict[str, spaces.Space[Any]] = {}
    for part in PARTS:
        ranges = mdp.ranges_of(part)
        if ranges.is_real:
            parts[part] = spaces.Box(ranges.low, ranges.high, dtype=np.float64)
        elif ranges.variables:
            parts[part] = spaces.MultiDiscrete(ranges.high + 1)
    return spaces.Dict(parts)


def observe(state: State) -> Observation:
    """The observation of a checked state: its parts, copied; an empty part is left out."""
    return as_observation(State(state.endogenous.copy(), state.exogenous.copy()))


def as_observation(state: State) -> Observation:
    """The parts of a state by their names; an empty part is left out."""
    endogenous, exogenous = state
    observation: dict[str, Any] = {}
    if endogenous.shape[-1]:
        observation["endogenous"] = endogenous
    if exogenous.shape[-1]:
        observation["exogenous"] = exogenous
    return observation


def make_viewer(place: str, arguments: dict[str, Any], mdp: ExoMDP) -> Viewer:
    """The viewer ``"module:Class"`` of a model, imported only now."""
    module, name = place.split(":")
    viewer: Viewer = getattr(import_module(module), name)(mdp, **arguments)
    return viewer


def check_snapshot(snapshot: Any, lanes: tuple[int, ...]) -> None:
    """Refuse what is no whole snapshot of as many lanes, () for a single environment."""
    if not isinstance(snapshot, Snapshot):
        raise ArgumentTypeError(
            f"set_state takes what get_state returned, not {kind_of(snapshot)}; "
            'to start at a state use reset(options={"state": state})'
        )
    of = f"an environment with {lanes[0]} lanes" if lanes else "a single environment"
    steps = as_array("elapsed_steps of a snapshot", snapshot.elapsed_steps)
    ended = as_array("ended of a snapshot", snapshot.ended)
    if steps.shape != lanes or ended.shape != lanes:
        raise ArgumentError(f"the snapshot is not of {of}")
    if steps.dtype.kind not in "iu" or ((steps < 0) | (steps > np.iinfo(np.int64).max)).any():
        raise ArgumentError(
            f"elapsed_steps of a snapshot are whole numbers, at least 0, not "
            f"{snapshot.elapsed_steps!r}"
        )
    if snapshot.np_random_seed is not None:  # Gymnasium has -1 for one that is not known
        check_whole("np_random_seed of a snapshot", snapshot.np_random_seed, -1)
    if ended.dtype != np.bool_:
        raise ArgumentTypeError(f"ended of a snapshot is boolean, not {snapshot.ended!r}")
    noise = snapshot.noise
    pair = (noise.exogenous, noise.endogenous) if isinstance(noise, Noise) else (noise,)
    for generator in (*pair, snapshot.np_random):
        if not isinstance(generator, np.random.Generator):
            raise ArgumentTypeError(f"a snapshot holds random generators, not {generator!r}")


def check_options(options: dict[str, Any] | None, choices: Sequence[str]) -> dict[str, Any]:
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentTypeError(f"the options of a reset are a dictionary, not {shown(options)}")
    _check_names("reset option", options or {}, choices)
    return options or {}


def _check_names(what: str, given: Iterable[str], choices: Sequence[str]) -> None:
    for name in given:
        if name not in choices:
            raise unknown_name(what, name, choices)


class Shell:
    """What an environment of one state and one of many lanes have in common."""

    metadata: ClassVar[dict[str, Any]] = TEXT_ONLY
    mdp: ExoMDP
    drawn_by: Viewer | MakeViewer  # or what makes it, when something is first drawn
    render_mode: str | None
    _lanes: tuple[int, ...] = ()  # (num_envs,) in a vector environment
    _state: State | None = None  # always a batch
    _terminal: BoolArray | None = None  # whether it is terminal, once that was asked
    _elapsed_steps: Any = 0  # int, or (num_envs,)
    _ended: Any = False  # lanes that wait for a reset
    _noise: Noise
    _np_random: np.random.Generator | None
    _np_random_seed: int | None

    def _set_up(
        self, mdp: Any, viewer: Any, render_mode: str | None, not_offered: tuple[str, ...] = ()
    ) -> None:
        if not isinstance(mdp, ExoMDP):
            what = f"the class {mdp.__name__}" if isinstance(mdp, type) else repr(mdp)
            raise ArgumentTypeError(f"an environment is made of an ExoMDP, not of {what}")
        check_declaration(mdp)
        self.mdp = mdp
        self._noise = Noise.unseeded()
        # A viewer that is not made yet draws what the class of the environment says.
        said: Any = getattr(viewer, "metadata", type(self).metadata)
        said = TEXT_ONLY if viewer is None else said
        modes = [mode for mode in said["render_modes"] if mode not in not_offered]
        self.metadata = {**said, "render_modes": modes}  # type: ignore[misc]
        if viewer is None:
            viewer = partial(make_viewer, "exo_envs.rendering.viewer:Viewer", {})
        elif not callable(viewer):
            from exo_envs.rendering.viewer import Viewer

            if not isinstance(viewer, Viewer):
                raise ArgumentTypeError(f"viewer is a Viewer or None, not {shown(viewer)}")
        self.drawn_by = viewer
        if render_mode is not None:
            check_choice("render mode", render_mode, modes)
        self.render_mode = render_mode

    @cached_property
    def viewer(self) -> Viewer:
        return self.drawn_by(self.mdp) if callable(self.drawn_by) else self.drawn_by

    @property
    def state(self) -> State:
        """The current state, or those of all lanes (a copy)."""
        n, x = self._require_state()
        return State(n.reshape(*self._lanes, -1).copy(), x.reshape(*self._lanes, -1).copy())

    def get_state(self) -> Snapshot:
        """A snapshot from which :meth:`set_state` continues exactly, random numbers included."""
        return Snapshot(
            self.state,
            copy.copy(self._elapsed_steps),
            copy.deepcopy(self._noise),
            copy.deepcopy(self.np_random),  # type: ignore[attr-defined]
            self._np_random_seed,
            copy.copy(self._ended),
        )

    def set_state(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot; to start at a plain :class:`State`, give it to :meth:`reset`."""
        check_snapshot(snapshot, self._lanes)
        self._state = as_state(self.mdp, snapshot.state, self._lanes or (1,))
        self._terminal = None
        steps, ended = np.array(snapshot.elapsed_steps, dtype=np.int64), np.array(snapshot.ended)
        self._elapsed_steps = steps if self._lanes else int(steps)
        self._ended = ended if self._lanes else bool(ended)
        self._noise = copy.deepcopy(snapshot.noise)
        self._np_random = copy.deepcopy(snapshot.np_random)
        self._np_random_seed = snapshot.np_random_seed

    def render(self) -> Any:
        """Draw the current state as ``render_mode`` says, or a tuple of those of all lanes."""
        mode = self.render_mode
        if mode is None:
            gym.logger.warn(
                "render() without a render mode draws nothing; give one to "
                f"{'gym.make_vec' if self._lanes else 'gym.make'}: {self.metadata['render_modes']}"
            )
            return None
        viewer = self.viewer
        draw = {"ansi": viewer.text, "rgb_array": viewer.draw, "human": viewer.show}[mode]
        if not self._lanes:
            return draw(self.state)
        return tuple(draw(State(*lane)) for lane in zip(*self.state, strict=True))

    def _require_state(self) -> State:
        if self._state is None:
            raise ResetNeeded("call reset() first: the environment has no state yet")
        return self._state


class ExoEnv(Shell, gym.Env[Observation, np.int64]):
    """A Gymnasium environment over an :class:`ExoMDP`.

    Observations are ``Dict(endogenous=MultiDiscrete, exogenous=MultiDiscrete)``, with a ``Box`` for
    a part that has a real variable; actions are ``Discrete``. An episode terminates where the model
    says so and is truncated after ``mdp.horizon`` steps. ``info["reward_terms"]`` holds what each
    exogenous variable paid, or each of the model's ``reward_scopes``.

    Each reset derives a generator for the exogenous and one for the endogenous noise from
    ``np_random``, which also draws the initial state. So the k-th episode after a seeding meets
    the same exogenous trajectory whatever the agent does in it or did before.

    Args:
        mdp: the model.
        render_mode: one of ``metadata["render_modes"]``, or None.
        viewer: what draws the states, or a function that makes it of the model when something is
            first drawn; the metadata of the class then says what it can draw. By default states
            are drawn as text.
    """

    def __init__(
        self,
        mdp: ExoMDP,
        render_mode: str | None = None,
        *,
        viewer: Viewer | MakeViewer | None = None,
    ) -> None:
        self._set_up(mdp, viewer, render_mode)
        self.observation_space: spaces.Dict = observation_space(mdp)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(mdp.num_actions)

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
        self._state = (
            check_initial(self.mdp, self.mdp.sample_initial(1, self.np_random), 1)
            if given is None
            else given
        )
        self._terminal = None
        self._elapsed_steps = 0
        if self.render_mode == "human":
            self.render()
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one step; at a terminal state nothing moves and nothing is paid."""
        state = self._require_state()
        actions = np.array([as_action(self.mdp, action)])
        noise = self._noise
        self._state, reward, terms = take_step(
            self.mdp, state, actions, noise.endogenous, noise.exogenous, self._terminal
        )
        self._elapsed_steps += 1
        self._terminal = check_terminal(self.mdp, self._state)
        terminated = bool(self._terminal[0])
        truncated = self._elapsed_steps >= self.mdp.horizon
        if self.render_mode == "human":
            self.render()
        info = {"reward_terms": terms[0].copy()}
        return self._observe(), float(reward[0]), terminated, truncated, info

    def show_mask(self, mask: Any) -> None:
        """Draw a mask over the picture, see :func:`as_mask`; None takes it away."""
        self.viewer.mask = None if mask is None else as_mask(self.mdp, mask)

    def close(self) -> None:
        if "viewer" in vars(self):
            self.viewer.close()

    def _observe(self) -> Observation:
        endogenous, exogenous = self._require_state()
        return observe(State(endogenous[0], exogenous[0]))


class DomainEnv(ExoEnv):
    """An environment of the suite, made of the numbers of its domain by their names.

    A domain names its ``model``, the record of its ``parameters`` and, if it is drawn, the place of
    its viewer. With several ``backends`` one of them is the argument ``render_backend``.
    """

    model: ClassVar[type[Any]]
    parameters: ClassVar[type[Any]]
    viewer_place: ClassVar[str | None] = None
    backends: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, render_mode: str | None = None, **arguments: Any) -> None:
        cls = type(self)
        drawn: dict[str, Any] = {}
        if cls.backends:
            drawn["backend"] = arguments.pop("render_backend", cls.backends[0])
            check_choice("render backend", drawn["backend"], cls.backends)
        names = [field.name for field in fields(cls.parameters)]
        _check_names(f"parameter of {cls.parameters.__name__}", arguments, names)
        viewer = partial(make_viewer, cls.viewer_place, drawn) if cls.viewer_place else None
        super().__init__(cls.model(cls.parameters(**arguments)), render_mode, viewer=viewer)
