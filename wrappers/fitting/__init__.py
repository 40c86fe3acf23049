"""One fit: what is studied, what was found, and what is left behind when it is over.

Learners (:mod:`wrappers.learners`) and what is told about them (:mod:`wrappers.reports`) stand on
this; it imports neither.
"""
