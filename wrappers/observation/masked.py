"""Masks as wrappers, given or learned: the agent sees the exogenous variables of a mask only."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import Self

from exo_envs.core.batches import as_mask
from exo_envs.core.errors import ArgumentError, ArgumentTypeError, unknown_name
from exo_envs.core.mdp import ExoMDP
from exo_envs.core.spaces import NEEDED_SPACE, observed_variables
from exo_envs.sources.simulators.conversion import as_mdp
from planners.core.policy import Policy
from wrappers.fitting.saved import SavedMask
from wrappers.learners.base import MaskLearner
from wrappers.learners.calibrated import CalibratedMaskLearner
from wrappers.reports.ignoring import CostOfIgnoring

Names: TypeAlias = tuple[str, ...]
Observation: TypeAlias = dict[str, Any]
HINT = "wrappers that change observations go around the mask, not under it"


def layers(env: Any) -> Iterator[Any]:
    """The wrappers, from the outermost, and then what they wrap; single or vector environments."""
    yield env
    while isinstance(env, (gym.Wrapper, VectorWrapper)):
        env = env.env
        yield env


class VectorObservation(VectorWrapper):
    """Shows something else of the observations, ``infos["final_obs"]`` included.

    Unlike Gymnasium's ``VectorObservationWrapper`` it takes every autoreset mode.
    """

    def observation(self, observation: Any) -> Any:
        """The agent's view of an observation, or of a batch of them."""
        raise NotImplementedError

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes; ``options["state"]`` is a full state, or one for each lane."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self.observation(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" in infos:
            lanes = np.flatnonzero(infos["_final_obs"])
            infos = {**infos, "final_obs": self.final(infos["final_obs"], lanes)}
        return self.observation(observations), rewards, terminations, truncations, infos

    def final(self, observations: NDArray[Any], lanes: NDArray[np.intp]) -> NDArray[Any]:
        """The agent's view of the last observations of some lanes; None for the others."""
        shown = observations.copy()  # an array of objects
        for lane in lanes:
            shown[lane] = self.observation(shown[lane])
        return shown


class ObservationOf(RecordConstructorArgs):
    """What wrappers of single and of vector environments share that change observations."""

    _wraps: ClassVar[type[Any]]
    unwrapped: Any

    def _observed_space(self, env: Any) -> Any:
        """The observation space of one lane of ``env``, or an error if it cannot be wrapped."""
        if not isinstance(env, self._wraps):
            wanted = f"a gymnasium {self._wraps.__name__}"
            raise ArgumentTypeError(f"{type(self).__name__} wraps {wanted}, not {env!r}")
        return getattr(env, "single_observation_space", env.observation_space)

    def _take(self, env: Any, space: spaces.Space[Any], recorded: dict[str, Any]) -> None:
        """Take hold of ``env``, each lane of which is shown in this space from now on.

        Not before all arguments are checked: in older Gymnasiums a wrapper that is thrown away
        closes what it holds.
        """
        RecordConstructorArgs.__init__(self, **recorded)
        super(RecordConstructorArgs, self).__init__(env)  # type: ignore[call-arg]
        shown: Any = self
        shown.observation_space = space
        if self._wraps is VectorEnv:
            shown.single_observation_space = space
            shown.observation_space = batch_space(space, env.num_envs)


