"""What every planner relies on.

- ``policy``, ``observer``: policies, and how they read observations.
- ``planner``: the protocol of planners, and their plans.
- ``evaluation``, ``rare_events``: returns of a policy, and intervals that hold for rare losses.
- ``memory``: what was computed for one mask and serves the next one.
- ``files``: policies and models as files.
- ``arrays``: joint values as numbers, and as many rows as one call takes.
"""
