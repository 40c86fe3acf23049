"""What is told about a mask: why each variable was kept, at which price, and what is in doubt.

Functions of a fitted learner (:class:`wrappers.fitting.session.FittedLearner`), and certificates.
"""
