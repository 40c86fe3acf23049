"""Who predicts whom, counted in rollouts of the exogenous variables.

* ``rollouts``: the data, rollouts of x that need no policy.
* ``contingency``: samples by joint value, information, conditional tables.
* ``g_statistic``: the G statistic, of a whole table or of its used cells.
* ``significance``: whether a G is more than chance.
* ``pairwise``: information of many candidates about one target.
* ``counting_kernels``: the loops behind both kinds of counting.
* ``duplicates``: variables that say the same.
* ``forward_selection``: choosing variables one by one.
* ``parents``: the parents of a variable, chosen and explained.
* ``closure``: adding parents of parents, as far as there is room.
* ``transitions``: what the search for parents counts.
* ``interventions``: which variables act on which, by changing them.
* ``same_process``: whether two models have the same exogenous process.
* ``resolution``: what bins of very many values hide.
* ``group_testing``: the same for many variables at once, by halving.
* ``nearest_neighbours``: information between real variables without bins.
* ``cross_check``: what bins and neighbours say about the same pairs.
"""
