"""Who predicts whom, counted in rollouts of the exogenous variables.

* ``contingency``: samples by joint value, what columns tell about a target, conditional tables.
* ``pairwise``: many columns in the same samples, what all pairs tell, and which say the same.
* ``parents``: what transitions are counted for, and the parents of a variable, with evidence.
* ``interventions``: which variables act on which, by changing them; what bins hide.
* ``same_process``: whether two models have the same exogenous process.
"""
