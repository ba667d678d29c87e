"""A fresh emulator in the process of the test, in the dialect of the document; ``both`` is one in either dialect."""

import pytest

from tests.emulator.support import EmulatorHarness


@pytest.fixture
def lab() -> EmulatorHarness:
    return EmulatorHarness()


@pytest.fixture
def both(dialect: str) -> EmulatorHarness:
    return EmulatorHarness(dialect=dialect)
