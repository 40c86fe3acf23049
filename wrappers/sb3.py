"""What Stable-Baselines3 needs of us; the extra ``rl`` installs it."""

from wrappers.agents.sb3 import GatedExtractor, SB3VecEnv

__all__ = ["GatedExtractor", "SB3VecEnv"]
