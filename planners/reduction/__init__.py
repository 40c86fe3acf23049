"""Reduced models (section 3.2 of the paper): the MDP of a mask, estimated from samples."""
