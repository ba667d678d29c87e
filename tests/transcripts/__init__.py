"""The outside witness: scripted commands, and what a user and the service see of each."""
