"""Real values, and variables of very many values, seen in bins."""
