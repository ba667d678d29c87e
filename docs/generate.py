"""Replaced by ``python -m generate``."""
