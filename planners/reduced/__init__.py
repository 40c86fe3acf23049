"""Reduced models (section 3.2 of the paper): the MDP of a mask, estimated from samples.

* ``reduced_mdp``: the reduced model, how it is estimated, and its two kinds.
* ``survey``: how n moves and what pays, asked once for all masks, and again for another task.
* ``questions``: where (n, a) leads, and which x matter, asked at states of our choice.
* ``decision_list_learning``: P(n' | n, a, x) of all variables, as decision lists.
* ``rewards``: R^i of all variables, also of a model that only tells how much it is in all.
* ``marginals``, ``ignored_rewards``: the same of a mask, with dropped variables averaged out.
"""
