"""The online planner, for masks whose joint values cannot be enumerated.

* ``planner``: :class:`ForecastPlanner`, and :class:`ForecastPolicy`, what comes out.
* ``forecast_parents``: which variables now the forecast of a variable looks at.
* ``forecasts``: the distribution of each variable some steps ahead, given its forecast parents.
* ``additive``: forecasts from all variables at once, where they are better for the first steps.
* ``lookahead``: backward induction over (steps ahead, n) with those forecasts.
"""

from planners.forecasting.planner import ForecastPlanner, ForecastPolicy

__all__ = ["ForecastPlanner", "ForecastPolicy"]
