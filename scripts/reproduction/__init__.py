"""The paper's experiments (section 6): run them, keep their results, and show them."""
