"""A sweep: its folder, its records, who is best, and what a tracker is told of it."""
