"""The online planner, for masks whose joint values cannot be enumerated."""
