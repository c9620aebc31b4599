"""Benchmarks: each a ratio of two things timed in turn in one run; see ``base``."""
