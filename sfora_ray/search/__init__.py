"""The space of a sweep and who proposes points in it: pure functions of seeds, numbers and what was told."""
