"""How scripts/learn_mask.py shows what was learned: in words (explanation), in a film (film)."""
