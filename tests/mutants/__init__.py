"""Every safety step can be switched off, and a named test fails without it: ``python -m tests.mutants``."""
