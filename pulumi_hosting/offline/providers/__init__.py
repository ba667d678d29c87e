"""Provider plugins: processes, calls, and what they answer."""
