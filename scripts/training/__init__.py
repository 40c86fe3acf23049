"""What the training scripts share.

study: their command line and what they print · task: the environment, and what agents are compared
with · runs: one for each agent · curves, plots: how agents improve.
"""
