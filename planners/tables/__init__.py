"""MDPs as tables: what planners plan in.

- ``factored_mdp``: :class:`FactoredMDP`, an MDP whose every probability is in a table.
- ``decision_lists``: :class:`Rule`, :class:`DecisionLists`: where the agent goes for each (n, a).
- ``factors``: :class:`Factor`, how an exogenous variable moves, fitted to rollouts, and joint ones.
- ``indexing``: how states and joint values are numbered, and how many there are; scopes of rewards.
- ``export``: small models as tables of QuantEcon.
"""
