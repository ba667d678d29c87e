"""Unit tests of programs: whether ``pulumi.runtime.set_mocks`` stands in for Pulumi's engine."""

from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor


def mocked() -> bool:
    """Whether the program runs in a unit test."""
    return isinstance(get_monitor(), MockMonitor)
