"""The command ``exo-mask``, and what the commands in ``scripts/`` share with it.

==================  ================================================================
``command.py``      ``exo-mask`` itself
``arguments.py``    arguments that commands share, checked before any work
``models.py``       what is named on the command line: an id or ``module:Class``
``learning.py``     learning with a bar
``explanation.py``  what was kept and dropped, and why
``worth.py``        what the mask earns, and what it gives up
``progress.py``     what goes on, for who waits
``console.py``      text and tables as wide as the terminal
``running.py``      how a command ends: errors, Ctrl-C, a closed pipe
==================  ================================================================
"""
