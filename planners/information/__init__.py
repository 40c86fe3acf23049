"""Who predicts whom: rollouts, contingency counts, tests, parents, interventions."""
