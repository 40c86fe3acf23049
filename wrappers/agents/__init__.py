"""Trained agents as policies. ``wrappers.sb3`` has what Stable-Baselines3 needs."""

from wrappers.agents.agent_policy import AgentPolicy

__all__ = ["AgentPolicy"]
