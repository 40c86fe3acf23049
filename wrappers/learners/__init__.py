"""Mask learners: the paper's (section 5), and ours.

======================  =====================================================================
``brute_force.py``      *Mask-Learning-Brute-Force*
``greedy.py``           *Mask-Learning-Greedy*
``reward_variables.py`` *Estimate-Reward-Variables*: the first phase of the paper's algorithm
``correlational.py``    *Mask-Learning-Correlational*: the paper's algorithm
``divergence.py``       its score, line 3 of the algorithm
``calibrated/``         ours
``base.py``             what all learners share: ``fit``, results, hyper-parameters
``study.py``            what learners share: samples of the model, and what masks are worth
``answers.py``          what a fitted learner can be asked: ``explain``, ``path``
``explanation.py``      why each variable was kept or dropped: rows, tables, a plot
``explaining.py``       makes the rows: decisions and sentences
``signs.py``            what speaks for each variable, and what would have been found
``comparisons.py``      what variables were found to be worth, alone or together
``power.py``            how small an effect the tests can find
``path.py``             the price curve: which mask is best at which λ
``path_search.py``      looks for the masks of a price curve
``rendering.py``        tables and plots
``session.py``          one call of ``fit``: prices, clock, callback
``doubts.py``           what the data cannot decide, for people
``history.py``          records of what a learner did
``ignoring.py``         what a mask gives up against everything
``results.py``          what ``fit`` leaves behind
``refitting.py``        another task over the same exogenous process
``saved.py``            masks as files
======================  =====================================================================
"""
