"""Numba: functions that are compiled once on a machine, and work shared by threads."""
