"""The command ``exo-mask``, and what the commands in ``scripts/`` share with it.

==================  ================================================================
``command.py``      ``exo-mask`` itself: learn a mask, say why, and what it earns
``arguments.py``    arguments that commands share, checked before any work
``models.py``       models named on the command line: an id or ``module:Class``
``explanation.py``  steps and explanations in words, by families of variables
``progress.py``     a live line on a terminal, log lines elsewhere
``console.py``      text as wide as the terminal, and how a command ends
==================  ================================================================
"""
