"""Worked examples of models from tables: `python scripts/example.py battery` and its like.

`battery`, `building` and `inventory` have at most 30 lines of code each, imports included: the
model, learning, the backtest, the pictures. `recorded` finds data that other packages ship,
`generated` makes some where they are not installed, and `report` prints and draws.
"""
