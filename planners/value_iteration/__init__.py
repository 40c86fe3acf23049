"""The exact planner: value iteration over all states (x, n).

- ``planner``: :class:`ValueIteration`, and one plan in the making: sweeps, bounds and the clock.
- ``sweeps``: the kernels of one sweep, and the best values with a given number of steps left.
- ``successors``: the decision lists in the form in which sweeps read them.
- ``elimination``: in which order to sum over the exogenous variables of the next step.
- ``expectation``: that sum, step by step, and the threads that share it.
- ``convergence``: what the sweeps to come would add, worked out at once.
- ``tabular_policy``: :class:`TabularPolicy`, what comes out.
"""
