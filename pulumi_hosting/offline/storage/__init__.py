"""Files: the project, its stacks' settings, state and locks, and their secrets."""
