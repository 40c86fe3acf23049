"""One fit is made of three objects.

* The *learner* (:mod:`wrappers.learners`) has settings, and the steps of its procedure.
* The *study* (``study.py``) has the model, its samples, and what is known of the model and its
  masks; learners may share it, and ``refitting.py`` hands it on to another task.
* The *session* (``session.py``) is one run of the steps: prices, deadline, callback, records
  (``history.py``) and the result.

``relevance.py`` finds the variables that matter, and guesses what they are worth; ``saved.py``
writes masks to files. Learners and :mod:`wrappers.reports` stand on this.
"""
