"""How good a policy is, and how good any policy can be: bounds on both sides of the best value.

- ``bracketing``: :func:`bracket`, which plays the policy and bounds all others; :class:`Bracket`.
- ``relaxation``: the best return in hindsight, by backward induction over (t, n).
- ``questions``: what the relaxation asks the model, and whether n' is certain.
- ``penalty``: the price of knowing the future, made of approximate values: :class:`ValueFunction`.
- ``budget``: how often the model is asked, and what a slow one can be asked.
- ``default_model``: which model makes the penalty, if none is given.
- ``lattice``: real variables of n that have few values, which are enumerated.
- ``fitting``: how much of each penalty makes the bound tightest.
"""
