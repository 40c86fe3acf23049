"""Real values, and variables of very many values: ``bins``, and models and policies in bins."""
