"""The agent's view: observations that are masked, flat, or masked as a learner decides."""
