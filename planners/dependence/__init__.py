"""Who predicts whom, counted in rollouts of the exogenous variables.

* ``contingency``: samples by joint value, what columns tell about a target, conditional tables.
* ``pairwise``: many columns in the same samples, and information between all pairs of variables.
* ``transitions``: what the search for parents counts, and what it finds where there is nothing.
* ``parents``: the parents of a variable, chosen and explained.
* ``selection``: choosing variables one by one, and adding parents of parents while there is room.
* ``interventions``: which variables act on which, by changing them.
* ``group_testing``: the same for many variables at once, by halving.
* ``duplicates``: variables that say the same.
* ``same_process``: whether two models have the same exogenous process.
* ``resolution``: what bins of very many values hide.
"""
