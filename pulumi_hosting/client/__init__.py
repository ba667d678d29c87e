"""The HTTP client: one method per operation of the table, typed results, typed errors."""
