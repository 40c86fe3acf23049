"""What every planner relies on: policies, plans, evaluation, clocks, files."""
