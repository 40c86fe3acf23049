"""RDDL descriptions as models: :func:`from_rddl`."""
