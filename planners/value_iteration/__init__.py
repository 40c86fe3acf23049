"""The exact planner: value iteration over all states (x, n).

- ``planner``: :class:`ValueIteration`, its settings, and what it needs in memory.
- ``run``: one plan in the making: sweeps, bounds and the clock.
- ``finite_horizon``: the best values with a given number of steps left.
- ``preparation``: a model in the form in which sweeps read it.
- ``sweeps``: the kernels of one sweep.
- ``backups``: the part of them for one x.
- ``exogenous_part``: what of V depends on x alone.
- ``endogenous_part``: what of the changes of V depends on n alone.
- ``warm_start``: the values of one plan, laid out for another model.
- ``successors``: the decision lists in the form in which sweeps read them.
- ``elimination``: in which order to sum over the exogenous variables of the next step.
- ``expectation``: that sum, step by step.
- ``team``: threads that share a sweep.
- ``extrapolation``: what sweeps with fixed actions will converge to.
- ``tabular_policy``: :class:`TabularPolicy`, what comes out.
"""
