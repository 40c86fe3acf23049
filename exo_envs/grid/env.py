"""The Gymnasium shells of ExoGrid."""

from __future__ import annotations

from typing import Any, ClassVar

from gymnasium.vector import AutoresetMode

from exo_envs.env import ExoEnv
from exo_envs.grid.model import GridMDP, GridParameters
from exo_envs.grid.viewer import GridViewer
from exo_envs.inputs import as_parameters
from exo_envs.vector_env import ExoVectorEnv


class GridEnv(ExoEnv):
    """A robot looks for an object that somebody carries about, past a guard in one of two doors.

    DOC
    """

    metadata: ClassVar[dict[str, Any]] = GridViewer.metadata  # type: ignore[misc]

    def __init__(self, *, render_mode: str | None = None, **parameters: Any) -> None:
        """Take the fields of :class:`GridParameters` as keyword arguments."""
        mdp = GridMDP(as_parameters(GridParameters, parameters))
        super().__init__(mdp, render_mode, viewer=GridViewer(mdp))


class GridVectorEnv(ExoVectorEnv):
    """The vector twin of :class:`GridEnv`: ``gym.make_vec("ExoGrid-v0", num_envs=512)``."""

    metadata: ClassVar[dict[str, Any]] = GridViewer.metadata  # type: ignore[misc]

    def __init__(
        self,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        """Take the arguments of :class:`ExoVectorEnv` and those of :class:`GridEnv`."""
        mdp = GridMDP(as_parameters(GridParameters, parameters))
        super().__init__(
            mdp,
            num_envs,
            max_episode_steps=max_episode_steps,
            autoreset_mode=autoreset_mode,
            render_mode=render_mode,
            viewer=GridViewer(mdp),
        )
