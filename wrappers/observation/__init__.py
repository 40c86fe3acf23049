"""What an agent sees: masked, flat, and masked as a learner decides."""
