"""How the state of somebody's simulator is read, and how the simulator is put into a state.

A state is a row of numbers. :class:`~exo_envs.sources.access.state_access.StateAccess` reads and
writes it, by functions that are known or in a way that is found
(:mod:`~exo_envs.sources.access.found`), which may take a walk through what the simulator holds
(:mod:`~exo_envs.sources.access.attributes`). The audit and :class:`exo_envs.AdaptedMDP` use the
same.
"""
