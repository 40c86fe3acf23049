"""The online planner, for masks whose joint values cannot be enumerated.

* ``planner``: :class:`ForecastPlanner`, and :class:`ForecastPolicy`, what comes out.
* ``forecast_parents``: which variables now the forecast of a variable looks at.
* ``forecasts``: the distribution of each variable some steps ahead, given its forecast parents.
* ``additive``: forecasts from all variables at once, where they are better for the first steps.
* ``recourse``: what is seen before a later decision, and how it may be made then.
* ``compiled_model``: rewards, rules and choices of a model, a record for each kernel.
* ``lookahead``: backward induction over (steps ahead, n) with the forecasts.
"""
