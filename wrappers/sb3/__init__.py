"""For Stable-Baselines3: the batched shell as a ``VecEnv``, and a network for split states."""

from exo_envs.core.errors import NotInstalledError

try:
    from wrappers.sb3.network import GatedExtractor
    from wrappers.sb3.vec_env import SB3VecEnv
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] not in {"stable_baselines3", "torch"}:
        raise
    raise NotInstalledError(
        'wrappers.sb3 needs Stable-Baselines3: pip install "exo-envs[rl]"'
    ) from error

__all__ = ["GatedExtractor", "SB3VecEnv"]
