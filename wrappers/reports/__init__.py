"""Reports about a mask: why each variable was kept, at which price, and what is in doubt.

They are functions of a fitted learner (:class:`wrappers.fitting.session.FittedLearner`), and
certificates of any mask.

===================  ===============================================================
``explanation.py``   worth, decision and sentence of each variable, as a table and a plot
``signs.py``         ... and what speaks for each
``path.py``          the price curve: which mask is best at which λ
``certificate.py``   the conditions of Theorem 1 for a mask, checked one by one
``effects.py``       ... by changing one variable
``paired_tests.py``  ... and testing whether what follows has changed
``doubts.py``        what the data cannot decide
``ignoring.py``      what a mask gives up against everything, as an interval
``tables.py``        tables as Markdown, HTML and for pandas
===================  ===============================================================
"""
