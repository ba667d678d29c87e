"""The kill matrix: a command is killed at one of its requests, in one of several ways, and run again. Each
cell compares the account with what the tool manages. ``make prove`` runs all cells.
"""
