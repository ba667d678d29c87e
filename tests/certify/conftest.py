"""What the tests of certify leave as it was."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _level_of_the_log() -> Iterator[None]:
    """A deployment of the proof silences the emulator's log, for tests after it as well."""
    log = logging.getLogger("pulumi_hosting.emulator")
    before = log.level
    yield
    log.setLevel(before)
