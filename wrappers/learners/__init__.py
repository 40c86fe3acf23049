"""Mask learners, a file each: the paper's (section 5), and ours."""