class MaskWrapper(ObservationOf):
    """The part that both wrappers share."""

    def __init__(self, env: Any, mask: Any, *, show_mask: bool = True) -> None:
        space = self._observed_space(env)
        parts = space.spaces if isinstance(space, spaces.Dict) else {}
        # An empty part is left out of an observation.
        absent = spaces.MultiDiscrete([]) if "endogenous" in parts else None
        part = parts.get("exogenous", absent)
        if not isinstance(part, (spaces.MultiDiscrete, spaces.Box)) or len(part.shape) != 1:
            raise ArgumentTypeError(f"the observation space is {space}, not {NEEDED_SPACE}; {HINT}")
        observed = _observed(env, part)
        if (given := part.shape[0]) != (named := len(observed.exogenous_names)):
            raise ArgumentError(
                f"{given} exogenous variables with {named} names are observed; {HINT}"
            )
        self.mask: Names = as_mask(cast("ExoMDP", observed), mask)
        self._known = observed.known
        self._show_mask = show_mask
        self._width = named  # variables of what is underneath
        self._dtype = np.float64 if isinstance(part, spaces.Box) else np.int64
        self._columns = kept = observed.exogenous_indices(self.mask)
        shown: spaces.Space[Any]
        if isinstance(part, spaces.Box):
            shown = spaces.Box(part.low[kept], part.high[kept], dtype=np.float64)
        else:
            shown = spaces.MultiDiscrete(part.nvec[kept], start=part.start[kept])
        rest = {key: part for key, part in parts.items() if key != "exogenous"}
        self._single_space = spaces.Dict(rest | ({"exogenous": shown} if self.mask else {}))
        # Names survive JSON, and mean the same whatever the user gave.
        self._take(env, self._single_space, {"mask": self.mask, "show_mask": show_mask})

    def observation(self, observation: Mapping[str, Any]) -> Observation:
        """A copy of an observation, or of a batch of them, with the variables of the mask."""
        if not isinstance(observation, Mapping) or (self.mask and "exogenous" not in observation):
            raise ArgumentTypeError(
                f"an observation is a mapping with an 'exogenous' part, not {observation!r}"
            )
        kept = {k: copy.deepcopy(v) for k, v in observation.items() if k != "exogenous"}
        if self.mask:
            given = np.asarray(observation["exogenous"])
            if given.shape[-1:] != (self._width,):
                raise ArgumentError(
                    f"the exogenous part of the observation has shape {given.shape}; it should be "
                    f"(..., {self._width})"
                )
            # Indexing would give the batch the memory layout of its transpose.
            exogenous = given.take(self._columns, axis=-1)
            kept["exogenous"] = exogenous.astype(self._dtype, copy=False)
        return kept

    def _drawn_mask(self) -> Names:
        """The variables that are marked in pictures."""
        return self.mask

    @contextmanager
    def _shown(self, *, drawing: bool = True) -> Iterator[None]:
        """Draw the mask over pictures made meanwhile."""
        if not (drawing and self._show_mask):
            yield
            return
        from exo_envs.rendering.viewer import Viewer

        viewer = getattr(self.unwrapped, "viewer", None)
        if not isinstance(viewer, Viewer) or viewer.mask is not None:
            yield  # a mask that is there already is the user's, or of a wrapper around this one
            return
        viewer.mask = self._drawn_mask()
        try:
            yield
        finally:
            viewer.mask = None


