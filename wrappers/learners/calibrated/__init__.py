"""Our mask learner: tests that state their level, then comparisons of J on shared trajectories.

======================  =====================================================================
``relevance.py``        which variables matter: what pays, what moves n, what predicts those
``importance.py``       a guess of what each is worth, which orders the search
``selection.py``        which of them pay their price
``learner.py``          the learner
======================  =====================================================================
"""
