"""Machines that share a store: the proof over a real Redis server."""
