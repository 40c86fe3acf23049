"""Models made of what users have: simulators, tables of data, RDDL descriptions."""
