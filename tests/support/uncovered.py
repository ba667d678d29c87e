"""Tests that coverage does not watch, nor the processes that they start: it doubles their cost, and others
cover what they run. These are all slow ones, all properties, and those named below.
"""

from collections.abc import Generator

import pytest
from coverage.collector import Collector

FOLDERS = ("tests/between_runs/", "tests/crash/", "tests/simulation/", "tests/transcripts/")
FILES = (
    "tests/contract/test_schemathesis.py",
    "tests/emulator/test_random_operations.py",
    "tests/session/test_snapshot_stateful.py",
    "tests/test_request_counts.py",
)
MARKS = ("hypothesis", "slow")


@pytest.hookimpl(trylast=True)  # after hypothesis has marked its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith((*FOLDERS, *FILES)) or any(map(item.get_closest_marker, MARKS)):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True, trylast=True)  # inside of the one in which pytest-cov pauses
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Pause the other measurement too that pytest-cov begins in a worker of xdist: it would go on."""
    others = Collector._collectors[-1:] if item.get_closest_marker("no_cover") else []
    for collector in others:
        collector.pause()
    try:
        return (yield)
    finally:
        for collector in others:
            collector.resume()


@pytest.fixture(autouse=True)
def _unwatched_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("no_cover"):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
