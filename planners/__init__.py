"""Planning with exogenous variables: reduced models, solvers, and the evaluation of masks.

A mask names the exogenous variables worth reasoning about. This package holds what turns a mask
into behaviour: the reduced model that it defines, the planners that solve it, and the objective
that scores the resulting policy in the full model.
"""
