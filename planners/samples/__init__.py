"""Rollouts of x, which need no policy."""
