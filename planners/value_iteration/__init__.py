"""The exact planner, for models whose states can be enumerated."""
