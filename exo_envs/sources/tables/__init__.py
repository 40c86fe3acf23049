"""Models from tables of recorded data: no simulator, no transition model written by hand.

:meth:`TraceMDP.from_frame` takes a table of what nobody controls (weather, prices, orders) and two
small functions: how the agent's part of the state moves, and what is earned. ``frames`` reads
tables and holds later rows out, ``gaps`` fills what they lack; ``forecasts`` adds lags, the
calendar and forecasts; ``record`` makes columns variables and follows what was recorded,
``functions`` calls what the user wrote, and ``rewards`` finds which columns a reward looks at.
"""
