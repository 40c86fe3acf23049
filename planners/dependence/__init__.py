"""Who predicts whom, counted in rollouts of the exogenous variables.

* ``contingency``: samples by joint value, what columns tell about a target, conditional tables.
* ``pairwise``: many columns in the same samples, what all pairs tell, and which say the same.
* ``parents``: what is counted of transitions, and the parents of a variable, chosen and explained.
* ``interventions``: which variables act on which, by changing them.
* ``same_process``: whether two models have the same exogenous process.
* ``resolution``: what bins of very many values hide.
"""
