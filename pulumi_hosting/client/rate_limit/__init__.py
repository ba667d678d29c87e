"""The rate limit: one queue per key and bucket for all processes of a user on this machine."""
