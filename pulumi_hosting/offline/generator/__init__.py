"""Decides which steps bring a resource to what the program declares."""
