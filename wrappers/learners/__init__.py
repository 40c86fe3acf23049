"""Mask learners: the paper's (section 5), and ours."""
