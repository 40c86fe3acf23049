"""Masks as Gymnasium wrappers, and the learners that find them.

A mask names the exogenous variables worth reasoning about. This package holds the wrappers that
show an agent the masked part of an observation only, and the learners that choose the mask.
"""
