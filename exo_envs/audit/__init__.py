"""Which parts of a state actions move, and whether the state is all there is: by experiments.

The paper takes the split into n and x for granted, and leaves finding it to the future (section 7).
Here it is found. Two episodes are alike and then take different actions once: what differs later
was moved (:mod:`~exo_envs.audit.trials`, :mod:`~exo_envs.audit.partition`). The same state
after two different pasts should have the same future, in an environment that is put into states
(:mod:`~exo_envs.audit.pasts`) and in a model that was asked other things before
(:mod:`exo_envs.contract.memory`).
"""
