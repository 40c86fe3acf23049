"""How scripts/learn_mask.py shows what was learned.

In words (explanation), in a film (film), and between bounds (bounds, bounds_picture).
"""
