"""What everything else relies on.

- ``model``, ``mdp``: what a model declares and answers, and what follows from that.
- ``ends``: ends of episodes that depend on x, carried in n.
- ``arguments``, ``errors``: what users hand in is checked, and refused in plain words.
- ``batches``, ``spaces``: states, actions and masks as arrays, and as Gymnasium's spaces.
- ``kernels``: compiled steps as a model offers them, and the random numbers they take.
- ``statistics``: distributions and tests, on SciPy.
- ``clock``: time limits.
"""
