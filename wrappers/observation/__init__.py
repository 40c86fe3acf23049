"""What an agent sees: observations that are masked, flat, or masked as a learner decides."""
