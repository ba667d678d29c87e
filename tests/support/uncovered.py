"""Tests that coverage does not watch: it doubles their cost, and others cover what they run."""

import pytest

FOLDERS = ("tests/between_runs/", "tests/crash/", "tests/simulation/", "tests/transcripts/")
FILES = (
    "tests/contract/test_schemathesis.py",
    "tests/emulator/test_random_operations.py",
    "tests/session/test_snapshot_stateful.py",
    "tests/test_request_counts.py",
)


@pytest.hookimpl(trylast=True)  # after hypothesis has marked its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith((*FOLDERS, *FILES)) or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.no_cover)
