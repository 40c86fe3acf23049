"""The batched shell for Stable-Baselines3, which cannot take a Gymnasium vector environment."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

from exo_envs.core.arguments import check_whole, optional
from exo_envs.core.batches import as_state
from exo_envs.core.errors import ArgumentError, ArgumentTypeError
from exo_envs.core.mdp import ExoMDP, State
from wrappers.observation.masked import layers

Infos = list[dict[str, Any]]

FINAL_KEYS = ("final_obs", "_final_obs", "final_info", "_final_info")


class SB3VecEnv(VecEnv):
    """A Gymnasium vector environment as a Stable-Baselines3 ``VecEnv``.

    What SB3 sees is what its ``DummyVecEnv`` over as many single environments would show it, the
    infos of every lane included; but all lanes are stepped as one batch, many times as fast.

    SB3's models discount by ``gamma=0.99`` unless told otherwise: give them ``mdp.discount``.

    SB3 wants the first observation of the new episode in the step that ends the old one, so the
    vector environment has to reset its lanes in the same step; no other autoreset mode is taken.

    All lanes are one object. They share their generators, so of the seeds that SB3 gives, one per
    lane, the first is used. Lanes have no attributes and methods of their own either:
    :meth:`get_attr` and :meth:`env_method` give every lane the same.

    >>> env = gym.make_vec("exo_envs:ExoGrid-v0", num_envs=3, autoreset_mode="SameStep")
    >>> venv = SB3VecEnv(env)
    >>> venv.set_options({"state": ([0], [2, 0, 1, 0, 1])})
    >>> venv.reset()["exogenous"].tolist()
    [[2, 0, 1, 0, 1], [2, 0, 1, 0, 1], [2, 0, 1, 0, 1]]
    >>> observations, rewards, dones, infos = venv.step(np.zeros(3, dtype=int))
    >>> rewards.dtype, dones.tolist()
    (dtype('float32'), [False, False, False])
    >>> list(infos[0])
    ['TimeLimit.truncated']
    >>> from stable_baselines3 import PPO
    >>> model = PPO("MultiInputPolicy", venv, n_steps=8, batch_size=24, device="cpu").learn(24)
    >>> model.num_timesteps
    24

    Args:
        env: the vector environment, wrapped or not, with ``autoreset_mode="SameStep"``.

    Attributes:
        env: the vector environment.

    Raises:
        TypeError: if ``env`` is not a Gymnasium ``VectorEnv``.
        ValueError: if its autoreset mode is another.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        if not isinstance(env, VectorEnv):
            raise ArgumentTypeError(
                f"SB3VecEnv takes a gymnasium VectorEnv, such as gym.make_vec makes, not {env!r}"
            )
        mode = env.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ArgumentError(
                f"the autoreset mode of {env} is {getattr(mode, 'value', mode)!r}, but SB3 needs "
                "'SameStep': make the environment with "
                'gym.make_vec(..., autoreset_mode="SameStep")'
            )
        self.env = env  # VecEnv.__init__ asks for its render mode
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata = dict(env.metadata)
        self.spec = env.spec  # VecMonitor writes its id
        self._reset_with: dict[str, Any] = {}
        # SB3 keeps the last observations while it steps, and SyncVectorEnv(copy=False) writes
        # the next ones over them.
        self._reused = getattr(env.unwrapped, "copy", True) is False
        self._actions: Any = None

    # --- episodes -------------------------------------------------------------------------

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next reset; by default one is drawn."""
        return super().seed(optional(check_whole)("seed", seed, 0))

    def reset(self) -> VecEnvObs:
        """Start an episode in every lane, with the seed and the options set before."""
        seed = self._seeds[0]
        observations, infos = self.env.reset(
            seed=None if seed is None else int(seed), options=self._reset_with or None
        )
        self.reset_infos = lane_infos(infos, self.num_envs)
        self._reset_seeds()
        self._reset_with = {}
        return self._kept(observations)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions, one per lane, for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step every lane; those that end start their next episode.

        Returns:
            The observations, the rewards (float32), which lanes ended, and a dictionary per lane.
            It holds what the single environment's info does, and ``"TimeLimit.truncated"``; if the
            lane ended also ``"terminal_observation"``.
        """
        observations, rewards, terminations, truncations, infos = self.env.step(self._actions)
        dones = np.logical_or(terminations, truncations)
        (ended,) = dones.nonzero()
        of_lanes = lane_infos(infos, self.num_envs, without=FINAL_KEYS)
        finals = lane_infos(infos.get("final_info", {}), self.num_envs, ended)
        for lane, final in zip(ended.tolist(), finals, strict=True):
            # What is said so far is about the new episode, but for the statistics of the old one,
            # which are here, and not in the final info, if ``RecordEpisodeStatistics`` made them.
            self.reset_infos[lane] = of_lanes[lane]
            if (episode := of_lanes[lane].pop("episode", None)) is not None:
                final["episode"] = episode
            of_lanes[lane] = final
        for info, truncated in zip(of_lanes, (truncations & ~terminations).tolist(), strict=True):
            info["TimeLimit.truncated"] = truncated
        for lane in ended.tolist():
            of_lanes[lane]["terminal_observation"] = infos["final_obs"][lane]
        return self._kept(observations), rewards.astype(np.float32), dones, of_lanes

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Set the options of the next reset.

        Args:
            options: the options of all lanes, or a list with those of each. All lanes have the same
                ones, with the same values; only ``"state"`` may differ from lane to lane, if the
                vector environment is one of ours.

        Raises:
            ValueError: if options of several lanes cannot be those of one reset.
        """
        if options is None or isinstance(options, dict):
            self._reset_with = copy.deepcopy(options or {})
        elif isinstance(options, (list, tuple)) and all(isinstance(one, dict) for one in options):
            self._reset_with = copy.deepcopy(self._merged(list(options)))
        else:
            raise ArgumentTypeError(
                f"options is a dictionary, or a list of one for each lane, not {options!r}"
            )

    def _merged(self, options: list[dict[str, Any]]) -> dict[str, Any]:
        """The options of one reset that gives every lane its own."""
        if len(options) != self.num_envs:
            raise ArgumentError(f"{len(options)} dictionaries of options for {self.num_envs} lanes")
        first, mdp = options[0], getattr(self.env.unwrapped, "mdp", None)
        for lane, other in enumerate(options):
            if other.keys() != first.keys():
                raise ArgumentError(
                    f"lanes are reset together: the options of lane {lane} are {sorted(other)}, "
                    f"those of lane 0 are {sorted(first)}"
                )
        merged = dict(first)
        for key, value in first.items():
            values = [other[key] for other in options]
            if all(data_equivalence(value, other, exact=True) for other in values):
                continue
            if key != "state" or not isinstance(mdp, ExoMDP):
                raise ArgumentError(
                    f"lanes are reset together: option {key!r} cannot differ from lane to lane"
                )
            states = [as_state(mdp, own, (1,)) for own in values]
            merged[key] = State(*(np.concatenate(parts) for parts in zip(*states, strict=True)))
        return merged

    def get_state(self) -> Any:
        """A snapshot of all lanes, generators included, that can be pickled.

        Wrappers are not part of it, nor is torch's generator. A model that is loaded with
        ``force_reset=False`` and learns with ``reset_num_timesteps=False`` goes on from there.
        """
        base: Any = self.env.unwrapped
        return base.get_state()

    def set_state(self, snapshot: Any) -> None:
        base: Any = self.env.unwrapped
        base.set_state(snapshot)

    def close(self) -> None:
        self.env.close()

    # --- pictures -------------------------------------------------------------------------

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """A picture of every lane; None if the render mode is not ``"rgb_array"``."""
        if self.render_mode != "rgb_array":
            gym.logger.warn(f"pictures need render_mode='rgb_array', not {self.render_mode!r}")
            return [None] * self.num_envs
        frames: Any = self.env.render()
        return list(frames)

    # --- attributes -----------------------------------------------------------------------

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of the outermost wrapper that has it, or else of the vector environment.

        Returns:
            The same object for every lane asked for.
        """
        for layer in layers(self.env):
            try:
                value = getattr(layer, attr_name)
            except AttributeError:
                continue
            return [value for _ in self._lanes(indices)]
        raise AttributeError(f"{self.env} has no attribute {attr_name!r}, nor has what it wraps")

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute where :meth:`get_attr` finds it; if it is new, of the outermost wrapper.

        Raises:
            ValueError: if ``indices`` leaves out a lane, because none has its own attributes.
        """
        left_out = sorted({*range(self.num_envs)} - {*self._lanes(indices)})
        if left_out:
            raise ArgumentError(
                f"all lanes are one object: {attr_name!r} is set for all of them, so it cannot "
                f"be left as it is in lanes {left_out}"
            )
        owners = (layer for layer in layers(self.env) if hasattr(layer, attr_name))
        setattr(next(owners, self.env), attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method that :meth:`get_attr` finds, once, for all lanes at a time.

        Returns:
            What it returned, the same object for every lane asked for.
        """
        lanes = self._lanes(indices)
        if not lanes:
            return []
        result = self.get_attr(method_name, lanes)[0](*method_args, **method_kwargs)
        return [result for _ in lanes]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Whether a wrapper of this class, a ``VectorWrapper``, is around the vector environment.

        Returns:
            The same for every lane asked for.
        """
        wrapped = any(
            isinstance(layer, wrapper_class)
            for layer in layers(self.env)
            if isinstance(layer, VectorWrapper)
        )
        return [wrapped for _ in self._lanes(indices)]

    # --------------------------------------------------------------------------------------

    def _kept(self, observations: Any) -> Any:
        return copy.deepcopy(observations) if self._reused else observations

    def _lanes(self, indices: VecEnvIndices) -> list[int]:
        lanes = range(self.num_envs)
        try:
            return [lanes[index] for index in self._get_indices(indices)]
        except (IndexError, TypeError):
            raise IndexError(
                f"indices are lanes, 0 ... {self.num_envs - 1}, not {indices!r}"
            ) from None


def lane_infos(
    infos: Mapping[str, Any],
    num_envs: int,
    lanes: NDArray[np.intp] | None = None,
    *,
    without: Collection[str] = (),
) -> Infos:
    """Gymnasium's vector infos lane by lane; ``infos["_key"]`` says who has a ``"key"``.

    Args:
        infos: of all lanes.
        num_envs: how many those are.
        lanes: which of them are wanted; by default all.
        without: keys that are left out.
    """
    made: Infos = [{} for _ in range(num_envs if lanes is None else len(lanes))]
    for key in infos:
        if key in without or (key[:1] == "_" and key[1:] in infos):
            continue
        mask = infos.get("_" + key)
        if mask is None or np.count_nonzero(mask) == num_envs:
            column = _lane_values(infos[key], num_envs, lanes)
            for info, value in zip(made, column, strict=False):
                info[key] = value
        elif len(having := np.flatnonzero(mask if lanes is None else mask[lanes])):
            column = _lane_values(infos[key], num_envs, lanes)
            for index in having.tolist():
                made[index][key] = column[index]
    return made


def _lane_values(values: Any, num_envs: int, lanes: NDArray[np.intp] | None) -> Any:
    """A sequence of what each lane has."""
    if isinstance(values, np.ndarray) and values.shape[:1] == (num_envs,):
        if lanes is not None:
            values = values[lanes]
        # Numbers are those of Python, as single environments give them; rows are arrays.
        return values.tolist() if values.ndim == 1 else values
    if isinstance(values, dict):
        return lane_infos(values, num_envs, lanes)
    return [values] * num_envs  # about the batch, not about its lanes
