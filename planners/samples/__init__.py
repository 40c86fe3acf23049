"""What a model is asked: counted questions, and rollouts of x that need no policy."""
