"""The sub-commands of scripts/benchmark.py, one file each.

step: environment steps per second · plan: the planners, on the MDPs of ``problems`` · information:
all pairs of variables · planted: masks that are known · learn: learning as the number of variables
grows · gap: what masks are worth, and what anybody could earn · rl: training · table: all that is
to be fast, before and now. ``timing`` is how all of them measure.
"""
