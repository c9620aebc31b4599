"""Packs set side by side: which differences are real, from run folders to one record."""
