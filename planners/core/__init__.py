"""What every planner relies on: policies, plans, evaluation, arrays, the memory, files."""
