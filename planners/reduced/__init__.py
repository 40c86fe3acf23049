"""Reduced models (section 3.2 of the paper): the MDP of a mask, estimated from samples.

* ``reduced_mdp``: the reduced model, and how it is estimated.
* ``tabulated``, ``simulated``: its two kinds, with n enumerated and not.
* ``factors``: P(x' | x) of the masked variables, counted in rollouts.
* ``survey``: what was learned about n and the rewards, for all masks.
* ``resurvey``: the same for another task in which n moves as before.
* ``surveyed_states``, ``successors``, ``rewards``: which n are asked about; where they lead; what
  they pay.
* ``total_rewards``: what pays, of a model that only tells how much it is in all.
* ``decision_list_learning``, ``decision_list_estimation``: P(n' | n, a, x) as decision lists.
* ``backgrounds``, ``marginals``: the same with dropped variables averaged out.
* ``ignored_rewards``: what a reduced model pays for dropped variables.
* ``affordable``: which part of a mask an exact planner can afford.
* ``informative``: which masked variables tell about dropped ones; both averages are given them.
"""
