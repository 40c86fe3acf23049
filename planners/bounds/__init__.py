"""How good a policy is, and how good any policy can be: bounds on both sides of the best value.

- ``bracketing``: :func:`bracket`, which plays the policy and bounds all others; :class:`Bracket`.
- ``relaxation``: the best return in hindsight, by backward induction over (t, n).
- ``penalty``: the price of knowing the future, made of approximate values: :class:`ValueFunction`.
"""
