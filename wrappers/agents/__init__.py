"""Trained agents as policies, and what training libraries need."""
