"""What everything else relies on: models, variables, masks, ends, and what users hand in."""
