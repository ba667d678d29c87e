"""Unit tests of programs that use the API: a pytest plugin, and what its fixtures give
(:mod:`~pulumi_hosting.testing.doubles`). ``docs/unit-testing.md`` shows both.
"""