class MaskedObservation(MaskWrapper, gym.ObservationWrapper[Observation, Any, Any]):
    """Shows the agent only the exogenous variables that a mask keeps.

    The environment's observations are ``Dict(endogenous=..., exogenous=MultiDiscrete)``, or have a
    ``Box`` there. The part ``"exogenous"`` shrinks to the variables of the mask, in the order of
    the model; an empty mask drops it. All else stays as it is: the dynamics, the state for
    ``reset(options={"state": ...})`` (a full one), the reward, and ``info["reward_terms"]``, which
    has a term for *every* variable.

    The variables have the names of the model, ``env.unwrapped.mdp``. In an environment without one
    they are ``exogenous_0`` ..., as in :class:`exo_envs.AdaptedMDP`. Where the observation is
    masked already, names and indices are those of what the first mask kept.

    Pictures of the suite's environments have the mask drawn over them if they are drawn through
    this wrapper; of several wrappers the outermost counts, and a mask that the user put there
    (``env.unwrapped.show_mask(...)``) before any of them. The environment itself is not changed.

    >>> env = MaskedObservation(gym.make("exo_envs:ExoGrid-v0"), ["guard", "object"])
    >>> env.mask
    ('object', 'guard')
    >>> observation, _ = env.reset(options={"state": ([0], [2, 0, 1, 0, 1])})
    >>> observation["exogenous"]
    array([2, 1])
    >>> gym.make(env.spec).get_wrapper_attr("mask")  # the spec remembers the mask
    ('object', 'guard')

    Args:
        env: the environment, wrapped or not.
        mask: the variables to keep: names, patterns such as ``"guard*"``, indices, booleans, or a
            mapping from names to booleans; see :func:`exo_envs.core.batches.as_mask`.
        show_mask: whether pictures have the mask drawn over them.

    Attributes:
        mask: the names of the variables that are kept, in the order of the model.

    Raises:
        TypeError: if the observations are others, or if the mask is a single string or a mixture.
        ValueError: if the mask has an unknown variable, or one twice, or a wrong length.
    """

    _wraps = gym.Env

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; ``options["state"]`` is a full state."""
        with self._shown(drawing=self.render_mode == "human"):
            return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, dict[str, Any]]:
        with self._shown(drawing=self.render_mode == "human"):
            return super().step(action)

    def render(self) -> Any:
        with self._shown():
            return super().render()


class MaskedVectorObservation(MaskWrapper, VectorObservation):
    """The vector twin of :class:`MaskedObservation`, with the same arguments and attributes.

    All three autoreset modes work, and ``infos["final_obs"]`` is masked too. In Gymnasium's
    ``SyncVectorEnv`` and ``AsyncVectorEnv`` the variables have the names of the lanes' model.

    >>> env = gym.make_vec("exo_envs:ExoGrid-v0", num_envs=3)
    >>> env = MaskedVectorObservation(env, ["guard", "object"])
    >>> env.reset(seed=0)[0]["exogenous"].shape
    (3, 2)
    """

    _wraps = VectorEnv

    def render(self) -> Any:
        with self._shown():
            return super().render()


class LearnedMask(MaskedObservation):
    """Learns which exogenous variables matter in an environment, and shows the agent only those.

    It fits a learner, which may take a while, and is a :class:`MaskedObservation` from then on.
    The environment's spec remembers the mask, so ``gym.make(env.spec)`` does not learn again.
    Copies, pickled ones too, have the mask and the policy, but not the learner with its data; so
    has what :meth:`load` makes of a file that :meth:`save` wrote.

    >>> env = LearnedMask(gym.make("exo_envs:ExoGrid-v0"), rng=0)
    >>> env.mask
    ('object', 'carrier', 'guard', 'guard_intent')

    Args:
        env: the environment; anything :func:`exo_envs.as_mdp` takes.
        learner: by default a :class:`CalibratedMaskLearner`. A clone of it is fitted, so that one
            learner can be given to many environments.
        rng: a generator or a seed for it.
        mask: one that was learned before: then nothing is learned.
        show_mask: whether pictures have the mask drawn over them.

    Attributes:
        mask: the names of the variables that are kept.
        learner: the clone that was fitted; None in a copy, or if the mask was given.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        learner: MaskLearner | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        mask: Any = None,
        show_mask: bool = True,
    ) -> None:
        given: Any = env
        if isinstance(given, VectorEnv):
            raise ArgumentTypeError(
                "LearnedMask learns on one environment, not on a vector environment: learn on "
                "gym.make(...), then MaskedVectorObservation(vector_env, learned.mask)"
            )
        if not isinstance(given, gym.Env):
            raise ArgumentTypeError(f"LearnedMask wraps a gymnasium Env, not {env!r}")
        if learner is not None:
            check_learner(learner)
        self.learner: MaskLearner | None = None
        self._policy: Policy | None = None
        self._saved: SavedMask | None = None  # how the mask was learned, also in copies
        if mask is None:
            self.learner = CalibratedMaskLearner() if learner is None else learner.clone()
            check_unmasked(env)
            self.learner.fit(env, rng=rng)
            self._policy, self._saved = self.learner.policy_, self.learner.saved()
            mask = self.learner.get_support()  # not names: a foreign environment may have others
        elif learner is not None:
            raise ArgumentError("give a learner or a mask that was learned before, not both")
        super().__init__(env, mask, show_mask=show_mask)

    @property
    def policy(self) -> Policy | None:
        """The policy that was planned with the mask; None if the mask was given.

        It takes the observations of this environment, and those of the one underneath.
        """
        return self._policy

    @property
    def cost_of_ignoring(self) -> CostOfIgnoring:
        """The loss of the mask's policy against policies that may look at everything.

        An interval (``low``, ``high``); see :attr:`MaskLearner.cost_of_ignoring_`. It is worked out
        when it is first read, which may take as long as learning did, and remembered.

        Raises:
            ValueError: the mask was given, or this is a copy, which has no learner; or learning
                was stopped before there was a policy.
        """
        if self.learner is None:
            raise ArgumentError(
                "this mask was not learned here: it was given, or this is a copy, and copies do "
                "not carry the learner; ask the one that learned it"
            )
        return self.learner.cost_of_ignoring_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write mask and policy to one file, whatever its suffix, without pickle.

        :meth:`load` reads both back; ``SavedMask.load`` and ``Policy.load`` read one of them. If
        the policy is of a kind that no file can hold, such as tree search, a warning says so and
        the file is the mask's JSON alone. Copies and what :meth:`load` made save the same.

        Raises:
            ValueError: the mask was given, so nobody knows how it was learned.
        """
        if self._saved is None:
            raise ArgumentError(
                "this mask was given, not learned or loaded: there is nothing to save"
            )
        self._saved.save(path, policy=self._policy)

    @classmethod
    def load(cls, env: gym.Env[Any, Any], path: str | os.PathLike[str]) -> Self:
        """Put a mask from a file around an environment with the same exogenous variables.

        The policy is the one that was saved with the mask, or None if it was saved alone.
        """
        saved = SavedMask.load(path)
        mdp = as_mdp(env)
        saved.check(mdp)
        policy = saved.load_policy(path, mdp)
        loaded = cls(env, mask=[name in set(saved.mask) for name in saved.names])
        loaded._policy, loaded._saved = policy, saved
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "learner": None}


def check_learner(learner: Any) -> MaskLearner:
    if not isinstance(learner, MaskLearner):
        raise ArgumentTypeError(
            f"a learner is a MaskLearner such as CalibratedMaskLearner(), not {learner!r}"
        )
    return learner


def check_unmasked(env: gym.Env[Any, Any]) -> None:
    """Refuse an environment that does not show all of x: nothing can be learned about the rest."""
    seen = getattr(env.observation_space, "spaces", {}).get("exogenous")
    named = len(as_mdp(env).exogenous_names)
    if (0 if seen is None else seen.shape[0]) != named:
        raise ArgumentError(
            f"the observation does not show all {named} exogenous variables; learn on the "
            "environment underneath, and mask it again"
        )


@dataclass(frozen=True)
class _Observed:
    """The exogenous variables in an observation; :func:`as_mask` asks a model for no more."""

    exogenous_names: Names
    known: frozenset[str]  # those that masks underneath dropped included

    def exogenous_indices(self, names: Sequence[Any]) -> NDArray[np.intp]:
        positions = {name: i for i, name in enumerate(self.exogenous_names)}
        for name in names:
            if not isinstance(name, str) or name not in self.known:
                raise unknown_name("exogenous variable", name, self.exogenous_names)
            if name not in positions:
                raise ArgumentError(
                    f"exogenous variable {name!r} is no longer there: a mask underneath keeps "
                    f"{len(positions)} of {len(self.known)} variables, and not this one"
                )
        return np.array([positions[name] for name in names], dtype=np.intp)


def _observed(env: Any, part: spaces.MultiDiscrete[Any] | spaces.Box) -> _Observed:
    """The variables as a mask underneath names them, or the model, or else the adapter."""
    while isinstance(env, (gym.Wrapper, VectorWrapper)) and not isinstance(env, MaskWrapper):
        env = env.env
    if isinstance(env, MaskWrapper):
        return _Observed(env.mask, env._known)
    if isinstance(env, SyncVectorEnv):
        return _observed(env.envs[0], part)
    if isinstance(env, AsyncVectorEnv):  # asked for what they lack, its lanes would die
        mdp = env.get_attr("mdp")[0] if all(env.call("has_wrapper_attr", "mdp")) else None
    else:
        mdp = getattr(env, "mdp", None)
    if isinstance(mdp, ExoMDP):
        return _Observed(mdp.exogenous_names, frozenset(mdp.exogenous_names))
    whole = part if isinstance(part, spaces.Box) else spaces.MultiDiscrete(part.nvec)
    space = spaces.Dict(exogenous=whole)
    names = tuple(v.name for v in observed_variables(space, "exogenous", None))
    return _Observed(names, frozenset(names))
