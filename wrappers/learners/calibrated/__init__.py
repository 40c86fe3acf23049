"""Our mask learner."""
