"""Writes every generated file of the repository: ``python -m generate``, or ``make generate``."""
