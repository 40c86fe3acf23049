"""MDPs as tables: the factored model, decision lists, indexing, and export to other solvers."""
