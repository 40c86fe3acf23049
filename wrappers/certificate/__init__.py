"""A certificate for a mask: does ignoring the rest keep the conditions of Theorem 1?

======================  =====================================================================
``certifying.py``       :func:`certify`: all conditions, variable by variable
``evidence.py``         what speaks for and against each of them
``paired_tests.py``     tests of two samples from the same states, and what they would find
``exact.py``            the same without statistics: tables, rewards, given probabilities
``certificate.py``      the result
======================  =====================================================================
"""
