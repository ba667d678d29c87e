"""Runs one operation: the program, the services it calls, and the steps."""
