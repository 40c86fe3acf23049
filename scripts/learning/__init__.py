"""Pictures of scripts/learn_mask.py: films (film), masks between bounds (bounds, bounds_picture).

What it says in words is said by ``wrappers.cli``.
"""
