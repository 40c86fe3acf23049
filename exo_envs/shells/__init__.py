"""Models as Gymnasium environments: one shell for one state, one for batches."""
