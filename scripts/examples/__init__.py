"""Worked examples of models from tables: `python scripts/example.py battery` and its like.

`recorded` finds data that other packages ship, `generated` makes some where they are not installed,
and `tutorial` does with each model what one would do next: learn, backtest, compare, draw.
"""
