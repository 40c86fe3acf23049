"""Where a model's answers enter, they are checked; what is behind relies on it.

Compiled kernels do not look whether an index is within its array: one value out of range would end
the process, or worse. So everything that a model returns (values, shapes, types) is checked here,
once for each batch (``answers``). The planners ask every model through a :class:`CheckedMDP`, and
both Gymnasium shells look at each step with :func:`check_transition` (``steps``). What takes more
than one answer to see is looked at once, before anything is learned: ``check`` tries the ``rules``,
and those of ``memory`` and of the ``own_steps`` of an ``original``.
"""
